"""The web page: the deployer's settings."""

from __future__ import annotations

from typing import Annotated

from pydantic import AfterValidator, Field, StringConstraints, model_validator

from stacks.answer_settings import Group
from stacks.url_settings import https_origin

MAX_EXAMPLES = 8


class PageSettings(Group):
    """The web page and its address."""

    enabled: bool = Field(
        True, description="deploy the web page: a private bucket behind Amazon CloudFront; see `docs/page.md`"
    )
    sign_in: bool = Field(
        True,
        description="the page signs its users in; with `false` it asks for an access token instead, for an `oidc` "
        "issuer that answers no browser of another origin (CORS)",
    )
    domain_name: Annotated[str, StringConstraints(pattern=r"^([a-z0-9]([a-z0-9-]*[a-z0-9])?\.)+[a-z]{2,}$")] | None = (
        Field(None, description="a domain of yours for the page, such as `ask.example.org`; needs `certificateArn`")
    )
    certificate_arn: (
        Annotated[str, StringConstraints(pattern=r"^arn:aws[a-z-]*:acm:us-east-1:\d{12}:certificate/[0-9a-f-]+$")]
        | None
    ) = Field(None, description="the domain's certificate in AWS Certificate Manager, in us-east-1")
    connect_origins: tuple[Annotated[str, AfterValidator(https_origin)], ...] = Field(
        (),
        description="further origins that the page may call, for an `oidc` issuer whose token endpoint is on another "
        "host than the issuer",
    )
    examples: Annotated[
        tuple[Annotated[str, StringConstraints(min_length=1, max_length=200)], ...], Field(max_length=MAX_EXAMPLES)
    ] = Field((), description="questions that the empty page offers")

    @model_validator(mode="after")
    def _a_domain_has_its_certificate(self) -> PageSettings:
        if (self.domain_name is None) != (self.certificate_arn is None):
            raise ValueError("domainName and certificateArn belong together: give both or neither")
        return self

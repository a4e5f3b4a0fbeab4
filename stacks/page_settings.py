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
        description="sign users in on the page; with `false` the page asks for an access token, for an `oidc` "
        "issuer that does not support CORS",
    )
    domain_name: Annotated[str, StringConstraints(pattern=r"^([a-z0-9]([a-z0-9-]*[a-z0-9])?\.)+[a-z]{2,}$")] | None = (
        Field(None, description="custom domain of the page, such as `ask.example.org`; requires `certificateArn`")
    )
    certificate_arn: (
        Annotated[str, StringConstraints(pattern=r"^arn:aws[a-z-]*:acm:us-east-1:\d{12}:certificate/[0-9a-f-]+$")]
        | None
    ) = Field(None, description="certificate of the domain in AWS Certificate Manager, in us-east-1")
    connect_origins: tuple[Annotated[str, AfterValidator(https_origin)], ...] = Field(
        (),
        description="additional origins that the page can call, for an `oidc` issuer whose token endpoint is on "
        "a different host",
    )
    examples: Annotated[
        tuple[Annotated[str, StringConstraints(min_length=1, max_length=200)], ...], Field(max_length=MAX_EXAMPLES)
    ] = Field((), description="example questions on the empty page")

    @model_validator(mode="after")
    def _a_domain_has_its_certificate(self) -> PageSettings:
        if (self.domain_name is None) != (self.certificate_arn is None):
            raise ValueError("domainName and certificateArn belong together: give both or neither")
        return self

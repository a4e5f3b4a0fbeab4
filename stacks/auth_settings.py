"""Who may connect: the deployer's settings for sign-in."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Annotated, Literal

from pydantic import AfterValidator, Field, StringConstraints, model_validator

from cicada.rights import GroupName
from stacks.answer_settings import Group
from stacks.url_settings import filled_in, origin, web_url

COGNITO_SCOPES = ("openid", "email", "phone", "profile", "aws.cognito.signin.user.admin")
"""What a user pool's client can ask for without a resource server (AWS)."""

COGNITO_GROUPS_CLAIM = "cognito:groups"
"""The claim in which a user pool's tokens name the user's groups."""

RESERVED_IN_DOMAINS = ("aws", "amazon", "cognito")
"""Words that Amazon Cognito refuses in a domain prefix."""

CLAIM_CHARS = 128
"""The longest name of a claim, in characters."""


def _domain_prefix(value: str) -> str:
    found = [word for word in RESERVED_IN_DOMAINS if word in value]
    if found:
        raise ValueError(f"must not contain {found[0]!r}: Amazon Cognito reserves it")
    return value


Audience = Annotated[str, AfterValidator(filled_in), StringConstraints(pattern=r"^[^,]+$")]
"""Of tokens; without commas because the authorizer is given a list with commas."""
Claim = Annotated[str, AfterValidator(filled_in), StringConstraints(max_length=CLAIM_CHARS)]
PoolGroupName = Annotated[str, StringConstraints(pattern=r"^[A-Za-z0-9_.+:=@-]{1,128}$")]


class AuthSettings(Group):
    """Who may connect: users of a pool that the stacks make, or bearers of another issuer's tokens."""

    mode: Literal["cognito", "oidc", "none"] = Field(
        "cognito",
        description="sign-in provider: an Amazon Cognito user pool created by the stacks (`cognito`), your own "
        "OpenID Connect issuer (`oidc`), or none (`none`, only for the local cloud); see "
        "`docs/sign-in.md`",
    )
    issuer: Annotated[str, AfterValidator(web_url)] | None = Field(
        None, description="`oidc`: the `iss` of the tokens, such as `https://tenant.eu.auth0.com/`"
    )
    audience: Audience | None = Field(
        None, description="`oidc`: the `aud` of the tokens: an API's identifier, or the application's client id"
    )
    client_id: Audience | None = Field(
        None,
        description="`oidc`: client ID of the public application that the page and the command line sign in "
        "with; `null` uses `auth.audience`",
    )
    jwks_url: Annotated[str, AfterValidator(web_url)] | None = Field(
        None,
        description="`oidc`: URL of the issuer's keys (JWKS); `null` reads it from "
        "`<issuer>/.well-known/openid-configuration`",
    )
    scopes: tuple[Annotated[str, StringConstraints(pattern=r"^[\x21\x23-\x5b\x5d-\x7e]{1,128}$")], ...] = Field(
        ("openid", "email"),
        description="scopes that the page and the command line request; add `offline_access` if your issuer "
        "requires it for refresh tokens",
    )
    allowed_origins: tuple[Annotated[str, AfterValidator(origin)], ...] = Field(
        (),
        description="allowed browser origins, such as `https://example.org`; empty allows all. The deployed "
        "page's own origin is added",
    )
    tenant_claim: Claim | None = Field(
        None,
        description="token claim with the user's tenant, such as `org_id`; required if `cache.sharing` is `tenant`",
    )
    groups_claim: Claim | None = Field(
        None,
        description="token claim with the user's groups; `null` uses `cognito:groups` with `cognito`, and none "
        "with `oidc`",
    )
    required_groups: tuple[GroupName, ...] = Field(
        (), description="groups whose members can connect; empty allows all users who can sign in"
    )
    token_in_url: bool = Field(
        False,
        description="also accept a token in the URL (`?token=`), for old clients; proxies and browsers log URLs",
    )
    domain_prefix: (
        Annotated[
            str, StringConstraints(pattern=r"^[a-z0-9]([a-z0-9-]{0,61}[a-z0-9])?$"), AfterValidator(_domain_prefix)
        ]
        | None
    ) = Field(
        None,
        description="`cognito`: prefix of the sign-in page `https://<prefix>.auth.<region>.amazoncognito.com`; "
        "`null` builds one from `stackPrefix` and the account ID",
    )
    groups: tuple[PoolGroupName, ...] = Field(
        ("users", "admins"), description="`cognito`: groups that the stacks create in the user pool"
    )

    @model_validator(mode="after")
    def _fits_its_mode(self) -> AuthSettings:
        if self.mode == "oidc":
            for name, value in (("issuer", self.issuer), ("audience", self.audience)):
                if value is None:
                    raise ValueError(f'{name}: is empty: mode "oidc" needs it')
        else:
            for name, value in (("audience", self.audience), ("clientId", self.client_id), ("jwksUrl", self.jwks_url)):
                if value is not None:
                    raise ValueError(f'{name}: is for mode "oidc": set auth.mode to that, or leave {name} null')
        return self

    @model_validator(mode="after")
    def _asks_for_scopes_that_exist(self) -> AuthSettings:
        if "openid" not in self.scopes:
            raise ValueError("scopes: must contain openid, which makes a sign-in OpenID Connect")
        unknown = [scope for scope in self.scopes if scope not in COGNITO_SCOPES]
        if self.mode == "cognito" and unknown:
            raise ValueError(
                f"scopes: a user pool knows {', '.join(COGNITO_SCOPES)}, and not {', '.join(unknown)} "
                "(it gives refresh tokens without offline_access)"
            )
        return self

    @model_validator(mode="after")
    def _somebody_can_be_in_the_required_groups(self) -> AuthSettings:
        if self.required_groups and self.groups_in is None:
            raise ValueError("requiredGroups: needs groupsClaim, which says where the tokens list a user's groups")
        if self.mode == "cognito" and self.groups_claim is None:
            missing = [group for group in self.required_groups if group not in self.groups]
            if missing:
                raise ValueError(f"requiredGroups: {', '.join(missing)} must be in auth.groups, which the stacks make")
        return self

    def check_groups(self, setting: str, groups: Sequence[str]) -> None:
        """Raise ValueError if no token could name the groups that a setting needs."""
        if self.groups_in is None:
            raise ValueError(
                f"{setting}: groups need auth.groupsClaim, which says where the tokens list a user's groups"
            )
        if self.mode == "cognito" and self.groups_claim is None:
            missing = [group for group in groups if group not in self.groups]
            if missing:
                raise ValueError(f"{setting}: {', '.join(missing)} must be in auth.groups, which the stacks make")

    @property
    def groups_in(self) -> str | None:
        """The claim that lists a user's groups."""
        return self.groups_claim or (COGNITO_GROUPS_CLAIM if self.mode == "cognito" else None)

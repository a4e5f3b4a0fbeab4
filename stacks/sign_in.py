"""Who signs people in: a user pool of Amazon Cognito, or an OpenID Connect issuer of the deployer's."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from aws_cdk import Duration, RemovalPolicy, Stack
from aws_cdk import aws_cognito as cognito
from constructs import Construct

from stacks.auth_settings import AuthSettings
from stacks.findings import accept
from stacks.settings import Settings

CLI_CALLBACKS = tuple(f"http://localhost:{port}/callback" for port in (8741, 8742, 8743))
"""Where the command line waits for a sign-in to return. Cognito compares them exactly, and allows ``http`` for
``localhost`` only."""

TOKEN_MINUTES = 60
"""How long access and ID tokens are valid: a connection lives at most two hours, and its client brings a new one."""

SIGN_IN_DAYS = 30
"""How long a sign-in lasts without the password."""

ROTATION_GRACE_S = 60
"""How long a used refresh token is accepted again, for a response that was lost (AWS's maximum)."""

PASSWORD_CHARS = 12


@dataclass(frozen=True)
class TokenIssuer:
    """Whose tokens are accepted, and how page and command line get them."""

    issuer: str
    """The tokens' ``iss``."""
    audience: str
    """The ``aud`` of the tokens, or the ``client_id`` of a user pool's access tokens."""
    client_id: str
    scopes: Sequence[str]
    keys_url: str | None
    """Where the keys are; None asks the issuer."""
    user_pool_id: str | None = None

    @classmethod
    def of_oidc(cls, auth: AuthSettings) -> TokenIssuer:
        """The issuer that the deployer names."""
        if auth.issuer is None or auth.audience is None:
            raise ValueError("oidc without an issuer and an audience")
        return cls(auth.issuer, auth.audience, auth.client_id or auth.audience, auth.scopes, auth.jwks_url)

    def environment(self) -> dict[str, str]:
        """The authorizer's variables."""
        return {
            "JWT_ISSUER": self.issuer,
            "JWT_AUDIENCE": self.audience,
            **({} if self.client_id == self.audience else {"JWT_CLIENT_ID": self.client_id}),
            **({} if self.keys_url is None else {"JWKS_URL": self.keys_url}),
        }

    def outputs(self) -> dict[str, str]:
        """What page and command line read."""
        return {
            "Issuer": self.issuer,
            "ClientId": self.client_id,
            "Scopes": " ".join(self.scopes),
            **({} if self.user_pool_id is None else {"UserPoolId": self.user_pool_id}),
        }


def domain_prefix(settings: Settings, account: str) -> str:
    """How the address of the sign-in pages begins."""
    return settings.auth.domain_prefix or f"{settings.stack_prefix.lower()}-{account}"


class SignInStack(Stack):
    """The user pool, its sign-in pages, one public client, and the groups."""

    def __init__(
        self, scope: Construct, id: str, *, settings: Settings, page_url: str | None = None, **stack: Any
    ) -> None:
        """Make the stack.

        Args:
            scope: the app.
            id: the stack's name.
            settings: the deployer's.
            page_url: the page's origin, to which its sign-ins return; None if there is no page.
            stack: the CDK's own properties.
        """
        super().__init__(scope, id, description="Cicada: users and sign-in", **stack)
        self._auth = settings.auth
        pool = self._pool(settings)
        client = self._client(pool, [*([] if page_url is None else [f"{page_url}/"]), *CLI_CALLBACKS])
        domain = pool.add_domain(
            "Domain",
            cognito_domain=cognito.CognitoDomainOptions(domain_prefix=domain_prefix(settings, self.account)),
            managed_login_version=cognito.ManagedLoginVersion.NEWER_MANAGED_LOGIN,
        )
        # Without a style the sign-in pages of a client are not shown.
        style = cognito.CfnManagedLoginBranding(
            self,
            "Style",
            user_pool_id=pool.user_pool_id,
            client_id=client.user_pool_client_id,
            use_cognito_provided_values=True,
        )
        style.node.add_dependency(domain)
        groups = Construct(self, "Groups")
        for name in self._auth.groups:
            cognito.CfnUserPoolGroup(groups, name, user_pool_id=pool.user_pool_id, group_name=name)
        # In the local cloud, the setting is the address that stands for the service's own.
        issuer = pool.user_pool_provider_url
        if self._auth.issuer is not None:
            issuer = f"{self._auth.issuer.rstrip('/')}/{pool.user_pool_id}"
        self.issuer = TokenIssuer(
            issuer,
            client.user_pool_client_id,
            client.user_pool_client_id,
            self._auth.scopes,
            f"{issuer}/.well-known/jwks.json",
            pool.user_pool_id,
        )

    def _pool(self, settings: Settings) -> cognito.UserPool:
        keep = settings.on_delete == "retain"
        pool = cognito.UserPool(
            self,
            "Users",
            user_pool_name=settings.stack_prefix,
            feature_plan=cognito.FeaturePlan.ESSENTIALS,
            self_sign_up_enabled=False,
            sign_in_aliases=cognito.SignInAliases(email=True),
            sign_in_case_sensitive=False,
            auto_verify=cognito.AutoVerifiedAttrs(email=True),
            standard_attributes=cognito.StandardAttributes(
                email=cognito.StandardAttribute(required=True, mutable=True)
            ),
            account_recovery=cognito.AccountRecovery.EMAIL_ONLY,
            mfa=cognito.Mfa.OPTIONAL,
            mfa_second_factor=cognito.MfaSecondFactor(otp=True, sms=False),
            password_policy=cognito.PasswordPolicy(
                min_length=PASSWORD_CHARS,
                require_digits=True,
                require_lowercase=True,
                require_uppercase=True,
                require_symbols=True,
                temp_password_validity=Duration.days(7),
            ),
            deletion_protection=keep,
            removal_policy=RemovalPolicy.RETAIN if keep else RemovalPolicy.DESTROY,
        )
        accept(
            pool,
            {
                "AwsSolutions-COG2": "A second factor is offered to each user. Requiring one is the deployer's choice: "
                "it locks out people without an authenticator app.",
                "AwsSolutions-COG8": "The Plus plan bills each user from the first; Essentials is free for 10,000 "
                "active users a month.",
            },
        )
        return pool

    def _client(self, pool: cognito.UserPool, callbacks: Sequence[str]) -> cognito.UserPoolClient:
        return pool.add_client(
            "Client",
            generate_secret=False,
            # Rotation forbids the refresh flow of the API, and no flow at all would mean the default ones, with it.
            # This one does nothing in a pool without triggers, so all sign-ins take the pages.
            auth_flows=cognito.AuthFlow(custom=True),
            refresh_token_rotation_grace_period=Duration.seconds(ROTATION_GRACE_S),
            o_auth=cognito.OAuthSettings(
                flows=cognito.OAuthFlows(authorization_code_grant=True),
                scopes=[cognito.OAuthScope.custom(scope) for scope in self._auth.scopes],
                callback_urls=callbacks,
                logout_urls=callbacks,
            ),
            supported_identity_providers=[cognito.UserPoolClientIdentityProvider.COGNITO],
            access_token_validity=Duration.minutes(TOKEN_MINUTES),
            id_token_validity=Duration.minutes(TOKEN_MINUTES),
            refresh_token_validity=Duration.days(SIGN_IN_DAYS),
            enable_token_revocation=True,
            prevent_user_existence_errors=True,
        )

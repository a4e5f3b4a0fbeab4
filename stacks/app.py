"""The app's stacks, from the deployer's settings."""

from __future__ import annotations

from aws_cdk import App, Environment, Tags

from stacks.answering import AnsweringStack
from stacks.data import DataStack
from stacks.gateway import GatewayStack
from stacks.ingest import IngestStack
from stacks.integrators import IntegratorsStack
from stacks.page import PageStack
from stacks.settings import LOCAL_ACCOUNT, Settings
from stacks.sign_in import SignInStack, TokenIssuer


def add_stacks(app: App, settings: Settings) -> None:
    """Add ``<prefix>-Data``, ``-Page``, ``-SignIn``, ``-Answering``, ``-Ingest``, ``-Integrators`` and ``-Gateway`` to
    the app, in that order. ``-SignIn`` is there with a user pool only, ``-Page`` unless it is turned off.

    They fit any account and Region; those of the local cloud fit its account only.
    """
    bound_to = Environment(account=LOCAL_ACCOUNT) if settings.local else None
    prefix = settings.stack_prefix
    data = DataStack(
        app, f"{prefix}-Data", settings=settings, env=bound_to, termination_protection=settings.on_delete == "retain"
    )
    page = None
    if settings.page.enabled:
        page = PageStack(app, f"{prefix}-Page", settings=settings, data=data, env=bound_to)
        page.add_stack_dependency(data, "reads its outputs")
    issuer = _token_issuer(app, settings, bound_to, None if page is None else page.url)
    answering = AnsweringStack(app, f"{prefix}-Answering", settings=settings, data=data, env=bound_to)
    ingest = IngestStack(app, f"{prefix}-Ingest", settings=settings, data=data, env=bound_to)
    integrators = IntegratorsStack(app, f"{prefix}-Integrators", settings=settings, data=data, env=bound_to)
    gateway = GatewayStack(
        app,
        f"{prefix}-Gateway",
        settings=settings,
        data=data,
        page=page,
        answering=answering,
        ingest=ingest,
        issuer=issuer,
        env=bound_to,
    )
    for reader in (answering, ingest, integrators, gateway):
        reader.add_stack_dependency(data, "reads its outputs")
    gateway.add_stack_dependency(ingest, "is deployed last")
    gateway.add_stack_dependency(integrators, "is deployed last")
    for key, value in settings.tags.items():
        Tags.of(app).add(key, value)


def _token_issuer(
    app: App, settings: Settings, bound_to: Environment | None, page_url: str | None
) -> TokenIssuer | None:
    """Whose tokens are accepted, with the stack of the user pool where that is made; None for no sign-in at all."""
    match settings.auth.mode:
        case "none":
            return None
        case "oidc":
            return TokenIssuer.of_oidc(settings.auth)
        case "cognito":
            return SignInStack(
                app,
                f"{settings.stack_prefix}-SignIn",
                settings=settings,
                page_url=page_url,
                env=bound_to,
                termination_protection=settings.on_delete == "retain",
            ).issuer

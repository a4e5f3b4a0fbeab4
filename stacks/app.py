"""The app's stacks, from the deployer's settings."""

from __future__ import annotations

from aws_cdk import App, Environment, Tags

from stacks.answering import AnsweringStack
from stacks.data import DataStack
from stacks.gateway import GatewayStack
from stacks.ingest import IngestStack
from stacks.integrators import IntegratorsStack
from stacks.settings import LOCAL_ACCOUNT, Settings


def add_stacks(app: App, settings: Settings) -> None:
    """Add ``<prefix>-Data``, ``-Answering``, ``-Ingest``, ``-Integrators`` and ``-Gateway`` to the app, in that order.

    They fit any account and Region; those of the local cloud fit its account only.
    """
    bound_to = Environment(account=LOCAL_ACCOUNT) if settings.local else None
    prefix = settings.stack_prefix
    data = DataStack(
        app, f"{prefix}-Data", settings=settings, env=bound_to, termination_protection=settings.on_delete == "retain"
    )
    answering = AnsweringStack(app, f"{prefix}-Answering", settings=settings, data=data, env=bound_to)
    ingest = IngestStack(app, f"{prefix}-Ingest", settings=settings, data=data, env=bound_to)
    IntegratorsStack(app, f"{prefix}-Integrators", settings=settings, data=data, env=bound_to)
    GatewayStack(
        app, f"{prefix}-Gateway", settings=settings, data=data, answering=answering, ingest=ingest, env=bound_to
    )
    for key, value in settings.tags.items():
        Tags.of(app).add(key, value)

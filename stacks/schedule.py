"""Functions that run regularly by themselves."""

from __future__ import annotations

from aws_cdk import Duration
from aws_cdk import aws_events as events
from aws_cdk import aws_events_targets as targets
from constructs import Construct

from stacks.findings import accept
from stacks.function import CicadaFunction
from stacks.settings import Settings


def run_regularly(
    scope: Construct,
    worker: CicadaFunction,
    *,
    settings: Settings,
    name: str,
    description: str,
    every: Duration,
    latest_start: Duration,
) -> events.Rule:
    """Run a function at a fixed rate. A run that fails is not repeated: the next one does what it left.

    The schedule is a rule on the account's default bus: it is free, and needs no role (EventBridge Scheduler would).

    Args:
        scope: where the rule is made, as ``Schedule``.
        worker: the function.
        settings: the deployer's.
        name: the rule's, after the stacks' prefix.
        description: for the console.
        every: between two runs.
        latest_start: an event that has waited for longer is dropped; at least a minute.
    """
    worker.function.configure_async_invoke(retry_attempts=0, max_event_age=latest_start)
    rule = events.Rule(
        scope,
        "Schedule",
        rule_name=f"{settings.stack_prefix}-{name}",
        description=description,
        schedule=events.Schedule.rate(every),
        targets=[targets.LambdaFunction(worker.function, retry_attempts=0, max_event_age=latest_start)],
    )
    next_run = "What a run leaves undone the next one does: there is nothing to keep of an event."
    accept(rule, {"Serverless-EventBusDLQ": next_run})
    accept(worker, {"Serverless-LambdaDLQ": next_run, "Serverless-LambdaAsyncFailureDestination": next_run})
    return rule

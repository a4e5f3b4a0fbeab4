"""The recovery sweep: one function and its schedule."""

from __future__ import annotations

from aws_cdk import Duration
from aws_cdk import aws_lambda as lambda_
from constructs import Construct

from stacks.findings import accept
from stacks.function import CicadaFunction
from stacks.schedule import run_regularly
from stacks.settings import Settings

SWEEP_TIMEOUT_S = 55
"""A run ends before the next begins, which is a minute later at the earliest."""
LATEST_START = Duration.minutes(1)
"""The shortest that AWS allows."""


class RecoverySweep(Construct):
    """Recovers requests whose worker was lost, or that were never started, every few minutes.

    It runs all the time, so a run that finds nothing leaves nothing: no line in the log, no trace, no metric. Two runs
    at once do no harm: each change of a request is conditional.
    """

    def __init__(self, scope: Construct, id: str, *, settings: Settings, worker: CicadaFunction) -> None:
        """Make the schedule.

        Args:
            scope: the stack.
            id: the construct's id.
            settings: the deployer's.
            worker: the function.
        """
        super().__init__(scope, id)
        self.worker = worker
        accept(
            worker, {"Serverless-LambdaTracing": "A trace of each run that finds nothing would cost more than the run."}
        )
        run_regularly(
            self,
            worker,
            settings=settings,
            name="recovery-sweep",
            description="Recovers questions whose worker was lost",
            every=Duration.minutes(settings.recovery.sweep_minutes),
            latest_start=LATEST_START,
        )

    @property
    def function(self) -> lambda_.Function:
        """The function."""
        return self.worker.function

"""The index maintenance: one function and its schedule."""

from __future__ import annotations

from aws_cdk import Duration
from aws_cdk import aws_lambda as lambda_
from constructs import Construct

from stacks.data import INDEX_PREFIX, DataStack
from stacks.function import CicadaFunction
from stacks.keys import OBJECT_WRITER
from stacks.layers import Layers
from stacks.schedule import run_regularly
from stacks.settings import Settings

PERIOD = Duration.days(1)
"""Loads compact the index themselves: this handles small changes, and costs next to nothing while idle."""
TIMEOUT = Duration.minutes(15)
"""Lambda's longest."""
LATEST_START = Duration.minutes(45)
"""An event that waits for longer is dropped: a run ends before the next begins."""


class IndexMaintenance(Construct):
    """Compacts the index and collects its garbage, once a day.

    No concurrency is reserved to keep runs apart: an account with a quota of ten can reserve none, and two at once do
    no harm, since the later publication is refused. Nor are there two: a run ends before the next, and is not retried.
    """

    def __init__(self, scope: Construct, id: str, *, settings: Settings, data: DataStack, layers: Layers) -> None:
        """Make the function and its schedule.

        Args:
            scope: the stack.
            id: the construct's id.
            settings: the deployer's.
            data: has the bucket.
            layers: the stack's.
        """
        super().__init__(scope, id)
        self.worker = CicadaFunction(
            self,
            "Worker",
            settings=settings,
            folder="index_maintenance",
            layers=layers.of("base", "search"),
            timeout_s=int(TIMEOUT.to_seconds()),
            memory_mb=settings.maintenance_memory_mb,
            key=data.encryption_key,
            environment={
                "INDEX_BUCKET": data.bucket_name,
                "OPENBLAS_NUM_THREADS": "1",  # the function has 1.7 processors
            },
        )
        self._allow_index(data)
        run_regularly(
            self,
            self.worker,
            settings=settings,
            name="index-maintenance",
            description="Compacts the index and deletes unused objects",
            every=PERIOD,
            latest_start=LATEST_START,
        )

    @property
    def function(self) -> lambda_.Function:
        """The function."""
        return self.worker.function

    def _allow_index(self, data: DataStack) -> None:
        self.worker.allow(
            ("s3:DeleteObject", "s3:GetObject", "s3:PutObject"),
            data.index_arn,
            because="The index's objects are named by their content.",
        )
        self.worker.deny(("s3:DeleteObject", "s3:PutObject"), data.access_arn)  # who may read is not its to change
        data.allow_list(self.worker, INDEX_PREFIX)
        if data.key is not None:
            self.worker.allow(OBJECT_WRITER, data.key.key_arn)

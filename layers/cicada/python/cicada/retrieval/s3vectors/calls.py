"""Calls that write to a vector index or look into its settings: throttles and hiccups are waited out."""

from __future__ import annotations

import random
import time
from collections.abc import Callable, Mapping
from typing import Any

from botocore.config import Config

from cicada.models.retries import RetryPolicy
from cicada.retrieval.managed import may_pass, read_failure

NAME = "Amazon S3 Vectors"
CALL_BUDGET_S = 300.0
"""Seconds for one call, its retries included."""
RETRY = RetryPolicy(max_attempts=None, base_s=0.5, cap_s=20.0)
LOAD_CONFIG = Config(
    connect_timeout=5,
    read_timeout=60,
    retries={"mode": "standard", "total_max_attempts": 1},
    max_pool_connections=16,
)
"""What the client is to be made with: the retries are this module's own."""


class IndexCalls:
    """Calls the service about one vector index. Safe for several threads."""

    def __init__(
        self,
        client: Any,
        index_arn: str,
        *,
        retry: RetryPolicy = RETRY,
        clock: Callable[[], float] = time.monotonic,
        sleep: Callable[[float], None] = time.sleep,
    ) -> None:
        """Take the index.

        Args:
            client: boto3's ``s3vectors`` client, made with :data:`LOAD_CONFIG`.
            index_arn: of the vector index.
            retry: for throttled and failed calls.
            clock: monotonic seconds.
            sleep: waits between retries.
        """
        self._client = client
        self.index_arn = index_arn
        self._retry = retry
        self.clock = clock
        self.sleep = sleep

    def __call__(self, operation: str, **request: Any) -> Mapping[str, Any]:
        """Call an operation, as boto3 names it, as often as it takes within the budget.

        Raises:
            IndexMissing, IndexMismatch, IndexUnavailable: in the service's words.
        """
        deadline_s = self.clock() + CALL_BUDGET_S
        attempts = 0
        while True:
            try:
                answer: Mapping[str, Any] = getattr(self._client, operation)(indexArn=self.index_arn, **request)
                return answer
            except Exception as error:
                failure = read_failure(NAME, error)
                if failure is None:
                    raise
                attempts += 1
                left_s = deadline_s - self.clock()
                pause_s = self._retry.pause_s(attempts, left_s=left_s, share=random.random())  # noqa: S311 (jitter)
                if pause_s is None or not may_pass(error):
                    raise failure from error
            self.sleep(pause_s)

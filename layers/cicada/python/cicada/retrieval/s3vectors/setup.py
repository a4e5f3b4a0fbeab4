"""A vector index's settings, and the calls that write to it: throttles and hiccups are waited for."""

from __future__ import annotations

import random
import time
from collections.abc import Callable, Mapping
from typing import Any

from botocore.config import Config

from cicada.errors import IndexMismatch, IndexUnavailable
from cicada.models.retries import RetryPolicy
from cicada.retrieval.managed import may_pass, read_failure
from cicada.retrieval.s3vectors.vector_records import NON_FILTERABLE_KEYS, SEARCHED_KEYS

NAME = "Amazon S3 Vectors"
CALL_BUDGET_S = 300.0
"""Seconds for one call, its retries included."""
RETRY = RetryPolicy(max_attempts=None, base_s=0.5, cap_s=20.0)
LOAD_CONFIG = Config(
    connect_timeout=5, read_timeout=60, retries={"mode": "standard", "total_max_attempts": 1}, max_pool_connections=16
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
        """``client`` is boto3's ``s3vectors`` client, made with :data:`LOAD_CONFIG`; ``clock`` is monotonic."""
        self._client = client
        self.index_arn = index_arn
        self._retry = retry
        self.clock = clock
        self.sleep = sleep

    def __call__(self, operation: str, **request: Any) -> Mapping[str, Any]:
        """Call an operation by its boto3 name, retried within the budget; its IndexFailure has the service's words."""
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


ENHANCED = "ENHANCED"
DISTANCE_METRIC = "cosine"
ANALYZER_POLL_S = 2.0
ANALYZER_BUDGET_S = 3600.0
"""How long the service may build its full-text index over what is there already."""


class VectorIndexSettings:
    """One vector index's settings."""

    def __init__(self, calls: IndexCalls) -> None:
        self._calls = calls

    def prepare(self, dimensions: int, language: str | None) -> None:
        """Make sure that passages can be put into the index, and be searched by words.

        ``language`` is the analyzer's for full-text search, such as ``en``; None for the service's standard one.

        Raises:
            IndexMismatch: the index was created with other settings, which cannot be changed.
            IndexMissing, IndexUnavailable: there is no such index, or the service does not respond or refuses.
        """
        index = self._described()
        self._check(index, dimensions)
        if index.get("indexMode") != ENHANCED:
            self._calls("update_index_mode", indexMode=ENHANCED)
        configured = {one["metadataKey"]: one for one in _searched(index)}
        for key in SEARCHED_KEYS:
            if key in configured and configured[key].get("language") != language:
                analyzer = configured[key].get("language", "standard")
                raise IndexMismatch(
                    f"{self._calls.index_arn} searches {key} with the analyzer {analyzer}, not "
                    f"{language or 'standard'}: name that one, or create another index"
                )
        missing = [key for key in SEARCHED_KEYS if key not in configured]
        if missing:
            chosen = {} if language is None else {"language": language}
            added = [{"metadataKey": key, **chosen} for key in missing]
            self._calls("update_metadata_configuration", add={"textSearchConfigurations": added})

    def wait_for_words(self) -> None:
        """Wait until full-text search serves queries; raises IndexMissing or IndexUnavailable if it never does."""
        deadline_s = self._calls.clock() + ANALYZER_BUDGET_S
        while any(one.get("status") == "BUILDING" for one in _searched(self._described())):
            if self._calls.clock() >= deadline_s:
                raise IndexUnavailable("S3 Vectors is still building its full-text index: run the command again later")
            self._calls.sleep(ANALYZER_POLL_S)

    def _check(self, index: Mapping[str, Any], dimensions: int) -> None:
        unfilterable = set(index.get("metadataConfiguration", {}).get("nonFilterableMetadataKeys", ()))
        wrong = []
        if index["dimension"] != dimensions:
            wrong.append(f"{index['dimension']} dimensions, not {dimensions}")
        if index["distanceMetric"] != DISTANCE_METRIC:
            wrong.append(f"the metric {index['distanceMetric']}, not {DISTANCE_METRIC}")
        if unfilterable != set(NON_FILTERABLE_KEYS):
            wrong.append(
                f"the non-filterable keys {', '.join(sorted(unfilterable)) or 'none'}, not "
                f"{', '.join(NON_FILTERABLE_KEYS)}"
            )
        if wrong:
            raise IndexMismatch(f"{self._calls.index_arn} was created with {'; '.join(wrong)}: create another index")

    def _described(self) -> Mapping[str, Any]:
        described: Mapping[str, Any] = self._calls("get_index")["index"]
        return described


def _searched(index: Mapping[str, Any]) -> list[Mapping[str, Any]]:
    found: list[Mapping[str, Any]] = index.get("metadataConfiguration", {}).get("textSearchConfigurations", [])
    return found

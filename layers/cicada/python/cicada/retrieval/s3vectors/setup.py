"""A vector index's settings, and the calls that write to it, retried after throttles and service faults."""

from __future__ import annotations

import threading
from collections.abc import Mapping
from typing import Any, Unpack

from botocore.config import Config

from cicada.errors import IndexFailure, IndexMismatch, IndexUnavailable
from cicada.models.retries import Pace, Pacing, RetryPolicy, call_with_retries
from cicada.retrieval.managed import may_pass, read_failure
from cicada.retrieval.s3vectors.vector_records import NON_FILTERABLE_KEYS, SEARCHED_KEYS

NAME = "Amazon S3 Vectors"
CALL_BUDGET_S = 300.0
"""Seconds for one call, its retries included."""
RETRY = RetryPolicy(max_attempts=None, base_s=0.5, cap_s=20.0)
LOAD_CONFIG = Config(
    connect_timeout=5, read_timeout=60, retries={"mode": "standard", "total_max_attempts": 1}, max_pool_connections=16
)
"""For the client; this module retries."""


class IndexCalls:
    """Calls the service about one vector index. Safe for several threads."""

    def __init__(self, client: Any, index_arn: str, **pacing: Unpack[Pacing]) -> None:
        """``client`` is boto3's ``s3vectors`` client, made with :data:`LOAD_CONFIG`."""
        self._client = client
        self.index_arn = index_arn
        pacing.setdefault("retry", RETRY)
        self.pace = Pace(**pacing)

    def __call__(self, operation: str, **request: Any) -> Mapping[str, Any]:
        """Call an operation by its boto3 name, retried within the budget. Raises IndexFailure."""

        def call() -> Mapping[str, Any]:
            answer: Mapping[str, Any] = getattr(self._client, operation)(indexArn=self.index_arn, **request)
            return answer

        def read(error: Exception) -> tuple[IndexFailure, bool] | None:
            failure = read_failure(NAME, error)
            return None if failure is None else (failure, may_pass(error))

        return call_with_retries(call, read, self.pace, self.pace.clock() + CALL_BUDGET_S, threading.Event())


ENHANCED = "ENHANCED"
DISTANCE_METRIC = "cosine"
ANALYZER_POLL_S = 2.0
ANALYZER_BUDGET_S = 3600.0
"""Seconds for the service to build its full-text index over existing vectors."""


class VectorIndexSettings:
    """One vector index's settings."""

    def __init__(self, calls: IndexCalls) -> None:
        self._calls = calls

    def prepare(self, dimensions: int, language: str | None) -> None:
        """Check the index, and enable its full-text search with an analyzer such as ``en``, None for the standard one.

        Raises IndexMismatch for an index with other, unchangeable settings, else IndexMissing or IndexUnavailable.
        """
        index = self._described()
        self._check(index, dimensions)
        if index.get("indexMode") != ENHANCED:
            self._calls("update_index_mode", indexMode=ENHANCED)
        configured = {one["metadataKey"]: one for one in _searched(index)}
        self._check_language(configured, language)
        missing = [key for key in SEARCHED_KEYS if key not in configured]
        if missing:
            chosen = {} if language is None else {"language": language}
            added = [{"metadataKey": key, **chosen} for key in missing]
            self._calls("update_metadata_configuration", add={"textSearchConfigurations": added})

    def wait_for_words(self) -> None:
        """Wait until full-text search serves queries; raises IndexMissing or IndexUnavailable if it never does."""
        pace = self._calls.pace
        deadline_s = pace.clock() + ANALYZER_BUDGET_S
        while any(one.get("status") == "BUILDING" for one in _searched(self._described())):
            if pace.clock() >= deadline_s:
                raise IndexUnavailable("S3 Vectors is still building its full-text index: run the command again later")
            pace.pause(ANALYZER_POLL_S, threading.Event())

    def _check_language(self, configured: Mapping[str, Mapping[str, Any]], language: str | None) -> None:
        for key in SEARCHED_KEYS:
            if key in configured and configured[key].get("language") != language:
                analyzer = configured[key].get("language", "standard")
                raise IndexMismatch(
                    f"{self._calls.index_arn} searches {key} with the analyzer {analyzer}, not "
                    f"{language or 'standard'}: name that one, or create another index"
                )

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

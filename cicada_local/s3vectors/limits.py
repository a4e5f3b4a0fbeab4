"""How much a vector index takes in a second."""

from __future__ import annotations

from collections.abc import Callable

from cicada_local.s3vectors.errors import TooManyRequests

REQUESTS_A_SECOND = 1000
VECTORS_A_SECOND = 2500
"""PutVectors and DeleteVectors together, each index. Source: Amazon S3 User Guide, "Limitations and restrictions"."""


class WriteRate:
    """Token buckets of one second, for one index."""

    def __init__(
        self,
        clock: Callable[[], float],
        *,
        requests_a_second: int = REQUESTS_A_SECOND,
        vectors_a_second: int = VECTORS_A_SECOND,
    ) -> None:
        self._clock = clock
        self._rates = {"requests": float(requests_a_second), "vectors": float(vectors_a_second)}
        self._left = dict(self._rates)
        self._at = clock()

    def take(self, vectors: int) -> None:
        """Take one request with that many vectors. Raises TooManyRequests, and then takes nothing."""
        now = self._clock()
        for name, rate in self._rates.items():
            self._left[name] = min(rate, self._left[name] + (now - self._at) * rate)
        self._at = now
        wanted = {"requests": 1, "vectors": vectors}
        if any(self._left[name] < count for name, count in wanted.items()):
            raise TooManyRequests("Rate exceeded. Please reduce your request rate.")
        for name, count in wanted.items():
            self._left[name] -= count

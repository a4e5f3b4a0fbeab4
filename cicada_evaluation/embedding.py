"""Embedding for an evaluation: tokens are counted, and queries are embedded once, apart from the searches."""

from __future__ import annotations

import io
import json
import threading
import time
from collections.abc import Callable, Sequence
from typing import Any

from cicada.models.ports import Embedder

QUERY_BUDGET_S = 60.0
"""Seconds for one query, retries included: nobody waits for it, so throttles are waited out."""


class MeteredClient:
    """boto3's ``bedrock-runtime`` client; ``tokens`` is what its embeddings were made of, as the service counts."""

    def __init__(self, client: Any) -> None:
        """Take the client."""
        self.tokens = 0
        self._client = client
        self._lock = threading.Lock()

    def invoke_model(self, **request: Any) -> dict[str, Any]:
        """Call the model, and count."""
        response = self._client.invoke_model(**request)
        body = response["body"].read()
        with self._lock:
            self.tokens += _tokens(body)
        return {**response, "body": io.BytesIO(body)}


def _tokens(body: bytes) -> int:
    """What a response in Titan's format says; a body that is none is the adapter's business."""
    try:
        return int(json.loads(body)["inputTextTokenCount"])
    except (ValueError, KeyError, TypeError):
        return 0


class QueryEmbedder:
    """An :class:`~cicada.models.ports.Embedder` that has the queries' vectors at hand once they were prepared.

    So a search's time is that of the search, and a query is paid for once however many modes search for it.
    """

    def __init__(self, embedder: Embedder, clock: Callable[[], float] = time.perf_counter) -> None:
        """Take the model, and a clock in seconds."""
        self._embedder = embedder
        self._clock = clock
        self._vectors: dict[str, list[float]] = {}

    @property
    def model_id(self) -> str:
        """The service's id of the model."""
        return self._embedder.model_id

    @property
    def dimensions(self) -> int:
        """The length of every vector."""
        return self._embedder.dimensions

    def prepare(self, texts: Sequence[str], told: Callable[[int, int], None]) -> list[float]:
        """Embed each text that is not at hand yet, one after the other as askers' come, and return the milliseconds.

        Raises:
            ModelBusy, ModelUnavailable, ModelRefused: one could not be embedded.
        """
        taken_ms: list[float] = []
        for done, text in enumerate(texts):
            told(done, len(texts))
            if text not in self._vectors:
                began = self._clock()
                self._vectors[text] = self._embedder.embed([text], time_budget_s=QUERY_BUDGET_S)[0]
                taken_ms.append((self._clock() - began) * 1000)
        told(len(texts), len(texts))
        return taken_ms

    def embed(self, texts: Sequence[str], *, time_budget_s: float) -> list[list[float]]:
        """The vectors: at once if all were prepared, else by the model."""
        if all(text in self._vectors for text in texts):
            return [self._vectors[text] for text in texts]
        return self._embedder.embed(texts, time_budget_s=time_budget_s)

"""Embedding for an evaluation: tokens are counted, and queries are embedded once, apart from the searches."""

from __future__ import annotations

import io
import json
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from cicada.models.ports import Embedder, Usage
from cicada.models.prices import cost

_COUNT_HEADER = "x-amzn-bedrock-input-token-count"

QUERY_BUDGET_S = 60.0
"""Seconds for one query, retries included: nobody waits for it, so throttles are waited out."""


class MeteredClient:
    """boto3's ``bedrock-runtime`` client; ``tokens`` is what its embeddings were made of, as the service counts."""

    def __init__(self, client: Any) -> None:
        """Take the client."""
        self.tokens = 0
        self.reported = True
        """False from the first response on that does not say how many tokens it took, as Cohere's may not."""
        self._client = client
        self._lock = threading.Lock()

    def invoke_model(self, **request: Any) -> dict[str, Any]:
        """Call the model, and count."""
        response = self._client.invoke_model(**request)
        body = response["body"].read()
        tokens = _tokens(response, body)
        with self._lock:
            self.tokens += tokens or 0
            self.reported = self.reported and tokens is not None
        return {**response, "body": io.BytesIO(body)}

    def usd(self, model_id: str, tokens: int) -> float | None:
        """What so many of the tokens cost; None if that is not known."""
        price = cost(model_id, Usage(input_tokens=tokens)) if self.reported else None
        return None if price is None else price.usd


def _tokens(response: Mapping[str, Any], body: bytes) -> int | None:
    """What Bedrock's header says, or a body in Titan's format; a body that is neither is the adapter's business."""
    try:
        headers = response.get("ResponseMetadata", {}).get("HTTPHeaders", {})
        return int(headers.get(_COUNT_HEADER) or json.loads(body)["inputTextTokenCount"])
    except (ValueError, KeyError, TypeError):
        return None


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

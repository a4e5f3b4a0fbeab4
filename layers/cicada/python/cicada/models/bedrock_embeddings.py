"""Embeddings by Amazon Bedrock's InvokeModel, which is throttled by requests a minute."""

from __future__ import annotations

import json
import math
import threading
from collections.abc import Sequence
from concurrent.futures import FIRST_EXCEPTION, ThreadPoolExecutor, wait
from queue import Empty, SimpleQueue
from typing import Any, Unpack

from cicada.errors import ModelError, ModelRefused, ModelUnavailable
from cicada.models.bedrock import BedrockModel, read_failure
from cicada.models.embedding_models import Purpose, embedding_model
from cicada.models.retries import PATIENT, Pace, Pacing, call_with_retries
from cicada.text.sentences import pieces

_Batch = Sequence[tuple[int, str]]
"""The texts of one call, each with the place of the text that it is, or is a piece of."""
_Vectors = list[list[float]]


class BedrockEmbedder(BedrockModel):
    """An embedding model on Bedrock; the port's contract is :class:`cicada.models.ports.Embedder`.

    A text that is longer than the model takes is embedded in pieces, and their weighted mean is its vector: the rest of
    a cut passage could not be found. One call's texts are embedded on the caller's thread.
    """

    def __init__(
        self,
        client: Any,
        model_id: str,
        dimensions: int,
        *,
        purpose: Purpose = "document",
        parallelism: int = 8,
        **pacing: Unpack[Pacing],
    ) -> None:
        """``client`` is configured by ``bedrock_client_config``. By default calls are retried within the budget.

        Raises SettingsInvalid for a model that is not supported, and dimensions that it does not offer.
        """
        super().__init__(client, model_id)
        self.dimensions = dimensions
        self._model = embedding_model(model_id, dimensions)
        self._purpose: Purpose = purpose
        self._parallelism = parallelism
        pacing.setdefault("retry", PATIENT)
        self._pace = Pace(**pacing)

    def embed(self, texts: Sequence[str], *, time_budget_s: float) -> list[list[float]]:
        """See the port. A call under way can outlast the budget by the client's read time-out.

        Raises:
            ModelRefused: a text is empty, the service rejects the call, or its vectors do not have the dimensions asked
                for.
        """
        deadline_s = self._pace.clock() + time_budget_s
        parts = self._parts(texts)
        size = self._model.max_texts
        batches = [parts[first : first + size] for first in range(0, len(parts), size)]
        if len(batches) > 1:
            embedded = self._embed_in_parallel(batches, deadline_s, time_budget_s)
        else:
            embedded = [self._embed(batch, deadline_s, threading.Event()) for batch in batches]
        return self._joined(len(texts), parts, [vector for vectors in embedded for vector in vectors])

    def _parts(self, texts: Sequence[str]) -> list[tuple[int, str]]:
        """The texts in pieces that the model takes, each with the place of its text."""
        for place, text in enumerate(texts):
            if not text.strip():
                raise ModelRefused(f"text {place} of {len(texts)} is empty")
        return [
            (place, part)
            for place, text in enumerate(texts)
            for part in pieces(text, self._model.max_tokens)
            if part.strip()
        ]

    def _embed_in_parallel(self, batches: Sequence[_Batch], deadline_s: float, time_budget_s: float) -> list[_Vectors]:
        vectors: list[_Vectors] = [[] for _ in batches]
        waiting: SimpleQueue[int] = SimpleQueue()
        for number in range(len(batches)):
            waiting.put(number)
        given_up = threading.Event()

        def work() -> None:
            while not given_up.is_set():
                try:
                    number = waiting.get_nowait()
                except Empty:
                    return
                vectors[number] = self._embed(batches[number], deadline_s, given_up)

        workers = min(self._parallelism, len(batches))
        pool = ThreadPoolExecutor(workers, thread_name_prefix="bedrock-embed")
        try:
            done, unfinished = wait(
                [pool.submit(work) for _ in range(workers)], timeout=time_budget_s, return_when=FIRST_EXCEPTION
            )
            for worker in done:
                worker.result()  # raises the failure that ended the wait
            if unfinished:
                embedded, asked = sum(map(len, vectors)), sum(map(len, batches))
                raise ModelUnavailable(f"{embedded:,} of {asked:,} texts were embedded before the time budget ran out")
            return vectors
        finally:
            given_up.set()
            pool.shutdown(wait=False, cancel_futures=True)

    def _embed(self, batch: _Batch, deadline_s: float, given_up: threading.Event) -> _Vectors:
        body = self._model.body([text for _, text in batch], self.dimensions, self._purpose)
        first, last = batch[0][0], batch[-1][0]
        named = f"text {first}" if first == last else f"texts {first} to {last}"

        def call() -> _Vectors:
            if given_up.is_set() or self._pace.clock() >= deadline_s:
                raise ModelUnavailable("no time left to call the embedding model")
            return self._read(self._invoke(body), len(batch))

        def read(error: Exception) -> tuple[ModelError, bool] | None:
            failure = read_failure(error)
            if failure is None:
                return None
            return (ModelRefused(f"{named}: {failure.error}") if failure.invalid else failure.error), failure.retry

        return call_with_retries(call, read, self._pace, deadline_s, given_up)

    def _read(self, content: bytes, count: int) -> _Vectors:
        """Read a response's vectors and check their lengths: a mismatch would spoil an index without an error."""
        try:
            vectors = [[float(number) for number in vector] for vector in self._model.vectors(json.loads(content))]
        except (ValueError, KeyError, TypeError) as error:
            raise ModelUnavailable(f"cannot parse the vectors returned by {self.model_id}: {error!r}") from error
        if len(vectors) != count:
            raise ModelUnavailable(f"{self.model_id} returned {len(vectors)} vectors for {count} texts")
        for vector in vectors:
            if len(vector) != self.dimensions:
                raise ModelRefused(
                    f"{self.model_id} returned vectors of {len(vector)} dimensions; {self.dimensions} were requested"
                )
        return [self._unit(vector) for vector in vectors]

    def _unit(self, vector: list[float]) -> list[float]:
        length = math.hypot(*vector)
        if not math.isfinite(length) or length == 0.0:
            raise ModelRefused(f"{self.model_id} returned a vector of length {length}")
        return [number / length for number in vector]

    def _joined(self, count: int, parts: _Batch, vectors: _Vectors) -> _Vectors:
        """A vector a text: the only one, or the mean of its pieces', weighted by their characters."""
        found: list[list[tuple[int, list[float]]]] = [[] for _ in range(count)]
        for (place, part), vector in zip(parts, vectors, strict=True):
            found[place].append((len(part), vector))
        return [own[0][1] if len(own) == 1 else self._mean(own) for own in found]

    def _mean(self, weighted: Sequence[tuple[int, list[float]]]) -> list[float]:
        mean = [0.0] * self.dimensions
        for weight, vector in weighted:
            mean = [total + weight * number for total, number in zip(mean, vector, strict=True)]
        return self._unit(mean)

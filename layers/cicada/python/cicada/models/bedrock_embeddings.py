"""Embeddings by Amazon Bedrock's InvokeModel, in the request format of Titan Text Embeddings v2.

Titan takes one text a call, of up to 8,192 tokens and 50,000 characters, and is throttled by requests a minute.
Source: Amazon Bedrock User Guide, "Amazon Titan Text Embeddings models".
"""

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
from cicada.models.retries import PATIENT, Pace, Pacing, call_with_retries

MAX_CHARACTERS = 50_000
"""The longest text of one call. Only the service can count tokens: it refuses more than 8,192."""


class BedrockEmbedder(BedrockModel):
    """An embedding model on Bedrock; the port's contract is :class:`cicada.models.ports.Embedder`.

    A text over the model's cap is refused by its place in ``texts``, never cut: the rest of a cut passage could not be
    found. A single text is embedded on the caller's thread.
    """

    def __init__(
        self, client: Any, model_id: str, dimensions: int, *, parallelism: int = 8, **pacing: Unpack[Pacing]
    ) -> None:
        """``client`` is configured by ``bedrock_client_config``. By default calls are retried within the budget."""
        super().__init__(client, model_id)
        self.dimensions = dimensions
        """256, 512 or 1,024 for Titan Text v2."""
        self._parallelism = parallelism
        pacing.setdefault("retry", PATIENT)
        self._pace = Pace(**pacing)

    def embed(self, texts: Sequence[str], *, time_budget_s: float) -> list[list[float]]:
        """See the port. A call under way can outlast the budget by the client's read time-out.

        Raises:
            ModelRefused: a text is empty or over the cap, the service rejects the call, or its vectors do not have the
                dimensions asked for.
        """
        deadline_s = self._pace.clock() + time_budget_s
        for place, text in enumerate(texts):
            if not text.strip():
                raise ModelRefused(f"text {place} of {len(texts)} is empty")
            if len(text) > MAX_CHARACTERS:
                raise ModelRefused(
                    f"text {place} of {len(texts)} has {len(text):,} characters; {MAX_CHARACTERS:,} are allowed"
                )
        if len(texts) > 1:
            return self._embed_in_parallel(texts, deadline_s, time_budget_s)
        return [self._embed(place, text, deadline_s, threading.Event()) for place, text in enumerate(texts)]

    def _embed_in_parallel(self, texts: Sequence[str], deadline_s: float, time_budget_s: float) -> list[list[float]]:
        vectors: list[list[float]] = [[] for _ in texts]
        waiting: SimpleQueue[int] = SimpleQueue()
        for place in range(len(texts)):
            waiting.put(place)
        given_up = threading.Event()

        def work() -> None:
            while not given_up.is_set():
                try:
                    place = waiting.get_nowait()
                except Empty:
                    return
                vectors[place] = self._embed(place, texts[place], deadline_s, given_up)

        workers = min(self._parallelism, len(texts))
        pool = ThreadPoolExecutor(workers, thread_name_prefix="bedrock-embed")
        try:
            done, unfinished = wait(
                [pool.submit(work) for _ in range(workers)], timeout=time_budget_s, return_when=FIRST_EXCEPTION
            )
            for worker in done:
                worker.result()  # raises the failure that ended the wait
            if unfinished:
                embedded = sum(bool(vector) for vector in vectors)
                raise ModelUnavailable(f"{embedded:,} of {len(texts):,} texts were embedded within the time budget")
            return vectors
        finally:
            given_up.set()
            pool.shutdown(wait=False, cancel_futures=True)

    def _embed(self, place: int, text: str, deadline_s: float, given_up: threading.Event) -> list[float]:
        def call() -> list[float]:
            if given_up.is_set() or self._pace.clock() >= deadline_s:
                raise ModelUnavailable("no time is left to call the embedding model")
            return self._unit_vector(
                self._invoke({"inputText": text, "dimensions": self.dimensions, "normalize": True})
            )

        def read(error: Exception) -> tuple[ModelError, bool] | None:
            failure = read_failure(error)
            if failure is None:
                return None
            return (ModelRefused(f"text {place}: {failure.error}") if failure.invalid else failure.error), failure.retry

        return call_with_retries(call, read, self._pace, deadline_s, given_up)

    def _unit_vector(self, content: bytes) -> list[float]:
        """Read a response's vector and check its length: a mismatch would spoil an index without an error."""
        try:
            vector = [float(number) for number in json.loads(content)["embedding"]]
        except (ValueError, KeyError, TypeError) as error:
            raise ModelUnavailable(f"{self.model_id} gave no readable vector: {error!r}") from error
        if len(vector) != self.dimensions:
            raise ModelRefused(
                f"{self.model_id} gives vectors of {len(vector)} dimensions, {self.dimensions} were asked for"
            )
        length = math.hypot(*vector)
        if not math.isfinite(length) or length == 0.0:
            raise ModelRefused(f"{self.model_id} gave a vector of length {length}")
        return [number / length for number in vector]

"""Embeddings by Amazon Bedrock's InvokeModel, in the request format of Titan Text Embeddings v2.

Titan takes one text a call, of up to 8,192 tokens and 50,000 characters, and is throttled by requests a minute.
Source: Amazon Bedrock User Guide, "Amazon Titan Text Embeddings models".
"""

from __future__ import annotations

import json
import math
import random
import threading
import time
from collections.abc import Callable, Sequence
from concurrent.futures import FIRST_EXCEPTION, ThreadPoolExecutor, wait
from queue import Empty, SimpleQueue
from typing import Any

from cicada.errors import ModelRefused, ModelUnavailable
from cicada.models.bedrock import read_failure
from cicada.models.retries import PATIENT, RetryPolicy

MAX_CHARACTERS = 50_000
"""The longest text of one call. Only the service can count its tokens: it refuses more than 8,192."""


class BedrockEmbedder:
    """An embedding model on Bedrock; the port's contract is :class:`cicada.models.ports.Embedder`.

    A text over the model's cap is refused by its place in ``texts``, never cut: a passage of which only the beginning
    can be found would be lost without a trace.
    """

    def __init__(
        self,
        client: Any,
        model_id: str,
        dimensions: int,
        *,
        parallelism: int = 8,
        retry: RetryPolicy = PATIENT,
        clock: Callable[[], float] = time.monotonic,
        sleep: Callable[[float], None] = time.sleep,
        share: Callable[[], float] = random.random,
    ) -> None:
        """Wire the model.

        Args:
            client: boto3's ``bedrock-runtime`` client, configured by ``bedrock_client_config``.
            model_id: of a model that speaks Titan Text v2's format, or its ARN.
            dimensions: the length of the vectors: 256, 512 or 1,024 for Titan Text v2.
            parallelism: calls at once, when there are several texts. A single text is embedded on the caller's thread.
            retry: for calls that fail; the default tries as long as the time budget allows.
        """
        self._client = client
        self._model_id = model_id
        self._dimensions = dimensions
        self._parallelism = parallelism
        self._retry = retry
        self._clock = clock
        self._sleep = sleep
        self._share = share

    @property
    def model_id(self) -> str:
        """The service's id of the model."""
        return self._model_id

    @property
    def dimensions(self) -> int:
        """The length of every vector."""
        return self._dimensions

    def embed(self, texts: Sequence[str], *, time_budget_s: float) -> list[list[float]]:
        """See the port. A single call that is under way can outlast the budget by the client's read time-out.

        Raises:
            ModelRefused: a text is empty or over the cap, the service rejects the call, or its vectors do not have the
                dimensions asked for.
        """
        deadline_s = self._clock() + time_budget_s
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
        attempts = 0
        while not given_up.is_set() and self._clock() < deadline_s:
            try:
                return self._unit_vector(self._call(text))
            except Exception as error:
                failure = read_failure(error)
                if failure is None:
                    raise
                if failure.invalid:
                    raise ModelRefused(f"text {place}: {failure.error}") from error
                attempts += 1
                pause_s = self._retry.pause_s(attempts, left_s=deadline_s - self._clock(), share=self._share())
                if not failure.retry or pause_s is None:
                    raise failure.error from error
            self._sleep(pause_s)
        raise ModelUnavailable("no time is left to call the embedding model")

    def _call(self, text: str) -> bytes:
        body = {"inputText": text, "dimensions": self._dimensions, "normalize": True}
        response = self._client.invoke_model(
            modelId=self._model_id, contentType="application/json", accept="application/json", body=json.dumps(body)
        )
        content: bytes = response["body"].read()
        return content

    def _unit_vector(self, content: bytes) -> list[float]:
        """Read a response's vector, and make sure of its length: a mismatch would spoil an index without an error."""
        try:
            vector = [float(number) for number in json.loads(content)["embedding"]]
        except (ValueError, KeyError, TypeError) as error:
            raise ModelUnavailable(f"{self._model_id} gave no readable vector: {error!r}") from error
        if len(vector) != self._dimensions:
            raise ModelRefused(
                f"{self._model_id} gives vectors of {len(vector)} dimensions, {self._dimensions} were asked for"
            )
        length = math.hypot(*vector)
        if not math.isfinite(length) or length == 0.0:
            raise ModelRefused(f"{self._model_id} gave a vector of length {length}")
        return [number / length for number in vector]

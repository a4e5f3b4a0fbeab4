"""Generation by Amazon Bedrock's ConverseStream.

What botocore does with a broken stream differs with the fault: an EventStreamError, urllib3's ProtocolError, a
ChecksumMismatch, a time-out, or nothing at all: a cut, close-delimited stream just ends. The rule that covers all of
them is that an answer is whole only when its ``messageStop`` arrived.
"""

from __future__ import annotations

import logging
import random
import time
from collections.abc import Callable, Generator, Iterator, Mapping
from contextlib import closing
from dataclasses import dataclass
from functools import partial
from typing import Any

from botocore.exceptions import ClientError

from cicada.errors import AnswerIncomplete, ModelUnavailable, StreamBroken
from cicada.models.bedrock import Failure, read_failure
from cicada.models.ports import Finished, Prompt, TextDelta, Usage
from cicada.models.retries import INTERACTIVE, RetryPolicy
from cicada.models.sampling import LEARNT, Sampling
from cicada.models.stream_reader import CallFailed, ReadFailed, StreamEnded, StreamEvent, StreamReader

logger = logging.getLogger(__name__)

NORMAL_STOPS = frozenset({"end_turn", "stop_sequence"})
"""Any other stop reason leaves an answer that is not what it should be."""
METADATA_WAIT_S = 2.0
"""How long the token usage, which follows ``messageStop``, is waited for. The answer is whole without it."""


@dataclass(frozen=True)
class _Stop:
    """``messageStop``: the model has said all it will say."""

    reason: str


class _NotBegun(Exception):
    """A call failed before its first piece of text: nothing has been shown, so it may be made again."""

    def __init__(self, failure: Failure) -> None:
        super().__init__(str(failure.error))
        self.failure = failure


class BedrockTextModel:
    """A text model on Bedrock; the port's contract is :class:`cicada.models.ports.TextModel`.

    ``maxTokens`` is always sent: Bedrock reserves quota for it up front, and for the model's maximum without it.
    ``temperature`` and ``topP`` are sent when they are set and the model is not known to refuse them; a model that
    does refuse one is called again without, and that is remembered.

    Reasoning is not part of the answer and is skipped. An answer without any text is possible.
    """

    def __init__(
        self,
        client: Any,
        model_id: str,
        *,
        max_tokens: int = 2048,
        temperature: float | None = None,
        top_p: float | None = None,
        silence_s: float = 20.0,
        retry: RetryPolicy = INTERACTIVE,
        sampling: Sampling = LEARNT,
        clock: Callable[[], float] = time.monotonic,
        sleep: Callable[[float], None] = time.sleep,
        share: Callable[[], float] = random.random,
    ) -> None:
        """Wire the model.

        Args:
            client: boto3's ``bedrock-runtime`` client, configured by ``bedrock_client_config``.
            model_id: a model id, an inference profile's id, or the ARN of either.
            max_tokens: the longest answer, in tokens.
            temperature: in [0, 1].
            top_p: in (0, 1].
            silence_s: a stream that sends no event for this long is broken.
            retry: for calls that fail before their first piece.
            sampling: knows what the model accepts.
            clock: monotonic seconds.
            sleep: waits between retries.
            share: uniform in [0, 1), for the retries' jitter.
        """
        self._client = client
        self._model_id = model_id
        self._max_tokens = max_tokens
        self._wanted = {
            name: value for name, value in (("temperature", temperature), ("topP", top_p)) if value is not None
        }
        self._silence_s = silence_s
        self._retry = retry
        self._sampling = sampling
        self._clock = clock
        self._sleep = sleep
        self._share = share

    @property
    def model_id(self) -> str:
        """The service's id of the model."""
        return self._model_id

    def stream(self, prompt: Prompt, *, time_budget_s: float) -> Iterator[TextDelta | Finished]:
        """Write an answer piece by piece. The time budget runs from this call, and holds in mid-stream too.

        Raises:
            ModelBusy, ModelUnavailable, ModelRefused: before the first piece.
            StreamBroken: the stream ended without its ``messageStop``, in whatever form, or outlasted the budget.
            AnswerIncomplete: the model stopped for another reason than a normal finish; ``str(error)`` is the reason.
        """
        return self._answer(prompt, self._clock() + time_budget_s)

    def _answer(self, prompt: Prompt, deadline_s: float) -> Iterator[TextDelta | Finished]:
        attempts = 0
        while True:
            sampling = self._sampling.accepted(self._model_id, self._wanted)
            with closing(self._attempt(prompt, sampling, deadline_s)) as pieces:
                try:
                    first = next(pieces)
                except _NotBegun as not_begun:
                    failure = not_begun.failure
                else:
                    yield first
                    yield from pieces
                    return
            if failure.invalid and self._sampling.learn(self._model_id, sampling, str(failure.error)):
                logger.warning("the model refuses a sampling parameter", extra={"model": self._model_id})
                continue
            attempts += 1
            pause_s = self._retry.pause_s(attempts, left_s=deadline_s - self._clock(), share=self._share())
            if not failure.retry or pause_s is None:
                raise failure.error
            logger.info("the model is called again", extra={"model": self._model_id, "code": failure.error.code})
            self._sleep(pause_s)

    def _attempt(
        self, prompt: Prompt, sampling: Mapping[str, float], deadline_s: float
    ) -> Generator[TextDelta | Finished, None, None]:
        """One call. Raises :class:`_NotBegun` before the first piece if the call failed, else the port's errors."""
        if deadline_s <= self._clock():
            raise _NotBegun(Failure(ModelUnavailable("no time is left to call the model"), retry=False))
        begun = False
        stop: _Stop | None = None
        usage: Usage | None = None
        with closing(StreamReader(partial(self._client.converse_stream, **self._request(prompt, sampling)))) as reader:
            while stop is None or usage is None:
                left_s = deadline_s - self._clock()
                wait_s = min(left_s, self._silence_s if stop is None else METADATA_WAIT_S)
                item = reader.next(wait_s) if wait_s > 0 else None
                if not isinstance(item, StreamEvent):
                    if stop is not None:
                        break  # the answer is whole; only its usage is not known
                    raise self._fault(item, begun=begun, out_of_time=left_s <= self._silence_s)
                match _read_event(item.content):
                    case TextDelta() as delta:
                        begun = True
                        yield delta
                    case _Stop() as stop:
                        if stop.reason not in NORMAL_STOPS:
                            raise AnswerIncomplete(stop.reason)
                    case Usage() as usage:
                        pass
        yield Finished(stop.reason, usage or Usage())

    def _request(self, prompt: Prompt, sampling: Mapping[str, float]) -> dict[str, Any]:
        request = {
            "modelId": self._model_id,
            "messages": [{"role": "user", "content": [{"text": prompt.user}]}],
            "inferenceConfig": {"maxTokens": self._max_tokens, **sampling},
        }
        if prompt.system.strip():  # the service refuses a blank one
            request["system"] = [{"text": prompt.system}]
        return request

    def _fault(
        self, item: CallFailed | ReadFailed | StreamEnded | None, *, begun: bool, out_of_time: bool
    ) -> Exception:
        """What to raise when a stream without a ``messageStop`` sends no further event."""
        match item:
            case None:
                why = "the time budget ran out" if out_of_time else f"nothing arrived for {self._silence_s:g} s"
                if begun:
                    return StreamBroken(why)
                return _NotBegun(Failure(ModelUnavailable(why), retry=False))
            case StreamEnded():
                return StreamBroken("the stream ended without its messageStop")
            case CallFailed(error):
                failure = read_failure(error)
                return error if failure is None else _not_begun(failure, error)  # none of the service's: a bug
            case ReadFailed(error):
                failure = read_failure(error) if isinstance(error, ClientError) and not begun else None
                if failure is not None:  # for example throttled in the stream, before its first piece
                    return _not_begun(failure, error)
                broken = StreamBroken(f"{type(error).__name__}: {error}")
                broken.__cause__ = error
                return broken


def _not_begun(failure: Failure, cause: Exception) -> _NotBegun:
    failure.error.__cause__ = cause
    return _NotBegun(failure)


def _read_event(event: Mapping[str, Any]) -> TextDelta | _Stop | Usage | None:
    """What an event says; None if it is of no concern: reasoning, block boundaries, kinds not yet known.

    botocore gives an event whose payload is no JSON as an empty one: a hole in the text if it were skipped.
    """
    try:
        if "contentBlockDelta" in event:
            text = event["contentBlockDelta"]["delta"].get("text")
            return TextDelta(text) if text else None
        if "messageStop" in event:
            return _Stop(event["messageStop"]["stopReason"])
    except KeyError as error:
        raise StreamBroken(f"an event of the stream has no {error}") from error
    if "metadata" in event:
        counts = event["metadata"].get("usage", {})
        return Usage(
            input_tokens=counts.get("inputTokens", 0),
            output_tokens=counts.get("outputTokens", 0),
            cache_read_tokens=counts.get("cacheReadInputTokens", 0),
        )
    return None

"""Generation by Amazon Bedrock's ConverseStream.

What botocore does with a broken stream differs with the fault: an EventStreamError, urllib3's ProtocolError, a
ChecksumMismatch, a time-out, or nothing at all: a cut, close-delimited stream just ends. The rule that covers all of
them is that an answer is whole only when its ``messageStop`` arrived.
"""

from __future__ import annotations

import logging
import random
import threading
import time
from collections.abc import Callable, Generator, Mapping
from contextlib import closing
from functools import partial
from typing import Any

from botocore.exceptions import ClientError

from cicada.errors import BudgetSpent, ModelUnavailable, StreamBroken
from cicada.models.bedrock import Failure, read_failure
from cicada.models.converse_events import NORMAL_STOPS, MessageStop, incomplete, read_event
from cicada.models.lines import carry_lines
from cicada.models.ports import Finished, Leash, Prompt, Stopped, TextDelta, Usage
from cicada.models.retries import INTERACTIVE, RetryPolicy
from cicada.models.sampling import LEARNT, Sampling
from cicada.models.stream_reader import CallFailed, ReadFailed, StreamEnded, StreamEvent, StreamReader

logger = logging.getLogger(__name__)

METADATA_WAIT_S = 2.0
"""How long the token usage, which follows ``messageStop``, is waited for. The answer is whole without it."""


class _NotBegun(Exception):
    """A call failed before its first piece of text: nothing has been shown, so it may be made again."""

    def __init__(self, failure: Failure) -> None:
        super().__init__(str(failure.error))
        self.failure = failure


class _Watch:
    """Passes the leash's stop on to whatever the answer waits for."""

    def __init__(self) -> None:
        self.stopped = threading.Event()
        self._reader: StreamReader | None = None

    def stop(self) -> None:
        """Stop; from any thread."""
        self.stopped.set()
        if (reader := self._reader) is not None:
            reader.stop()

    def over(self, reader: StreamReader) -> None:
        """From now on the answer waits for this reader."""
        self._reader = reader
        if self.stopped.is_set():
            reader.stop()

    def check(self) -> None:
        """Raise Stopped after a stop."""
        if self.stopped.is_set():
            raise Stopped("nobody wants the answer any more")


def _allows_another(leash: Leash) -> bool:
    try:
        leash.call()
    except BudgetSpent:
        return False
    return True


def _wait(seconds: float, stopped: threading.Event) -> None:
    stopped.wait(seconds)


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
        pause: Callable[[float, threading.Event], None] = _wait,
        share: Callable[[], float] = random.random,
    ) -> None:
        """Wire the model.

        Args:
            client: boto3's ``bedrock-runtime`` client, configured by ``bedrock_client_config``; its connections are
                prepared for being closed (:func:`cicada.models.lines.carry_lines`).
            model_id: a model id, an inference profile's id, or the ARN of either.
            max_tokens: the longest answer, in tokens.
            temperature: in [0, 1].
            top_p: in (0, 1].
            silence_s: a stream that sends no event for this long is broken.
            retry: for calls that fail before their first piece.
            sampling: knows what the model accepts.
            clock: monotonic seconds.
            pause: waits between retries for some seconds, less if the event is set meanwhile.
            share: uniform in [0, 1), for the retries' jitter.
        """
        carry_lines(client)
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
        self._pause = pause
        self._share = share

    @property
    def model_id(self) -> str:
        """The service's id of the model."""
        return self._model_id

    @property
    def max_tokens(self) -> int:
        """The longest answer, in tokens."""
        return self._max_tokens

    def stream(
        self, prompt: Prompt, *, time_budget_s: float, leash: Leash
    ) -> Generator[TextDelta | Finished, None, None]:
        """Write an answer piece by piece. The time budget runs from this call, and holds in mid-stream too.

        Raises:
            ModelBusy, ModelUnavailable, ModelRefused: before the first piece.
            StreamBroken: the stream ended without its ``messageStop``, in whatever form, or outlasted the budget.
            AnswerIncomplete: the model stopped for another reason than a normal finish; ``str(error)`` is the reason.
            BudgetSpent: the leash allows no first call. Where it allows no further one, the last failure is raised.
            Stopped: the leash's stop, whatever was being waited for.
        """
        return self._answer(prompt, self._clock() + time_budget_s, leash)

    def _answer(self, prompt: Prompt, deadline_s: float, leash: Leash) -> Generator[TextDelta | Finished, None, None]:
        watch = _Watch()
        unregister = leash.on_stop(watch.stop)
        try:
            watch.check()
            if self._clock() >= deadline_s:
                raise ModelUnavailable("no time is left to call the model")
            leash.call()
            yield from self._tries(prompt, deadline_s, leash, watch)
        finally:
            unregister()

    def _tries(
        self, prompt: Prompt, deadline_s: float, leash: Leash, watch: _Watch
    ) -> Generator[TextDelta | Finished, None, None]:
        """Try, and try again while that can help. The leash has allowed the first try."""
        attempts = 0
        while True:
            sampling = self._sampling.accepted(self._model_id, self._wanted)
            with closing(self._attempt(prompt, sampling, deadline_s, watch)) as pieces:
                try:
                    first = next(pieces)
                except _NotBegun as not_begun:
                    failure = not_begun.failure
                else:
                    yield first
                    yield from pieces
                    return
            pause_s: float | None
            if failure.invalid and self._sampling.learn(self._model_id, sampling, str(failure.error)):
                logger.warning("the model refuses a sampling parameter", extra={"model": self._model_id})
                pause_s = 0.0
            else:
                attempts += 1
                pause_s = self._retry.pause_s(attempts, left_s=deadline_s - self._clock(), share=self._share())
                if not failure.retry or pause_s is None:
                    raise failure.error
            if not _allows_another(leash):
                raise failure.error
            if pause_s > 0:
                self._pause(pause_s, watch.stopped)
            watch.check()
            if self._clock() >= deadline_s:
                raise failure.error
            logger.info("the model is called again", extra={"model": self._model_id, "code": failure.error.code})

    def _attempt(
        self, prompt: Prompt, sampling: Mapping[str, float], deadline_s: float, watch: _Watch
    ) -> Generator[TextDelta | Finished, None, None]:
        """One call. Raises :class:`_NotBegun` before the first piece if the call failed, else the port's errors."""
        begun = False
        stop: MessageStop | None = None
        usage: Usage | None = None
        with closing(StreamReader(partial(self._client.converse_stream, **self._request(prompt, sampling)))) as reader:
            watch.over(reader)
            while stop is None or usage is None:
                left_s = deadline_s - self._clock()
                wait_s = min(left_s, self._silence_s if stop is None else METADATA_WAIT_S)
                item = reader.next(wait_s) if wait_s > 0 else None
                watch.check()
                if not isinstance(item, StreamEvent):
                    if stop is not None:
                        break  # the model has said it all; only its usage is not known
                    raise self._fault(item, begun=begun, out_of_time=left_s <= self._silence_s)
                match read_event(item.content):
                    case TextDelta() as delta:
                        begun = True
                        yield delta
                    case MessageStop() as stop:
                        pass
                    case Usage() as usage:
                        pass
            else:
                reader.finish()
        if stop.reason not in NORMAL_STOPS:
            raise incomplete(stop.reason, usage)
        yield Finished(stop.reason, usage or Usage(reported=False))

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

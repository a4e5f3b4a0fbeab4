"""What a stream of Chat Completions says: server-sent events, without a model's reasoning.

Most services send reasoning in a field of its own, which is skipped. Some local servers leave it where the model wrote
it: at the beginning of the text, between ``<think>`` and ``</think>``. Amazon Nova, where it is given tools, writes it
there itself, between ``<thinking>`` and ``</thinking>``.

Source: WHATWG HTML, "Server-sent events" (the framing); OpenAI API reference, "Chat Completions: streaming".
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from cicada.errors import AnswerBlocked, AnswerMalformed, AnswerTruncated, StreamBroken
from cicada.models.ports import TextDelta, Usage
from cicada.models.streaming import Said, Stop


class ThoughtFilter:
    """Removes reasoning in think tags from the beginning of a streamed text. Later tags stay, as in quotations."""

    def __init__(self, tag: str = "think") -> None:
        self._open, self._close = f"<{tag}>", f"</{tag}>"
        self._held = ""
        self._thinking = False
        self._thought = False
        self._through = False

    def feed(self, piece: str) -> str:
        """The text to pass on now, perhaps empty."""
        if self._through:
            return piece
        self._held += piece
        if not self._thinking:
            begun = self._held.lstrip()
            if begun.startswith(self._open):
                self._thinking, self._held = True, begun.removeprefix(self._open)
            elif self._open.startswith(begun):  # an empty text, too, may still begin with the tag
                return ""
            else:
                return self._pass_on()
        _, close, rest = self._held.partition(self._close)
        if not close:
            self._held = self._held[-len(self._close) :]  # may hold the beginning of the closing tag
            return ""
        self._held, self._thinking, self._thought = "", False, True
        return self.feed(rest)

    def end(self) -> str:
        """The text has ended: what was held back as a possible tag."""
        return "" if self._through or self._thinking else self._pass_on()

    def _pass_on(self) -> str:
        text = self._held.lstrip() if self._thought else self._held  # the blank lines after thoughts belong to them
        self._held, self._through = "", True
        return text


MAX_EVENT_BYTES = 1 << 20
"""Of one event; a longer one breaks the stream."""
_BOM = b"\xef\xbb\xbf"
DONE = "[DONE]"
"""The data of the last event."""

_STOPS: dict[str, Stop] = {
    "stop": Stop("end_turn"),
    "end_turn": Stop("end_turn"),
    "eos": Stop("end_turn"),
    "eos_token": Stop("end_turn"),
    "complete": Stop("end_turn"),
    "stop_sequence": Stop("stop_sequence"),
    "length": Stop("length", AnswerTruncated),
    "max_tokens": Stop("max_tokens", AnswerTruncated),
    "model_length": Stop("model_length", AnswerTruncated),
    "content_filter": Stop("content_filter", AnswerBlocked),
    "refusal": Stop("refusal", AnswerBlocked),
    "safety": Stop("safety", AnswerBlocked),
    "tool_calls": Stop("tool_calls", AnswerMalformed),
    "function_call": Stop("function_call", AnswerMalformed),
}
"""Finish reasons of OpenAI and other servers, in lower case. A tool call without tools, or an unknown reason, leaves a
malformed answer."""


class EventParser:
    """Parses a body's bytes piece by piece into the data of each complete event, and an empty text for a comment.

    Servers send comments to keep a connection alive. An incomplete event at the end is dropped.
    """

    def __init__(self) -> None:
        self._rest = b""
        self._data: list[bytes] = []
        self._size = 0
        self._after_cr = False
        self._begun = False

    def feed(self, piece: bytes) -> Iterator[str]:
        """The data of the events that this piece completes. Raises StreamBroken for invalid UTF-8 or a long event."""
        if self._after_cr and piece:
            piece, self._after_cr = piece.removeprefix(b"\n"), False
        buffered = self._rest + piece
        if not self._begun:
            if _BOM.startswith(buffered):  # or a beginning of one
                self._rest = buffered
                return
            self._begun, buffered = True, buffered.removeprefix(_BOM)
        self._after_cr = buffered.endswith(b"\r")
        lines = buffered.replace(b"\r\n", b"\n").replace(b"\r", b"\n").split(b"\n")
        self._rest = lines.pop()
        if self._size + len(self._rest) > MAX_EVENT_BYTES:
            raise StreamBroken("an event of the stream is too long")
        for line in lines:
            yield from self._line(line)

    def _line(self, line: bytes) -> Iterator[str]:
        if not line:
            if self._data:
                yield _text(b"\n".join(self._data))
            self._data, self._size = [], 0
            return
        name, _, value = line.partition(b":")
        if name == b"data":
            self._data.append(value.removeprefix(b" "))
            self._size += len(value)
            if self._size > MAX_EVENT_BYTES:
                raise StreamBroken("an event of the stream is too long")
        elif not name:
            yield ""


def _text(data: bytes) -> str:
    try:
        return data.decode()
    except UnicodeDecodeError as error:
        raise StreamBroken("an event of the stream is not valid UTF-8") from error


class ChunkReader:
    """Reads the chunks of one answer."""

    def __init__(self) -> None:
        self._thoughts = ThoughtFilter()
        self._stopped = False
        self._refused = False
        self._usage: Usage | None = None

    def read(self, chunk: Mapping[str, Any] | str) -> Iterable[Said]:
        """What a chunk, or ``DONE``, says. Raises StreamBroken if it cannot be read.

        The usage comes once, after the stop: from that chunk or a later one, else at ``DONE`` the last one seen.
        """
        if isinstance(chunk, str):
            return (self._usage or Usage(reported=False),) if self._stopped else ()
        try:
            return self._read(chunk)
        except (KeyError, TypeError, AttributeError, IndexError, ValueError) as error:
            raise StreamBroken(f"cannot parse a chunk of the stream: {type(error).__name__}") from error

    def _read(self, chunk: Mapping[str, Any]) -> list[Said]:
        said: list[Said] = []
        counts = chunk.get("usage") or (chunk.get("x_groq") or {}).get("usage")
        if counts:
            self._usage = read_usage(counts)
        for choice in chunk.get("choices") or ():
            if not choice.get("index"):
                said += self._read_choice(choice)
        if counts and self._stopped and self._usage is not None:
            said.append(self._usage)
        return said

    def _read_choice(self, choice: Mapping[str, Any]) -> Iterator[Said]:
        delta = choice.get("delta") or {}
        content = delta.get("content")
        if content and (text := self._thoughts.feed(_content_text(content))):
            yield TextDelta(text)
        self._refused = self._refused or bool(delta.get("refusal"))
        reason = choice.get("finish_reason")
        if reason and not self._stopped:
            self._stopped = True
            if rest := self._thoughts.end():
                yield TextDelta(rest)
            yield Stop("refusal", AnswerBlocked) if self._refused else read_stop(str(reason))


def read_stop(reason: str) -> Stop:
    """What a finish reason means."""
    return _STOPS.get(reason.lower()) or Stop(reason[:64], AnswerMalformed)


def read_usage(counts: Mapping[str, Any]) -> Usage:
    """The tokens of a call; not reported if they are not counts.

    Reasoning is output. Most services include it in ``completion_tokens``; the total shows where they do not.
    """
    try:
        return _read_counts(counts)
    except (TypeError, AttributeError, ValueError):
        return Usage(reported=False)


def _read_counts(counts: Mapping[str, Any]) -> Usage:
    details = counts.get("prompt_tokens_details") or {}
    prompt, completion = _count(counts.get("prompt_tokens")), _count(counts.get("completion_tokens"))
    cached = min(prompt, _count(details.get("cached_tokens") or counts.get("prompt_cache_hit_tokens")))
    reasoning = _count((counts.get("completion_tokens_details") or {}).get("reasoning_tokens"))
    if reasoning and _count(counts.get("total_tokens")) == prompt + completion + reasoning:
        completion += reasoning
    return Usage(input_tokens=prompt - cached, output_tokens=completion, cache_read_tokens=cached)


def _count(value: object) -> int:
    if value is None:
        return 0
    if isinstance(value, bool) or not isinstance(value, int) or value < 0:
        raise ValueError("missing token count")
    return value


def _content_text(content: object) -> str:
    """A delta's text; some servers send a list of parts, of which only text is the answer's."""
    if isinstance(content, str):
        return content
    if not isinstance(content, list):
        raise TypeError("missing content")
    return "".join(part["text"] for part in content if part.get("type") == "text")

"""The tools of one run: what a model asks for is validated, run, bounded and recorded."""

from __future__ import annotations

import hashlib
import json
import logging
import threading
import time
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any, Literal

from cicada.agents.limits import AgentCaps
from cicada.agents.ports import (
    MAX_OUTPUT_CHARS,
    Actor,
    Done,
    ProfileWritten,
    SourceRegistry,
    TheoryVerdict,
    ToConfirm,
    Told,
    Tool,
    ToolCall,
    ToolInput,
    ToolReply,
    VerdictGiven,
)
from cicada.errors import (
    AgentCapReached,
    CicadaError,
    OutOfTime,
    ProfileConflict,
    ProfileInvalid,
    ProfileUnknown,
    ToolInvalid,
    raise_final,
)
from cicada.models.ports import Stopped
from cicada.models.structured_output import OutputMisfit, read_form
from cicada.request_trace import log_event
from cicada.retrieval.ports import SearchLimits

_LEAST_CHARS = 60
"""The shortest cut of a text, before lists lose their ends."""


def bounded(result: Mapping[str, Any], max_chars: int = MAX_OUTPUT_CHARS) -> str:
    """A result as JSON of at most ``max_chars`` characters.

    The longest texts are cut first, then the ends of lists; ``"clipped": true`` tells the model of the cut.
    """
    text = _dump(result)
    if len(text) <= max_chars:
        return text
    limit, most = max_chars, max((len(found) for found in _lists(result)), default=0)
    while True:
        if limit > _LEAST_CHARS:
            limit = max(_LEAST_CHARS, limit * 3 // 4)
        elif most > 1:
            most = max(1, most // 2)
        else:
            return _dump({"clipped": True, "why": "the result is too long to be shown"})
        text = _dump({**_cut(result, limit, most or 1), "clipped": True})
        if len(text) <= max_chars:
            return text


def _dump(result: Mapping[str, Any]) -> str:
    return json.dumps(result, ensure_ascii=False, separators=(",", ":"))


def _lists(value: object) -> list[list[Any] | tuple[Any, ...]]:
    match value:
        case Mapping():
            return [found for part in value.values() for found in _lists(part)]
        case list() | tuple():
            return [value, *(found for part in value for found in _lists(part))]
        case _:
            return []


def _cut(value: Any, limit: int, most: int) -> Any:
    match value:
        case str():
            return value if len(value) <= limit else value[: limit - 1] + "…"
        case Mapping():
            return {key: _cut(part, limit, most) for key, part in value.items()}
        case list() | tuple():
            return [_cut(part, limit, most) for part in value[:most]]
        case _:
            return value


logger = logging.getLogger(__name__)

MAX_INPUT_CHARS = 16_000
"""Of what a model gives to a tool, as JSON."""
MAX_SAME_CALLS = 2
"""Allowed repeats of one call while nothing changes; more are a loop."""

_SAID_TO_THE_MODEL = (ToolInvalid, ProfileUnknown, ProfileInvalid, ProfileConflict)
"""Errors whose messages are for the model. Others' messages may name resources, and are for the log."""

By = Literal["code", "model"]


@dataclass(frozen=True)
class ToolRecord:
    """One call of a tool, without any text."""

    name: str
    """``unknown`` for a tool that is not offered: the model's word for it may be any text."""
    by: By
    writes: bool
    given_chars: int
    reply_chars: int
    took_ms: int
    fault: str | None = None
    """The error's code, if any."""
    repeated: bool = False
    """The same call had been made before, and its reply was given again."""


class ToolRunner:
    """:class:`cicada.agents.ports.Tools` over a list of tools. For one run, and one thread at a time.

    The :class:`Actor` is fixed at construction: nothing that a model writes changes it.
    """

    def __init__(
        self,
        tools: Sequence[Tool[Any]],
        *,
        actor: Actor,
        registry: SourceRegistry,
        limits: SearchLimits,
        caps: AgentCaps | None = None,
        may_write: Callable[[], bool] = lambda: True,
        on_change: Callable[[ProfileWritten | ToConfirm], None] = lambda _: None,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        """``may_write`` is asked right before each write: whether this run still answers the request; if not, it stops.

        ``on_change`` gets each change, or deletion to confirm, at once. Raises ValueError if two tools have one name.
        """
        self.tools = tuple(tools)
        self._by_name = {tool.name: tool for tool in tools}
        if len(self._by_name) != len(tools):
            raise ValueError(f"duplicate tool names: {', '.join(sorted(tool.name for tool in tools))}")
        self.actor = actor
        self.registry = registry
        self._limits = limits
        self._caps = caps or AgentCaps()
        self._may_write = may_write
        self._on_change = on_change
        self._clock = clock
        self.turns = 0
        """Turns of the model that have begun."""
        self._calls = 0
        self._openings = 0
        self._seen: Counter[str] = Counter()
        self._replies: dict[str, ToolReply] = {}
        self.changes = 0
        """Changes that tools have made, or asked the user to confirm."""
        self.verdict: TheoryVerdict | None = None
        """The last one that a tool gave."""
        self.records: list[ToolRecord] = []
        """Every call so far, in order."""

    def turn(self) -> None:
        """See the port."""
        self._check_wanted()
        if self.turns >= self._caps.max_turns:
            raise AgentCapReached(f"turns: a run has {self._caps.max_turns}")
        if self._limits.time_left_s() <= 0:
            raise OutOfTime("no time left for another agent turn")
        self.turns += 1

    def open(self, name: str, given: Mapping[str, Any]) -> Done:
        """Make a call by code, before the model is asked. It counts towards no cap.

        Raises what the tool raises, ToolInvalid if the input does not fit or the tool is not offered, or Stopped.
        """
        self._check_wanted()
        self._openings += 1
        call = ToolCall(f"opening_{self._openings}", name, given)
        tool = self._by_name.get(name)
        if tool is None:
            raise ToolInvalid(f"unknown tool {name}")
        written, valid = self._validated(tool, given)
        key = _key(name, written)
        self._seen[key] += 1
        started = self._clock()
        try:
            text = bounded(_told(tool.run(valid, self.actor, self.registry, self._limits)))
        except CicadaError as error:
            self._record("code", tool, written, 0, started, fault=error.code)
            raise
        self._record("code", tool, written, len(text), started)
        reply = self._replies[key] = ToolReply(call.call_id, name, text)
        return Done(call, reply)

    def call(self, call: ToolCall) -> ToolReply:
        """See the port."""
        self._check_wanted()
        self._count_call()
        started = self._clock()
        tool = self._by_name.get(call.name)
        if tool is None:
            wrong = ToolInvalid(f"there is no such tool: use one of {', '.join(self._by_name) or 'none'}")
            return self._refused(call, None, "", started, wrong)
        try:
            written, valid = self._validated(tool, call.given)
        except ToolInvalid as error:
            self._count(_key(call.name, repr(error)))  # a repeated mistake is a loop too
            return self._refused(call, tool, "", started, error)
        key = _key(tool.name, written)
        self._count(key)
        known = self._replies.get(key)
        if known is not None:
            self._record("model", tool, written, len(known.text), started, repeated=True)
            return ToolReply(call.call_id, tool.name, known.text)
        try:
            if tool.writes:
                if not self._may_write():
                    raise Stopped("the request has ended or another attempt has taken over")
                self._check_wanted()  # the stop may have come during the look-up
            result = tool.run(valid, self.actor, self.registry, self._limits)
        except OutOfTime:
            self._record("model", tool, written, 0, started, fault=OutOfTime.code)
            raise
        except CicadaError as error:
            raise_final(error)
            return self._refused(call, tool, written, started, error)
        reply = ToolReply(call.call_id, tool.name, bounded(_told(result)))
        self._record("model", tool, written, len(reply.text), started)
        self._note_result(result)
        self._seen[key] = max(1, self._seen[key])
        self._replies[key] = reply
        return reply

    def _note_result(self, result: Told) -> None:
        if isinstance(result, ProfileWritten):
            self._seen.clear()  # a repeated read may return something else now
            self._replies.clear()
        if isinstance(result, VerdictGiven | ProfileWritten):
            self.verdict = result.verdict or self.verdict
        if isinstance(result, ProfileWritten | ToConfirm):
            self.changes += 1
            self._on_change(result)

    def ran(self, call: ToolCall, reply: ToolReply) -> None:
        """See the port."""
        started = self._clock()
        tool = self._by_name.get(call.name)
        written = json.dumps(call.given, sort_keys=True, default=str, separators=(",", ":"))
        fault = ToolInvalid.code if reply.failed else None
        self._record("model", tool, written, len(reply.text), started, fault=fault)
        self._count_call()
        self._count(_key(call.name, written))

    def _count_call(self) -> None:
        self._calls += 1
        if self._calls > self._caps.max_tool_calls:
            raise AgentCapReached(f"tool calls: a run has {self._caps.max_tool_calls}")

    def _check_wanted(self) -> None:
        """Raise Stopped after the limits' stop."""
        stopped = threading.Event()
        self._limits.on_stop(stopped.set)()
        if stopped.is_set():
            raise Stopped

    def _validated(self, tool: Tool[Any], given: object) -> tuple[str, ToolInput]:
        """The input in its canonical form, and as the tool takes it. Raises ToolInvalid."""
        written = _canonical(given)
        try:
            return written, read_form(tool.form, given)
        except OutputMisfit as misfit:
            raise ToolInvalid(f"invalid input: {misfit}") from None

    def _count(self, key: str) -> None:
        self._seen[key] += 1
        if self._seen[key] > MAX_SAME_CALLS:
            raise AgentCapReached(f"loop: the same call was made {self._seen[key]} times")

    def _refused(
        self, call: ToolCall, tool: Tool[Any] | None, written: str, started: float, error: CicadaError
    ) -> ToolReply:
        why = str(error) if isinstance(error, _SAID_TO_THE_MODEL) else error.told
        text = bounded({"error": error.code, "why": why})
        self._record("model", tool, written, len(text), started, fault=error.code)
        logger.info("tool call failed", extra={"tool": tool.name if tool else "unknown", "code": error.code})
        return ToolReply(call.call_id, tool.name if tool else call.name, text, failed=True)

    def _record(
        self,
        by: By,
        tool: Tool[Any] | None,
        written: str,
        reply_chars: int,
        started: float,
        *,
        fault: str | None = None,
        repeated: bool = False,
    ) -> None:
        record = ToolRecord(
            name=tool.name if tool else "unknown",
            by=by,
            writes=bool(tool and tool.writes),
            given_chars=len(written),
            reply_chars=reply_chars,
            took_ms=round((self._clock() - started) * 1000),
            fault=fault,
            repeated=repeated,
        )
        self.records.append(record)
        told = {key: value for key, value in asdict(record).items() if key not in ("name", "writes")}
        log_event(logger, "tool_call", "tool called", tool=record.name, sources=len(self.registry.sources), **told)


def _canonical(given: object) -> str:
    """An input in the one form that equal inputs have. Raises ToolInvalid."""
    try:
        written = json.dumps(given, sort_keys=True, allow_nan=False, separators=(",", ":"))
    except (TypeError, ValueError, RecursionError):
        raise ToolInvalid("the input must be a JSON object") from None
    if len(written) > MAX_INPUT_CHARS:
        raise ToolInvalid(f"the input is longer than {MAX_INPUT_CHARS} characters")
    return written


def _told(result: Told) -> Mapping[str, Any]:
    """The part of a result for the model."""
    return result.told if isinstance(result, VerdictGiven | ProfileWritten | ToConfirm) else result


def _key(name: str, written: str) -> str:
    return hashlib.sha256(f"{name}\0{written}".encode()).hexdigest()

"""The client's end of a request's log: every event applied once and in order, without I/O."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from cicada.protocol.events import (
    Accepted,
    Attempt,
    Chunk,
    Citation,
    Citations,
    Complete,
    Confirm,
    Degraded,
    Failed,
    Fallback,
    Metrics,
    ProfileChanged,
    Receipt,
    Reused,
    Source,
    Sources,
    StrategyFailure,
    Verdict,
)
from cicada.usage.limits import LimitState
from cicada_client.frames import EventFrame, UnknownEvent, failures_in, metrics_in, withholds

MAX_EARLY_FRAMES = 10_000
"""Frames kept while one before them is missing; what does not fit comes again with the next resume."""


@dataclass(frozen=True)
class Answer:
    """A request's answer as far as it is known: without the text and sources of attempts that were given up."""

    request_id: str
    text: str
    sources: tuple[Source, ...]
    offered: bool
    """The sources were found by a strategy that failed, and are offered: the answer does not rest on them."""
    query: str | None
    """What was searched for, where the question was completed from the conversation."""
    reused: Reused | None
    """The earlier answer that this one makes use of, if it does."""
    degraded: tuple[Degraded, ...]
    """What the search had to do without."""
    citations: tuple[Citation, ...]
    not_attributed: tuple[int, ...]
    """The numbers of all sources, where the answer has no marker to say which of them it rests on."""
    route: str | None
    """What the classifier decided."""
    strategy: str | None
    """The strategy that answered, or is answering."""
    model: str | None
    grounded: bool | None
    """Whether the answer rests on retrieved passages; None until it is complete."""
    verdict: Verdict | None
    """On the theory of the question, as the agent's tool call gave it: with the passages for and against it."""
    receipts: tuple[ProfileChanged, ...]
    """What was changed of the user's profiles, in order: from the record, and whatever becomes of the text."""
    confirmations: tuple[Confirm, ...]
    """What the user is asked to confirm: nothing of it is done before."""
    changes: int | None
    """Where the question asked to change profiles: how many of both there are. With 0 nothing was changed."""
    failed: tuple[StrategyFailure, ...]
    """The strategies that were given up, in order, and why; known at the end."""
    metrics: Metrics | None
    limits: tuple[LimitState, ...]
    """What is left of the asker's limits on use; known at the end, empty where there are none."""
    complete: bool


class RequestTail:
    """Applies the events of one request.

    Frames may come early, late, twice or not at all: each ``seq`` is applied once, after all before it. What comes
    early waits. ``behind`` tells that something is missing, which a resume after ``applied`` brings.
    """

    def __init__(self, request_id: str) -> None:
        self.request_id = request_id
        self.applied = 0
        """The highest seq applied: all up to it are."""
        self.attempt = 0
        self.terminal: EventFrame | None = None
        self._last_seq = 0
        self._early: dict[int, EventFrame] = {}
        self._text: list[str] = []
        self._sources: dict[int, Source] = {}
        self._found: Sources | None = None
        self._citations: list[Citation] = []
        self._not_attributed: tuple[int, ...] = ()
        self._verdict: Verdict | None = None
        self._withheld = False
        self._receipts: dict[tuple[str, int], ProfileChanged] = {}
        self._confirmations: dict[str, Confirm] = {}
        self._accepted: Accepted | None = None
        self._strategy: str | None = None

    @property
    def behind(self) -> bool:
        """Whether the log is known to hold an event that is not applied yet."""
        return self.terminal is None and self.applied < self._last_seq

    def note_last_seq(self, last_seq: int) -> None:
        """Learn that the log holds at least this many events."""
        self._last_seq = max(self._last_seq, last_seq)

    def feed(self, frame: EventFrame) -> list[EventFrame]:
        """Take a frame, and return those that can be applied now, in order: none, it, or also what waited for it."""
        if self.terminal or frame.seq <= self.applied or frame.seq in self._early:
            return []
        self.note_last_seq(frame.seq)
        if frame.seq != self.applied + 1 and len(self._early) >= MAX_EARLY_FRAMES:
            return []
        self._early[frame.seq] = frame
        ready: list[EventFrame] = []
        while self.terminal is None and (next_frame := self._early.pop(self.applied + 1, None)):
            self.applied += 1
            self._apply(next_frame)
            ready.append(next_frame)
        if self.terminal is not None:
            self._early.clear()
        return ready

    def conclude(self, frame: EventFrame) -> None:
        """End the request without an event of its log."""
        self.terminal = frame
        self._early.clear()

    @property
    def text(self) -> str:
        """The answer so far, of the latest attempt alone."""
        return "".join(self._text)

    def answer(self) -> Answer:
        """What is known of the answer."""
        end = self.terminal.event if self.terminal else None
        fields: Mapping[str, Any] = end.fields if isinstance(end, UnknownEvent) else {}
        done = end if isinstance(end, Complete) else None
        complete = end is not None and end.type == "complete"
        found = self._found
        return Answer(
            request_id=self.request_id,
            text=self.text,
            sources=tuple(self._sources[n] for n in sorted(self._sources)),
            offered=found.offered if found else False,
            query=found.query if found else None,
            reused=found.reused if found else None,
            degraded=(*(found.degraded if found else ()), *(done.degraded if done else ())),
            citations=tuple(self._citations),
            not_attributed=self._not_attributed,
            route=self._accepted.route if self._accepted else None,
            strategy=done.answered_by if done else fields.get("answeredBy", self._strategy),
            model=done.model if done else fields.get("model"),
            grounded=done.grounded if done else fields.get("grounded"),
            verdict=self._verdict,
            receipts=tuple(self._receipts.values()),
            confirmations=tuple(self._confirmations.values()),
            changes=done.changes if done else None,
            failed=end.failed if isinstance(end, Complete | Failed) else failures_in(fields),
            metrics=done.metrics if done else metrics_in(fields),
            limits=done.limits if done else (),
            complete=complete,
        )

    def _apply(self, frame: EventFrame) -> None:
        if frame.terminal:
            self.terminal = frame
        if withholds(frame.raw):
            self._withhold()
        match frame.event:
            case Accepted() as accepted:
                self._accepted = accepted
            case Attempt(attempt=attempt, strategy=strategy):
                self._begin(attempt)
                self._strategy = strategy
            case Fallback():
                self._rewind()
            case Sources() | Chunk() | Citations() | Verdict() as part if self._current(part.attempt):
                self._apply_part(part)
            case Receipt(change=change):
                self._receipts[change.id, change.version] = change
            case Confirm() as confirm:
                self._confirmations[confirm.confirmation_id] = confirm
            case UnknownEvent() as unknown:
                self._apply_unknown(unknown)

    def _apply_part(self, part: Sources | Chunk | Citations | Verdict) -> None:
        """A part of the current attempt's answer."""
        match part:
            case Sources():
                self._sources.update((source.n, source) for source in part.sources)
                self._found = part
            case Chunk(content=content):
                self._text.append(content)
            case Citations():
                self._citations.extend(part.citations)
                self._not_attributed += part.not_attributed
            case Verdict():
                self._verdict = part

    def _apply_unknown(self, event: UnknownEvent) -> None:
        """A newer server's event of a known type: what decides whether text still counts is read from its fields."""
        match event.type:
            case "fallback":
                self._rewind()
            case "attempt":
                self._begin(event.fields.get("attempt"))
                self._strategy = event.fields.get("strategy")

    def _begin(self, attempt: object) -> None:
        """A new attempt's events follow. No two attempts' texts are ever joined, announced or not."""
        if isinstance(attempt, int) and attempt > self.attempt:
            self.attempt = attempt
            self._rewind()

    def _current(self, attempt: int) -> bool:
        self._begin(attempt)
        return attempt == self.attempt and not self._withheld

    def _withhold(self) -> None:
        """The answer was blocked. What had arrived early is not shown either: it has been withdrawn since."""
        self._withheld = True
        self._rewind()

    def _rewind(self) -> None:
        self._text.clear()
        self._sources.clear()
        self._found = None
        self._citations.clear()
        self._not_attributed = ()
        self._verdict = None

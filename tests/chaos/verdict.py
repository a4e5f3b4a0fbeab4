"""Judges a run by what its askers saw, what the log holds, and what went over the wire to the model.

Nothing here knows how answers are made or delivered; it holds the promises of ``docs/protocol.md`` against the record.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Literal

from tests.chaos.model_stream import Said
from tests.chaos.record import BLOCKED, TERMINAL_TYPES, Followed, Frame, Screen, attempts_of, text_of

MAX_MODEL_CALLS = 4
"""That write something; so many a request."""
MAX_RETRIEVAL_CALLS = 32
"""That answer a search's questions by a schema (which collections, which names): eight beside each of the others."""

Kind = Literal["lost", "chunks", "terminal", "mixed", "calls", "shown", "unwritten"]

_NOTICE = re.compile(r"\AThe sources could not be consulted[^\n]*(\n\n)?(The best passages found before[^\n]*(\n\n)?)?")
"""The words that stand before an answer without sources. They are no model's."""

PROMISES: Mapping[Kind, str] = {
    "lost": "answers lost",
    "chunks": "answers with a doubled, missing or foreign piece of text",
    "terminal": "requests without exactly one terminal event",
    "mixed": "texts of two attempts mixed",
    "calls": f"requests with more than {MAX_MODEL_CALLS} model calls, or {MAX_RETRIEVAL_CALLS} for their searches",
    "shown": "screens that differ from the log",
    "unwritten": "answers complete without a model's whole turn",
}


@dataclass(frozen=True)
class Breach:
    """A promise that did not hold for a request."""

    kind: Kind
    number: int
    request_id: str
    why: str


@dataclass(frozen=True)
class Evidence:
    """What went to the model on behalf of one request, in order."""

    said: tuple[Said, ...] = ()
    """By the calls that stream: they write."""
    retrieval_calls: int = 0
    """The others: they are a search's."""


def judge(followed: Followed, evidence: Evidence, kept: frozenset[str] = frozenset()) -> list[Breach]:
    """Every breach of a promise to the readers of one request.

    Args:
        followed: the record.
        evidence: the model's side of it.
        kept: the texts of other requests' answers, one of which may be given again.
    """
    found = list(judge_delivery(followed))
    if followed.log is not None:
        found += _judge_text(followed.log, evidence, kept)
    if followed.ended_alone is False:
        found.append(("terminal", "nobody ended it after its readers had left"))
    if len(evidence.said) > MAX_MODEL_CALLS:
        found.append(("calls", f"{len(evidence.said)} calls"))
    if evidence.retrieval_calls > MAX_RETRIEVAL_CALLS:
        found.append(("calls", f"{evidence.retrieval_calls} calls for searches"))
    return [Breach(kind, followed.number, followed.request_id, why) for kind, why in dict.fromkeys(found)]


def judge_delivery(followed: Followed) -> Iterator[tuple[Kind, str]]:
    """What is wrong with a request's log, and with what its readers saw of it, whatever a model said."""
    if followed.log is None:
        if not followed.never_asked:
            yield "lost", "its log could not be read"
        return
    yield from _judge_log(followed.log)
    for screen in followed.screens:
        yield from _judge_screen(screen, followed.log)


# --- the log ---


def _judge_log(log: Sequence[Frame]) -> Iterator[tuple[Kind, str]]:
    seqs = [frame["seq"] for frame in log]
    if seqs != list(range(1, len(log) + 1)):
        yield "chunks", f"the log's seqs are {seqs}"
    ends = [frame["seq"] for frame in log if frame["type"] in TERMINAL_TYPES]
    if log and log[-1].get("code") == BLOCKED and any(frame["type"] == "chunk" for frame in log):
        yield "mixed", "a blocked answer left text in the log"
    if len(ends) != 1:
        yield "terminal", f"{len(ends)} terminal events"
    elif ends[0] != seqs[-1]:
        yield "terminal", f"event {ends[0]} is terminal, and {seqs[-1]} follows"
    yield from _judge_attempts(log)


def _judge_attempts(log: Sequence[Frame]) -> Iterator[tuple[Kind, str]]:
    """Every event stands under the attempt that began last, and a later attempt begins with a ``fallback``."""
    current, withdrawn = 0, True
    for frame in log:
        seq = frame["seq"]
        match frame["type"]:
            case "fallback":
                withdrawn = True
            case "attempt":
                if frame["attempt"] != current + 1:
                    yield "mixed", f"event {seq} begins attempt {frame['attempt']} after attempt {current}"
                if not withdrawn:
                    yield "mixed", f"attempt {frame['attempt']} begins without a fallback"
                current, withdrawn = frame["attempt"], False
            case "sources" | "chunk" | "citations" | "complete":
                if frame["attempt"] != current or withdrawn:
                    yield "mixed", f"event {seq} ({frame['type']}) of attempt {frame['attempt']} stands in {current}"
    end = log[-1] if log else {}
    if end.get("type") == "complete":
        begun = [frame["strategy"] for frame in log if frame["type"] == "attempt"]
        if list(end["attempted"])[-1:] != begun[-1:] or end["answeredBy"] != begun[-1]:
            yield "mixed", f"answered by {end['answeredBy']} of {end['attempted']}, begun were {begun}"


# --- the screens ---


def _stands(frame: Frame, by_seq: Mapping[int, Frame]) -> bool:
    """Whether an event is in the log, or was until a blocked end withdrew it."""
    stored = by_seq.get(frame["seq"])
    return stored == frame or (stored is not None and stored["type"] == "withdrawn")


def _judge_screen(screen: Screen, log: Sequence[Frame]) -> Iterator[tuple[Kind, str]]:
    by_seq = {frame["seq"]: frame for frame in log}
    for socket in screen.arrived:
        for frame in socket:
            if not _stands(frame, by_seq):
                yield "shown", f"event {frame['seq']} came as {frame['type']} and is not so in the log"
    displayed = list(screen.displayed)
    in_order = [frame["seq"] for frame in displayed] == list(range(1, len(displayed) + 1))
    if not in_order or not all(_stands(frame, by_seq) for frame in displayed):
        yield "chunks", "what was displayed is no beginning of the log"
    if screen.text != text_of(displayed):
        yield "mixed", "the text on the screen is not that of the last attempt"
    if screen.followed and screen.failure is not None:
        yield "lost", f"the client gave up: {screen.failure}"
    elif screen.followed and len(displayed) != len(log):
        yield "lost", f"{len(displayed)} of {len(log)} events were displayed"


# --- the text ---


def _judge_text(log: Sequence[Frame], evidence: Evidence, kept: frozenset[str]) -> Iterator[tuple[Kind, str]]:
    """Each attempt shows the beginning of one thing that was said, and a complete answer all of it."""
    attempts = attempts_of(log)
    for number, events in enumerate(attempts, 1):
        text = text_of(events)
        answered = number == len(attempts) and log[-1]["type"] == "complete"
        if not _found_something(events):
            continue  # the words that say so are our own
        if _replays(events):
            if answered and text not in kept:
                yield "chunks", "an earlier answer is given again that was given to nobody"
            if not any(one.startswith(text) for one in kept):
                yield "chunks", "what is given again is no beginning of an earlier answer"
        elif answered:
            if not any(said.whole for said in evidence.said):
                yield "unwritten", "no model came to the end of its turn"
            elif not any(said.whole and _is_all_of(text, said.text) for said in evidence.said):
                yield "chunks", f"the answer is not what the model said: …{text[-60:]!r}"
        elif not any(_is_beginning(text, said.text) for said in (*evidence.said, Said(0))):
            yield "chunks", f"a given-up attempt's text is no beginning of the model's: …{text[-60:]!r}"


def _found_something(events: Sequence[Frame]) -> bool:
    return all(event["sources"] for event in events if event["type"] == "sources")


def _replays(events: Sequence[Frame]) -> bool:
    """Whether an attempt gives an earlier answer again, word by word."""
    uses = [event.get("reused", {}).get("use") for event in events if event["type"] == "sources"]
    return "answer" in uses


def is_replay(log: Sequence[Frame]) -> bool:
    """Whether a request was answered by an earlier answer."""
    attempts = attempts_of(log)
    return bool(attempts) and _replays(attempts[-1])


def _is_all_of(text: str, said: str) -> bool:
    """Whether a text is what the model said, after at most a notice of our own."""
    return bool(said.strip()) and said in (text, _NOTICE.sub("", text))


def _is_beginning(text: str, said: str) -> bool:
    """Whether a text is the beginning of what the model said, after at most a notice of our own."""
    return said.startswith((text, _NOTICE.sub("", text)))


# --- all of them ---


@dataclass(frozen=True)
class Verdict:
    """What a run has shown."""

    requests: int
    outcomes: Mapping[str, int]
    answered_by: Mapping[str, int]
    model_calls: int
    most_model_calls: int
    retrieval_calls: int
    most_retrieval_calls: int
    breaches: tuple[Breach, ...]

    @property
    def holds(self) -> bool:
        """Whether every promise held."""
        return not self.breaches

    def counts(self) -> dict[Kind, int]:
        """For each promise, the requests that broke it."""
        broken = Counter(kind for kind, _ in {(breach.kind, breach.number) for breach in self.breaches})
        return {kind: broken[kind] for kind in PROMISES}


def conclude(requests: Sequence[Followed], evidence: Mapping[str, Evidence]) -> Verdict:
    """Judge all requests of a run; ``evidence`` is by request id."""
    complete = [one for one in requests if one.outcome == "complete" and one.log]
    kept = frozenset(text_of(one.log or ()) for one in complete if not is_replay(one.log or ()))
    none = Evidence()
    breaches = [breach for one in requests for breach in judge(one, evidence.get(one.request_id, none), kept)]
    calls = [len(found.said) for found in evidence.values()]
    searches = [found.retrieval_calls for found in evidence.values()]
    return Verdict(
        requests=len(requests),
        outcomes=Counter(one.outcome for one in requests),
        answered_by=Counter(one.answered_by or "" for one in complete),
        model_calls=sum(calls),
        most_model_calls=max(calls, default=0),
        retrieval_calls=sum(searches),
        most_retrieval_calls=max(searches, default=0),
        breaches=tuple(breaches),
    )

"""Whose model calls these were: told by the question that stands in the prompt."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Sequence
from xml.sax.saxutils import escape

from tests.chaos.model_watch import ModelCall
from tests.chaos.record import Followed
from tests.chaos.verdict import Evidence

SLACK_S = 2.0
"""By how much a call may lie outside the time in which its request was seen open."""


def attribute(calls: Iterable[ModelCall], requests: Sequence[Followed]) -> tuple[dict[str, Evidence], int]:
    """What each request asked of the models, by request id, and how many calls could be nobody's.

    A request is found by its question, or by what its ``sources`` say that it was completed to, among those that were
    open when the call came. Where a prompt holds several such texts, as a conversation's does, the last one counts.
    """
    asked: defaultdict[str, list[ModelCall]] = defaultdict(list)
    unknown = 0
    texts = [(text, one) for one in requests for text in _texts(one)]
    for call in calls:
        open_then = ((text, one) for text, one in texts if _open_at(one, call.at))
        places = [
            (call.prompt.rfind(text) + len(text), len(text), one) for text, one in open_then if text in call.prompt
        ]
        if not places:
            unknown += 1
            continue
        _, _, owner = max(places, key=lambda place: place[:2])
        asked[owner.request_id].append(call)
    return {request_id: _evidence(of_one) for request_id, of_one in asked.items()}, unknown


def _evidence(calls: Sequence[ModelCall]) -> Evidence:
    said = tuple(call.said for call in calls if call.operation == "converse-stream")
    return Evidence(said, retrieval_calls=len(calls) - len(said))


def _texts(one: Followed) -> set[str]:
    completed = {frame["query"] for frame in one.log or () if frame["type"] == "sources" and frame.get("query")}
    return {form for text in (one.question, *completed) for form in (text, escape(text))}


def _open_at(one: Followed, at: float) -> bool:
    return one.asked_at - SLACK_S <= at and (one.ended_at is None or at <= one.ended_at + SLACK_S)

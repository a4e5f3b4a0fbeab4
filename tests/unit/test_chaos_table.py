"""What a person sees of a chaos run."""

from __future__ import annotations

import io
import json

from rich.console import Console

from tests.chaos.model_stream import Said
from tests.chaos.record import Followed, Screen, text_of, write_record
from tests.chaos.table import live, verdict_lines
from tests.chaos.tally import Tally
from tests.chaos.verdict import Evidence, conclude

LOG = (
    {"requestId": "r1", "seq": 1, "type": "accepted"},
    {"requestId": "r1", "seq": 2, "type": "attempt", "attempt": 1, "strategy": "rag"},
    {"requestId": "r1", "seq": 3, "type": "fallback", "from": "rag", "to": "direct"},
    {"requestId": "r1", "seq": 4, "type": "attempt", "attempt": 2, "strategy": "direct"},
    {"requestId": "r1", "seq": 5, "type": "chunk", "attempt": 2, "content": "Hello."},
    {
        "requestId": "r1",
        "seq": 6,
        "type": "complete",
        "attempt": 2,
        "answeredBy": "direct",
        "attempted": ["rag", "direct"],
    },
)


def request(log=LOG, **changes):
    screens = [Screen([list(log)], log, text_of(log))]
    return Followed(7, "r1", "Who owns the red oilskin?", screens=screens, log=log, **changes)


def rendered(renderable):
    out = io.StringIO()
    Console(file=out, width=140).print(renderable)
    return out.getvalue()


def tally():
    tally = Tally(seed=3, wanted_kills=20, asked=2, ended=1)
    tally.kills_by["Answer"] = 5
    tally.drops["chunk"] = 4
    tally.faults["bedrock.cut reset"] = 2
    return tally


def test_the_table_shows_each_question_with_its_strategies_and_latest_event():
    shown = rendered(live([request(LOG[:5])], [request(ended_at=1.0)], tally()))
    assert "kills 5 of 20" in shown
    assert shown.count("rag → direct") == 2
    assert "chunk" in shown
    assert "[complete]" in shown
    assert "bedrock.cut reset 2" in shown


def test_the_verdict_is_told_with_every_promise_and_every_breach():
    evidence = {"r1": Evidence((Said(200, "Hello.", "end_turn"),))}
    shown = rendered(verdict_lines(conclude([request()], evidence), tally(), 0))
    assert "Every promise held." in shown
    assert "answers lost" in shown
    broken = rendered(verdict_lines(conclude([request()], {}), tally(), 1))
    assert "A promise was broken." in broken
    assert "#7 r1 unwritten" in broken
    assert "1 more of no known request" in broken


def test_what_was_seen_can_be_kept(tmp_path):
    write_record(tmp_path / "requests.jsonl", [request(), request()])
    first, second = (tmp_path / "requests.jsonl").read_text(encoding="utf-8").splitlines()
    assert first == second
    assert json.loads(first)["log"][4]["content"] == "Hello."

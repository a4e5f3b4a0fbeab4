"""An agent's attempt on a request's log: its events, its spending, and the fall to the search."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import Any

import pytest

from cicada.agents.ports import ToolCall
from cicada.answering.agent import AgentStrategy
from cicada.answering.attempt import AttemptRunner
from cicada.answering.rag import RagStrategy
from cicada.answering.workflow import AttemptTask
from cicada.delivery.decide import append
from cicada.delivery.outbox import OutboxLimits
from cicada.errors import AgentCapReached, AgentUnavailable, AnswerIncomplete, Cancelled, CicadaError
from cicada.protocol.events import Failed
from cicada.semantic_cache.cache import NoEarlierAnswers
from tests.support.access import GivenRules
from tests.support.agents import FakeTool, ScriptedAgent, Words, found, written
from tests.support.memory import InMemoryConnections, InMemoryLog
from tests.support.questions import (
    ACCEPTED,
    KEY,
    NOW_S,
    UNUSED,
    FixedRetriever,
    ScriptedModel,
    beginning,
    joined,
    new_head,
    passage,
)

ROWS = "I locked the boathouse at ten."
CITED = 'Mara says: "I locked the boathouse at ten." [1]'


class World:
    """A request that has been accepted, and a worker with an agent and the search."""

    def __init__(self, *steps):
        self.made: list[Any] = []
        """Changes of the request, as the profiles' records tell."""
        self.log = InMemoryLog()
        self.log.create(new_head("c1"), ACCEPTED)
        self.agent = ScriptedAgent(list(steps))
        looks = FakeTool("look", result=lambda given, registry: {"n": registry.put(found(7, ROWS))})
        self.notes = FakeTool("note", written, writes=True)
        more = FakeTool("more", result=lambda given, registry: {"n": registry.put(found(8, "The bell rang twice."))})
        agent = AgentStrategy(
            "theory_agent",
            self.agent,
            retriever=FixedRetriever(),
            tools=lambda watched: [looks, more, self.notes],
            opening=lambda box, asked: (box.open("look", {"words": asked.query}),),
            needs=(),
            may_change=lambda message: True,
        )
        search = RagStrategy(
            FixedRetriever(passage(7, ROWS)),
            NoEarlierAnswers(),
            ScriptedModel(CITED),
            top_k=20,
            min_score=0.5,
            prompt_passages=10,
        )
        self.runner = AttemptRunner(
            self.log,
            InMemoryConnections("c1"),
            {"theory_agent": agent, "rag": search},
            changes=lambda head: self.made,
            limits=OutboxLimits(min_interval_s=0, store_budget_s=0.2),
            now_s=lambda: NOW_S,
            access=GivenRules(),
        )

    def run(self, strategy="theory_agent", failures=None):
        task = AttemptTask(
            subject=KEY.subject,
            request_id=KEY.request_id,
            execution="x1",
            entry="theory_agent",
            strategy=strategy,
            failures=failures or {},
        )
        return self.runner.run(task, worker="w1", remaining_s=60.0)

    def events(self):
        _, entries = self.log.read(KEY)
        return [json.loads(entry.frame(KEY.request_id)) for entry in entries]


def kinds(events):
    return [event["type"] for event in events]


def test_an_agents_answer_is_a_log_like_any_other():
    world = World('Mara says: "I locked ', 'the boathouse at ten." [1]')
    assert world.run().outcome == "answered"
    events = world.events()
    assert kinds(events)[:3] == ["accepted", "attempt", "sources"]
    assert kinds(events)[-2:] == ["citations", "complete"]
    assert joined(events) == CITED
    complete = events[-1]
    assert (complete["answeredBy"], complete["grounded"], complete["model"]) == ("theory_agent", True, "local.scripted")
    assert (complete["metrics"]["modelCalls"], complete["metrics"]["inputTokens"]) == (2, 600)


def test_sources_that_were_added_are_told_before_the_citations():
    world = World(CITED, ToolCall("c", "more", {}), " The bell rang twice [2].")
    world.run()
    events = world.events()
    sources = [event for event in events if event["type"] == "sources"]
    assert [[source["n"] for source in event["sources"]] for event in sources] == [[1], [1, 2]]
    assert kinds(events).index("citations") > max(n for n, kind in enumerate(kinds(events)) if kind == "sources")


@pytest.mark.parametrize(
    ("steps", "kind"),
    [
        ([AgentUnavailable("gone")], AgentUnavailable),
        (["Half of it. ", AgentCapReached("loop")], AgentCapReached),
        ([" "], AnswerIncomplete),
    ],
    ids=["unavailable", "cap", "empty"],
)
def test_an_agent_that_fails_falls_to_the_search_whose_text_alone_is_the_answer(steps, kind):
    world = World(*steps)
    with pytest.raises(CicadaError) as raised:
        world.run()
    assert type(raised.value) is kind
    caught = {"theory_agent": {"Error": kind.__name__, "Cause": "in the log"}}
    assert world.run("rag", caught).outcome == "answered"
    events = world.events()
    fallback = next(event for event in events if event["type"] == "fallback")
    assert (fallback["from"], fallback["to"], fallback["code"]) == ("theory_agent", "rag", kind.code)
    after = events[kinds(events).index("fallback") :]
    assert joined(after) == CITED
    assert events[-1]["attempted"] == ["theory_agent", "rag"]


def test_what_a_failed_agent_spent_is_counted():
    world = World("Half of it. ", AgentUnavailable("gone"))
    with pytest.raises(AgentUnavailable):
        world.run()
    world.run("rag", {"theory_agent": {"Error": "AgentUnavailable", "Cause": ""}})
    assert world.events()[-1]["metrics"]["modelCalls"] == 3


NOTE = ToolCall("c", "note", {"words": "Ren"})
KEPT = "What it had changed by then is kept: created the character “Ren”."


@pytest.mark.parametrize("caught", ["AgentUnavailable", "Sandbox.Timedout"], ids=["failed", "worker lost"])
def test_what_a_failed_agent_has_changed_is_told_with_its_failure(caught):
    world = World(NOTE, "I kept it. ", AgentUnavailable("gone"))
    with pytest.raises(AgentUnavailable):
        world.run()
    world.run("rag", {"theory_agent": {"Error": caught, "Cause": ""}})
    events = world.events()
    fallback = next(event for event in events if event["type"] == "fallback")
    assert fallback["reason"].endswith(KEPT)
    assert [one["reason"] for one in events[-1]["failed"]] == [fallback["reason"]]


def test_a_change_has_its_receipt_though_the_attempt_fails():
    world = World(NOTE, "I kept it. ", AgentUnavailable("gone"))
    with pytest.raises(AgentUnavailable):
        world.run()
    world.made = [written(Words(words="Ren"), UNUSED).change]
    world.run("rag", {"theory_agent": {"Error": "AgentUnavailable", "Cause": ""}})
    receipts = [event for event in world.events() if event["type"] == "receipt"]
    assert [(one["attempt"], one["change"]["name"]) for one in receipts] == [(1, "Ren")]


def test_a_change_whose_worker_was_lost_before_its_receipt_has_it_from_the_next():
    world = World("Half of it. ", AgentUnavailable("gone"))
    with pytest.raises(AgentUnavailable):
        world.run()
    world.made = [written(Words(words="Ren"), UNUSED).change]
    world.run("rag", {"theory_agent": {"Error": "Sandbox.Timedout", "Cause": ""}})
    receipts = [event for event in world.events() if event["type"] == "receipt"]
    assert [(one["attempt"], one["change"]["name"]) for one in receipts] == [(2, "Ren")]


def test_of_a_failed_agent_that_has_changed_nothing_no_change_is_told():
    world = World("Half of it. ", AgentUnavailable("gone"))
    with pytest.raises(AgentUnavailable):
        world.run()
    world.run("rag", {"theory_agent": {"Error": "AgentUnavailable", "Cause": ""}})
    assert "kept" not in json.dumps(world.events())


def changing(world, meanwhile):
    """A tool that changes something while something else happens; what was taken back of it, by name."""
    taken_back = []

    def change(given, registry):
        meanwhile()
        done = written(given, registry)
        return replace(done, take_back=lambda: taken_back.append(done.change.name))

    world.notes.result = change
    return taken_back


@pytest.mark.parametrize("ended", ["cancelled", "taken over", "goes on"])
def test_a_change_whose_receipt_came_too_late_for_the_log_is_taken_back(ended):
    world = World(NOTE, "I kept it.")

    def meanwhile():
        head = world.log.head(KEY)
        if ended == "cancelled":
            world.log.commit(head, append(head, [Failed.of(Cancelled())]))
        elif ended == "taken over":
            world.log.commit(head, beginning(head, execution="x1", worker="w2"))

    taken_back = changing(world, meanwhile)
    assert world.run().outcome == ("answered" if ended == "goes on" else "superseded")
    assert taken_back == (["Ren"] if ended == "cancelled" else [])
    assert [event["type"] for event in world.events()].count("receipt") == (1 if ended == "goes on" else 0)


def test_a_change_for_whose_receipt_the_log_has_no_room_is_taken_back(monkeypatch):
    world = World(NOTE, "I kept it.")
    taken_back = changing(world, lambda: monkeypatch.setattr("cicada.delivery.decide.MAX_LOG_BYTES", 1))
    assert world.run().outcome == "ended"
    assert kinds(world.events())[-1] == "error"
    assert taken_back == ["Ren"]


@pytest.mark.parametrize("stands", ["cancelled", "taken over"])
def test_an_agent_whose_request_goes_on_without_it_writes_nothing(stands, monkeypatch):
    world = World(NOTE, "I kept it.")
    opened = world.agent.run

    def run(task, tools, limits):
        """The request changes hands while the model thinks; no commit of the attempt has found out yet."""
        head, entries = world.log.requests[KEY]
        changes = {"state": "failed"} if stands == "cancelled" else {"attempt": head.attempt + 1, "worker": "w2"}
        world.log.requests[KEY] = (replace(head, **changes), entries)
        return opened(task, tools, limits)

    monkeypatch.setattr(world.agent, "run", run)
    assert world.run().outcome == "superseded"
    assert world.notes.runs == []

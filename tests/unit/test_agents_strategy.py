"""The agents' strategies, over an agent that does what a test says."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import Any, Literal

import pytest

from cicada.agents.limits import AgentCaps
from cicada.agents.ports import TheoryVerdict, ToolCall, ToolInput, VerdictGiven
from cicada.agents.tools.evidence import WeighedPassage, reason_of
from cicada.answering.agent import AgentStrategy, ProfileOpening, TheoryOpening, conversation_of, named_in
from cicada.answering.watched import NO_VERSION
from cicada.attempts.budgets import AGENT_CALLS_A_CALL, ModelCall
from cicada.attempts.strategy import Answered, Retrieved, Step
from cicada.delivery.record import Question, RequestKey
from cicada.errors import (
    AgentCapReached,
    AgentUnavailable,
    AnswerIncomplete,
    BudgetSpent,
    IndexMissing,
    IndexUnavailable,
    OutOfTime,
    ProfileConflict,
    ProfilesUnavailable,
)
from cicada.models.ports import Stopped, TextDelta, Usage
from cicada.profiles.heads import StoredHead
from cicada.protocol.events import VerdictPassage
from cicada.retrieval.ports import SearchQuery
from cicada.rights import EVERYTHING
from tests.support.agents import FakeTool, ScriptedAgent, found, written
from tests.support.answers import asked, new_budget
from tests.support.breakers import Clock
from tests.support.questions import KEY, FixedRetriever, passage

ROWS = "Mira rows the ferry to the boathouse every evening."
WAITS = "Ren waits at the harbour wall until the ferry is back."


def puts(*texts):
    """A tool's result: passages put on the registry."""
    return lambda given, registry: {"passages": [registry.put(found(n, text)) for n, text in enumerate(texts, 1)]}


def weighs(*texts):
    """A tool's result: passages that were gathered against what the question asks."""

    def gather(given, registry):
        for n, text in enumerate(texts, 1):
            source = found(n, text)
            why = reason_of("Mira is a spy", WeighedPassage(source, "against", 0.8))
            registry.put(source.model_copy(update={"why": (why,)}))
        return {}

    return gather


class Anything(ToolInput):
    query: str = ""
    id: str = ""
    statement: str = ""
    limit: int = 0


def head(id: str, name: str, statement: str | None = None) -> StoredHead:
    """A profile in a list."""
    kind: Literal["character", "theory"] = "theory" if statement else "character"
    return StoredHead(id=id, kind=kind, name=name, version=1, facts=0, changed_at_ms=1, statement=statement)


WRITING = ("create_profile", "record_verdict", "state_theory")


class Desk:
    """Tools of both agents, and what was kept before."""

    def __init__(self, *kept):
        self.kept = kept
        self.tools = {
            name: FakeTool(name, written, writes=True) if name in WRITING else FakeTool(name)
            for name in (
                "search_script",
                "list_profiles",
                "show_profile",
                "create_profile",
                "list_theories",
                "gather_evidence",
                "give_verdict",
                "state_theory",
                "record_verdict",
            )
        }
        for name in ("show_profile", "gather_evidence", "search_script"):
            self.tools[name].form = Anything
        self.tools["search_script"].result = puts(ROWS)
        self.tools["give_verdict"].result = lambda given, registry: VerdictGiven({}, GIVEN)
        self.tools["gather_evidence"].result = weighs(ROWS, WAITS)

    def strategy(self, agent, name="profile_agent", retriever=None, **wiring):
        opening = (ProfileOpening if name == "profile_agent" else TheoryOpening)(lambda subject: self.kept)
        return AgentStrategy(
            name,
            agent,
            retriever=retriever or FixedRetriever(),
            tools=self.offered,
            opening=opening,
            needs=(),
            **{"may_change": lambda message: True, **wiring},
        )

    def offered(self, watched):
        self.watched = watched
        return list(self.tools.values())

    def calls(self):
        return [
            (name, run.model_dump(exclude_defaults=True)) for name, tool in self.tools.items() for _, run in tool.runs
        ]


def run(strategy, question="What is noted of Mira?", **attempt_budget):
    return list(strategy.answer(asked(question), new_budget(**attempt_budget)))


def text_of(steps):
    return "".join(step.text for step in steps if isinstance(step, TextDelta))


# --- the way of an answer ---


def test_sources_stand_before_the_text_and_the_citations_are_checked_against_them():
    agent = ScriptedAgent(["Mira rows the ferry ", "to the boathouse [1]."])
    steps = run(Desk().strategy(agent))
    assert [type(step) for step in steps] == [Retrieved, TextDelta, TextDelta, Answered]
    retrieved, answered = steps[0], steps[-1]
    assert [(source.n, source.text) for source in retrieved.sources] == [(1, ROWS)]
    assert retrieved.index_version == "v1"
    assert answered.grounded
    assert (answered.stop_reason, answered.model_id) == ("end_turn", agent.model_id)


def test_sources_that_come_after_the_first_text_are_shown_once_more():
    profile_service = Desk()
    profile_service.tools["list_theories"].result = puts(WAITS)
    agent = ScriptedAgent(["Mira rows the ferry [1]. ", ToolCall("c", "list_theories", {}), "Ren waits [2]."])
    steps = run(profile_service.strategy(agent))
    assert [len(step.sources) for step in steps if isinstance(step, Retrieved)] == [1, 2]
    assert isinstance(steps[-2], Retrieved)


def test_the_version_that_is_told_is_that_which_was_searched():
    class Published(FixedRetriever):
        """A new version is current once something was searched."""

        def version(self):
            return "v1" if not self.queries else "v2"

    profile_service = Desk()
    agent = ScriptedAgent(["Mira rows the ferry [1]."])

    def search(given, registry):
        profile_service.watched.search(SearchQuery("ferry", readable=EVERYTHING))
        return puts(ROWS)(given, registry)

    profile_service.tools["search_script"].result = search
    retrieved = run(profile_service.strategy(agent, retriever=Published(passage(1, ROWS))))[0]
    assert (retrieved.index_version, retrieved.engine) == ("v1", "shards")
    assert retrieved.searched >= 1


def test_an_invented_number_is_unverified():
    steps = run(Desk().strategy(ScriptedAgent(["Mira is a spy [7]."])))
    assert [citation.verdict for citation in steps[-1].citations] == ["unverified"]


def test_an_empty_answer_is_incomplete():
    with pytest.raises(AnswerIncomplete):
        run(Desk().strategy(ScriptedAgent([])))
    with pytest.raises(AnswerIncomplete):
        run(Desk().strategy(ScriptedAgent([" \n"])))


@pytest.mark.parametrize("error", [AgentCapReached("loop"), AgentUnavailable("gone")])
def test_an_agents_error_is_the_strategys_and_the_run_is_closed(error):
    agent = ScriptedAgent(["Half an ", error])
    with pytest.raises(type(error)):
        run(Desk().strategy(agent))
    assert agent.closed


def test_closing_the_answer_closes_the_run():
    agent = ScriptedAgent(["One.", "Two."])
    steps = Desk().strategy(agent).answer(asked("Who is Mira?"), new_budget())
    next(steps)
    steps.close()
    assert agent.closed


# --- what happens before the model ---


def test_the_profiles_that_a_question_names_are_shown_and_the_corpus_is_searched():
    profile_service = Desk(head("1" * 20, "Mira"), head("2" * 20, "Ren Aalto"))
    agent = ScriptedAgent(["Nothing."])
    run(profile_service.strategy(agent), "What do you know of Mira's boat?")
    assert profile_service.calls() == [
        ("search_script", {"query": "What do you know of Mira's boat?", "limit": 4}),
        ("show_profile", {"id": "1" * 20}),
    ]
    assert [done.call.name for done in agent.tasks[0].done] == ["show_profile", "search_script"]


def test_where_none_is_named_all_profiles_are_listed():
    agent = ScriptedAgent(["Nothing."])
    run(Desk(head("1" * 20, "Mira")).strategy(agent), "Which characters did I note?")
    assert [done.call.name for done in agent.tasks[0].done] == ["list_profiles", "search_script"]


def test_a_corpus_that_cannot_be_searched_does_not_hide_what_was_noted():
    profile_service = Desk()

    def down(given, registry):
        raise IndexUnavailable("s3")

    profile_service.tools["search_script"].result = down
    steps = run(
        profile_service.strategy(
            ScriptedAgent(["You noted nothing yet."]), retriever=FixedRetriever(error=IndexMissing("none"))
        )
    )
    assert isinstance(steps[0], Retrieved)
    assert steps[0].index_version == NO_VERSION


def test_profiles_that_cannot_be_read_fail_the_attempt_before_the_model_is_asked():
    profile_service = Desk()

    def down(given, registry):
        raise ProfilesUnavailable("dynamodb")

    profile_service.tools["list_profiles"].result = down
    agent = ScriptedAgent(["Nothing."])
    with pytest.raises(ProfilesUnavailable):
        run(profile_service.strategy(agent))
    assert agent.tasks == []


def test_evidence_is_gathered_before_a_theory_is_judged():
    profile_service = Desk()
    agent = ScriptedAgent(["The theory is supported: Mira rows the ferry to the boathouse [1]."])
    run(profile_service.strategy(agent, "theory_agent"), "Is my theory that Mira rows the ferry true?")
    assert [done.call.name for done in agent.tasks[0].done] == ["list_theories", "gather_evidence"]
    assert ("gather_evidence", {"statement": "Is my theory that Mira rows the ferry true?"}) in profile_service.calls()


def test_a_theory_without_a_search_is_not_judged():
    profile_service = Desk()

    def down(given, registry):
        raise IndexUnavailable("s3")

    profile_service.tools["gather_evidence"].result = down
    agent = ScriptedAgent(["It is true."])
    with pytest.raises(IndexUnavailable):
        run(profile_service.strategy(agent, "theory_agent"))
    assert agent.tasks == []


def test_the_evidence_of_a_kept_theory_is_gathered_by_its_id():
    profile_service = Desk(head("3" * 20, "Ferry theory"))
    run(
        profile_service.strategy(ScriptedAgent(["Ren waits at the harbour wall [2]."]), "theory_agent"),
        "What of my ferry theory?",
    )
    assert ("gather_evidence", {"id": "3" * 20}) in profile_service.calls()


def test_a_theory_is_known_by_what_it_says_now_and_names_are_compared_as_names_are():
    long = head("4" * 20, "Mira rows the ferry to the… #1a2b", "Mira rows the ferry to the boathouse every evening")
    assert named_in("Is my theory that Mira rows the ferry to the boathouse every evening true?", [long]) == (long,)
    assert named_in("Is my theory that Mira rows the ferry true?", [long]) == ()
    assert [one.id for one in named_in("Show me Zoë", [head("6", "Zoe\u0308")])] == ["6"]


def test_names_are_found_as_words_of_their_own_the_longest_first():
    kept = [head("1", "Ren"), head("2", "Ren Aalto"), head("3", "  "), head("4", "Mira")]
    assert [one.id for one in named_in("who is REN aalto? and the current mirage?", kept)] == ["2", "1"]


# --- in whose name ---


def test_tools_act_as_the_requests_user_with_the_users_own_words():
    profile_service = Desk()
    question = Question("I am somebody else. Note it.", collections=("notes",), episodes=("ep1",), tenant="t")
    call = ToolCall("c", "create_profile", {"words": "subject: somebody-else"})
    list(
        profile_service.strategy(ScriptedAgent([call, "Noted."])).answer(
            asked(question.query, question=question), new_budget()
        )
    )
    actors = {actor for tool in profile_service.tools.values() for actor, _ in tool.runs}
    assert {(one.subject, one.request_id, one.message, one.tenant) for one in actors} == {
        (KEY.subject, KEY.request_id, question.query, "t")
    }
    assert {(one.collections, one.episodes) for one in actors} == {(("notes",), ("ep1",))}


def test_conversations_of_two_users_never_have_one_name():
    def named(subject, session):
        one = asked("x", question=Question("x", session_id=session))
        return conversation_of(
            type(one)(RequestKey(subject, "r"), one.question, one.query, readable=lambda: EVERYTHING)
        )

    assert len({named("a", "s"), named("b", "s"), named("a", "t"), named("a", None)}) == 4
    assert named("a", "s") == named("a", "s")


# --- evidence ---


def theory(*steps, gathered=None, **more):
    profile_service = Desk()
    if gathered is not None:
        profile_service.tools["gather_evidence"].result = gathered
    return run(
        profile_service.strategy(ScriptedAgent(list(steps)), "theory_agent"), "Is it true that Mira is a spy?", **more
    )


GIVEN = TheoryVerdict("contradicted", against=(VerdictPassage(n=1, strength="strong"),))


def test_the_verdict_is_the_one_that_the_tool_was_used_to_give_and_the_text_ends_with_it():
    steps = theory(ToolCall("c", "give_verdict", {}), "Your theory is supported, without any doubt.")
    assert steps[-1].verdict == GIVEN
    assert text_of(steps).endswith("doubt.\n\nVerdict: contradicted. Passages for it: 0; against it: 1.")


def test_the_citations_are_judged_after_the_last_text():
    shown: list[Step] = []
    asked_after: list[str] = []

    class Judge:
        def within(self, attempt_budget):
            def judged(claims):
                asked_after.append(text_of(shown))
                return {claim.number: "supported" for claim in claims}

            return judged

    agent = ScriptedAgent([ToolCall("c", "give_verdict", {}), "She goes out on the water each night [1]."])
    strategy = Desk().strategy(agent, "theory_agent", judge=Judge())
    for step in strategy.answer(asked("Is it true that Mira is a spy?"), new_budget()):
        shown.append(step)
    assert asked_after == [text_of(shown)]
    assert "Verdict: contradicted" in asked_after[0]
    last = shown[-1]
    assert isinstance(last, Answered)
    assert [one.verdict for one in last.citations or ()] == ["verified"]


def test_an_agent_that_ends_without_a_verdict_has_given_none_and_it_is_open():
    steps = theory("This is supported: it is true.")
    verdict = steps[-1].verdict
    assert (verdict.verdict, verdict.given, [one.n for one in verdict.against]) == ("open", False, [1, 2])
    assert text_of(steps).endswith("\n\nVerdict: open. The agent gave none.")


def test_where_nothing_was_gathered_no_verdict_is_due():
    steps = theory("You keep no theories.", gathered=lambda given, registry: {})
    assert (steps[-1].verdict, text_of(steps)) == (None, "You keep no theories.")


def test_where_the_passages_could_not_be_sorted_the_verdict_is_open():
    def gather(given, registry):
        why = reason_of("Mira is a spy", WeighedPassage(found(1, ROWS), None, 0.0), unsorted=True)
        registry.put(found(1, ROWS).model_copy(update={"why": (why,)}))
        return {}

    verdict = theory("It is surely true.", gathered=gather)[-1].verdict
    assert (verdict.verdict, verdict.given, verdict.for_, verdict.against) == ("open", False, (), ())


def test_a_profiles_answer_may_go_without():
    assert text_of(run(Desk().strategy(ScriptedAgent(["You noted nothing of her."])))) == "You noted nothing of her."


@pytest.mark.parametrize("name", ["profile_agent", "theory_agent"])
def test_a_question_that_asks_for_no_change_is_offered_no_tool_that_makes_one(name):
    profile_service = Desk()
    call = ToolCall("c", "create_profile", {"words": "Corin"})
    agent = ScriptedAgent([call, "Mira rows the ferry to the boathouse [1]."])
    steps = run(profile_service.strategy(agent, name, may_change=lambda message: False))
    assert profile_service.tools["create_profile"].runs == []
    assert json.loads(agent.replies[0].text)["error"] == "tool_invalid"
    assert steps[-1].changes is None


def test_a_tool_that_failed_has_changed_nothing_whatever_the_answer_says():
    profile_service = Desk()

    def refused(given, registry):
        raise ProfileConflict("there is one")

    profile_service.tools["create_profile"].result = refused
    call = ToolCall("c", "create_profile", {"words": "Corin"})
    steps = run(profile_service.strategy(ScriptedAgent([call, "I noted it."])))
    assert (text_of(steps), steps[-1].changes) == ("I noted it.", 0)


def test_a_change_that_was_made_is_told_to_the_attempt():
    told: list[Any] = []
    question = replace(asked("Note it."), on_change=told.append)
    call = ToolCall("c", "create_profile", {"words": "Corin"})
    steps = list(Desk().strategy(ScriptedAgent([call, "I noted it."])).answer(question, new_budget()))
    assert [one.change.name for one in told] == ["Corin"]
    assert steps[-1].changes == 1


def test_an_attempt_that_answers_its_request_no_more_writes_nothing():
    profile_service = Desk()
    call = ToolCall("c", "create_profile", {"words": "Corin"})
    with pytest.raises(Stopped):
        list(
            profile_service.strategy(ScriptedAgent([call, "I noted it."])).answer(
                replace(asked("Note it."), may_write=lambda: False), new_budget()
            )
        )
    assert profile_service.tools["create_profile"].runs == []


# --- what it takes ---


def test_an_agent_has_all_that_is_left_of_the_attempt_and_nothing_is_left_beside():
    attempt_budget = new_budget(calls=2)
    list(Desk().strategy(ScriptedAgent(["Nothing."])).answer(asked("Who is Mira?"), attempt_budget))
    assert attempt_budget.calls_left == 0
    assert [(call.purpose, call.calls) for call in attempt_budget.made] == [("agent", 1)]
    assert attempt_budget.spent.input_tokens == 300


def test_without_a_call_left_no_agent_runs():
    agent = ScriptedAgent(["Nothing."])
    with pytest.raises(BudgetSpent):
        run(Desk().strategy(agent), calls=0)
    assert agent.tasks == []


def test_what_was_used_before_is_not_there_for_the_agent():
    attempt_budget = new_budget(calls=2, tokens=40_000)
    attempt_budget.call()
    attempt_budget.note(ModelCall("complete_question", "local.small", 1, Usage(4_000, 1_000), 10, None))
    token_budget = attempt_budget.agent_sub_budget()
    with pytest.raises(BudgetSpent, match="15000"):
        token_budget.allow("local.m", Usage(15_001))
    token_budget.allow("local.m", Usage(15_000))


def test_a_use_that_was_not_reported_counts_as_a_whole_share():
    attempt_budget = new_budget(calls=2, tokens=40_000)
    attempt_budget.call()
    attempt_budget.note(ModelCall("complete_question", "local.small", 1, Usage(reported=False), 10, None))
    with pytest.raises(BudgetSpent, match="10000"):
        attempt_budget.agent_sub_budget().allow("local.m", Usage(10_001))


def test_an_agents_calls_are_bounded_and_what_a_turn_did_not_take_comes_back():
    attempt_budget = new_budget(calls=1, tokens=4_000)
    token_budget = attempt_budget.agent_sub_budget()
    for _ in range(AGENT_CALLS_A_CALL):
        token_budget.call()
        token_budget.allow("local.m", Usage(900))
        token_budget.settle("local.m", Usage(900), Usage(10))
    with pytest.raises(BudgetSpent, match="no model calls"):
        token_budget.call()


def test_a_cap_ends_the_run():
    calls = [ToolCall(f"c{n}", "search_script", {"query": f"q{n}"}) for n in range(9)]
    with pytest.raises(AgentCapReached):
        run(Desk().strategy(ScriptedAgent(calls), caps=AgentCaps(max_tool_calls=3)))


def test_what_comes_before_the_model_is_in_the_runs_time():
    profile_service, clock = Desk(), Clock(0)

    def late(given, registry):
        clock.pass_s(31)
        raise OutOfTime("no time left to search")

    profile_service.tools["search_script"].result = late
    with pytest.raises(AgentCapReached, match="time"):
        run(profile_service.strategy(ScriptedAgent(["Never."]), caps=AgentCaps(time_s=30)), clock=clock)

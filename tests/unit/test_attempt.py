"""One attempt from its task to its terminal event, over in-memory twins of everything outside."""

from __future__ import annotations

import json
import threading
import time
from dataclasses import replace
from types import SimpleNamespace

import pytest

from cicada.answering.attempt import AttemptRunner
from cicada.answering.attempt_start import CLOSING_RESERVE_S
from cicada.answering.direct import DirectStrategy
from cicada.answering.finalisation import close_exhausted
from cicada.answering.prompt import NOTHING_FOUND, UNGROUNDED_NOTICE
from cicada.answering.rag import RagStrategy
from cicada.answering.workflow import AttemptTask, ExhaustedTask
from cicada.attempts.budgets import RequestBudget
from cicada.attempts.chain import allotted_calls
from cicada.delivery.decide import append
from cicada.delivery.outbox import OutboxLimits
from cicada.delivery.ports import ConnectionBusy, StoreFault
from cicada.delivery.posting import end_request
from cicada.delivery.record import MAX_LOG_BYTES, Question, RequestSpend
from cicada.errors import (
    AnswerBlocked,
    AnswerIncomplete,
    AnswerTooLong,
    Cancelled,
    DeliveryUnavailable,
    DependencyDown,
    EpisodeUnknown,
    IndexCorrupt,
    IndexMissing,
    IndexUnavailable,
    OutOfTime,
    StreamBroken,
)
from cicada.models.ports import Finished, Stopped, TextDelta, Usage
from cicada.protocol.events import MAX_EVENT_BYTES, Degraded, Failed, StrategyName
from cicada.rights import EVERYTHING, AccessRules
from cicada.semantic_cache.cache import NoEarlierAnswers
from tests.support.access import GivenRules
from tests.support.memory import InMemoryConnections, InMemoryLog
from tests.support.questions import (
    ACCEPTED,
    KEY,
    NOW_S,
    FixedRetriever,
    ScriptedModel,
    beginning,
    following,
    joined,
    new_head,
    passage,
)

BOATHOUSE = passage(7, "I locked the boathouse at ten.")
LIMITS = OutboxLimits(min_interval_s=0, store_budget_s=0.2)


class World:
    """A request that has been accepted, and a worker."""

    def __init__(self, *pieces, found=(BOATHOUSE,), retriever=None, subscribers=("c1",)):
        self.log = InMemoryLog()
        self.log.create(new_head(*subscribers), ACCEPTED)
        self.connections = InMemoryConnections(*subscribers)
        self.model = ScriptedModel(*pieces)
        self.retriever = retriever or FixedRetriever(*found)
        self.now_s: float = NOW_S
        self.wiring = {}
        self.access = GivenRules()

    def run(self, strategy="rag", failures=None, *, execution="x1", worker="w1", remaining_s=60.0, **more):
        runner = AttemptRunner(
            self.log,
            self.connections,
            {
                "rag": RagStrategy(
                    self.retriever, NoEarlierAnswers(), self.model, top_k=20, min_score=0.5, prompt_passages=10
                ),
                "direct": DirectStrategy(self.model),
            },
            limits=LIMITS,
            now_s=lambda: self.now_s,
            access=self.access,
            **self.wiring,
        )
        return runner.run(task(strategy, failures, execution, **more), worker=worker, remaining_s=remaining_s)

    def events(self):
        _, entries = self.log.read(KEY)
        return [json.loads(entry.frame(KEY.request_id)) for entry in entries]

    def seen(self, connection="c1"):
        return [json.loads(frame) for frame in self.connections.frames[connection]]


def task(strategy="rag", failures=None, execution="x1", **more):
    return AttemptTask(
        subject=KEY.subject,
        request_id=KEY.request_id,
        execution=execution,
        entry=next(iter(failures or {}), strategy),
        strategy=strategy,
        failures=failures or {},
        **more,
    )


def types(events):
    return [event["type"] for event in events]


def test_a_grounded_answer_is_stored_and_pushed_event_by_event():
    world = World('Mara says: "I locked ', 'the boathouse at ten." [1]')
    assert world.run().outcome == "answered"
    events = world.events()
    assert [event["seq"] for event in events] == list(range(1, len(events) + 1))
    kinds = types(events)
    assert kinds[:3] == ["accepted", "attempt", "sources"]
    assert kinds[-2:] == ["citations", "complete"]
    assert joined(events) == 'Mara says: "I locked the boathouse at ten." [1]'
    assert world.seen() == events[1:]
    complete = events[-1]
    assert (complete["grounded"], complete["answeredBy"], complete["failed"]) == (True, "rag", [])
    assert complete["attempted"] == ["rag"]
    assert complete["metrics"]["inputTokens"] == 100
    assert complete["metrics"]["modelCalls"] == 1
    assert (complete["metrics"]["sourcesUsed"], complete["metrics"]["passagesCited"]) == (1, 1)
    assert complete["metrics"]["firstChunkMs"] is not None
    assert events[-2]["citations"][0]["verdict"] == "verified"
    assert events[2]["sources"][0]["locator"]["messageId"] == "ep1-0007"


def test_the_questions_filters_reach_the_search():
    world = World("No.")
    head = new_head("c1")
    question = head.question.__class__(
        "Who?", collections=("script",), episodes=("ep2",), top_k=3, documents=("a.json",), sections=("One",)
    )
    world.log.requests.clear()
    world.log.create(new_head("c1", question=question), ACCEPTED)
    world.run()
    query = world.retriever.queries[0]
    assert (query.filters.episodes, query.filters.collections, query.top_k) == (("ep2",), ("script",), 3)
    assert (query.filters.documents, query.filters.sections) == (("a.json",), ("One",))


def test_an_answer_without_a_verified_citation_is_not_grounded():
    world = World("The passages do not say.")
    world.run()
    assert world.events()[-1]["grounded"] is False


@pytest.mark.parametrize(("text", "listed"), [("Mara locked it.", True), ("The passages do not say.", False)])
def test_the_sources_of_an_answer_without_markers_are_told_to_be_not_attributed(text, listed):
    world = World(text)
    world.run()
    sources = next(event for event in world.events() if event["type"] == "sources")["sources"]
    (checked,) = (event for event in world.events() if event["type"] == "citations")
    assert (checked["citations"], checked["notAttributed"]) == ([], [one["n"] for one in sources] if listed else [])


def test_where_the_search_finds_nothing_code_says_so_and_no_model_is_asked():
    world = World("The killer was Mara, of course.", found=())
    assert world.run().outcome == "answered"
    assert joined(world.events()) == NOTHING_FOUND
    complete = world.events()[-1]
    assert (complete["grounded"], complete["stopReason"]) == (False, "nothing_found")
    assert world.model.prompts == []


def test_a_lone_surrogate_of_a_model_does_not_break_its_answer():
    world = World("The bell \ud83d", "rang.")
    assert world.run().outcome == "answered"
    assert joined(world.events()) == "The bell ?rang."


def test_more_is_found_than_the_prompt_takes():
    world = World("No.", found=[passage(n, f"line {n}") for n in range(1, 16)])
    world.run()
    assert world.events()[-1]["metrics"]["sourcesFound"] == 15
    assert len(world.events()[2]["sources"]) == 10


def test_a_strategy_that_fails_leaves_the_request_to_the_next_which_begins_with_a_fallback():
    world = World("Half an ans", StreamBroken("cut"))
    with pytest.raises(StreamBroken):
        world.run()
    assert world.log.head(KEY).state == "open"
    world.model = ScriptedModel("Sorry.")
    failures = {"rag": {"Error": "StreamBroken", "Cause": "{}"}}
    assert world.run("direct", failures, worker="w2").outcome == "answered"
    events = world.events()
    fallback = next(event for event in events if event["type"] == "fallback")
    assert (fallback["from"], fallback["to"], fallback["code"]) == ("rag", "direct", "stream_broken")
    assert joined(events).startswith(UNGROUNDED_NOTICE)
    assert joined(events).endswith("Sorry.")
    complete = events[-1]
    assert complete["attempt"] == 2
    assert complete["failed"] == [{"strategy": "rag", "code": "stream_broken", "reason": StreamBroken.told}]
    assert complete["attempted"] == ["rag", "direct"]
    assert complete["grounded"] is False


def test_small_talk_carries_no_notice():
    world = World("Hello!")
    world.run("direct")
    assert joined(world.events()) == "Hello!"
    assert "sources" not in types(world.events())


def test_a_search_that_fails_fails_the_attempt_before_any_text():
    world = World("never", retriever=FixedRetriever(error=IndexMissing("none")))
    with pytest.raises(IndexMissing):
        world.run()
    assert types(world.events()) == ["accepted", "attempt"]
    assert world.model.prompts == []


def test_a_request_that_another_execution_drives_is_left_alone_without_a_model_call():
    world = World("first")
    world.run(execution="x1")
    before = world.events()
    other = World("second")
    other.log = world.log
    assert other.run(execution="x2", worker="w2").outcome == "superseded"
    assert other.model.prompts == []
    assert world.events() == before


def test_a_second_execution_that_comes_while_the_first_is_at_work_stops_at_once():
    world = World()
    world.log.commit(
        new_head(),
        beginning(world.log.head(KEY), execution="x1", worker="w1"),
    )
    assert world.run(execution="x2", worker="w2").outcome == "superseded"
    assert world.model.prompts == []


def test_a_retried_state_gets_an_attempt_of_its_own():
    world = World("one")
    killed = World("half", StreamBroken("killed"))
    killed.log = world.log
    with pytest.raises(StreamBroken):
        killed.run(worker="w1")
    assert world.run(worker="w2").outcome == "answered"
    assert world.log.head(KEY).attempt == 2
    fallback = next(event for event in world.events() if event["type"] == "fallback")
    assert (fallback["from"], fallback["to"], fallback["code"]) == ("rag", "rag", "worker_lost")
    assert joined(world.events()) == "one"


def test_a_cancelled_answer_stops_and_closes_the_models_stream():
    world = World()

    class CancelsItself(ScriptedModel):
        def stream(self, prompt, *, time_budget_s, call_scope):
            for piece in super().stream(prompt, time_budget_s=time_budget_s, call_scope=call_scope):
                head = world.log.head(KEY)
                if head.state == "open":
                    world.log.commit(head, append(head, [Failed.of(Cancelled())]))
                yield piece

    world.model = CancelsItself(*["word "] * 10_000)
    assert world.run().outcome == "superseded"
    assert types(world.events())[-1] == "error"
    assert world.events()[-1]["code"] == "cancelled"


def test_what_a_cancelled_answer_has_used_is_counted_even_if_it_was_blocked_at_the_same_time():
    world = World()

    class CancelledAndBlocked(ScriptedModel):
        def stream(self, prompt, *, time_budget_s, call_scope):
            for step in super().stream(prompt, time_budget_s=time_budget_s, call_scope=call_scope):
                if isinstance(step, Finished):
                    end_request(
                        world.log,
                        world.connections,
                        world.log.head(KEY),
                        Failed.of(Cancelled()),
                        still=lambda _: True,
                        now_s=lambda: world.now_s,
                        settles=lambda _: False,
                    )
                    raise AnswerBlocked("topic: bells")
                yield step

    world.model = CancelledAndBlocked("The bell rang.")
    assert world.run().outcome == "superseded"
    assert world.events()[-1]["code"] == "cancelled"
    assert world.log.settled[KEY].tokens > 0


def test_a_write_whose_acknowledgement_is_lost_doubles_nothing():
    world = World("The bell ", "rang ", "twice.")
    lose = iter([True, False] * 50)

    def after(operation):
        if operation == "commit" and next(lose):
            raise StoreFault("no answer")

    world.log.after = after
    assert world.run().outcome == "answered"
    assert joined(world.events()) == "The bell rang twice."
    assert types(world.events()).count("attempt") == 1


def test_an_attempt_that_cannot_be_begun_while_the_store_is_down_leaves_the_request_to_the_next_strategy(caplog):
    world = World("never")

    def before(operation):
        raise StoreFault("down")

    world.log.before = before
    with pytest.raises(DeliveryUnavailable):
        world.run()
    world.log.before = lambda operation: None
    assert types(world.events()) == ["accepted"]
    told = [(line.dependency, line.why) for line in caplog.records if getattr(line, "step", "") == "fault"]
    assert set(told) == {("log", "down")}


def test_a_store_that_stays_down_fails_the_attempt_and_shows_nothing_unstored():
    world = World("The bell ", "rang.")

    def before(operation):
        if operation == "commit" and len(world.log.read(KEY)[1]) >= 2:
            raise StoreFault("down")

    world.log.before = before
    with pytest.raises(DeliveryUnavailable):
        world.run()
    assert types(world.seen()) == ["attempt"]


def test_a_closed_connection_never_fails_the_answer_and_is_forgotten():
    world = World("The bell rang.", subscribers=("c1", "c2"))
    del world.connections.frames["c1"]
    assert world.run().outcome == "answered"
    assert world.log.head(KEY).subscribers == following("c2")
    assert types(world.seen("c2"))[-1] == "complete"


def test_a_busy_connection_never_fails_the_answer():
    world = World("The bell rang.")

    def before(connection_id):
        raise ConnectionBusy("full")

    world.connections.before = before
    assert world.run().outcome == "answered"
    assert types(world.events())[-1] == "complete"


def test_a_reader_that_blocks_holds_up_nobody_else():
    world = World(*["word "] * 50, subscribers=("slow", "quick"))
    release = threading.Event()

    def before(connection_id):
        if connection_id == "slow" and not release.is_set():
            release.wait(0.3)
            release.set()
            raise ConnectionBusy("no answer in time")

    world.connections.before = before
    world.run()
    assert types(world.seen("quick"))[-1] == "complete"
    assert joined(world.seen("quick")) == "word " * 50


def test_an_answer_that_grows_too_long_ends_with_an_error_of_its_own():
    world = World(*["x" * 10_000] * (MAX_LOG_BYTES // 10_000 + 2))
    assert world.run().outcome == "ended"
    last = world.events()[-1]
    assert (last["type"], last["code"]) == ("error", "answer_too_long")


class Names:
    """Knows one episode, ep1."""

    def __init__(self):
        self.checked = []

    def check(self, asked, attempt_budget):
        self.checked.append((asked.question.episodes, asked.readable(), attempt_budget.time_left_s() > 0))
        if asked.question.episodes == ("ep9",):
            raise EpisodeUnknown("1 episodes unknown", told="Unknown episode “ep9”.", known=["ep1"])
        told = Degraded(code="episode_unknown", message="Unknown episode “ep9”. Searched the others.")
        return (told,) if "ep9" in asked.question.episodes else ()


def limited_to(*episodes):
    world = World("No.")
    world.log.requests.clear()
    world.log.create(new_head("c1", question=Question("Who?", episodes=episodes)), ACCEPTED)
    world.wiring["names"] = Names()
    return world


def test_a_question_limited_to_unknown_names_ends_before_anything_is_searched_or_written():
    world = limited_to("ep9")
    assert world.run().outcome == "ended"
    last = world.seen()[-1]
    assert (last["type"], last["code"], last["known"]) == ("error", "episode_unknown", ["ep1"])
    assert (last["message"], last["retryable"]) == ("Unknown episode “ep9”.", False)
    assert [(one["strategy"], one["code"]) for one in last["failed"]] == [("rag", "episode_unknown")]
    assert (world.retriever.queries, world.model.prompts) == ([], [])
    assert world.log.head(KEY).state == "failed"


def test_unknown_names_beside_known_ones_are_told_with_the_sources():
    world = limited_to("ep1", "ep9")
    assert world.run().outcome == "answered"
    sources = next(event for event in world.events() if event["type"] == "sources")
    assert [one["code"] for one in sources["degraded"]] == ["episode_unknown"]


def test_the_last_resort_searches_nothing_so_no_name_is_unknown_to_it():
    world = limited_to("ep9")
    assert world.run("direct").outcome == "answered"
    assert world.wiring["names"].checked == []


def test_a_zombie_whose_answer_grows_too_long_does_not_end_its_successors_request():
    world = World()

    class Overtaken(ScriptedModel):
        def stream(self, prompt, *, time_budget_s, call_scope):
            yield from ()
            successor = beginning(world.log.head(KEY), execution="x1", worker="w2")
            world.log.commit(world.log.head(KEY), successor)
            yield TextDelta("x" * (MAX_LOG_BYTES + 1))
            while True:
                yield TextDelta("x")

    world.model = Overtaken()
    assert world.run().outcome == "superseded"
    head = world.log.head(KEY)
    assert (head.state, head.worker) == ("open", "w2")


def test_sources_too_large_for_a_frame_are_cut_and_say_so():
    found = [passage(n, "あ" * 2_000) for n in range(1, 11)]
    world = World("No.", found=found)
    world.run()
    sources = next(event for event in world.events() if event["type"] == "sources")
    assert len(json.dumps(sources, ensure_ascii=False).encode()) <= MAX_EVENT_BYTES
    assert all(source["clipped"] for source in sources["sources"])
    assert len(sources["sources"]) == 10


def test_many_citations_come_in_several_events():
    text = " ".join(f'"I locked the boathouse at ten." {"so it was said, and said again" * 8} [1].' for _ in range(120))
    world = World(text)
    world.run()
    parts = [event for event in world.events() if event["type"] == "citations"]
    assert len(parts) > 1
    assert sum(len(part["citations"]) for part in parts) == 120
    assert all(len(frame.encode()) <= MAX_EVENT_BYTES for frame in world.connections.frames["c1"])


def test_a_worker_with_no_time_left_does_not_begin():
    world = World("never")
    with pytest.raises(OutOfTime):
        world.run(remaining_s=CLOSING_RESERVE_S)
    assert types(world.events()) == ["accepted"]


@pytest.mark.parametrize("strategy", ["rag", "direct"])
@pytest.mark.parametrize("pieces", [(), (" ", "\n")])
def test_an_answer_without_words_is_a_failure(strategy, pieces):
    world = World(*pieces)
    with pytest.raises(AnswerIncomplete):
        world.run(strategy)


def test_a_request_that_is_gone_is_left():
    world = World("never")
    world.log.requests.clear()
    assert world.run().outcome == "superseded"
    assert world.model.prompts == []


# --- what stands around a strategy ---


class Conversation:
    def __init__(self, query, degraded=None, *, in_own_words=False):
        self.completed = SimpleNamespace(query=query, degraded=degraded, in_own_words=in_own_words, rests_on=())
        self.asked = []

    def complete(self, question, subject, readable, attempt_budget):
        self.asked.append((question.query, subject))
        return self.completed


BY_RULE = Degraded(code="question_not_completed", message="It was completed by rule.")


def in_a_session(*pieces, **world):
    made = World(*pieces, **world)
    made.log.requests.clear()
    made.log.create(new_head("c1", question=Question("And then?", session_id="s1")), ACCEPTED)
    return made


def test_a_question_is_completed_from_its_conversation_before_anything_is_searched():
    world = in_a_session("No.")
    world.wiring["conversation"] = conversation = Conversation("What did Mara do then?")
    world.run()
    assert conversation.asked == [("And then?", KEY.subject)]
    assert world.retriever.queries[0].text == "What did Mara do then?"
    assert next(event for event in world.events() if event["type"] == "sources")["query"] == "What did Mara do then?"


def test_a_completed_question_is_not_completed_again_by_the_next_attempt():
    world = in_a_session("half", StreamBroken("cut"))
    world.wiring["conversation"] = conversation = Conversation("What did Mara do then?", BY_RULE)
    with pytest.raises(StreamBroken):
        world.run()
    world.model = ScriptedModel("No.")
    world.run("rag", worker="w2")
    assert len(conversation.asked) == 1
    assert [event["degraded"][0]["code"] for event in world.events() if event["type"] == "sources"] == [
        "question_not_completed"
    ] * 2
    assert [query.text for query in world.retriever.queries] == ["What did Mara do then?"] * 2


@pytest.mark.parametrize("own", [True, False])
def test_every_attempt_knows_whether_the_completed_question_is_in_the_askers_own_words(own):
    world = in_a_session("half", StreamBroken("cut"))
    world.wiring |= {"conversation": Conversation("What did Mara do then?", in_own_words=own), "sinks": [Kept()]}
    with pytest.raises(StreamBroken):
        world.run()
    world.model = ScriptedModel("No.")
    world.run("rag", worker="w2")
    (given,) = world.wiring["sinks"][0].given
    assert (given.asked.query, given.asked.in_own_words) == ("What did Mara do then?", own)


def test_a_question_that_could_not_be_completed_says_so():
    world = in_a_session("No.")
    degraded = Degraded(code="question_not_completed", message="It was searched for as it stands.")
    world.wiring["conversation"] = Conversation("And then?", degraded)
    world.run()
    sources = next(event for event in world.events() if event["type"] == "sources")
    assert [one["code"] for one in sources["degraded"]] == ["question_not_completed"]
    assert "query" not in sources


def test_a_question_without_a_session_stands_by_itself():
    world = World("No.")
    world.wiring["conversation"] = conversation = Conversation("something else")
    world.run()
    assert conversation.asked == []


class Kept:
    def __init__(self):
        self.given = []

    def keep(self, given):
        self.given.append(given)


def test_an_answer_is_kept_once_it_is_complete():
    world = World("I locked ", "it. [1]")
    world.wiring["sinks"] = [sink := Kept()]
    world.run()
    (given,) = sink.given
    assert (given.text, given.strategy, given.asked.query) == ("I locked it. [1]", "rag", "Who locked the boathouse?")
    assert given.at_ms == NOW_S * 1000
    assert [source.passage_id for source in given.retrieved.sources] == [BOATHOUSE.id]


def test_an_answer_that_fails_or_comes_too_late_is_not_kept():
    world = World("half", StreamBroken("cut"))
    world.wiring["sinks"] = [sink := Kept()]
    with pytest.raises(StreamBroken):
        world.run()
    head = world.log.head(KEY)
    world.log.commit(head, append(head, [Failed.of(Cancelled())]))
    world.model = ScriptedModel("whole")
    assert world.run(worker="w2").outcome == "superseded"
    assert sink.given == []


def test_a_strategy_whose_dependency_is_down_is_not_begun():
    class Breakers:
        def check(self, names):
            if "index" in names:
                raise DependencyDown("index")

    world = World("Hello!")
    world.wiring["breakers"] = Breakers()
    with pytest.raises(DependencyDown):
        world.run()
    assert types(world.events()) == ["accepted"]
    assert world.run("direct", {"rag": {"Error": "DependencyDown"}}).outcome == "answered"
    complete = world.events()[-1]
    assert [(one["strategy"], one["code"]) for one in complete["failed"]] == [("rag", "dependency_down")]


def test_the_last_resort_offers_what_was_found_before():
    world = World("Half an ans", StreamBroken("cut"))
    with pytest.raises(StreamBroken):
        world.run()
    world.model = ScriptedModel("Sorry.")
    world.run("direct", {"rag": {"Error": "StreamBroken"}}, worker="w2")
    offered = [event for event in world.events() if event["type"] == "sources"][-1]
    assert (offered["attempt"], offered["offered"]) == (2, True)
    assert [source["passageId"] for source in offered["sources"]] == [BOATHOUSE.id]
    assert world.events()[-1]["metrics"]["sourcesUsed"] == 0


@pytest.mark.parametrize("rules", [AccessRules(readers={"script": ()}), IndexUnavailable("down")])
def test_what_was_found_before_is_not_offered_where_it_may_not_be_read_now(rules):
    world = World("Half an ans", StreamBroken("cut"))
    with pytest.raises(StreamBroken):
        world.run()
    world.model, world.access.now = ScriptedModel("Sorry."), rules
    assert world.run("direct", {"rag": {"Error": "StreamBroken"}}, worker="w2").outcome == "answered"
    assert types(world.events()).count("sources") == 1
    assert BOATHOUSE.text not in json.dumps(world.events()[3:])


def test_rights_are_read_once_an_attempt_for_the_groups_of_the_question():
    world = World("No.")
    world.access.now = AccessRules(readers={"notes": ("gms",)})
    question = Question("Who?", session_id="s1", groups=("gms", "players"))
    world.log.requests.clear()
    world.log.create(new_head("c1", question=question), ACCEPTED)
    world.run()
    assert world.access.reads == 1
    (asked,) = world.retriever.queries
    assert (asked.readable, asked.readable.groups) == (EVERYTHING, ("gms", "players"))


@pytest.mark.parametrize("error", [IndexUnavailable("down"), IndexCorrupt("?")])
def test_where_rights_cannot_be_read_nothing_is_searched(error):
    world = World("never")
    world.access.now = error
    with pytest.raises(type(error)):
        world.run()
    assert (world.retriever.queries, world.model.prompts) == ([], [])


def test_what_was_found_before_is_not_offered_where_the_log_cannot_be_read():
    world = World("Half an ans", StreamBroken("cut"))
    with pytest.raises(StreamBroken):
        world.run()
    world.model = ScriptedModel("Sorry.")

    def before(operation):
        if operation == "read":
            raise StoreFault("down")

    world.log.before = before
    assert world.run("direct", {"rag": {"Error": "StreamBroken"}}, worker="w2").outcome == "answered"
    world.log.before = lambda operation: None
    assert [event["type"] for event in world.events()].count("sources") == 1


def test_attempts_share_the_requests_calls():
    world = World()
    calls: dict[StrategyName, int] = {"hybrid": 2, "rag": 3, "cag": 3, "direct": 4}
    for number, (strategy, reserved) in enumerate(calls.items(), 1):
        head = world.log.head(KEY)
        commit = beginning(head, strategy, execution="x1", worker=f"w{number}", allot=allotted_calls)
        assert world.log.commit(head, commit).reserved_calls == reserved


def test_a_request_whose_time_is_up_is_given_to_the_next_state_without_work():
    world = World("never")
    world.wiring["budget"] = RequestBudget(time_s=300)
    world.now_s += 300 - CLOSING_RESERVE_S
    with pytest.raises(OutOfTime):
        world.run()
    assert world.model.prompts == []


def test_a_request_whose_time_is_up_is_ended_before_another_attempt():
    world = World("half", StreamBroken("cut"))
    with pytest.raises(StreamBroken):
        world.run()
    world.now_s += 300
    assert world.run("direct", {"rag": {"Error": "StreamBroken"}}, worker="w2").outcome == "ended"
    last = world.seen()[-1]
    assert (last["type"], last["code"], last["retryable"]) == ("error", "out_of_time", True)
    assert [(one["strategy"], one["code"]) for one in last["failed"]] == [("rag", "stream_broken")]
    assert len(world.log.read(KEY)[1]) == len(world.seen()) + 1


def test_what_a_failed_attempt_spent_is_part_of_the_answers_cost():
    world = World("half", StreamBroken("cut"))
    with pytest.raises(StreamBroken):
        world.run()
    world.model = ScriptedModel("No.")
    world.run("rag", {"cag": {"Error": "CacheMiss"}}, worker="w2")
    metrics = world.events()[-1]["metrics"]
    assert (metrics["modelCalls"], metrics["inputTokens"]) == (2, 100)
    assert "costUsd" not in metrics


def test_what_a_lost_worker_spent_is_not_known():
    world = World("No.")
    head = world.log.head(KEY)
    world.log.commit(head, beginning(head, execution="x1", worker="w0"))
    world.run(worker="w1")
    assert "costUsd" not in world.events()[-1]["metrics"]


class Forgetful:
    def keep(self, given):
        raise KeyError("a bug")


def test_a_sink_that_fails_touches_neither_the_answer_nor_the_other_sinks(caplog):
    world = World("No.")
    world.wiring["sinks"] = [Forgetful(), sink := Kept()]
    assert world.run().outcome == "answered"
    assert len(sink.given) == 1
    assert [line.why for line in caplog.records if getattr(line, "step", "") == "fault"] == ["KeyError"]


def test_an_answer_that_took_all_the_time_is_not_kept():
    world = World("No.")
    world.wiring["sinks"] = [sink := Kept()]
    ticks = iter([0.0, *[0.1] * 10])
    world.wiring["monotonic"] = lambda: next(ticks, 58.0)
    assert world.run().outcome == "answered"
    assert sink.given == []


def test_an_attempt_may_not_outlast_its_state():
    world = World("never")
    with pytest.raises(OutOfTime):
        world.run(time_budget_s=CLOSING_RESERVE_S)


def test_a_silent_model_is_stopped_soon_after_its_answer_is_cancelled():
    world = World()

    class Silent(ScriptedModel):
        def stream(self, prompt, *, time_budget_s, call_scope):
            woken = threading.Event()
            forget = call_scope.on_stop(woken.set)
            head = world.log.head(KEY)
            world.log.commit(head, append(head, [Failed.of(Cancelled())]))
            assert woken.wait(30), "nobody told the model"
            forget()
            raise Stopped
            yield

    world.model = Silent()
    assert world.run().outcome == "superseded"
    assert world.events()[-1]["code"] == "cancelled"


def test_an_attempt_that_is_silent_for_long_keeps_its_lease(monkeypatch):
    world = World()
    beats: list[float] = []

    class Slow(ScriptedModel):
        def stream(self, prompt, *, time_budget_s, call_scope):
            yield TextDelta("The bell ")
            deadline = time.monotonic() + 30
            while len(beats) < 2 and time.monotonic() < deadline:
                world.now_s += 1
                time.sleep(0.01)
            yield TextDelta("rang.")
            yield Finished("end_turn", Usage(1, 1))

    def after(operation):
        lease = world.log.requests[KEY][0].lease_until
        if operation == "commit" and (not beats or lease > beats[-1]):
            beats.append(lease)

    world.log.after = after
    world.model = Slow()
    monkeypatch.setattr(f"{__name__}.LIMITS", OutboxLimits(min_interval_s=0, renew_s=0.02, watch_s=0.01))
    assert world.run().outcome == "answered"
    assert joined(world.events()) == "The bell rang."


def test_what_an_attempt_spends_is_told_when_it_answers():
    world, spent = World("The bell rang."), list[RequestSpend]()
    world.wiring["on_spent"] = spent.append
    assert world.run("direct").outcome == "answered"
    assert [one.calls for one in spent] == [1]


def test_what_an_attempt_spends_is_told_when_it_fails():
    world, spent = World("The bell", StreamBroken("cut")), list[RequestSpend]()
    world.wiring["on_spent"] = spent.append
    with pytest.raises(StreamBroken):
        world.run("direct")
    assert [one.calls for one in spent] == [1]


# --- the end of the chain ---


def exhausted(world, caught=None, *, execution="x1"):
    caught = caught or {
        "direct": {"Error": "ModelBusy", "Cause": "{}"},
        "rag": {"Error": "Lambda.Unknown", "Cause": "a stack with internals"},
    }
    last = ExhaustedTask(
        subject=KEY.subject, request_id=KEY.request_id, execution=execution, entry="rag", failures=caught
    )
    return close_exhausted(last, world.log, world.connections, now_s=lambda: NOW_S) is not None


def test_when_all_have_failed_the_client_is_told_what_was_tried_in_order():
    world = World()
    assert exhausted(world) is True
    last = world.seen()[-1]
    assert (last["type"], last["code"], last["retryable"]) == ("error", "all_strategies_failed", True)
    assert [failure["strategy"] for failure in last["failed"]] == ["rag", "direct"]
    assert [failure["code"] for failure in last["failed"]] == ["worker_died", "model_busy"]
    assert "internals" not in json.dumps(last)


def test_an_ended_request_is_not_ended_again():
    world = World("Done.")
    world.run()
    assert exhausted(world) is False
    assert types(world.events()).count("complete") == 1
    assert "error" not in types(world.events())


def test_a_request_that_another_execution_claims_meanwhile_is_not_ended():
    world = World()
    claimed: list[str] = []

    def before(operation):
        if operation == "commit" and not claimed:
            claimed.append(operation)
            head = world.log.head(KEY)
            world.log.commit(head, beginning(head, execution="x2", worker="w2"))

    world.log.before = before
    assert exhausted(world, execution="x1") is False
    assert world.log.head(KEY).state == "open"


def test_an_execution_that_failed_does_not_end_a_request_which_another_drives():
    world = World("half", StreamBroken("cut"))
    with pytest.raises(StreamBroken):
        world.run(execution="x1")
    assert exhausted(world, execution="x2") is False
    assert world.log.head(KEY).state == "open"
    assert exhausted(world, execution="x1") is True


def test_a_request_that_is_gone_is_not_closed():
    world = World()
    world.log.requests.clear()
    assert exhausted(world) is False


def test_an_attempt_that_others_keep_getting_ahead_of_gives_up():
    world = World("never")

    def before(operation):
        if operation == "commit":
            stored, entries = world.log.requests[KEY]
            world.log.requests[KEY] = (replace(stored, attempt=stored.attempt + 1), entries)

    world.log.before = before
    with pytest.raises(DeliveryUnavailable, match="could not be started"):
        world.run()


def test_a_strategy_that_ends_without_an_answer_is_a_broken_one():
    class Unfinished:
        name: StrategyName = "rag"
        needs = ()

        def answer(self, asked, attempt_budget):
            yield TextDelta("The bell ")

    world = World()
    runner = AttemptRunner(
        world.log, world.connections, {"rag": Unfinished()}, limits=LIMITS, now_s=lambda: NOW_S, access=GivenRules()
    )
    with pytest.raises(StreamBroken, match="without an answer"):
        runner.run(task(), worker="w1", remaining_s=60)


def test_a_blocked_answer_ends_the_request_at_once_with_the_guardrails_message():
    world = World("The bell ", AnswerBlocked("topic: bells", told="We do not speak of bells."))
    world.wiring["sinks"] = (SimpleNamespace(keep=lambda given: pytest.fail("it is kept")),)
    assert world.run().outcome == "ended"
    assert "bell " not in str(world.log.read(KEY)[1]).replace("of bells", "")
    last = world.seen()[-1]
    assert (last["type"], last["code"], last["retryable"]) == ("error", "answer_blocked", False)
    assert last["message"] == "We do not speak of bells."
    assert [(one["strategy"], one["code"]) for one in last["failed"]] == [("rag", "answer_blocked")]
    assert world.log.head(KEY).spent.calls == 1


@pytest.mark.parametrize(
    ("piece", "error"), [("x" * (MAX_LOG_BYTES + 1), AnswerTooLong), (AnswerBlocked("no"), AnswerBlocked)]
)
def test_an_ending_that_cannot_be_stored_now_is_left_to_the_workflow(piece, error):
    world = World(piece)

    def before(operation):
        if operation == "commit" and len(world.log.calls) > 2:
            raise StoreFault("down")

    world.log.before = before
    with pytest.raises(error):
        world.run()
    world.log.before = lambda _: None
    assert exhausted(world, {"rag": {"Error": error.__name__}}) is True
    assert world.events()[-1]["code"] == error.code

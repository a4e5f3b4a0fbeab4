"""Workers of an earlier release and of today's code side by side, over the same table and index, both ways."""

from __future__ import annotations

import json
import time
import uuid
from collections.abc import Iterator
from typing import Any

import pytest

from cicada import __version__
from cicada.delivery.decide import LEASE_GRACE_S, LEASE_S, START_GRACE_S
from supply_chain.archives import archived
from tests.releases.side_by_side import Place, Worker, WorkerFailed, side_by_side

QUESTION = "Who locked the boathouse?"
LOCKED = "I locked the boathouse myself before the rain came."
ANSWER = f"Mira says: “{LOCKED}” [1]"
LOST_S = LEASE_S + LEASE_GRACE_S + 5
"""After so long a request without a write has lost its worker."""
DECLARED = {
    "collection": "notes",
    "kind": "session_notes",
    "description": "The notes of the sessions.",
    "sections": [{"name": "events", "description": "What happened in a session.", "sources": ["*"]}],
    "intentions": [
        {
            "name": "history",
            "description": "What somebody did in the sessions so far.",
            "sections": ["events"],
            "examples": ["Who rang the bell?"],
        }
    ],
}


@pytest.fixture(scope="module", params=archived())
def place(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Place]:
    with side_by_side(request.param, tmp_path_factory.mktemp(request.param)) as found:
        found.bedrock.answer = lambda system, user: ANSWER
        yield found


@pytest.fixture(autouse=True)
def _present(place: Place) -> Iterator[None]:
    yield
    for worker in (place.old, place.new):
        worker.call("clock", ahead_s=0)


@pytest.fixture
def before_0_2(place: Place) -> None:
    """For what later releases do otherwise."""
    if place.old.release != "0.1.0":
        pytest.skip("0.1.0 alone")


@pytest.fixture(params=["old first", "new first"])
def first(request: pytest.FixtureRequest, place: Place) -> Worker:
    """The release that begins; the other goes on."""
    return place.old if request.param == "old first" else place.new


@pytest.fixture
def second(place: Place, first: Worker) -> Worker:
    return place.other(first)


@pytest.fixture
def script(place: Place, first: Worker) -> str:
    """The version of an index that the first release has written anew."""
    place.clear_index()
    version: str = first.call("publish", collection="script", texts={"1": LOCKED, "2": "Ren saw it."})
    return version


def later(seconds: float, *workers: Worker) -> None:
    for worker in workers:
        worker.call("clock", ahead_s=seconds)


def seen_alike(request_id: str, *workers: Worker) -> dict[str, Any]:
    """A request's record, which both releases read alike."""
    one, another = (worker.call("request", request_id=request_id) for worker in workers)
    assert one == another
    return dict(one)


# --- requests ---


@pytest.mark.usefixtures("script")
def test_a_request_that_one_release_accepts_is_answered_by_the_other(
    place: Place, first: Worker, second: Worker
) -> None:
    request_id = place.ask(first)
    assert place.answer(second, request_id) == {"outcome": "answered"}
    seen = seen_alike(request_id, first, second)
    assert seen["types"][:3] == ["accepted", "attempt", "sources"]
    assert seen["types"][-1] == "complete"
    assert seen["last"]["grounded"]
    again = first.call("send", action={"action": "ask", "requestId": request_id, "query": QUESTION}, message="m2")
    assert again["type"] == "accepted"


@pytest.mark.usefixtures("script")
def test_a_worker_of_one_release_takes_over_from_a_dead_one_of_the_other(
    place: Place, first: Worker, second: Worker
) -> None:
    request_id = place.ask(first)
    first.call("die", request_id=request_id)
    later(LOST_S, second)
    assert second.call("invoke", function="recovery_sweep", event={})["restarted"] >= 1
    assert place.answer(second, request_id, execution="x2") == {"outcome": "answered"}
    seen = seen_alike(request_id, first, second)
    assert (seen["state"], seen["attempt"], seen["takeovers"]) == ("complete", 2, 1)
    assert seen["types"].count("fallback") == 1
    assert first.call("write_late", request_id=request_id) == "conflict"


def test_a_request_whose_workflow_never_started_is_recovered_by_the_other(
    place: Place, first: Worker, second: Worker
) -> None:
    request_id = place.ask(first, "Hello there!")
    started = len(place.doors.started)
    later(START_GRACE_S + 5, second)
    resume = {"action": "resume", "requestId": request_id, "after": 0}
    assert second.call("send", action=resume, connection="c2")["outcome"] == "live"
    assert place.doors.started[started]["requestId"] == request_id
    assert place.doors.started[started]["strategy"] == place.doors.started[started - 1]["strategy"] == "direct"


def test_a_request_of_one_release_is_resumed_and_cancelled_by_the_other(
    place: Place, first: Worker, second: Worker
) -> None:
    request_id = place.ask(first)
    first.call("die", request_id=request_id)
    place.doors.posted.clear()
    resume = {"action": "resume", "requestId": request_id, "after": 1}
    assert second.call("send", action=resume, connection="c2")["outcome"] == "live"
    assert [frame["type"] for frame in place.doors.posted] == ["attempt", "chunk"]
    ended = second.call("send", action={"action": "cancel", "requestId": request_id})
    assert (ended["type"], ended["code"]) == ("error", "cancelled")
    assert first.call("write_late", request_id=request_id) == "conflict"
    assert seen_alike(request_id, first, second)["state"] == "failed"
    resume["after"] = 3
    assert first.call("send", action=resume)["outcome"] == "finished"


def test_each_release_ends_what_the_other_could_not(place: Place, first: Worker, second: Worker) -> None:
    request_id = place.ask(first)
    first.call("die", request_id=request_id)
    failures = {"rag": {"Error": "ModelUnavailable", "Cause": "{}"}}
    event = {"subject": "mara", "requestId": request_id, "execution": "x1", "entry": "rag", "failures": failures}
    assert second.call("invoke", function="exhausted", event=event) == {"ended": True}
    assert seen_alike(request_id, first, second)["last"]["code"] == "all_strategies_failed"


def test_what_both_releases_spent_is_counted_once(place: Place, first: Worker, second: Worker) -> None:
    request_id = place.ask(first)
    first.call("die", request_id=request_id, usd=0.01)
    later(LOST_S, second)
    second.call("die", request_id=request_id, execution="x2", usd=0.03)
    assert seen_alike(request_id, first, second)["spent"] == 0.03
    assert place.new.call("used", request_id=request_id) == [30, 30_000]


@pytest.mark.usefixtures("before_0_2")
def test_the_old_sweep_leaves_reservations_and_withdrawn_texts_to_the_new_one(place: Place) -> None:
    old, new = place.old, place.new
    reserved = new.call("accept_reserved")
    old.call("die", request_id=reserved)
    blocked = place.ask(new)
    new.call("die", request_id=blocked, text="blocked " * 400)
    new.call("block", request_id=blocked)
    later(LOST_S, old, new)
    old.call("send", action={"action": "cancel", "requestId": reserved})
    swept = old.call("invoke", function="recovery_sweep", event={})
    assert swept["failed"] == 0
    assert place.item(reserved, "reservation") is not None
    assert (place.item(blocked) or {})["withdrawn"]
    assert "blocked" not in old.call("request", request_id=blocked)["text"]
    swept = new.call("invoke", function="recovery_sweep", event={})
    assert (swept["settled"], swept["failed"]) == (1, 0)
    assert place.item(reserved, "reservation") is None
    assert "withdrawn" not in (place.item(blocked) or {})


# --- conversations and earlier answers ---


def test_both_releases_keep_the_turns_of_one_conversation(first: Worker, second: Worker) -> None:
    session = str(uuid.uuid4())
    first.call("add_turn", session=session, request_id="r1")
    second.call("add_turn", session=session, request_id="r2")
    first.call("add_turn", session=session, request_id="r3")
    for worker in (first, second):
        assert [turn["request_id"] for turn in worker.call("turns", session=session)] == ["r1", "r2", "r3"]


@pytest.mark.usefixtures("before_0_2")
def test_a_turn_that_the_old_release_rewrote_no_longer_says_what_it_rests_on(place: Place) -> None:
    """So it is used for those who may read everything alone."""
    session = str(uuid.uuid4())
    place.new.call("add_turn", session=session, request_id="r1", collections=["script"])
    assert place.new.call("turns", session=session)[0]["collections"] == ["script"]
    place.old.call("add_turn", session=session, request_id="r2")
    assert [turn["collections"] for turn in place.new.call("turns", session=session)] == [None, None]


@pytest.mark.usefixtures("before_0_2")
def test_neither_release_gives_an_answer_that_the_other_has_cached(
    place: Place, script: str, first: Worker, second: Worker
) -> None:
    """Nor deletes it: what a release may give again depends on rights that 0.1.0 did not know."""
    query = f"Who locked the boathouse on day {uuid.uuid4().int % 10**6}?"

    def model_calls(worker: Worker) -> list[int]:
        """Of each answer, until two in a row are from the new version: a worker loads it between two answers."""
        versions, calls = list[str](), list[int]()
        while versions[-2:] != [script, script]:
            request_id = place.ask(worker, query)
            place.answer(worker, request_id)
            seen = seen_alike(request_id, first, second)
            versions.append(seen["version"])
            calls.append(seen["last"]["metrics"]["modelCalls"])
        return calls

    for worker in (first, second):
        calls = model_calls(worker)
        assert (calls[0], calls[-1]) == (1, 0)
    assert model_calls(first) == [0, 0]


# --- profiles ---


def test_both_releases_change_and_undo_one_profile(first: Worker, second: Worker) -> None:
    def profile(worker: Worker, operation: str, **fields: Any) -> dict[str, Any]:
        action = {"action": "profile", "requestId": str(uuid.uuid4()), "operation": operation, **fields}
        return dict(worker.call("send", action=action))

    name = f"Corin {uuid.uuid4()}"
    made = profile(first, "create", kind="character", name=name, set=[{"field": "hair", "value": "red"}])
    assert made["type"] == "profile", made
    changed = profile(second, "update", id=made["id"], expectedVersion=1, set=[{"field": "hair", "value": "grey"}])
    assert changed.get("version") == 2, (made, changed)
    assert profile(first, "update", id=made["id"], expectedVersion=1, set=[])["code"] in (
        "profile_conflict",
        "invalid_message",
    )
    undone = profile(first, "undo", id=made["id"], version=2)
    assert [field["value"] for field in undone["fields"]] == ["red"]
    histories = [profile(worker, "history", id=made["id"]) for worker in (first, second)]
    for history in histories:
        history.pop("requestId")
    assert histories[0] == histories[1]


# --- the index ---


def test_each_release_reads_and_publishes_over_the_others_versions(
    place: Place, script: str, first: Worker, second: Worker
) -> None:
    assert second.call("index")["version"] == script
    assert second.call("search", query="boathouse")[0] == LOCKED
    second.call("publish", collection="notes", texts={"1": "Ada rang the bell."}, declaration=DECLARED)
    assert first.call("index") == second.call("index")
    assert first.call("index")["declared"] == ["notes"]
    assert first.call("search", query="bell")[0] == "Ada rang the bell."
    first.call("publish", collection="script", texts={"3": "Jon came late."})
    found = second.call("index")
    assert (found["number"], found["declared"], found["passages"]) == (3, ["notes"], 4)
    assert second.call("restore", version=script).startswith("000004-")
    assert "Ada rang the bell." not in first.call("search", query="bell")


def test_of_two_publications_over_one_version_one_is_refused(script: str, first: Worker, second: Worker) -> None:
    etag = first.call("etag")
    assert second.call("publish_over", etag_of=etag) == "published"
    assert first.call("publish_over", etag_of=etag) == "conflict"
    assert first.call("index")["number"] == 2


@pytest.mark.usefixtures("script")
def test_maintenance_of_one_release_deletes_nothing_that_the_other_needs(first: Worker, second: Worker) -> None:
    second.call("publish", collection="notes", texts={"1": "Ada rang the bell."}, declaration=DECLARED)
    for worker in (first, second):
        told = worker.call("invoke", function="index_maintenance", event={"source": "aws.events"})
        assert told["collected_objects"] == 0
    for worker in (first, second):
        assert worker.call("search", query="bell")[0] == "Ada rang the bell."


@pytest.mark.usefixtures("before_0_2")
def test_the_old_release_refuses_a_version_that_says_who_may_read_and_destroys_nothing(place: Place) -> None:
    """So collections are limited to groups only once no worker of the old release is left."""
    place.clear_index()
    place.old.call("publish", collection="script", texts={"1": LOCKED})
    limited = place.new.call(
        "publish",
        collection="notes",
        texts={"1": "Ada rang the bell."},
        declaration={**DECLARED, "readers": ["keepers"]},
    )
    calls: dict[str, dict[str, Any]] = {
        "search": {"query": "bell"},
        "publish": {"collection": "script", "texts": {"2": "Ren saw it."}},
        "invoke": {"function": "index_maintenance", "event": {"source": "aws.events"}},
    }
    for name, arguments in calls.items():
        with pytest.raises(WorkerFailed) as failed:
            place.old.call(name, **arguments)
        assert failed.value.code == "index_corrupt"
    assert place.new.call("index")["version"] == limited
    assert place.new.call("search", query="bell")[0] == "Ada rang the bell."


# --- circuit breakers and logs ---


def test_both_releases_share_circuit_breakers(first: Worker, second: Worker) -> None:
    name = f"model:{uuid.uuid4()}"
    assert second.call("breaker", name=name) == "closed"
    assert first.call("breaker", name=name, fails=10) == "open"
    assert second.call("breaker", name=name) == "open"


def test_every_line_of_todays_functions_names_the_release(place: Place) -> None:
    place.ask(place.new)
    deadline = time.monotonic() + 10
    while not (told := [json.loads(line) for line in place.new.log if line.startswith('{"level"')]):
        assert time.monotonic() < deadline
        time.sleep(0.02)
    assert {line["release"] for line in told} == {__version__}
    assert place.new.call("send", action={"action": "ping"})["release"] == __version__


# --- what a release after this one stores ---


def test_a_request_of_a_newer_release_is_refused_with_a_code_and_stays(place: Place) -> None:
    request_id = place.ask(place.new)
    key = {"pk": {"S": f"{request_id}#mara"}, "sk": {"S": "head"}}
    place.dynamodb.update_item(
        TableName=place.table,
        Key=key,
        UpdateExpression="SET question = :question",
        ExpressionAttributeValues={":question": {"S": '{"asked": "in another form"}'}},
    )
    before = place.item(request_id)
    for action in ("resume", "cancel"):
        reply = place.new.call("send", action={"action": action, "requestId": request_id})
        assert (reply["type"], reply["code"], reply["retryable"]) == ("error", "newer_release", True)
    later(LOST_S, place.new)
    assert place.new.call("invoke", function="recovery_sweep", event={})["failed"] == 1
    assert place.item(request_id) == before
    with pytest.raises(WorkerFailed) as refused:
        place.answer(place.new, request_id)
    assert refused.value.code == "newer_release"
    place.dynamodb.delete_item(TableName=place.table, Key=key)

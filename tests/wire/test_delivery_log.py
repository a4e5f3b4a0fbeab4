"""The contract of the request log, kept by the in-memory twin and by DynamoDB alike."""

from __future__ import annotations

import json
from dataclasses import replace
from uuid import UUID

import pytest

from cicada.delivery.decide import LEASE_S, append, begin, end, has_landed
from cicada.delivery.dynamodb import INLINE_BYTES, STORE_CONFIG, DynamoDbLog
from cicada.delivery.ports import Conflict, StoreFault
from cicada.delivery.record import Changed, Commit, LogEntry, Question, RequestKey, RequestSpend, Standalone, Subscriber
from cicada.errors import AnswerBlocked, RequestUnknown
from cicada.protocol.events import Chunk, Complete, Degraded, Failed, Metrics, Sources, StrategyFailure, dump_event
from tests.support.dynamodb import requests_table
from tests.support.memory import InMemoryLog
from tests.support.questions import ACCEPTED, KEY, NOW_S, beginning, following, new_head


@pytest.fixture
def dynamodb(monkeypatch):
    with requests_table(monkeypatch, STORE_CONFIG) as client:
        yield client


@pytest.fixture(params=["memory", "dynamodb"])
def log(request):
    if request.param == "memory":
        return InMemoryLog()
    return DynamoDbLog(request.getfixturevalue("dynamodb"), "requests")


def begun(log, *subscribers):
    head = new_head(*subscribers)
    log.create(head, ACCEPTED)
    commit = beginning(head, execution="x1", worker="w1")
    return log.commit(head, commit)


def chunk(text, attempt=1):
    return Chunk(attempt=attempt, content=text)


def complete():
    return Complete(
        attempt=1,
        answered_by="rag",
        attempted=("rag",),
        model="m",
        grounded=True,
        stop_reason="end_turn",
        metrics=Metrics(latency_ms=1, attempt_ms=1, first_chunk_ms=1),
    )


def test_a_new_request_reads_as_it_was_created(log):
    head = new_head("c1", "c2")
    log.create(head, ACCEPTED)
    assert log.head(KEY) == head
    assert log.read(KEY) == (head, (LogEntry(1, 0, ACCEPTED),))


def test_the_same_request_is_created_once_and_the_second_creator_sees_the_first(log):
    log.create(new_head("c1"), ACCEPTED)
    with pytest.raises(Conflict) as conflict:
        log.create(new_head("c2", origin="frame-2"), ACCEPTED)
    assert conflict.value.head.origin == "frame-1"
    assert conflict.value.head.subscribers == following("c1")


def test_another_users_request_is_unknown(log):
    log.create(new_head(), ACCEPTED)
    stranger = RequestKey("somebody else", KEY.request_id)
    with pytest.raises(RequestUnknown):
        log.head(stranger)
    with pytest.raises(RequestUnknown):
        log.read(stranger)
    with pytest.raises(RequestUnknown):
        log.commit(new_head(key=stranger), append(new_head(key=stranger), [chunk("x")]))


def test_a_commit_appends_its_events_in_their_places_and_returns_the_subscribers(log):
    head = begun(log, "c1")
    assert (head.attempt, head.last_seq, head.execution, head.worker) == (1, 2, "x1", "w1")
    assert head.lease_until == NOW_S + LEASE_S
    assert head.strategy == "rag"
    commit = append(head, [chunk("Ma"), chunk("ra")])
    after = log.commit(head, commit)
    assert after.last_seq == 4
    assert after.subscribers == following("c1")
    stored, entries = log.read(KEY)
    assert stored == after
    assert [entry.seq for entry in entries] == [1, 2, 3, 4]
    assert entries[2:] == commit.entries()
    assert stored.log_bytes == sum(len(entry.body.encode()) for entry in entries)


def test_events_of_any_size_read_back_the_same(log):
    head = begun(log)
    events = [chunk("あ" * size) for size in (1, INLINE_BYTES // 3, INLINE_BYTES, 7 * 1024)]
    log.commit(head, append(head, events))
    _, entries = log.read(KEY)
    assert [entry.body for entry in entries[2:]] == [dump_event(event) for event in events]


@pytest.mark.parametrize("events", [[chunk("late")], [chunk("x" * 4000)]])
def test_a_zombie_cannot_write_after_its_successor_has_begun(log, events):
    zombie = begun(log)
    takeover = begin(zombie, "direct", (), execution="x1", worker="w2", now_s=NOW_S)
    successor = log.commit(zombie, takeover)
    with pytest.raises(Conflict) as conflict:
        log.commit(zombie, append(zombie, events))
    assert conflict.value.head.attempt == 2
    assert not has_landed(append(zombie, events), conflict.value.head, conflict.value.entries)
    assert log.read(KEY)[0] == successor


def test_nothing_is_written_after_the_terminal_event(log):
    head = begun(log)
    ended = log.commit(head, append(head, [chunk("done"), complete()]))
    assert ended.state == "complete"
    with pytest.raises(Conflict):
        log.commit(ended, append(ended, [chunk("more")]))
    with pytest.raises(Conflict):
        log.commit(ended, append(ended, [Failed(code="x", message="y", retryable=False)]))


@pytest.mark.parametrize("text", ["short", "long" * 2000])
def test_a_commit_repeated_after_a_lost_acknowledgement_is_recognised_as_landed(log, text):
    head = begun(log)
    commit = append(head, [chunk(text)])
    log.commit(head, commit)
    with pytest.raises(Conflict) as conflict:
        log.commit(head, commit)
    assert has_landed(commit, conflict.value.head, conflict.value.entries)


def test_two_workers_that_begin_alike_are_told_apart(log):
    head = new_head()
    log.create(head, ACCEPTED)
    first, second = (beginning(head, worker=worker) for worker in ("w1", "w2"))
    log.commit(head, first)
    with pytest.raises(Conflict) as conflict:
        log.commit(head, second)
    assert has_landed(first, conflict.value.head, conflict.value.entries)
    assert not has_landed(second, conflict.value.head, conflict.value.entries)


def test_an_orphan_is_taken_up_by_one_alone(log):
    head = new_head(lease_until=NOW_S)
    log.create(head, ACCEPTED)
    taken = log.take_up(head, NOW_S + 15)
    assert (taken.lease_until, taken.takeovers, taken.execution) == (NOW_S + 15, 1, None)
    with pytest.raises(Conflict):
        log.take_up(head, NOW_S + 15)


def test_a_claimed_request_that_is_taken_up_is_free_for_another_execution_and_its_attempt_stands(log):
    head = begun(log)
    taken = log.take_up(head, NOW_S + 15)
    assert (taken.execution, taken.attempt, taken.takeovers, taken.fence) == (None, 1, 1, head.fence)
    with pytest.raises(Conflict):
        log.take_up(head, NOW_S + 15)
    claimed = log.commit(taken, beginning(taken, execution="x2", worker="w2"))
    assert (claimed.execution, claimed.takeovers) == ("x2", 1)
    assert [failure.code for failure in claimed.failed] == ["worker_lost"]


def test_whoever_lost_a_race_for_an_orphan_takes_nothing_up(log):
    head = new_head(lease_until=NOW_S)
    log.create(head, ACCEPTED)
    log.commit(head, beginning(head))
    with pytest.raises(Conflict):
        log.take_up(head, NOW_S + 90)
    ended = log.head(KEY)
    log.commit(ended, append(ended, [complete()]))
    with pytest.raises(Conflict):
        log.take_up(log.head(KEY), NOW_S + 90)


def test_an_attempts_claim_is_remembered_by_the_next(log):
    head = begun(log)
    failed = (StrategyFailure(strategy="rag", code="stream_broken", reason="It broke off."),)
    commit = begin(head, "cag", failed, execution="x1", worker="w2", now_s=NOW_S, allot=lambda strategy, reserved: 2)
    after = log.commit(head, commit)
    assert (after.failed, after.reserved_calls, after.strategy) == (failed, 2, "cag")
    assert log.head(KEY) == after


def test_a_heartbeat_moves_the_lease_on_and_nothing_else(log):
    head = begun(log)
    beat = Commit(head.fence, (), lease_until=NOW_S + 500)
    assert log.commit(head, beat) == replace(head, lease_until=NOW_S + 500)
    assert log.commit(head, beat).lease_until == NOW_S + 500


def test_a_late_heartbeat_finds_out(log):
    head = begun(log)
    log.commit(head, append(head, [complete()]))
    beat = Commit(head.fence, (), lease_until=NOW_S + 500)
    with pytest.raises(Conflict) as conflict:
        log.commit(head, beat)
    assert not has_landed(beat, conflict.value.head, conflict.value.entries)


def test_a_completed_question_is_remembered_for_later_attempts(log):
    head = begun(log)
    degraded = Degraded(code="question_not_completed", message="It was completed by rule.")
    completed = Standalone("What did Mara say next?")
    for standalone in (completed, Standalone("What next? (Mara)", degraded), replace(completed, in_own_words=True)):
        log.commit(head, Commit(head.fence, (), standalone=standalone))
        assert log.head(KEY).standalone == standalone


def test_what_an_attempt_has_changed_is_remembered_for_later_attempts(log):
    head = begun(log)
    assert log.head(KEY).changed is None
    for changed in (Changed(1, ("created the character “Corin”",)), Changed(1, ("a", "b"))):
        log.commit(head, Commit(head.fence, (), changed=changed))
        assert log.head(KEY).changed == changed


def test_the_tenant_and_the_filters_are_part_of_the_question(log):
    question = Question("Who?", tenant="reading-club", documents=("a.md",), sections=("One > Two",))
    log.create(new_head(question=question), ACCEPTED)
    assert log.head(KEY).question == question


def test_a_request_from_before_a_deployment_can_still_be_read_and_answered(dynamodb):
    """What an earlier release stored has fewer attributes."""
    log = DynamoDbLog(dynamodb, "requests")
    log.create(new_head("c1"), ACCEPTED)
    (item,) = dynamodb.scan(TableName="requests")["Items"]
    question = {name: value for name, value in json.loads(item["question"]["S"]).items() if name != "tenant"}
    kept = {name: value for name, value in item.items() if name != "open_in"}
    dynamodb.put_item(TableName="requests", Item=kept | {"question": {"S": json.dumps(question)}})
    head = log.head(KEY)
    assert head == new_head("c1")
    begun = log.commit(head, beginning(head))
    assert log.commit(begun, append(begun, [complete()])).state == "complete"


def test_what_was_spent_is_remembered(log):
    head = begun(log)
    spent = RequestSpend(2, 300, 40, None)
    assert log.commit(head, Commit(head.fence, (), spent=spent)).spent == spent
    assert log.head(KEY).spent == spent


def test_a_blocked_answer_leaves_no_word_of_any_attempt_and_no_gap(log):
    large = "secret " * 1000
    found = Sources(attempt=1, index_version="v1", searched=1, sources=(), query="passage " * 1000)
    head = log.commit(begun(log), append(log.head(KEY), [found, chunk("secret"), chunk(large)]))
    second = begin(head, "cag", (), execution="x1", worker="w2", now_s=NOW_S)
    head = log.commit(head, second)
    head = log.commit(head, append(head, [chunk("secret", 2)]))
    late = append(head, [chunk(large, 2)])
    blocked = end(head, Failed.of(AnswerBlocked(), ()), log.read(KEY)[1])
    ended = log.commit(head, blocked)
    log.purge(ended, done=False)
    head, entries = log.read(KEY)
    assert [entry.seq for entry in entries] == list(range(1, head.last_seq + 1))
    kinds = [json.loads(entry.body)["type"] for entry in entries]
    began = ["accepted", "attempt", "sources", "withdrawn", "withdrawn"]
    assert kinds == [*began, "fallback", "attempt", "withdrawn", "error"]
    assert json.loads(entries[2].body)["query"] == found.query
    assert has_landed(blocked, head, entries)
    with pytest.raises(Conflict):  # whose large event had an item of its own before the commit
        log.commit(head, late)
    assert (head.state, head.withdrawn, [*log.open_requests(2**53)]) == ("failed", True, [KEY])
    log.purge(head, done=True)
    log.purge(head, done=True)
    assert (log.head(KEY).withdrawn, [*log.open_requests(2**53)]) == (False, [])
    assert log.read(KEY)[1] == entries
    if isinstance(log, DynamoDbLog):
        items = log._client.scan(TableName="requests")["Items"]
        assert "secret" not in str(items)
        assert [item["sk"]["S"].rsplit("#", 1)[0] for item in items if item["sk"]["S"] != "head"] == ["event#3#1"]


def test_a_long_answer_is_withdrawn_whole(log):
    head = begun(log)
    for _ in range(3):
        head = log.commit(head, append(head, [chunk("secret")] * 90))
    head = log.commit(head, end(head, Failed.of(AnswerBlocked(), ()), log.read(KEY)[1]))
    assert (head.last_seq, "secret" in str(log.read(KEY))) == (273, False)


def test_open_requests_are_listed_until_they_end(log):
    keys = [RequestKey("mara", str(UUID(int=n))) for n in range(20)]
    for n, key in enumerate(keys):
        log.create(new_head(key=key, accepted_at_ms=NOW_S * 1000 + n), ACCEPTED)
    assert set(log.open_requests(NOW_S * 1000 + 10)) == set(keys[:10])
    head = log.head(keys[3])
    log.commit(head, append(head, [Failed(code="x", message="y", retryable=False)]))
    assert set(log.open_requests(NOW_S * 1000 + 10)) == {*keys[:3], *keys[4:10]}


def test_open_requests_are_found_in_whatever_partition_another_release_or_setting_listed_them(dynamodb):
    four, many = DynamoDbLog(dynamodb, "requests"), DynamoDbLog(dynamodb, "requests", open_partitions=1000)
    keys = [RequestKey("mara", str(UUID(int=n))) for n in range(20)]
    for n, key in enumerate(keys):
        (many if n % 2 else four).create(new_head(key=key), ACCEPTED)
    listed = [int(item["open_in"]["N"]) for item in dynamodb.scan(TableName="requests", IndexName="open")["Items"]]
    assert len(listed) == 20
    assert max(listed) > 4
    for log in (four, many):
        assert set(log.open_requests(2**53)) == set(keys)
    head = four.head(keys[1])
    four.commit(head, append(head, [Failed(code="x", message="y", retryable=False)]))
    assert set(many.open_requests(2**53)) == {keys[0], *keys[2:]}


def test_subscribers_change_only_from_what_was_seen(log):
    head = begun(log, "c1")
    changed = log.set_subscribers(head, following("c1", "c2"))
    assert changed.subscribers == following("c1", "c2")
    with pytest.raises(Conflict) as conflict:
        log.set_subscribers(head, ())
    assert conflict.value.head.subscribers == following("c1", "c2")
    assert log.commit(head, append(head, [chunk("x")])).subscribers == following("c1", "c2")


def test_subscribers_are_kept_with_the_expiry_of_their_tokens(log):
    first, second = Subscriber("c1", NOW_S + 60), Subscriber("c2")
    log.create(new_head(first, second), ACCEPTED)
    assert log.head(KEY).subscribers == (first, second)
    third = Subscriber("c3", NOW_S + 90)
    assert log.set_subscribers(log.head(KEY), (second, third)).subscribers == (second, third)
    head = log.head(KEY)
    begun = log.commit(head, beginning(head, execution="x1", worker="w1"))
    assert begun.subscribers == (second, third)


def test_a_record_without_expiries_is_read_and_takes_new_subscribers(dynamodb):
    log = DynamoDbLog(dynamodb, "requests")
    log.create(new_head("c1"), ACCEPTED)
    (item,) = dynamodb.scan(TableName="requests")["Items"]
    del item["subscribed_until"]
    dynamodb.put_item(TableName="requests", Item=item)
    assert log.head(KEY).subscribers == (Subscriber("c1"),)
    added = (Subscriber("c1"), Subscriber("c2", NOW_S + 60))
    assert log.set_subscribers(log.head(KEY), added).subscribers == added


def test_a_record_whose_subscribers_another_version_changed_is_read(dynamodb):
    """A version without expiries, while a deployment rolls out, changes the list of connections alone."""
    log = DynamoDbLog(dynamodb, "requests")
    log.create(new_head(Subscriber("c1", NOW_S + 60)), ACCEPTED)
    (item,) = dynamodb.scan(TableName="requests")["Items"]
    assert item["subscribers"] == {"L": [{"S": "c1"}]}
    item["subscribers"] = {"L": [{"S": "c2"}]}
    dynamodb.put_item(TableName="requests", Item=item)
    assert log.head(KEY).subscribers == (Subscriber("c2"),)


def test_items_outlive_the_retention_so_that_expired_can_be_told_from_unknown(dynamodb):
    log = DynamoDbLog(dynamodb, "requests")
    head = begun(log)
    log.commit(head, append(head, [chunk("x" * 5000)]))
    items = dynamodb.scan(TableName="requests")["Items"]
    assert len(items) == 2
    assert all(int(item["expires_at"]["N"]) > head.expires_at for item in items)
    assert log.head(KEY).expired(head.expires_at)


def test_an_event_item_that_expired_before_its_head_makes_the_request_unknown(dynamodb):
    log = DynamoDbLog(dynamodb, "requests")
    head = begun(log)
    log.commit(head, append(head, [chunk("x" * 5000)]))
    (item,) = (item for item in dynamodb.scan(TableName="requests")["Items"] if item["sk"]["S"] != "head")
    dynamodb.delete_item(TableName="requests", Key={"pk": item["pk"], "sk": item["sk"]})
    with pytest.raises(RequestUnknown):
        log.read(KEY)
    with pytest.raises(Conflict):
        log.create(new_head(origin="frame-2"), ACCEPTED)


def test_a_failing_store_is_one_kind_of_fault(dynamodb):
    log = DynamoDbLog(dynamodb, "no-such-table")
    for call in (lambda: log.head(KEY), lambda: log.read(KEY), lambda: log.create(new_head(), ACCEPTED)):
        with pytest.raises(StoreFault):
            call()

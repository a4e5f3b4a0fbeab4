"""A person's data in the table: found among others', exported whole, and erased for good."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from cicada.delivery.dynamodb import STORE_CONFIG, DynamoDbLog
from cicada.delivery.record import RequestSpend
from cicada.dynamodb import attributes
from cicada.errors import RequestUnknown
from cicada.identity import asker_of
from cicada.personal_data.erasure import (
    MAX_SWEEPS,
    PROCESSOR_S,
    WORKER_S,
    Erasure,
    ErasureIncomplete,
    ErasureReceipt,
)
from cicada.personal_data.export import Export, exported, schema
from cicada.personal_data.items import OwnedItems, PersonalDataFault, owned
from cicada.profiles.dynamodb import DynamoDbProfiles
from cicada.profiles.service import ProfileService
from cicada.protocol.events import Chunk
from cicada.revocation import DynamoDbRevocations
from cicada.usage.accounts import Account, Use, user
from cicada.usage.reservations import Amount, Claim, Reservation
from stacks.answer_states import WORKER_TIMEOUT_S
from stacks.answering import PROCESSOR_TIMEOUT_S
from tests.support.dynamodb import TABLE, requests_table
from tests.support.memory import InMemoryConnections
from tests.support.personal_data import Resident
from tests.support.questions import NOW_S, beginning

SCHEMA = Path(__file__).resolve().parents[2] / "docs" / "personal-data.schema.json"
WORD = "Zweibrücken"
DELETED = {
    "requests": 3,
    "requestEvents": 2,
    "conversations": 1,
    "conversationRecords": 1,
    "feedback": 1,
    "profiles": 2,
    "profileRecords": 2,
    "cachedAnswers": 6,
    "usage": 1,
    "limits": 1,
}
"""Of :meth:`Resident.move_in`."""


class Killed(BaseException):
    """The process is killed."""


class Wire:
    """A client that a test interrupts at one of its calls, before or after the service has carried it out."""

    def __init__(self, client: Any) -> None:
        self._client = client
        self.calls: list[str] = []
        self.before: Callable[[int], None] = lambda _n: None
        self.after: Callable[[int], None] = lambda _n: None

    def __getattr__(self, name: str) -> Callable[..., Any]:
        def call(**given: Any) -> Any:
            self.calls.append(name)
            n = len(self.calls)
            self.before(n)
            answer = getattr(self._client, name)(**given)
            self.after(n)
            return answer

        return call


def owned_by(item: dict[str, Any], owner: str) -> bool:
    found = owned(item)
    return found is not None and found[0] == owner


class World:
    """The table, a clock that only waiting moves, and the erasures of one user."""

    def __init__(self, client: Any) -> None:
        self.client = client
        self.wire = Wire(client)
        self.now_s: float = NOW_S
        self.connections = InMemoryConnections("socket-mara")
        self.while_waiting: Callable[[], None] = lambda: None

    def sleep(self, seconds: float) -> None:
        self.now_s += seconds
        if seconds >= 1:
            self.while_waiting()

    def items(self, subject: str, tenant: str | None = None) -> OwnedItems:
        return OwnedItems(self.wire, TABLE, subject, tenant, now_s=lambda: self.now_s, sleep=self.sleep)

    def erase(self, subject: str, erasure_id: str = "e", *, tenant: str | None = None) -> ErasureReceipt:
        items = self.items(subject, tenant)
        receipt = Erasure(
            items,
            DynamoDbLog(self.wire, TABLE),
            self.connections,
            lambda: DynamoDbRevocations(self.wire, TABLE).revoke(subject, up_to=int(self.now_s)),
            now_s=lambda: self.now_s,
            sleep=self.sleep,
            new_id=lambda: erasure_id,
        ).run()
        items.end()
        self.elsewhere = items.elsewhere
        return receipt

    def stored(self) -> list[dict[str, Any]]:
        return sorted(self.client.scan(TableName=TABLE)["Items"], key=lambda item: (item["pk"]["S"], item["sk"]["S"]))

    def restore(self, items: list[dict[str, Any]]) -> None:
        """Make the table hold these items and no others."""
        gone = [{"DeleteRequest": {"Key": {name: one[name] for name in ("pk", "sk")}}} for one in self.stored()]
        for requests in (gone, [{"PutRequest": {"Item": one}} for one in items]):
            for at in range(0, len(requests), 25):
                self.client.batch_write_item(RequestItems={TABLE: requests[at : at + 25]})

    def besides(self, owner: str) -> list[dict[str, Any]]:
        """All items but the owner's and the marker of a revocation."""
        return [one for one in self.stored() if not owned_by(one, owner) and not one["pk"]["S"].startswith("revoked#")]


@pytest.fixture
def world(monkeypatch: pytest.MonkeyPatch) -> Iterator[World]:
    with requests_table(monkeypatch, STORE_CONFIG) as client:
        yield World(client)


def readable(items: list[dict[str, Any]]) -> str:
    """All that can be read in items, compressed bodies too."""
    import zlib

    bodies = [zlib.decompress(bytes(one["body"]["B"])).decode() for one in items if "B" in one.get("body", {})]
    return "\n".join((json.dumps(items, default=str, ensure_ascii=False), *bodies))


@pytest.mark.parametrize("tenant", [None, "acme"])
def test_nothing_is_left_of_an_erased_user_and_nobody_else_is_touched(world: World, tenant: str | None) -> None:
    owner = "mara" if tenant is None else f"{tenant}/mara"
    names = ("mara2", "amara", "x/mara", "mara/acme", "profiles#mara", "acme/mar", "%", "mara#")
    Resident(world.client, names[0], "Wort", number=1).move_in()
    for number, name in enumerate(names[1:], start=2):
        other = Resident(world.client, name, "Wort", number=number)
        other.ask(1)
        other.converse()
        other.limit()
    before = world.stored()
    Resident(world.client, owner, WORD, tenant=tenant).move_in()

    receipt = world.erase("mara", tenant=tenant)

    assert receipt.deleted == DELETED
    assert world.elsewhere == {"x"}
    assert (receipt.runs, receipt.asker, receipt.nameless_items) == (1, asker_of(owner), 0)
    (marker,) = [one for one in world.stored() if one["pk"]["S"].startswith("revoked#")]
    assert [one for one in world.stored() if one != marker] == before
    assert WORD not in readable(world.stored())
    assert "mara" not in readable([marker])


def test_open_requests_are_cancelled_and_their_subscribers_told(world: World) -> None:
    Resident(world.client, "mara", WORD).move_in()
    world.erase("mara")
    told = [json.loads(frame) for frame in world.connections.frames["socket-mara"]]
    assert [(frame["type"], frame["code"]) for frame in told] == [("error", "cancelled")] * 2


def test_a_worker_that_writes_late_resurrects_nothing(world: World) -> None:
    mara = Resident(world.client, "mara", WORD)
    mara.move_in()
    head = mara.log.head(mara.key(2))

    def late() -> None:
        """Everything that functions do which have not seen the erasure, once."""
        world.while_waiting = lambda: None
        with pytest.raises(RequestUnknown):  # the long event's own item was written before that
            mara.write(head, Chunk(attempt=1, content=WORD * 2000))
        mara.converse()
        mara.list_conversation("s2")
        mara.cache("d" * 32, 7)
        mara.profile("Cleo")
        mara.use()
        mara.begin(4)

    world.while_waiting = late
    receipt = world.erase("mara")
    assert [one["pk"]["S"][:8] for one in world.stored()] == ["revoked#"]
    assert receipt.deleted == DELETED | {
        "requests": 4,
        "requestEvents": 4,
        "conversations": 2,
        "conversationRecords": 2,
        "profiles": 3,
        "profileRecords": 3,
        "cachedAnswers": 8,
        "usage": 2,
    }


def test_the_last_reading_begins_when_no_function_that_began_before_can_write(world: World) -> None:
    assert PROCESSOR_S > PROCESSOR_TIMEOUT_S
    assert WORKER_S > WORKER_TIMEOUT_S
    mara = Resident(world.client, "mara", WORD)
    lease = mara.begin(1).lease_until
    world.erase("mara")
    assert world.now_s == lease + WORKER_S
    world.erase("nobody")
    assert world.now_s == lease + WORKER_S + PROCESSOR_S


def test_a_worker_that_begins_while_the_table_is_read_is_waited_for(world: World) -> None:
    mara = Resident(world.client, "mara", WORD)
    head = mara.ask(1)
    began: list[float] = []

    def begin(_n: int) -> None:
        if world.wire.calls[-1] == "scan" and not began:
            world.now_s += 100  # a large table
            mara.log.commit(head, beginning(head))
            began.append(world.now_s)

    world.wire.after = begin
    world.erase("mara")
    assert world.now_s >= began[0] + WORKER_S


READERS = Account("group", "readers", 0)
RESERVED = Reservation("2027-01", 15, Amount(1_000, 5_000), (user("mara"), READERS))
CLAIMS = [Claim(account, {}) for account in RESERVED.accounts]


def used_by_readers(world: World) -> tuple[int, int, int, int]:
    """Requests, tokens, and what is still reserved, of a pool."""
    (item,) = [one for one in world.stored() if one["pk"]["S"].startswith("usage#group#")]
    used = Use.of(item, 15)
    return used.requests, used.tokens, used.open, used.reserved_tokens


def test_a_request_that_nobody_answers_gives_its_part_of_the_limits_back(world: World) -> None:
    Resident(world.client, "mara", WORD).ask(1, claims=CLAIMS, reservation=RESERVED)
    assert used_by_readers(world) == (0, 1_000, 1, 1_000)
    assert world.erase("mara").deleted == {"requests": 1, "usage": 1}
    assert used_by_readers(world) == (1, 0, 0, 0)


@pytest.mark.parametrize("lost", [False, True])
def test_a_worker_may_settle_what_it_used_before_its_request_is_deleted(world: World, lost: bool) -> None:
    mara = Resident(world.client, "mara", WORD)
    head = mara.begin(1, claims=CLAIMS, reservation=RESERVED)

    def settle() -> None:
        world.while_waiting = lambda: None
        assert mara.log.head(head.key).state == "failed"
        mara.log.settle(replace(head, spent=RequestSpend(1, 300, 50, 0.001)))

    world.while_waiting = (lambda: None) if lost else settle
    assert world.erase("mara").deleted["requests"] == 1
    assert used_by_readers(world) == (1, 0 if lost else 350, 0, 0)
    assert not any(owned_by(one, "mara") for one in world.stored())


def test_an_erasure_that_cannot_keep_up_says_so(world: World) -> None:
    mara = Resident(world.client, "mara", WORD)
    mara.use()

    def use_again(_n: int) -> None:
        if world.wire.calls[-1] == "transact_write_items":
            mara.use()

    world.wire.after = use_again
    with pytest.raises(ErasureIncomplete, match=f"after {MAX_SWEEPS} passes"):
        world.erase("mara")


def test_an_erasure_killed_after_any_of_its_writes_is_completed_by_the_next(world: World) -> None:
    """What is killed after a read has left the same behind as what is killed after the write before it."""
    mara, eve = Resident(world.client, "mara", WORD), Resident(world.client, "eve", "Wort", number=1)
    mara.begin(1)
    mara.ask(2, claims=CLAIMS, reservation=RESERVED)
    mara.converse()
    mara.cache("a" * 32)
    mara.profile("Ada")
    eve.converse()
    everything, others = world.stored(), world.besides("mara")
    whole = world.erase("mara")
    writes = [n for n, name in enumerate(world.wire.calls, 1) if name not in ("scan", "get_item", "query")]
    assert len(writes) > 7
    for n in writes:
        world.restore(everything)
        world.wire = Wire(world.client)

        def kill(at: int, n: int = n) -> None:
            if at == n:
                raise Killed

        world.wire.after = kill
        world.now_s = NOW_S
        with pytest.raises(Killed):
            world.erase("mara", "first")
        receipt = world.erase("mara", "second")
        assert [one["pk"] for one in world.besides("mara")] == [one["pk"] for one in others]
        assert used_by_readers(world) == (1, 0, 0, 0)
        assert not any(owned_by(one, "mara") for one in world.stored())
        if n != writes[-1]:  # then the progress was forgotten, and all was done
            assert receipt.deleted == whole.deleted, (n, world.wire.calls)
            assert (receipt.erasure_id, receipt.runs) == ("first", 2)


def test_items_that_expire_meanwhile_are_not_counted(world: World) -> None:
    mara = Resident(world.client, "mara", WORD)
    for scope in ("a", "b"):
        mara.cache(scope * 32)
    expiring = next(one for one in world.stored())

    def expire(_n: int) -> None:
        if world.wire.calls[-1] == "transact_write_items":
            world.client.delete_item(TableName=TABLE, Key={name: expiring[name] for name in ("pk", "sk")})

    world.wire.before = expire
    assert world.erase("mara").deleted == {"cachedAnswers": 3}


def test_what_an_earlier_release_stored_without_an_owner_is_counted_with_its_end(world: World) -> None:
    Resident(world.client, "eve", "Wort").converse()
    (item,) = world.stored()
    world.client.put_item(TableName=TABLE, Item={name: value for name, value in item.items() if name != "owner"})
    receipt = world.erase("mara")
    assert (receipt.nameless_items, receipt.nameless_until) == (1, "2027-01-15T09:00:00Z")


def test_a_table_that_cannot_be_read_fails_the_erasure(world: World) -> None:
    world.client.delete_table(TableName=TABLE)
    with pytest.raises(PersonalDataFault):
        world.erase("mara")


def export_of(world: World, owner: str, **told: Any) -> Export:
    return exported(
        world.items(owner),
        DynamoDbLog(world.client, TABLE),
        ProfileService(DynamoDbProfiles(world.client, TABLE)),
        subject=owner,
        tenant=None,
        now_s=lambda: world.now_s,
        **told,
    )


def test_an_export_has_everything_of_a_user_and_nothing_of_others(world: World) -> None:
    Resident(world.client, "mara2", "Wort", number=1).move_in()
    Resident(world.client, "mara", WORD).move_in()
    export = export_of(world, "mara", account={"email": "m@example.com"}, refused_up_to=NOW_S)
    assert [request.state for request in export.requests] == ["failed", "open", "open"]
    assert export.requests[0].query == f"Where is {WORD}?"
    assert [event["type"] for event in export.requests[0].events] == ["accepted", "attempt", "chunk", "error"]
    assert [event["seq"] for event in export.requests[0].events] == [1, 2, 3, 4]
    assert export.requests[0].events[2]["content"].startswith(WORD)  # type: ignore[union-attr]
    (listed,) = export.conversation_records
    assert (listed.title, listed.questions, listed.requests) == (
        f"Where is {WORD}?",
        1,
        (export.requests[0].request_id,),
    )
    (rated,) = export.feedback
    assert (rated.question, rated.comment, rated.code) == (f"Where is {WORD}?", f"No {WORD}", "all_strategies_failed")
    (conversation,) = export.conversations
    assert conversation.turns[0] == {
        "requestId": "r",
        "atMs": NOW_S * 1000,
        "asked": f"Where is {WORD}?",
        "query": f"Where is {WORD}?",
        "answer": WORD,
        "collections": None,
    }
    assert sorted(record.profile is None for record in export.profiles) == [False, True]
    assert [answer.text for answer in export.cached_answers] == [WORD] * 3
    assert [(month["sk"], month["requests"], month["tokens"]) for month in export.usage] == [("2027-01", 1, 700)]
    assert [one["limits"] for one in export.limits] == ['{"requestsMinute": 3}']
    assert "Wort" not in export.model_dump_json()


def test_what_another_release_wrote_is_exported_as_it_is(world: World) -> None:
    mara = Resident(world.client, "mara", WORD)
    mara.cache("a" * 32)
    body = next(one for one in world.stored() if one["sk"]["S"].startswith("body#"))
    newer = attributes(pk="notes#1", sk="note", owner="mara", text="x") | {
        "flags": {"L": [{"BOOL": True}, {"NULL": True}]}
    }
    for item in (body | {"body": {"B": b"\x00newer"}}, newer):
        world.client.put_item(TableName=TABLE, Item=item)
    export = export_of(world, "mara")
    assert export.cached_answers == ()
    assert sorted(one["pk"] for one in export.others) == [f"cache#{'a' * 32}", "notes#1"]  # type: ignore[type-var]
    assert [one["body"] for one in export.others if "body" in one] == ["AG5ld2Vy"]
    assert next(one["flags"] for one in export.others if "flags" in one) == [True, None]
    assert world.erase("mara").deleted == {"cachedAnswers": 2, "others": 1}


def test_the_schema_in_the_docs_is_that_of_the_export() -> None:
    told = "run: python -m cicada.personal_data.export > docs/personal-data.schema.json"
    assert SCHEMA.read_text(encoding="utf-8") == schema(), told

"""The contract of the store of profiles, kept by the in-memory twin and by DynamoDB alike."""

from __future__ import annotations

import boto3
import pytest
from botocore.exceptions import ClientError

from cicada.errors import ProfileConflict, ProfilesUnavailable, ProfileUnknown
from cicada.profiles.changes import By, FieldGiven
from cicada.profiles.dynamodb import PROFILES_CONFIG, DynamoDbProfiles
from cicada.profiles.heads import Listed, head_of
from cicada.profiles.record import Change, NoteProof, Profile, ProfileField, ProfileRecord
from cicada.profiles.rules import dumped
from cicada.profiles.service import ProfileService
from cicada.profiles.store import RecordChanged
from tests.support.dynamodb import TABLE, requests_table
from tests.support.profiles import InMemoryProfiles
from tests.support.questions import NOW_S

NOTE = NoteProof(request_id="r", words="rot & grün 🗝", said_at_ms=1)


@pytest.fixture
def dynamodb(monkeypatch):
    with requests_table(monkeypatch, PROFILES_CONFIG) as client:
        yield client


@pytest.fixture(params=["memory", "dynamodb"])
def store(request):
    if request.param == "memory":
        return InMemoryProfiles()
    return DynamoDbProfiles(request.getfixturevalue("dynamodb"), TABLE)


def record(number=1, version=1, value="rot"):
    profile_id = f"{number:020x}"
    fields = (ProfileField(name="haar", value=value, proof=NOTE, changed_at_ms=2),)
    profile = Profile(
        id=profile_id,
        kind="character",
        name=f"N{number}",
        version=version,
        created_at_ms=1,
        changed_at_ms=2,
        fields=fields,
    )
    change = Change(version=version, at_ms=2, operation="created", request_id="r", operation_id=f"o{version}")
    return ProfileRecord(id=profile_id, version=version, profile=profile, history=(change,))


def test_a_record_reads_as_it_was_written(store):
    assert store.read("mara", record().id) is None
    store.write("mara", record(), over=0)
    assert store.read("mara", record().id) == record()
    store.write("mara", record(version=2, value="grün"), over=1)
    assert store.read("mara", record().id) == record(version=2, value="grün")


@pytest.mark.parametrize("over", [0, 2])
def test_a_write_over_another_version_changes_nothing(store, over):
    store.write("mara", record(), over=0)
    with pytest.raises(RecordChanged):
        store.write("mara", record(version=over + 1, value="grau"), over=over)
    assert store.read("mara", record().id) == record()


def test_a_write_over_what_is_not_there_changes_nothing(store):
    with pytest.raises(RecordChanged):
        store.write("mara", record(version=2), over=1)
    assert store.read("mara", record().id) is None


@pytest.mark.parametrize("other", ["jonas", "mara#profile", "mara/", "tenant/mara", "profiles#mara"])
def test_what_is_anothers_is_absent(store, other):
    store.write("mara", record(), over=0)
    assert store.read(other, record().id) is None
    assert store.page(other, "", 10) == ()
    store.write(other, record(value="grau"), over=0)
    assert store.read("mara", record().id) == record()


def test_pages_follow_one_another_by_id(store):
    for number in (3, 1, 2, 5, 4):
        store.write("mara", record(number), over=0)
    store.write("jonas", record(6), over=0)
    first = store.page("mara", "", 2)
    assert [one.profile.name for one in first] == ["N1", "N2"]
    rest = store.page("mara", first[-1].id, 10)
    assert [one.profile.name for one in rest] == ["N3", "N4", "N5"]
    assert store.page("mara", rest[-1].id, 10) == ()


def test_heads_are_what_lists_need_of_the_same_records(store):
    for number in (2, 1, 3):
        store.write("mara", record(number), over=0)
    gone = ProfileRecord(id=f"{2:020x}", version=2, expires_at=NOW_S)
    store.write("mara", gone, over=1)
    store.write("jonas", record(4), over=0)
    heads = store.heads("mara", "", 10)
    assert heads == (
        Listed(record(1).id, head_of(record(1).profile)),
        Listed(gone.id, None, NOW_S),
        Listed(record(3).id, head_of(record(3).profile)),
    )
    assert store.heads("mara", "", 2) == heads[:2]
    assert store.heads("mara", heads[1].id, 2) == heads[2:]
    store.write("mara", record(3, version=2, value="grün"), over=1)
    assert store.heads("mara", heads[1].id, 2)[0].head.version == 2


def test_the_profile_service_keeps_its_promises_over_the_store(store):
    profile_service = ProfileService(store, now_s=lambda: NOW_S)
    red, black = [FieldGiven("hair", "red", NOTE)], [FieldGiven("hair", "black", NOTE)]
    made = profile_service.create(By("mara", "r", "o1"), "character", "Ilse", red)
    assert profile_service.create(By("mara", "r", "o1"), "character", "Ilse", red) == made
    with pytest.raises(ProfileUnknown):
        profile_service.update(By("jonas", "r", "o2"), made.id, 1, given=black)
    changed = profile_service.update(By("mara", "r", "o2"), made.id, 1, given=black)
    assert profile_service.update(By("mara", "r", "o2"), made.id, 1, given=black) == changed
    with pytest.raises(ProfileConflict):
        profile_service.delete(By("mara", "r", "o3"), made.id, 1)
    assert profile_service.delete(By("mara", "r", "o3"), made.id, 2) == 3
    assert profile_service.list("mara") == ()
    assert profile_service.create(By("mara", "r", "o4"), "character", "Ilse").version == 4


def items(dynamodb):
    """All of them, by the kind and the attributes of each."""
    return {item["sk"]["S"].split("#")[0]: item for item in dynamodb.scan(TableName=TABLE)["Items"]}


def test_only_a_deleted_profile_may_expire(dynamodb):
    profile_service = ProfileService(DynamoDbProfiles(dynamodb, TABLE), now_s=lambda: NOW_S)
    made = profile_service.create(By("mara", "r", "o1"), "character", "Ilse", [FieldGiven("hair", "red", NOTE)])
    for item in items(dynamodb).values():
        assert item["pk"] == {"S": "profiles#mara"}
        assert "expires_at" not in item
        assert "open_in" not in item
    profile_service.delete(By("mara", "r", "o2"), made.id, 1)
    left = items(dynamodb)
    assert all(int(item["expires_at"]["N"]) > NOW_S for item in left.values())
    assert "red" not in left["record"]["record"]["S"]
    assert "head" not in left["profile"]


def test_what_lists_read_stands_apart_from_the_record(dynamodb):
    store = DynamoDbProfiles(dynamodb, TABLE)
    store.write("mara", record(value="x" * 1_000), over=0)
    stored = items(dynamodb)
    assert set(stored["profile"]) == {"pk", "sk", "version", "head"}
    assert set(stored["record"]) == {"pk", "sk", "record"}
    assert sum(len(str(value)) for value in stored["profile"].values()) < 400


def test_both_items_are_written_or_neither(dynamodb):
    store = DynamoDbProfiles(dynamodb, TABLE)
    store.write("mara", record(), over=0)
    before = items(dynamodb)
    with pytest.raises(RecordChanged):
        store.write("mara", record(version=9, value="grau"), over=8)
    with pytest.raises(ProfilesUnavailable):
        store.write("mara", record(version=2, value="x" * 400 * 1024), over=1)  # more than an item holds
    assert items(dynamodb) == before


def as_an_earlier_release(dynamodb, one):
    """A profile as one item, with its head beside the record."""
    dynamodb.put_item(
        TableName=TABLE,
        Item={
            "pk": {"S": "profiles#mara"},
            "sk": {"S": f"profile#{one.id}"},
            "version": {"N": str(one.version)},
            "record": {"S": dumped(one)},
            **({"head": {"S": dumped(head_of(one.profile))}} if one.profile else {}),
            **({"expires_at": {"N": str(one.expires_at)}} if one.expires_at else {}),
        },
    )


def test_what_an_earlier_release_wrote_is_listed_read_and_split_by_its_next_write(dynamodb):
    store = DynamoDbProfiles(dynamodb, TABLE)
    gone = ProfileRecord(id=f"{3:020x}", version=4, expires_at=NOW_S)
    for one in (record(1), gone):
        as_an_earlier_release(dynamodb, one)
    store.write("mara", record(2), over=0)
    assert store.page("mara", "", 10) == (record(1), record(2), gone)
    assert store.heads("mara", "", 10) == (
        Listed(record(1).id, head_of(record(1).profile)),
        Listed(record(2).id, head_of(record(2).profile)),
        Listed(gone.id, None, NOW_S),
    )
    with pytest.raises(RecordChanged):
        store.write("mara", record(1), over=0)
    store.write("mara", record(1, version=2, value="grün"), over=1)
    assert store.read("mara", record(1).id) == record(1, version=2, value="grün")
    small = dynamodb.get_item(
        TableName=TABLE, Key={"pk": {"S": "profiles#mara"}, "sk": {"S": f"profile#{record(1).id}"}}
    )["Item"]
    assert "record" not in small


@pytest.mark.parametrize("expired_first", ["profile", "record"])
def test_a_deleted_profile_whose_items_expire_one_after_the_other_stays_deleted_and_can_be_made_anew(
    dynamodb, expired_first
):
    profile_service = ProfileService(DynamoDbProfiles(dynamodb, TABLE), now_s=lambda: NOW_S)
    made = profile_service.create(By("mara", "r", "o1"), "character", "Ilse", [FieldGiven("hair", "red", NOTE)])
    profile_service.delete(By("mara", "r", "o2"), made.id, 1)
    dynamodb.delete_item(TableName=TABLE, Key={"pk": {"S": "profiles#mara"}, "sk": {"S": f"{expired_first}#{made.id}"}})
    assert profile_service.list("mara") == ()
    with pytest.raises(ProfileUnknown):
        profile_service.show("mara", made.id)
    again = profile_service.create(By("mara", "r", "o3"), "character", "Ilse")
    assert again.version == (1 if expired_first == "profile" else 3)
    assert profile_service.show("mara", made.id) == again
    assert all("expires_at" not in item for item in items(dynamodb).values())


class Between:
    """A client that lets something happen before a call goes through."""

    def __init__(self, client):
        self.client = client
        self.transactions = self.reads = lambda calls: None
        self.calls = 0

    def __getattr__(self, name):
        return getattr(self.client, name)

    def get_item(self, **given):
        self.calls += 1
        return self.reads(self.calls) or self.client.get_item(**given)

    def transact_write_items(self, **given):
        self.calls += 1
        self.transactions(self.calls)
        return self.client.transact_write_items(**given)


def conflict():
    return ClientError(
        {
            "Error": {"Code": "TransactionCanceledException", "Message": "cancelled"},
            "CancellationReasons": [{"Code": "TransactionConflict"}, {"Code": "None"}],
        },
        "TransactWriteItems",
    )


def test_a_write_that_another_one_is_in_the_way_of_is_tried_again_and_then_reported(dynamodb):
    between = Between(dynamodb)
    store = DynamoDbProfiles(between, TABLE)

    def once(calls):
        if calls == 1:
            raise conflict()

    between.transactions = once
    store.write("mara", record(), over=0)
    assert store.read("mara", record().id) == record()

    def always(_calls):
        raise conflict()

    between.transactions = always
    with pytest.raises(ProfilesUnavailable):
        store.write("mara", record(version=2), over=1)


def test_a_read_between_the_two_items_of_a_write_returns_no_older_record(dynamodb):
    between = Between(dynamodb)
    store = DynamoDbProfiles(between, TABLE)
    store.write("mara", record(), over=0)
    older = dynamodb.get_item(TableName=TABLE, Key={"pk": {"S": "profiles#mara"}, "sk": {"S": f"record#{record().id}"}})
    store.write("mara", record(version=2, value="grün"), over=1)
    between.calls = 0
    between.reads = lambda calls: older if calls == 2 else None
    assert store.read("mara", record().id) == record(version=2, value="grün")
    between.calls = 0
    between.reads = lambda calls: older if calls >= 2 else None
    with pytest.raises(ProfilesUnavailable):
        store.read("mara", record().id)


def test_what_heads_leave_out_crosses_no_wire(dynamodb):
    store = DynamoDbProfiles(dynamodb, TABLE)
    store.write("mara", record(value="x" * 1_000), over=0)
    answers = []
    dynamodb.meta.events.register("after-call.dynamodb.Query", lambda parsed, **_: answers.append(parsed))
    store.heads("mara", "", 10)
    ((item,),) = [answer["Items"] for answer in answers]
    assert set(item) == {"sk", "head"}


def test_a_page_that_the_service_cuts_short_is_read_on(dynamodb):
    store = DynamoDbProfiles(dynamodb, TABLE)
    large = "x" * 1_000
    for number in range(12):
        one = record(number + 1)
        fields = tuple(ProfileField(name=f"f{n}", value=large, proof=NOTE, changed_at_ms=1) for n in range(100))
        profile = one.profile.model_copy(update={"fields": fields})
        as_an_earlier_release(dynamodb, one.model_copy(update={"profile": profile}))
    assert len(store.heads("mara", "", 50)) == 12
    assert len(store.page("mara", "", 50)) == 12
    assert len(store.page("mara", "", 11)) == 11


def changed(dynamodb, kind, expression, **values):
    dynamodb.update_item(
        TableName=TABLE,
        Key={"pk": {"S": "profiles#mara"}, "sk": {"S": f"{kind}#{record().id}"}},
        UpdateExpression=expression,
        ExpressionAttributeNames={f"#{name}": name for name in ("record", "head") if f"#{name}" in expression},
        **({"ExpressionAttributeValues": values} if values else {}),
    )


def test_a_record_of_another_form_is_never_overwritten_unread(dynamodb):
    store = DynamoDbProfiles(dynamodb, TABLE)
    store.write("mara", record(), over=0)
    changed(dynamodb, "record", "SET #record = :record", **{":record": {"S": '{"of": "another release"}'}})
    with pytest.raises(ProfilesUnavailable):
        store.read("mara", record().id)
    changed(dynamodb, "profile", "REMOVE #head")
    with pytest.raises(ProfilesUnavailable):
        store.heads("mara", "", 10)


def test_a_profile_without_its_record_is_a_fault_and_not_unknown(dynamodb):
    store = DynamoDbProfiles(dynamodb, TABLE)
    store.write("mara", record(), over=0)
    dynamodb.delete_item(TableName=TABLE, Key={"pk": {"S": "profiles#mara"}, "sk": {"S": f"record#{record().id}"}})
    for look in (lambda: store.read("mara", record().id), lambda: store.page("mara", "", 10)):
        with pytest.raises(ProfilesUnavailable):
            look()


def test_a_failing_store_and_one_that_cannot_be_reached_are_one_kind_of_fault(dynamodb):
    far = boto3.client("dynamodb", endpoint_url="http://127.0.0.1:9", config=PROFILES_CONFIG)
    for store in (DynamoDbProfiles(dynamodb, "no-such-table"), DynamoDbProfiles(far, TABLE)):
        for call in (
            lambda store=store: store.read("mara", record().id),
            lambda store=store: store.page("mara", "", 10),
            lambda store=store: store.heads("mara", "", 10),
            lambda store=store: store.write("mara", record(), over=0),
        ):
            with pytest.raises(ProfilesUnavailable):
                call()

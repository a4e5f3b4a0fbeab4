"""The contract of the store of profiles, kept by the in-memory twin and by DynamoDB alike."""

from __future__ import annotations

import boto3
import pytest

from cicada.errors import ProfileConflict, ProfilesUnavailable, ProfileUnknown
from cicada.profiles.changes import By, FieldGiven
from cicada.profiles.desk import ProfileDesk
from cicada.profiles.dynamodb import PROFILES_CONFIG, DynamoDbProfiles
from cicada.profiles.heads import Listed, head_of
from cicada.profiles.record import Change, NoteProof, Profile, ProfileField, Record
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
    return Record(id=profile_id, version=version, profile=profile, history=(change,))


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
    gone = Record(id=f"{2:020x}", version=2, expires_at=NOW_S)
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


def test_the_desk_keeps_its_promises_over_the_store(store):
    desk = ProfileDesk(store, now_s=lambda: NOW_S)
    red, black = [FieldGiven("hair", "red", NOTE)], [FieldGiven("hair", "black", NOTE)]
    made = desk.create(By("mara", "r", "o1"), "character", "Ilse", red)
    assert desk.create(By("mara", "r", "o1"), "character", "Ilse", red) == made
    with pytest.raises(ProfileUnknown):
        desk.update(By("jonas", "r", "o2"), made.id, 1, given=black)
    changed = desk.update(By("mara", "r", "o2"), made.id, 1, given=black)
    assert desk.update(By("mara", "r", "o2"), made.id, 1, given=black) == changed
    with pytest.raises(ProfileConflict):
        desk.delete(By("mara", "r", "o3"), made.id, 1)
    assert desk.delete(By("mara", "r", "o3"), made.id, 2) == 3
    assert desk.list("mara") == ()
    assert desk.create(By("mara", "r", "o4"), "character", "Ilse").version == 4


def test_only_a_deleted_profile_may_expire(dynamodb):
    desk = ProfileDesk(DynamoDbProfiles(dynamodb, TABLE), now_s=lambda: NOW_S)
    made = desk.create(By("mara", "r", "o1"), "character", "Ilse", [FieldGiven("hair", "red", NOTE)])
    (item,) = dynamodb.scan(TableName=TABLE)["Items"]
    assert item["pk"] == {"S": "profiles#mara"}
    assert "expires_at" not in item
    assert "open_in" not in item
    desk.delete(By("mara", "r", "o2"), made.id, 1)
    (item,) = dynamodb.scan(TableName=TABLE)["Items"]
    assert int(item["expires_at"]["N"]) > NOW_S
    assert "red" not in item["record"]["S"]
    assert "head" not in item


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
        store.write(
            "mara", one.model_copy(update={"profile": one.profile.model_copy(update={"fields": fields})}), over=0
        )
    assert len(store.page("mara", "", 50)) == 12
    assert len(store.page("mara", "", 11)) == 11


def test_a_record_of_another_form_is_never_overwritten_unread(dynamodb):
    store = DynamoDbProfiles(dynamodb, TABLE)
    store.write("mara", record(), over=0)
    dynamodb.update_item(
        TableName=TABLE,
        Key={"pk": {"S": "profiles#mara"}, "sk": {"S": f"profile#{record().id}"}},
        UpdateExpression="SET #record = :record",
        ExpressionAttributeNames={"#record": "record"},
        ExpressionAttributeValues={":record": {"S": '{"of": "another release"}'}},
    )
    with pytest.raises(ProfilesUnavailable):
        store.read("mara", record().id)
    dynamodb.update_item(
        TableName=TABLE,
        Key={"pk": {"S": "profiles#mara"}, "sk": {"S": f"profile#{record().id}"}},
        UpdateExpression="REMOVE #head",
        ExpressionAttributeNames={"#head": "head"},
    )
    with pytest.raises(ProfilesUnavailable):
        store.heads("mara", "", 10)


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

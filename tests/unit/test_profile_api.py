"""The action ``profile`` through the action handlers: replies, pages, refusals."""

from __future__ import annotations

import json
import uuid

import pytest

from cicada.answering.action_handlers import ActionHandlers
from cicada.answering.profile_api import ProfileApi
from cicada.errors import InvalidMessage, ProfilesUnavailable
from cicada.identity import Caller
from cicada.profiles.changes import By
from cicada.profiles.record import Evidence, PassageProof
from cicada.profiles.rules import MAX_EDITS, MAX_VALUE_CHARS
from cicada.profiles.service import ProfileService
from cicada.protocol.actions import parse_action
from cicada.protocol.events import MAX_EVENT_BYTES
from tests.support.passages import make_passage
from tests.support.profiles import InMemoryProfiles
from tests.support.questions import NOW_S, REQUEST_ID, UNUSED

WIDE = "\U00010348"
"""A character of four bytes."""


class World:
    def __init__(self):
        self.store = InMemoryProfiles()
        self.profile_service = ProfileService(self.store, now_s=lambda: NOW_S)
        counter = ProfileApi(self.profile_service, now_s=lambda: NOW_S)
        self.action_handlers = ActionHandlers(UNUSED, UNUSED, UNUSED, counter, UNUSED, retention_s=3600)
        self.largest = 0

    def send(self, operation, *, subject="mara", tenant=None, request_id=None, **fields):
        frame = {"action": "profile", "requestId": request_id or str(uuid.uuid4()), "operation": operation} | fields
        caller = Caller(subject, "c1", "frame-1", tenant)
        reply = self.action_handlers.handle(parse_action(json.dumps(frame)), caller)
        self.largest = max(self.largest, len(reply.encode()))
        return json.loads(reply)

    def create(self, name="Tamsin", kind="character", **fields):
        return self.send("create", kind=kind, name=name, set=facts(**fields))

    def pages(self, operation, **fields):
        found = [self.send(operation, **fields)]
        while found[-1]["next"] is not None:
            found.append(self.send(operation, cursor=found[-1]["next"], **fields))
        return found


def facts(**fields):
    return [{"field": field, "value": value} for field, value in fields.items()]


@pytest.fixture
def world():
    return World()


def test_a_profile_is_made_shown_changed_and_deleted(world):
    made = world.send("create", request_id=REQUEST_ID, kind="character", name="Tamsin", set=facts(hair="red"))
    assert (made["type"], made["seq"], made["requestId"], made["version"]) == ("profile", 0, REQUEST_ID, 1)
    assert made["fields"][0]["proof"] == {
        "kind": "note", "requestId": REQUEST_ID, "words": "red", "saidAtMs": NOW_S * 1000
    }  # fmt: skip
    shown = world.send("show", name="tamsin")
    assert {**shown, "requestId": REQUEST_ID} == made
    changed = world.send("update", id=made["id"], expectedVersion=1, set=facts(hair="black", room="attic"))
    assert [(one["name"], one["value"]) for one in changed["fields"]] == [("hair", "black"), ("room", "attic")]
    history = world.send("history", id=made["id"])
    assert [change["operation"] for change in history["changes"]] == ["created", "updated"]
    assert history["changes"][1]["edits"][0] == {"field": "hair", "before": "red", "after": "black"}
    gone = world.send("delete", id=made["id"], expectedVersion=2)
    assert (gone["type"], gone["version"]) == ("profile_deleted", 3)
    assert world.send("list")["profiles"] == []


def test_profiles_are_listed_and_by_kind(world):
    world.create("Tamsin", hair="red")
    world.send("create", kind="theory", name="The key", statement="Ilse moved the key", episodes=["ep1"])
    assert {one["name"]: one["facts"] for one in world.send("list")["profiles"]} == {"Tamsin": 1, "The key": 0}
    (theory,) = world.send("list", kind="theory")["profiles"]
    assert theory["statement"] == "Ilse moved the key"
    shown = world.send("show", name="the key")
    assert shown["theory"]["episodes"] == ["ep1"]
    refined = world.send("update", id=shown["id"], expectedVersion=1, statement="Ilse hid the key")
    assert refined["theory"]["statement"] == "Ilse hid the key"


def test_the_same_frame_twice_is_one_change(world):
    frame = {"request_id": REQUEST_ID, "kind": "character", "name": "Tamsin"}
    assert world.send("create", **frame) == world.send("create", **frame)
    assert world.store.writes == 1


@pytest.mark.parametrize(
    ("operation", "fields", "code"),
    [
        ("show", {"name": "Nobody"}, "profile_unknown"),
        ("show", {"id": "0" * 20}, "profile_unknown"),
        ("create", {"kind": "character", "name": "tamsin"}, "profile_conflict"),
        ("create", {"kind": "theory", "name": "T"}, "profile_invalid"),
        ("create", {"kind": "character", "name": "\u200b"}, "profile_invalid"),
        ("show", {"name": "tamsin", "cursor": "1.x"}, "profile_invalid"),
        ("show", {"name": "tamsin", "cursor": "2.0"}, "profile_conflict"),
        ("export", {"cursor": "../../x"}, "profile_invalid"),
        ("export", {"cursor": "zz.1.2"}, "profile_invalid"),
        ("list", {"cursor": "~"}, "profile_invalid"),
    ],
)
def test_what_cannot_be_done_is_refused_with_its_code(world, operation, fields, code):
    world.create()
    refused = world.send(operation, **fields)
    assert (refused["type"], refused["seq"], refused["code"]) == ("error", 0, code)


def test_a_conflict_says_which_version_stands(world):
    made = world.create()
    world.send("update", id=made["id"], expectedVersion=1, set=facts(hair="red"))
    refused = world.send("update", id=made["id"], expectedVersion=1, set=facts(hair="black"))
    assert (refused["code"], refused["retryable"]) == ("profile_conflict", True)
    assert "version 2" in refused["detail"]


def test_a_store_that_fails_is_told(world):
    def fail():
        raise ProfilesUnavailable("the store is gone")

    world.store.before_write = fail
    assert world.create()["code"] == "profiles_unavailable"


@pytest.mark.parametrize("other", [{"subject": "jonas"}, {"tenant": "t"}])
def test_another_user_or_tenant_sees_and_changes_nothing(world, other):
    made = world.create(hair="red")
    for operation, fields in (
        ("show", {"id": made["id"]}),
        ("show", {"name": "Tamsin"}),
        ("history", {"id": made["id"]}),
        ("update", {"id": made["id"], "expectedVersion": 1, "set": facts(hair="black")}),
        ("delete", {"id": made["id"], "expectedVersion": 1}),
    ):
        refused = world.send(operation, **other, **fields)
        assert refused["code"] == "profile_unknown"
        assert "red" not in json.dumps(refused)
    assert world.send("list", **other)["profiles"] == []
    assert world.send("export", **other)["text"] == ""
    assert world.send("show", id=made["id"])["version"] == 1


@pytest.mark.parametrize(
    ("fields", "told"),
    [
        ({"operation": "show"}, "either id or name"),
        ({"operation": "show", "id": "0" * 20, "name": "x"}, "either id or name"),
        ({"operation": "create", "name": "x"}, "requires kind"),
        ({"operation": "create", "kind": "character", "name": "x", "id": "0" * 20}, "does not take id"),
        ({"operation": "create", "kind": "character", "name": "x", "episodes": ["e"]}, "statement"),
        ({"operation": "update", "id": "0" * 20, "set": []}, "requires expectedVersion"),
        ({"operation": "list", "set": [{"field": "a", "value": "b"}]}, "does not take set"),
        ({"operation": "delete", "id": "../x", "expectedVersion": 1}, "id"),
        ({"operation": "show", "id": "0" * 20, "subject": "jonas"}, "subject"),
        ({"operation": "drop"}, "operation"),
        ({"operation": "show", "name": 7}, "name"),
        ({}, "operation"),
    ],
)
def test_a_frame_that_is_not_whole_is_no_message(fields, told):
    with pytest.raises(InvalidMessage) as refused:
        parse_action(json.dumps({"action": "profile", "requestId": REQUEST_ID} | fields))
    assert told in refused.value.detail


def whole_profile(world):
    """A theory with as much in it as the limits allow, in characters of four bytes."""
    value, n = WIDE * MAX_VALUE_CHARS, 0
    made = world.send(
        "create", kind="theory", name=WIDE * 80, statement=WIDE * 500,
        episodes=[f"{n}{WIDE * 120}" for n in range(20)],
    )  # fmt: skip
    for n in range(8):
        world.send("update", id=made["id"], expectedVersion=n + 1, set=facts(**{f"f{n}": value}))
    evidence = []
    for n in range(16):
        locator = make_passage(n).locator
        proof = PassageProof(
            passage_id=f"m{n}", collection="script", locator=locator, quote=WIDE * 1000, index_version="v"
        )
        evidence.append(Evidence(side="for", strength=0.5, proof=proof, cited=True))
    for n in range(8, 9):
        world.profile_service.judge(By("mara", "r", "o"), made["id"], n + 1, "open", evidence[:6])
    return made


def test_every_frame_is_within_its_bound_and_pages_lose_nothing(world):
    made = whole_profile(world)
    shown = world.pages("show", id=made["id"])
    assert len(shown) > 1
    assert [one["name"] for page in shown for one in page["fields"]] == [f"f{n}" for n in range(8)]
    assert sum(len(page["evidence"]) for page in shown) == 6
    assert [page["theory"] is None for page in shown] == [False] + [True] * (len(shown) - 1)
    versions = [change["version"] for page in world.pages("history", id=made["id"]) for change in page["changes"]]
    assert sorted(set(versions))[-1] == 10
    world.pages("list")
    assert world.largest <= MAX_EVENT_BYTES


def test_a_large_changes_edits_stand_in_several_entries(world):
    made = world.create(**{f"f{n}": WIDE * 1000 for n in range(MAX_EDITS)})
    changes = [change for page in world.pages("history", id=made["id"]) for change in page["changes"]]
    assert {change["version"] for change in changes} == {1}
    assert sorted(edit["field"] for change in changes for edit in change["edits"]) == sorted(
        f"f{n}" for n in range(MAX_EDITS)
    )
    assert world.largest <= MAX_EVENT_BYTES


def test_an_export_is_a_json_object_a_line_over_as_many_pages_as_it_takes(world):
    for n in range(30):
        world.create(f"Person {n}", note=WIDE * 900, quote='"' * 900)
    made = world.create("Gone")
    world.send("delete", id=made["id"], expectedVersion=1)
    pages = world.pages("export")
    assert len(pages) > 5
    lines = [json.loads(line) for line in "".join(page["text"] for page in pages).splitlines()]
    assert sorted(line["profile"]["name"] for line in lines) == sorted(f"Person {n}" for n in range(30))
    assert all(line["history"][0]["operation"] == "created" for line in lines)
    assert world.largest <= MAX_EVENT_BYTES


def test_a_list_of_many_comes_in_pages(world):
    for n in range(150):
        world.create(f"Person {n} {WIDE * 60}")
    pages = world.pages("list")
    assert len(pages) > 1
    assert len({one["id"] for page in pages for one in page["profiles"]}) == 150
    assert world.largest <= MAX_EVENT_BYTES


def test_what_changes_between_two_pages_is_no_mixture(world):
    made = whole_profile(world)
    second = world.send("show", id=made["id"])["next"]
    (first_export,) = [world.send("export")]
    world.send("update", id=made["id"], expectedVersion=10, set=facts(x="y"))
    assert world.send("show", id=made["id"], cursor=second)["code"] == "profile_conflict"
    assert world.send("export", cursor=first_export["next"])["code"] == "profile_conflict"


def test_a_cursor_that_no_export_gave_is_refused(world):
    made = world.create()["id"]
    for cursor in (f"0x{made[:18]}.1.0", f"1_{made[:18]}.1.0", "５.1.0", "-5.1.0", f"{made}.1.99999999"):
        assert world.send("export", cursor=cursor)["code"] == "profile_invalid", cursor
    assert world.send("export", cursor=f"{made}.1.0")["text"] == world.send("export")["text"]


@pytest.mark.parametrize("what", ["deleted", "forgotten", "made anew"])
def test_an_export_never_goes_on_in_the_middle_of_a_profile_that_is_gone(world, what):
    made = whole_profile(world)
    world.create("Zoe", note="kept")
    first = world.send("export")
    while first["next"].split(".")[0] != made["id"] or first["next"].endswith(".0"):
        first = world.send("export", cursor=first["next"])
    if what == "forgotten":
        del world.store.stored["mara", made["id"]]
    else:
        world.send("delete", id=made["id"], expectedVersion=10)
    if what == "made anew":
        world.send("create", kind="theory", name=WIDE * 80, statement="Ilse moved the key")
    assert world.send("export", cursor=first["next"])["code"] == "profile_conflict"


def test_a_change_is_taken_back_by_its_version(world):
    made = world.create(hair="red")
    world.send("update", id=made["id"], expectedVersion=1, set=facts(hair="black"))
    undone = world.send("undo", id=made["id"], version=2)
    assert (undone["version"], undone["fields"][0]["value"]) == (3, "red")
    assert world.send("undo", id=made["id"], version=2)["code"] == "profile_conflict"
    assert world.send("undo", id=made["id"], version=2, subject="jonas")["code"] == "profile_unknown"
    other = world.create("Corin")
    gone = world.send("undo", id=other["id"], version=1)
    assert (gone["type"], gone["version"]) == ("profile_deleted", 2)

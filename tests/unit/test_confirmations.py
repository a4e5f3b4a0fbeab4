"""The action ``confirm``: what an agent would delete is deleted by its user's word alone, once, and in time."""

from __future__ import annotations

import json

import pytest

from cicada.answering.action_handlers import ActionHandlers
from cicada.answering.profile_api import ProfileApi
from cicada.delivery.decide import append
from cicada.delivery.record import RequestKey
from cicada.identity import Caller
from cicada.profiles.changes import By, FieldGiven
from cicada.profiles.record import NoteProof
from cicada.profiles.service import ProfileService
from cicada.protocol.actions import parse_action
from cicada.protocol.events import ChangedField, Confirm
from tests.support.memory import InMemoryLog
from tests.support.profiles import InMemoryProfiles
from tests.support.questions import ACCEPTED, KEY, NOW_S, UNUSED, new_head

NOTE = NoteProof(request_id="r", words="as I said", said_at_ms=1)


class World:
    """A request of a user's whose answer has asked to delete their only profile, or a field of it."""

    def __init__(self):
        self.now_s = NOW_S
        self.profile_service = ProfileService(InMemoryProfiles(), now_s=lambda: self.now_s)
        fields = [FieldGiven("hair", "red", NOTE), FieldGiven("room", "attic", NOTE)]
        self.profile = self.profile_service.create(By(KEY.subject, "r", "o"), "character", "Tamsin", fields)
        self.log = InMemoryLog()
        self.log.create(new_head("c1"), ACCEPTED)
        self.intake = ActionHandlers(
            self.log,
            UNUSED,
            UNUSED,
            ProfileApi(self.profile_service, now_s=lambda: self.now_s),
            UNUSED,
            retention_s=3600,
            now_s=lambda: self.now_s,
        )

    def asks(self, operation="delete", name="0"):
        gone = self.profile.fields if operation == "delete" else self.profile.fields[:1]
        event = Confirm(
            attempt=1,
            confirmation_id=name * 32,
            operation=operation,
            id=self.profile.id,
            kind="character",
            name="Tamsin",
            version=1,
            fields=[ChangedField(field=field.name, before=field.value) for field in gone],
            expires_at_ms=(NOW_S + 600) * 1000,
        )
        self.log.commit(self.log.head(KEY), append(self.log.head(KEY), (event,)))

    def confirm(self, *, accept=True, name="0", subject=KEY.subject, request_id=KEY.request_id):
        frame = {"action": "confirm", "requestId": request_id, "confirmationId": name * 32, "accept": accept}
        return json.loads(self.intake.handle(parse_action(json.dumps(frame)), Caller(subject, "c1", "f1")))

    @property
    def kept(self):
        return [
            field.name
            for head in self.profile_service.list(KEY.subject)
            for field in self.profile_service.show(KEY.subject, head.id).fields
        ]


@pytest.fixture
def world():
    return World()


def test_a_profile_is_deleted_once_its_user_confirms_it(world):
    world.asks()
    assert world.kept == ["hair", "room"]
    reply = world.confirm()
    assert (reply["type"], reply["outcome"], reply["seq"]) == ("confirmed", "done", 0)
    assert (reply["change"]["operation"], reply["change"]["name"]) == ("deleted", "Tamsin")
    assert (reply["change"]["version"], reply["change"]["undoable"]) == (2, False)
    assert world.kept == []


def test_a_field_is_removed_once_its_user_confirms_it_and_can_be_brought_back(world):
    world.asks("remove_fields")
    reply = world.confirm()
    assert (reply["change"]["operation"], reply["change"]["undoable"]) == ("updated", True)
    assert reply["change"]["fields"] == [{"field": "hair", "before": "red", "after": None}]
    assert world.kept == ["room"]
    world.profile_service.undo(By(KEY.subject, "r", "u"), world.profile.id, 2)
    assert sorted(world.kept) == ["hair", "room"]


def test_a_confirmation_that_is_sent_again_does_nothing_more(world):
    world.asks()
    first = world.confirm()
    world.now_s += 3_000
    assert world.confirm() == first


def test_what_is_declined_stays_and_can_still_be_confirmed(world):
    world.asks()
    reply = world.confirm(accept=False)
    assert (reply["outcome"], reply["change"]) == ("declined", None)
    assert world.kept == ["hair", "room"]
    assert world.confirm()["outcome"] == "done"


def test_confirmed_too_late_nothing_is_deleted(world):
    world.asks()
    world.now_s += 601
    assert world.confirm()["code"] == "confirmation_expired"
    assert world.kept == ["hair", "room"]


def test_nobody_else_can_confirm_it(world):
    world.asks()
    assert world.confirm(subject="somebody-else")["code"] == "request_unknown"
    assert world.kept == ["hair", "room"]


def test_what_was_never_asked_cannot_be_confirmed(world):
    world.asks()
    assert world.confirm(name="1")["code"] == "confirmation_unknown"
    assert world.confirm(request_id="f" * 8 + "-0000-4000-8000-000000000000")["code"] == "request_unknown"
    assert world.kept == ["hair", "room"]


def test_a_profile_that_was_changed_since_it_was_shown_stays(world):
    world.asks()
    world.profile_service.update(
        By(KEY.subject, "r", "x"), world.profile.id, 1, given=[FieldGiven("hair", "black", NOTE)]
    )
    assert world.confirm()["code"] == "profile_conflict"
    assert world.kept == ["hair", "room"]


def test_it_is_confirmed_after_the_log_ends_and_not_after_it_is_gone(world):
    world.asks()
    world.now_s += 24 * 3600 * 365
    assert world.confirm()["code"] == "request_expired"
    assert world.log.head(RequestKey(KEY.subject, KEY.request_id)).state == "open"

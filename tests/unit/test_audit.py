"""Records of administrators' changes: before, after, bounded, never replaced, and listed newest first."""

from __future__ import annotations

import json
from datetime import UTC, datetime, timedelta
from typing import Literal

import pytest

from cicada.audit.listing import list_records
from cicada.audit.records import ACTIONS, AUDIT_PREFIX, MAX_DETAILS_BYTES, Action, function_actor, record
from cicada.audit.settings_recorder import ACCESS_ATTEMPTS, ACCESS_PAUSE_S, SETTINGS, SettingsRecorder
from cicada.custom_resources import ResourceRequest
from cicada.errors import AuditUnavailable, IndexUnavailable, PublishConflict
from tests.support.object_stores import InMemoryStore

NOON = datetime(2026, 11, 25, 12, 0, tzinfo=UTC)
WHO = "arn:aws:sts::123456789012:assumed-role/Admin/jo"


class Failing(InMemoryStore):
    """Fails at chosen writes, counted from 1."""

    def __init__(self, *fails: int, lost: bool = False) -> None:
        super().__init__()
        self.writes, self._fails, self._lost = 0, fails, lost

    def write(self, key: str, data: bytes, *, replaces: str | None) -> str:
        self.writes += 1
        if self.writes in self._fails:
            if self._lost:
                super().write(key, data, replaces=replaces)
            raise IndexUnavailable("down")
        assert replaces is None
        return super().write(key, data, replaces=replaces)


def made(store: InMemoryStore, at: datetime = NOON, action: Action = "limits_set", **details: object) -> None:
    with record(store, action, actor=WHO, subject="user/5f0c", details=details, now=lambda: at) as change:
        change.note(before=5)


def test_a_change_leaves_what_was_begun_and_how_it_ended() -> None:
    store = InMemoryStore()
    with record(store, "limits_set", actor=WHO, subject="user/5f0c", details={"usdDay": 2}, now=lambda: NOON) as change:
        (begun,) = store.keys(AUDIT_PREFIX)
        change.note(before=5)
    assert begun == f"audit/2026/11/25/20261125T120000.000000Z-{change.id}.json"
    assert json.loads(store.objects[begun]) == {
        "format": 1,
        "at": "2026-11-25T12:00:00.000Z",
        "action": "limits_set",
        "actor": WHO,
        "subject": "user/5f0c",
        "details": {"usdDay": 2},
    }
    (one,) = list_records(store, now=NOON)
    assert (one.action, one.actor, one.subject, one.outcome, one.fault) == (
        "limits_set",
        WHO,
        "user/5f0c",
        "done",
        None,
    )
    assert one.details == {"usdDay": 2, "before": 5}
    assert one.at == one.ended_at == NOON


@pytest.mark.parametrize("lost", [False, True])
def test_a_change_that_cannot_be_recorded_is_not_made(lost: bool) -> None:
    store, ran = Failing(1, lost=lost), []
    with pytest.raises(AuditUnavailable):
        with record(store, "user_removed", actor=WHO):
            ran.append(1)
    assert not ran
    assert [one.outcome for one in list_records(store)] == (["unknown"] if lost else [])


def test_a_change_whose_outcome_cannot_be_recorded_is_listed_as_unknown(caplog: pytest.LogCaptureFixture) -> None:
    store = Failing(2)
    made(store)
    assert [one.outcome for one in list_records(store, now=NOON)] == ["unknown"]
    assert "outcome" in caplog.text


@pytest.mark.parametrize("error", [PublishConflict("secret words"), KeyError("secret words"), KeyboardInterrupt()])
def test_a_change_that_failed_says_so_without_the_errors_words(error: BaseException) -> None:
    store = InMemoryStore()
    with pytest.raises(type(error)), record(store, "version_published", actor=WHO):
        raise error
    (one,) = list_records(store)
    assert one.outcome == "failed"
    assert one.fault == getattr(error, "code", type(error).__name__)
    assert not any(b"secret" in data for data in store.objects.values())


def test_details_and_names_are_bounded() -> None:
    store = InMemoryStore()
    made(store, sources=["é" * 100] * 1_000)
    with record(store, "user_added", actor="a" * 10_000, subject="s" * 10_000):
        pass
    assert max(map(len, store.objects.values())) < MAX_DETAILS_BYTES + 2_000
    assert [one.outcome for one in list_records(store)] == ["done", "done"]


def test_records_are_listed_newest_first_since_a_time() -> None:
    store = InMemoryStore()
    ages = [timedelta(0), timedelta(seconds=1), timedelta(days=1), timedelta(days=40), timedelta(days=400)]
    for age in reversed(ages):
        made(store, NOON - age)
    made(store, NOON + timedelta(hours=20))  # by a clock that is ahead
    for days, count in ((0.5, 3), (1, 4), (39, 4), (41, 5), (401, 6)):
        found = [one.at for one in list_records(store, since=NOON - timedelta(days=days), now=NOON)]
        assert found == sorted(found, reverse=True)
        assert len(found) == count
    assert len(list(list_records(store))) == 6


@pytest.mark.parametrize("body", [b"", b"[]", b'{"format":2}', b'{"format":1,"action":"x","actor":"y"}', b"\xff"])
def test_an_object_that_is_no_record_is_listed_as_unreadable(body: bytes) -> None:
    store = InMemoryStore()
    made(store)
    store.objects[store.keys(AUDIT_PREFIX)[0].replace("-outcome", "")] = body
    store.objects["audit/notes.txt"] = b"no record"
    assert [one.action for one in list_records(store, now=NOON)] == ["unreadable"]


def test_the_set_of_actions_is_closed() -> None:
    assert "limits_set" in ACTIONS
    assert len(ACTIONS) == len(set(ACTIONS))
    assert all(name == name.lower() for name in ACTIONS)


def deployed(
    kind: Literal["Create", "Update", "Delete"], before: dict[str, str], after: dict[str, str]
) -> ResourceRequest:
    return ResourceRequest(kind, SETTINGS, {"Settings": after}, {"Settings": before} if kind == "Update" else {})


def test_a_deployment_records_which_settings_changed() -> None:
    store = InMemoryStore()
    recorder = SettingsRecorder(store, WHO)
    recorder.handle(deployed("Create", {}, {"limits": "aaaaaa", "auth": "bbbbbb"}))
    old, new = {"limits": "aaaaaa", "auth": "bbbbbb", "gone": "1"}, {"limits": "cccccc", "auth": "bbbbbb", "new": "2"}
    recorder.handle(deployed("Update", old, new))
    recorder.handle(deployed("Delete", {}, {"limits": "aaaaaa"}))
    updated, created = list_records(store)
    assert created.details == {"deployed": {"limits": "aaaaaa", "auth": "bbbbbb"}}
    assert updated.details == {
        "changed": {
            "limits": {"before": "aaaaaa", "after": "cccccc"},
            "gone": {"before": "1", "after": None},
            "new": {"before": None, "after": "2"},
        }
    }
    assert {(one.action, one.outcome) for one in (updated, created)} == {("settings_changed", "done")}


def test_a_deployment_waits_for_its_right_to_record_and_fails_without() -> None:
    pauses: list[float] = []
    store = Failing(1, 2)
    SettingsRecorder(store, WHO, sleep=pauses.append).handle(deployed("Create", {}, {}))
    assert len(pauses) == 2
    assert [one.action for one in list_records(store)] == ["settings_changed"]
    with pytest.raises(AuditUnavailable):
        SettingsRecorder(Failing(*range(1, 7)), WHO, sleep=pauses.append).handle(deployed("Create", {}, {}))
    assert sum(pauses[2:]) == (ACCESS_ATTEMPTS - 1) * ACCESS_PAUSE_S


def test_a_function_is_named_with_whom_it_acts_for(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("AWS_LAMBDA_FUNCTION_NAME", "CicadaIngest-Commit")
    assert function_actor() == "function:CicadaIngest-Commit"
    assert function_actor("123456789012") == "function:CicadaIngest-Commit for 123456789012"

"""The rules of access beside the index: written by compare-and-swap, read anew for every attempt."""

from __future__ import annotations

import json
import re
import unicodedata
from pathlib import Path

import pytest
import yaml
from pydantic import ValidationError

from cicada.corpus.declared.parsing import read_declaration
from cicada.errors import IndexCorrupt, IndexUnavailable
from cicada.index.access_rules import ACCESS_KEY, StoredAccessRules, change_readers, declare_readers
from cicada.index.ports import PreconditionFailed
from cicada.ingest.incoming.places import is_collection
from cicada.rights import AccessRules, ConfiguredAccess
from tests.support.declared import declared_yaml
from tests.support.object_stores import InMemoryStore, WatchedStore


def test_without_rules_everybody_reads_everything():
    assert StoredAccessRules(InMemoryStore()).rules() == AccessRules()


def test_a_rule_is_seen_by_the_next_read_and_so_is_its_removal():
    store = InMemoryStore()
    access = StoredAccessRules(store)
    declare_readers(store, "notes", ("gm",))
    assert access.rules().readers == {"notes": ("gm",)}
    assert access.rules() == access.rules()
    declare_readers(store, "sheets", ())
    assert access.rules().readers == {"notes": ("gm",), "sheets": ()}
    declare_readers(store, "notes", None)
    assert access.rules().readers == {"sheets": ()}
    store.delete(ACCESS_KEY)
    assert access.rules() == AccessRules()


def throttled():
    error = IndexUnavailable("503 SlowDown")
    error.throttled = True
    return error


class Throttling(InMemoryStore):
    refuses = False  # reads of what may have changed are reads

    def __init__(self):
        super().__init__()
        self.asked = 0

    def read(self, key):
        self.asked += 1
        if self.refuses:
            raise throttled()
        return super().read(key)


@pytest.mark.parametrize("rules", [True, False])
def test_while_the_store_refuses_for_the_rate_of_reads_rules_of_half_a_minute_are_used(rules):
    store, now = Throttling(), [1000.0]
    if rules:
        declare_readers(store, "notes", ("gm",))
    expected = {"notes": ("gm",)} if rules else {}
    access = StoredAccessRules(store, clock=lambda: now[0], between=lambda least, most: (least + most) / 2)
    assert access.rules().readers == expected
    store.refuses, store.asked = True, 0
    for now[0] in (1001.0, 1002.0, 1003.9, 1004.0, 1029.0):
        assert access.rules().readers == expected
    assert store.asked == 3  # two of them came within three seconds of a refusal
    now[0] = 1032.0
    with pytest.raises(IndexUnavailable):
        access.rules()
    store.refuses, store.asked = False, 0
    for now[0] in (1040.0, 1050.0, 1061.0, 1062.0):  # for a while it reads less often
        assert access.rules().readers == expected
    assert store.asked == 2
    for now[0] in (1400.0, 1401.0, 1402.0):
        access.rules()
    assert store.asked == 5


def test_rules_that_cannot_be_read_for_another_reason_are_not_used_again():
    store = WatchedStore(InMemoryStore())
    access = StoredAccessRules(store)
    access.rules()
    store.before[2] = IndexUnavailable("no answer")
    with pytest.raises(IndexUnavailable):
        access.rules()


def test_settings_win_over_declarations():
    store = InMemoryStore()
    declare_readers(store, "notes", ("gm",))
    declare_readers(store, "sheets", ("gm",))
    configured = ConfiguredAccess(default="nobody", collections={"notes": ("players",), "script": ("all",)})
    rules = StoredAccessRules(store, configured).rules()
    assert rules == AccessRules("nobody", {"notes": ("players",), "sheets": ("gm",), "script": ("all",)})


def test_a_rule_that_stays_is_not_written():
    store = InMemoryStore()
    declare_readers(store, "notes", None)
    assert list(store.entries("")) == []
    declare_readers(store, "notes", ("gm",))
    before = store.read(ACCESS_KEY).etag
    declare_readers(store, "notes", ("gm",))
    assert store.read(ACCESS_KEY).etag == before


class Contended(InMemoryStore):
    """Another writer comes first, some times; or every response to a write is lost."""

    def __init__(self, times: int, *, own: bool = False) -> None:
        super().__init__()
        self.times, self.own = times, own

    def write(self, key, data, *, replaces):
        if self.times > 0:
            self.times -= 1
            if self.own:
                super().write(key, data, replaces=replaces)
            else:
                other = {"formatVersion": 1, "readers": {f"other{self.times}": ["them"]}}
                super().write(key, json.dumps(other).encode(), replaces=replaces)
            raise PreconditionFailed(key)
        return super().write(key, data, replaces=replaces)


@pytest.mark.parametrize("own", [False, True])
def test_a_change_lands_once_beside_others_changes(own):
    store = Contended(1, own=own)
    change_readers(store, "notes", lambda _: ("gm",))
    readers = StoredAccessRules(store).rules().readers
    assert readers["notes"] == ("gm",)
    assert set(readers) == ({"notes"} if own else {"notes", "other0"})


def test_a_change_that_others_never_let_through_fails():
    with pytest.raises(IndexUnavailable):
        declare_readers(Contended(99), "notes", ("gm",))


@pytest.mark.parametrize(
    "data",
    [b"", b"{", b'{"readers": {"notes": "gm"}}', b'{"formatVersion": 2}', b'{"readers": {"no tes": ["gm"]}}'],
)
def test_damaged_rules_let_nobody_search(data):
    store = InMemoryStore()
    store.write(ACCESS_KEY, data, replaces=None)
    with pytest.raises(IndexCorrupt):
        StoredAccessRules(store).rules()
    with pytest.raises(IndexCorrupt):
        declare_readers(store, "notes", None)


def test_rules_that_were_readable_before_do_not_outlive_a_damage():
    store = InMemoryStore()
    declare_readers(store, "notes", ("gm",))
    access = StoredAccessRules(store)
    access.rules()
    store.write(ACCESS_KEY, b"?", replaces=store.read(ACCESS_KEY).etag)
    with pytest.raises(IndexCorrupt):
        access.rules()


def test_the_documents_examples_are_what_is_read():
    page = (Path(__file__).resolve().parents[2] / "docs" / "access.md").read_text("utf-8")
    (declared,) = re.findall(r"```yaml\n(.*?)```", page, re.DOTALL)
    rest = {key: value for key, value in json.loads(declared_yaml()).items() if key != "collection"}
    told = read_declaration(f"{declared}{yaml.safe_dump(rest)}".encode())
    assert (told.collection, told.readers) == ("session_notes", ("gms", "scribes"))
    (settings,) = re.findall(r'```json\n"access": (.*?)\n```', page, re.DOTALL)
    configured = ConfiguredAccess.model_validate_json(settings)
    assert configured.collections == {"rulebook": ("users",), "session_notes": ("gms",)}
    (stored,) = re.findall(r'`(\{"formatVersion".*?\})`', page)
    store = InMemoryStore()
    store.write(ACCESS_KEY, stored.encode(), replaces=None)
    assert StoredAccessRules(store, configured).rules().readers["session_notes"] == ("gms",)


@pytest.mark.parametrize("name", [unicodedata.normalize("NFD", "café"), "a\u200db", "notes\n", ""])
def test_a_rule_for_a_name_that_no_collection_can_have_is_refused(name):
    assert not is_collection(name)
    with pytest.raises(ValidationError):
        ConfiguredAccess(collections={name: ("gm",)})

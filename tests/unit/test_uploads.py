"""Uploads by users: names, rights, limits, forms, and the state of each document."""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from cicada.answering.reply_pages import PAGE_BYTES
from cicada.answering.upload_api import UploadApi
from cicada.audit.listing import list_records
from cicada.errors import (
    AuditUnavailable,
    CicadaError,
    FolderFull,
    IndexUnavailable,
    UploadForbidden,
    UploadInvalid,
    UploadTooLarge,
    UploadUnknown,
)
from cicada.identity import Caller
from cicada.ingest.contracts import IngestReport, Quarantined, SourceItem
from cicada.ingest.incoming.listed import Upload
from cicada.ingest.incoming.places import collection_and_source, folder, mirror_key, round_key, run_key, turn_key
from cicada.ingest.incoming.run_records import (
    CollectionTurn,
    IngestPlan,
    Mirror,
    Mirrored,
    Planned,
    RunReport,
    put_record,
)
from cicada.ingest.incoming.starting import RunFound
from cicada.ingest.uploads.bucket import ReportPlace, UploadPage
from cicada.ingest.uploads.limits import UploadLimits
from cicada.ingest.uploads.names import MAX_KEY_BYTES, checked_name
from cicada.protocol.actions import parse_upload_action
from cicada.protocol.events import reply_frame
from cicada.protocol.uploads import UploadBegun, UploadDeleted, Uploads
from cicada.rights import AccessRules, Uploaders
from tests.support.access import GivenRules
from tests.support.object_stores import InMemoryStore

ID = "6f9619ff-8b86-4d01-b42d-00cf4fc964ff"
SHA256 = "2cf24dba5fb0a30e26e83b2ac5b9e29e1b161e5c1fa7425e73043362938b9824"
NOON = datetime(2026, 5, 4, 12, tzinfo=UTC)
WRITERS = Caller("jo", "connection", "frame", groups=("writers",))
RUN = "shelf-00000000-7"


class MemoryFolders:
    """:class:`cicada.ingest.uploads.bucket.UploadFolders`: objects with the time of their upload."""

    def __init__(self) -> None:
        self.uploads: dict[str, tuple[int, datetime]] = {}
        self.forms: list[dict[str, Any]] = []
        self.report: ReportPlace | None = None

    def put(self, collection: str, name: str, at: datetime = NOON, size: int = 5) -> str:
        """Upload; the stamp of the upload."""
        self.uploads[f"{folder(collection)}{name}"] = size, at
        return f"{size} {at.isoformat()}"

    def form(self, key: str, *, size: int, sha256: str, lifetime_s: int) -> dict[str, str]:
        self.forms.append({"key": key, "size": size, "sha256": sha256, "lifetime_s": lifetime_s})
        return {"key": key, "policy": "signed"}

    def page(self, collection: str, after: str, at_most: int) -> UploadPage:
        names = sorted(self._names(collection))
        coming = [name for name in names if name > after]
        found = []
        for name in coming[:at_most]:
            size, at = self.uploads[f"{folder(collection)}{name}"]
            stamp = f"{size} {at.isoformat()}"
            found.append((Upload(name, f"{folder(collection)}{name}", str(size), size, stamp), at))
        return UploadPage(tuple(found), coming[at_most - 1] if len(coming) > at_most else None)

    def holds(self, collection: str, name: str) -> bool:
        return f"{folder(collection)}{name}" in self.uploads

    def count(self, collection: str, at_most: int) -> int:
        return min(len(self._names(collection)), at_most)

    def delete(self, key: str) -> None:
        del self.uploads[key]

    def newest_report(self, collection: str) -> ReportPlace | None:
        return self.report

    def _names(self, collection: str) -> list[str]:
        prefix = folder(collection)
        return [key.removeprefix(prefix) for key in self.uploads if key.startswith(prefix)]


class House:
    """The API over what a test puts there."""

    def __init__(self, uploaders: Uploaders | None = None, **limits: Any) -> None:
        self.now = NOON
        self.store = InMemoryStore(now=lambda: self.now)
        self.folders = MemoryFolders()
        self.access = GivenRules()
        self.runs: dict[str, RunFound] = {}
        self.api = UploadApi(
            self.folders,
            self.store,
            self.access,
            self,
            uploaders or Uploaders(collections={"shelf": ("writers",)}),
            url="https://bucket.example/",
            limits=UploadLimits(**limits),
            now_s=self.seconds,
        )

    def seconds(self) -> float:
        return self.now.timestamp()

    def find(self, run: str) -> RunFound | None:
        return self.runs.get(run)

    def begin(self, name: str = "ferry.pdf", *, caller: Caller = WRITERS, collection: str = "shelf", size: int = 5):
        return self.do(caller, operation="begin", collection=collection, name=name, bytes=size, sha256=SHA256)

    def list(self, cursor: str | None = None) -> Uploads:
        more = {} if cursor is None else {"cursor": cursor}
        reply = self.do(WRITERS, operation="list", collection="shelf", **more)
        assert isinstance(reply, Uploads)
        return reply

    def delete(self, name: str):
        return self.do(operation="delete", collection="shelf", name=name)

    def do(self, caller: Caller = WRITERS, **action: Any):
        return self.api.handle(parse_upload_action(json.dumps({"action": "upload", "requestId": ID, **action})), caller)

    def states(self) -> dict[str, tuple[Any, ...]]:
        return {one.name: (one.state, one.code, one.passages) for one in self.list().documents}

    @contextmanager
    def running(self, *planned: tuple[str, str], round: int = 1) -> Iterator[None]:
        """A run that works on documents, each with the stamp of its upload."""
        put_record(self.store, turn_key("shelf"), CollectionTurn(run=RUN))
        self.runs[RUN] = RunFound(running=True, started_at=NOON)
        documents = tuple(
            Planned(item=SourceItem(collection="shelf", source=source, key=source, size=1), stamp=stamp)
            for source, stamp in planned
        )
        plan = IngestPlan(
            collection="shelf", run=RUN, round=round, recipe_digest="", documents=documents, gone=(), held=0
        )
        put_record(self.store, run_key("shelf", RUN, "plan"), plan)
        yield

    def reported(self, *failed: Quarantined, at: datetime, run: str = RUN, round: int = 1) -> None:
        report = RunReport(
            run=run,
            ended_at=at.isoformat(timespec="seconds"),
            report=IngestReport(collection="shelf", documents=1, loaded=0, unchanged=0),
            not_prepared=failed,
        )
        key = f"{round_key('shelf', run, round, 'report')}.json"
        put_record(self.store, key, report)
        self.folders.report = ReportPlace(run, round, key)


@pytest.fixture
def house() -> House:
    return House()


# --- names ---

SAFE = ["ferry.pdf", "boats/ferry.pdf", "Was ist das?.md", "あ/い.txt", "a b.md", "x" * 512]
UNSAFE = [
    *("../ferry.pdf", "boats/../../index/current.json", "/ferry.pdf", "boats//ferry.pdf", "ferry.pdf/", ".", ".."),
    *(".hidden", "boats/.hidden/ferry.pdf", "boats\\ferry.pdf", "${filename}", "boats/${filename}", "a\x00b", "a\nb"),
    *("a\u202eb.pdf", " ferry.pdf", "boats /ferry.pdf", "x" * 513, "あ" * 400),
    *("collection.yaml", "collection.yml", "Collection.YAML", "boats/collection.yaml"),
]


@pytest.mark.parametrize("name", SAFE)
def test_a_safe_name_is_the_documents_source(name: str) -> None:
    assert checked_name("shelf", name, declarations=False) == name


@pytest.mark.parametrize("name", UNSAFE, ids=ascii)
def test_an_unsafe_name_is_refused(name: str) -> None:
    with pytest.raises(UploadInvalid, match="name: "):
        checked_name("shelf", name, declarations=False)


@given(st.text(alphabet="a./\\${}\u0301 \x7f", max_size=12) | st.text(max_size=12))
def test_whatever_is_accepted_stays_in_the_folder_and_is_a_document(name: str) -> None:
    try:
        accepted = checked_name("shelf", name, declarations=True)
    except UploadInvalid:
        return
    key = f"{folder('shelf')}{accepted}"
    assert collection_and_source(key) == ("shelf", accepted)
    assert len(key.encode()) <= MAX_KEY_BYTES
    assert not {"..", ".", ""} & {*accepted.split("/")}
    assert "${" not in accepted


def test_letters_and_their_marks_are_joined_as_the_reader_of_folders_does() -> None:
    assert checked_name("shelf", "U\u0308ber.md", declarations=False) == "Über.md"


def test_a_declaration_is_for_those_whom_a_setting_allows_it() -> None:
    assert checked_name("shelf", "collection.yaml", declarations=True) == "collection.yaml"
    house = House()
    house.folders.put("shelf", "collection.yaml")
    with pytest.raises(UploadInvalid, match="declares the collection's access rules"):
        house.delete("collection.yaml")
    assert isinstance(House(declarations=True).begin("collection.yaml"), UploadBegun)


# --- rights ---


def test_only_members_of_the_collections_groups_may_upload(house: House) -> None:
    other = Caller("kim", "connection", "frame", groups=("readers",))
    for collection, caller in (("shelf", other), ("shelf", Caller("kim", "c", "f")), ("another", WRITERS)):
        with pytest.raises(UploadForbidden):
            house.begin(caller=caller, collection=collection)
    assert isinstance(house.begin(), UploadBegun)


def test_who_may_not_read_a_collection_may_not_upload_to_it_or_learn_what_is_there(house: House) -> None:
    house.folders.put("shelf", "ferry.pdf")
    house.access.now = AccessRules("everybody", {"shelf": ("readers",)})
    for action in (house.list, house.begin, lambda: house.delete("ferry.pdf")):
        with pytest.raises(UploadForbidden):
            action()
    house.access.now = IndexUnavailable("no answer")  # rights that cannot be read allow nothing
    with pytest.raises(IndexUnavailable):
        house.begin()
    assert house.store.keys("audit/") == []


def test_a_star_stands_for_the_collections_that_are_not_named() -> None:
    uploaders = Uploaders(collections={"*": ("writers",), "rules": ("admins",), "closed": ()})
    assert uploaders.may_upload("new", ("writers",))
    assert not uploaders.may_upload("rules", ("writers",))
    assert not uploaders.may_upload("closed", ("writers", "admins"))
    assert uploaders.may_create(("writers",)) == ("*",)
    assert uploaders.may_create(("writers", "admins")) == ("*", "rules")
    assert Uploaders().may_create(("writers",)) == ()


def test_without_sign_in_everybody_uploads() -> None:
    everybody = Uploaders(everybody=True)
    assert everybody.may_create(()) == ("*",)
    assert isinstance(House(everybody).begin(caller=Caller("anonymous", "c", "f")), UploadBegun)


# --- begin and delete ---


def test_a_form_is_for_one_key_size_and_digest_and_for_a_short_time(house: House) -> None:
    begun = house.begin("boats/ferry.pdf")
    assert house.folders.forms == [
        {"key": "incoming/shelf/boats/ferry.pdf", "size": 5, "sha256": SHA256, "lifetime_s": 300}
    ]
    assert (begun.url, begun.fields["key"]) == ("https://bucket.example/", "incoming/shelf/boats/ferry.pdf")
    assert begun.expires_at_ms == (NOON.timestamp() + 300) * 1000
    assert begun.request_id == ID


def test_what_is_too_large_or_too_much_is_refused() -> None:
    house = House(max_bytes=10, max_documents=2)
    with pytest.raises(UploadTooLarge, match="10"):
        house.begin(size=11)
    house.folders.put("shelf", "a.md")
    house.folders.put("shelf", "b.md")
    with pytest.raises(FolderFull, match="2"):
        house.begin("c.md")
    assert isinstance(house.begin("a.md"), UploadBegun)  # it takes the other one's place


@pytest.mark.parametrize("collection", ["..", "a/b", "-a", "a b", "a" * 64 + "é"])
def test_a_collection_must_have_a_collections_name(collection: str) -> None:
    with pytest.raises(CicadaError):
        House(Uploaders(everybody=True)).begin(collection=collection)


def test_uploads_and_deletions_are_recorded_with_who_asked(house: House) -> None:
    house.begin()
    house.folders.put("shelf", "ferry.pdf")
    assert isinstance(house.delete("ferry.pdf"), UploadDeleted)
    deleted, begun = list_records(house.store)
    assert (begun.action, begun.subject, begun.outcome) == ("upload_begun", "shelf", "done")
    assert begun.actor.endswith(" for user/jo")
    assert begun.details == {"name": "ferry.pdf", "bytes": 5, "sha256": SHA256}
    assert (deleted.action, deleted.details, deleted.outcome) == ("upload_deleted", {"name": "ferry.pdf"}, "done")
    assert house.folders.uploads == {}


def test_what_cannot_be_recorded_is_not_done(house: House, monkeypatch: pytest.MonkeyPatch) -> None:
    house.folders.put("shelf", "ferry.pdf")

    def refuse(*_: Any, **__: Any) -> str:
        raise IndexUnavailable("no answer")

    monkeypatch.setattr(house.store, "write", refuse)
    for action in (house.begin, lambda: house.delete("ferry.pdf")):
        with pytest.raises(AuditUnavailable):
            action()
    assert house.folders.forms == []
    assert house.folders.holds("shelf", "ferry.pdf")


@pytest.mark.parametrize("name", ["other.pdf", "../shelf/ferry.pdf", "ferry", "."])
def test_only_a_document_of_the_folder_can_be_deleted(house: House, name: str) -> None:
    house.folders.put("shelf", "ferry.pdf")
    with pytest.raises(UploadUnknown):
        house.delete(name)
    assert house.folders.holds("shelf", "ferry.pdf")


def test_a_document_with_marks_apart_can_be_deleted_as_it_is_listed(house: House) -> None:
    house.folders.put("shelf", "U\u0308ber.md")
    assert house.delete("U\u0308ber.md").name == "U\u0308ber.md"


# --- list ---

BROKEN = Quarantined(source="ferry.pdf", code="document_broken", message="the file breaks off")
BUSY = Quarantined(source="ferry.pdf", code="model_busy", message="The model is busy.")


def mirror(house: House, *, at: datetime = NOON, **documents: Mirrored) -> None:
    house.now = at
    sources = {name.replace("_", "."): known for name, known in documents.items()}
    put_record(house.store, mirror_key("shelf"), Mirror(documents=sources))


def test_an_upload_waits_is_prepared_and_loaded(house: House) -> None:
    stamp = house.folders.put("shelf", "ferry.pdf")
    assert house.states() == {"ferry.pdf": ("waiting", None, None)}
    assert house.list().run is None
    with house.running(("ferry.pdf", stamp)):
        assert house.states() == {"ferry.pdf": ("preparing", None, None)}
        run = house.list().run
        assert run is not None
        assert (run.state, run.started_at_ms) == ("running", NOON.timestamp() * 1000)
        mirror(house, ferry_pdf=Mirrored(stamp=stamp, loaded=True, passages=3))
        assert house.states() == {"ferry.pdf": ("loaded", None, 3)}


def test_a_document_that_cannot_be_read_is_set_aside_with_the_reason(house: House) -> None:
    stamp = house.folders.put("shelf", "ferry.pdf")
    mirror(house, ferry_pdf=Mirrored(stamp=stamp, refused=BROKEN))
    (shown,) = house.list().documents
    assert (shown.state, shown.code, shown.reason) == ("set_aside", "document_broken", "the file breaks off")


def test_an_earlier_version_stays_while_its_successor_is_on_the_way(house: House) -> None:
    before = house.folders.put("shelf", "ferry.pdf")
    mirror(house, ferry_pdf=Mirrored(stamp=before, loaded=True, passages=3))
    after = house.folders.put("shelf", "ferry.pdf", at=NOON + timedelta(seconds=9), size=6)
    assert house.states() == {"ferry.pdf": ("waiting", None, 3)}
    with house.running(("ferry.pdf", after)):
        assert house.states() == {"ferry.pdf": ("preparing", None, 3)}
    mirror_after = Mirrored(stamp=after, loaded=True, passages=3, refused=BROKEN)
    house.store.delete(mirror_key("shelf"))
    mirror(house, ferry_pdf=mirror_after)
    assert house.states() == {"ferry.pdf": ("set_aside", "document_broken", 3)}


def test_a_failure_that_may_pass_is_told_until_the_next_upload(house: House) -> None:
    stamp = house.folders.put("shelf", "ferry.pdf")
    with house.running(("ferry.pdf", stamp)):
        house.reported(BUSY, at=NOON + timedelta(minutes=1))
        # The round has ended; the run waits before it looks again.
        assert house.states() == {"ferry.pdf": ("not_prepared", "model_busy", None)}
    with house.running(("ferry.pdf", stamp), round=2):
        assert house.states() == {"ferry.pdf": ("preparing", None, None)}
    house.runs.clear()
    house.folders.put("shelf", "ferry.pdf", at=NOON + timedelta(minutes=2))
    assert house.states() == {"ferry.pdf": ("waiting", None, None)}


def test_a_document_that_the_next_run_tries_again_keeps_its_state(house: House) -> None:
    """Its stamp is blank: what it clashes with may go, or a model has left something out."""
    house.folders.put("shelf", "ferry.pdf")
    house.folders.put("shelf", "half.pdf")
    clash = Quarantined(source="ferry.pdf", code="document_invalid", message="in the way")
    mirror(
        house,
        at=NOON + timedelta(minutes=1),
        ferry_pdf=Mirrored(stamp="", refused=clash),
        half_pdf=Mirrored(stamp="", loaded=True, passages=2),
    )
    assert house.states() == {"ferry.pdf": ("set_aside", "document_invalid", None), "half.pdf": ("loaded", None, 2)}
    house.folders.put("shelf", "ferry.pdf", at=NOON + timedelta(minutes=2))
    assert house.states()["ferry.pdf"] == ("waiting", None, None)


def test_a_run_that_was_stopped_is_told(house: House) -> None:
    stamp = house.folders.put("shelf", "ferry.pdf")
    with house.running(("ferry.pdf", stamp)):
        house.runs[RUN] = RunFound(running=False, started_at=NOON)
        run = house.list().run
        assert run is not None
        assert run.state == "stopped"
        assert house.states() == {"ferry.pdf": ("waiting", None, None)}


def test_a_long_list_has_pages_that_fit_a_frame(house: House) -> None:
    names = [f"{number:03}-{'あ' * 100}.md" for number in range(250)]
    for name in names:
        house.folders.put("shelf", name)
    listed: list[str] = []
    cursor = None
    while True:
        page = house.list(cursor)
        assert len(reply_frame(page).encode()) < PAGE_BYTES + 4096
        listed += [one.name for one in page.documents]
        if page.next is None:
            break
        cursor = page.next
    assert listed == names

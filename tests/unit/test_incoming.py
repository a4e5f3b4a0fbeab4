"""Uploads below ``incoming/``: which keys are documents, what a run plans and commits, and what it remembers."""

from __future__ import annotations

import json
from datetime import UTC, datetime

import pytest

from cicada.corpus.chunking.options import ChunkOptions
from cicada.errors import DocumentBroken, IndexCorrupt, ModelBusy, OutOfTime, WorkflowUnavailable
from cicada.index.ports import PreconditionFailed
from cicada.ingest.contracts import IngestReport, Prepared, Quarantined, Recipe
from cicada.ingest.incoming.batches import TIME_MARGIN_S, prepare
from cicada.ingest.incoming.bucket import UploadChanged, UploadUnreadable
from cicada.ingest.incoming.finishing import COMMIT_MARGIN_S, finish, read_report, reports
from cicada.ingest.incoming.listed import Upload
from cicada.ingest.incoming.places import collection_and_source, execution_name, is_ignored, mirror_key
from cicada.ingest.incoming.planning import plan
from cicada.ingest.incoming.run_records import Batch, read_mirror
from cicada.ingest.incoming.starting import IngestStarter
from cicada.ingest.incoming.turns import MAX_ROUNDS, ROUND_WAIT_S
from tests.support.object_stores import InMemoryStore

RECIPE = Recipe(embedding_model_id="m", dimensions=4)


class Folder:
    """The uploads of one collection; what a document holds decides what becomes of it."""

    def __init__(self, **contents: str) -> None:
        self.contents = contents
        self.times: dict[str, int] = {}
        self.downloads: list[str] = []
        self.strays: list[str] = []

    def put(self, source: str, content: str) -> None:
        self.contents[source] = content
        self.times[source] = self.times.get(source, 0) + 1

    def uploads(self, collection):
        for source, content in sorted(self.contents.items()):
            stamp = f"{content} {self.times.get(source, 0)}"
            yield Upload(source, f"incoming/{collection}/{source}", content, len(content), stamp)

    def ignored(self, collection):
        yield from self.strays

    def download(self, item, path):
        self.downloads.append(item.source)
        if self.contents.get(item.source) != item.etag:
            raise UploadChanged(item.key)
        if item.etag == "archived":
            raise UploadUnreadable("S3 does not give it: InvalidObjectState")
        path.write_text(self.contents[item.source])
        return item


def prepare_one(item, path):
    content = path.read_text()
    if content == "broken":
        raise DocumentBroken("the file breaks off")
    if content == "busy":
        raise ModelBusy("throttled")
    return Prepared(
        source=item.source,
        key=f"prepared/{content}",
        digest=content,
        passages=1,
        embedded=1,
        reused=False,
        complete=content != "half enriched",
    )


class Index:
    """What commits have published: documents by source. ``clashes`` are in another's way."""

    def __init__(self) -> None:
        self.held: dict[str, str] = {}
        self.commits: list[list[str]] = []
        self.declares: list[object] = []
        self.clashes: dict[str, str] = {}

    def commit(self, collection, prepared, gone, declares):
        self.commits.append([one.source for one in prepared])
        self.declares.append(declares)
        before = dict(self.held)
        removed = tuple(source for source in gone if self.held.pop(source, None))
        aside = [one.source for one in prepared if self.clashes.get(one.source) in self.held]
        self.held |= {one.source: one.digest for one in prepared if one.source not in aside}
        return IngestReport(
            collection=collection,
            documents=len(prepared),
            loaded=len(prepared) - len(aside),
            unchanged=sum(before.get(one.source) == one.digest for one in prepared),
            quarantined=tuple(Quarantined(source=one, code="document_invalid", message="in the way") for one in aside),
            removed=removed,
            passages=len(self.held),
            version=f"v{len(self.commits)}",
            published=True,
        )


class World:
    def __init__(self, **contents: str) -> None:
        self.store = InMemoryStore()
        self.folder = Folder(**contents)
        self.index = Index()
        self.recipe = RECIPE
        self.passages: dict[str, int] = {}
        """How many the index holds of a document, where it is not its one."""
        self.running: set[str] = set()
        """The executions that have not ended."""

    def plan(self, run, **bounds):
        self.running.add(run)
        return plan(
            self.folder,
            self.store,
            "shelf",
            run,
            self.recipe,
            held=lambda _collection: dict.fromkeys(self.index.held, 1) | self.passages,
            is_running=self.running.__contains__,
            **bounds,
        )

    def batches(self, summary):
        return [Batch.model_validate(found) for found in json.loads(self.store.read(summary.batches_key).data)]

    def prepare(self, summary, *, remaining_s=lambda: 900.0):
        for batch in self.batches(summary):
            self.prepare_batch(batch, remaining_s=remaining_s)

    def prepare_batch(self, batch, *, remaining_s=lambda: 900.0):
        return prepare(batch, self.folder, self.store, prepare_one, remaining_s=remaining_s)

    def finish(self, run, *, remaining_s=lambda: 900.0, **bounds):
        done = finish(
            "shelf",
            run,
            self.folder,
            self.store,
            self.index.commit,
            remaining_s=remaining_s,
            now=lambda: datetime(2026, 1, 1, tzinfo=UTC),
            **bounds,
        )
        if not (done.more or done.again):
            self.running.discard(run)
        return done

    def run(self, run):
        summary = self.plan(run)
        self.prepare(summary)
        return self.finish(run)

    def report(self):
        return read_report(self.store, list(reports(self.store, "shelf"))[-1])


@pytest.mark.parametrize(
    ("key", "place"),
    [
        ("incoming/shelf/a.pdf", ("shelf", "a.pdf")),
        ("incoming/shelf/boats/a b.pdf", ("shelf", "boats/a b.pdf")),
        ("incoming/shelf/", None),
        ("incoming/shelf/boats/", None),
        ("incoming/stray.pdf", None),
        ("incoming/not a name/a.pdf", None),
        ("incoming/shelf/.DS_Store", None),
        ("incoming/shelf/.git/config", None),
        ("incoming/shelf/../other/a.pdf", None),
        (f"incoming/shelf/{'x' * 513}", None),
        ("index/shelf/a.pdf", None),
    ],
)
def test_a_document_is_known_by_its_key(key, place):
    assert collection_and_source(key) == place


def test_a_first_run_loads_everything_and_the_next_finds_nothing_to_do():
    world = World(a="one", b="two")
    done = world.run("r1")
    assert (done.loaded, done.unchanged, done.passages, done.published) == (2, 0, 2, True)
    assert world.index.held == {"a": "one", "b": "two"}
    again = world.plan("r2")
    assert not again.needed
    assert (again.documents, again.gone, again.batches) == (0, 0, 0)


def test_only_what_was_uploaded_again_is_prepared_again():
    world = World(a="one", b="two")
    world.run("r1")
    world.folder.put("b", "three")
    world.folder.put("c", "four")
    world.folder.downloads.clear()
    done = world.run("r2")
    assert world.folder.downloads == ["b", "c"]
    assert world.index.held == {"a": "one", "b": "three", "c": "four"}
    assert (done.loaded, done.unchanged) == (3, 1)


def test_an_upload_of_the_same_bytes_is_looked_at_for_its_metadata_may_differ():
    world = World(a="one")
    world.run("r1")
    world.folder.put("a", "one")
    assert world.plan("r2").documents == 1


def test_what_is_deleted_from_the_folder_is_deleted_from_the_collection():
    world = World(a="one", b="two")
    world.run("r1")
    del world.folder.contents["a"]
    summary = world.plan("r2")
    assert (summary.needed, summary.batches, summary.gone) == (True, 0, 1)
    done = world.finish("r2")
    assert done.removed == 1
    assert world.index.held == {"b": "two"}
    assert not world.plan("r3").needed


def test_a_poison_document_is_set_aside_with_its_reason_and_the_rest_is_loaded():
    world = World(a="one", b="broken", c="three")
    done = world.run("r1")
    assert world.index.held == {"a": "one", "c": "three"}
    assert done.quarantined == 1
    assert world.report().report.quarantined == (
        Quarantined(source="b", code="document_broken", message="the file breaks off"),
    )
    assert not world.plan("r2").needed  # until it is uploaded again


def test_a_document_whose_new_upload_is_refused_stays_as_it_was_until_it_is_deleted():
    world = World(a="one")
    world.run("r1")
    world.folder.put("a", "broken")
    world.run("r2")
    assert world.index.held == {"a": "one"}
    del world.folder.contents["a"]
    world.run("r3")
    assert world.index.held == {}


def test_what_could_not_be_prepared_for_no_fault_of_its_own_is_named_and_tried_again_by_the_same_run():
    world = World(a="one", b="busy")
    for number in range(1, MAX_ROUNDS + 1):
        summary = world.plan("r1")
        assert summary.documents == (2 if number == 1 else 1)
        with pytest.raises(ModelBusy):
            world.prepare(summary)
        done = world.finish("r1")
        assert (done.not_prepared, done.again, done.wait_s) == (1, True, ROUND_WAIT_S)
        assert [(one.source, one.code) for one in world.report().not_prepared] == [("b", "model_busy")]
    world.folder.contents["b"] = "two"
    world.prepare(world.plan("r1"))
    assert not world.finish("r1").again
    assert world.index.held == {"a": "one", "b": "two"}


def test_a_run_does_not_look_again_for_ever():
    world = World(a="archived")
    for _ in range(MAX_ROUNDS):
        assert world.run("r1").again
    assert not world.run("r1").again
    assert [(one.source, one.code) for one in world.report().not_prepared] == [("a", "upload_unreadable")]
    assert world.plan("r2").needed  # the next run tries again


def test_a_document_whose_worker_was_killed_is_named_with_that_reason():
    world = World(a="one")
    world.plan("r1")
    world.finish("r1")
    assert [one.code for one in world.report().not_prepared] == ["worker_lost"]


def test_a_batch_whose_time_runs_out_is_given_back_and_goes_on_where_it_stopped():
    world = World(a="one", b="broken", c="three")
    (batch,) = world.batches(world.plan("r1"))
    left = iter([900.0, 900.0, TIME_MARGIN_S - 1, 900.0])
    with pytest.raises(OutOfTime):
        world.prepare_batch(batch, remaining_s=lambda: next(left))
    assert world.folder.downloads == ["a", "b"]
    counts = world.prepare_batch(batch, remaining_s=lambda: next(left))
    assert world.folder.downloads == ["a", "b", "c"]
    assert counts == {"prepared": 2, "refused": 1, "failed": 0, "superseded": 0}


def test_a_batch_that_is_repeated_does_nothing_again():
    world = World(a="one")
    summary = world.plan("r1")
    world.prepare(summary)
    world.prepare(summary)
    assert world.folder.downloads == ["a"]
    assert world.finish("r1").loaded == 1


def test_what_is_uploaded_while_a_run_is_under_way_is_met_when_it_looks_again():
    world = World(a="one", b="two", c="three")
    summary = world.plan("r1")
    world.folder.put("a", "changed before it was read")
    world.prepare(summary)
    world.folder.put("b", "changed after it was read")
    assert world.plan("r2").deferred  # the run that the uploads have started
    done = world.finish("r1")
    assert world.index.held == {"c": "three"}
    assert world.report().superseded == ("a", "b")
    assert (done.again, done.wait_s) == (True, 0)
    again = world.run("r1")
    assert not again.again
    assert world.index.held == {"a": "changed before it was read", "b": "changed after it was read", "c": "three"}


def test_one_run_of_a_collection_is_at_work_at_a_time():
    world = World(a="one")
    assert world.plan("r1").needed
    second = world.plan("r2")
    assert (second.needed, second.deferred) == (False, True)


def test_a_run_that_was_stopped_has_lost_its_turn():
    world = World(a="one")
    world.plan("r1")
    world.running.discard("r1")
    done = world.run("r2")
    assert (done.loaded, done.again) == (1, False)


def test_a_run_whose_turn_was_taken_ends_without_touching_the_others():
    world = World(a="one")
    world.prepare(world.plan("r1"))
    world.running.discard("r1")  # it only seemed to have ended
    world.plan("r2")
    assert not world.finish("r1").again
    assert world.plan("r3").deferred


def test_an_upload_that_comes_while_a_run_finds_nothing_to_do_is_not_missed(monkeypatch):
    world = World(a="one")
    world.run("r1")
    listed = world.folder.uploads

    def uploads(collection):
        found = list(listed(collection))
        if "b" not in world.folder.contents:  # between its listing and its end
            world.folder.put("b", "two")
            assert world.plan("r3").deferred
        return iter(found)

    monkeypatch.setattr(world.folder, "uploads", uploads)
    assert world.plan("r2").documents == 1


def test_a_document_that_the_index_has_lost_is_loaded_again():
    """Another load into the collection, or a rollback."""
    world = World(a="one", b="two")
    world.run("r1")
    del world.index.held["a"]
    summary = world.plan("r2")
    assert summary.documents == 1
    world.prepare(summary)
    world.finish("r2")
    assert world.index.held == {"a": "one", "b": "two"}


def test_a_document_of_which_the_index_has_lost_a_passage_is_loaded_again():
    world = World(a="one", b="two")
    world.run("r1")
    assert world.plan("r2").documents == 0
    world.passages = {"a": 2}  # it was prepared as one
    assert world.plan("r3").documents == 1


def test_an_upload_that_was_never_loaded_takes_nothing_with_it_when_it_is_deleted():
    world = World(a="broken")
    world.index.held["a"] = "loaded by other means"
    world.run("r1")
    del world.folder.contents["a"]
    world.run("r2")
    assert world.index.held == {"a": "loaded by other means"}
    assert not world.plan("r3").needed


def test_a_document_in_anothers_way_is_loaded_when_that_one_goes():
    world = World(old="same words")
    world.run("r1")
    world.folder.put("new", "same words")
    world.index.clashes["new"] = "old"
    assert world.run("r2").quarantined == 1
    del world.folder.contents["old"]
    world.run("r3")
    assert world.index.held == {"new": "same words"}


def test_what_a_model_left_out_is_tried_again_by_the_next_run():
    world = World(a="half enriched")
    world.run("r1")
    assert world.index.held == {"a": "half enriched"}
    assert world.plan("r2").documents == 1


def test_many_documents_are_committed_slice_by_slice_as_the_time_allows():
    world = World(**{f"d{number}": f"text {number}" for number in range(7)})
    world.prepare(world.plan("r1"))
    left = iter([COMMIT_MARGIN_S + 1, COMMIT_MARGIN_S - 1])
    first = world.finish("r1", remaining_s=lambda: next(left), slice_documents=2)
    assert (first.more, len(world.index.held)) == (True, 4)
    second = world.finish("r1", slice_documents=2)
    assert (second.more, second.loaded, second.passages) == (False, 7, 7)
    assert world.index.commits == [["d0", "d1"], ["d2", "d3"], ["d4", "d5"], ["d6"]]
    assert not world.plan("r2").needed


def test_a_slice_is_bounded_in_passages():
    world = World(a="one", b="two", c="three")
    world.prepare(world.plan("r1"))
    world.finish("r1", slice_passages=2)
    assert world.index.commits == [["a", "b"], ["c"]]


def test_keys_that_can_be_no_documents_are_named_in_the_report():
    world = World(a="one")
    world.folder.strays = ["incoming/shelf/a//b.pdf"]
    world.run("r1")
    assert world.report().ignored == ("incoming/shelf/a//b.pdf",)


@pytest.mark.parametrize(
    ("key", "ignored"),
    [
        ("incoming/shelf/a//b.pdf", True),
        ("incoming/no name/a.pdf", True),
        (f"incoming/shelf/{'x' * 513}", True),
        ("incoming/shelf/a.pdf", False),
        ("incoming/shelf/.DS_Store", False),
        ("incoming/shelf/folder/", False),
    ],
)
def test_what_is_ignored_is_told_apart_from_what_nobody_means(key, ignored):
    assert is_ignored(key) is ignored


def test_a_source_that_was_gone_when_planned_and_is_back_when_committed_stays():
    world = World(a="one", b="two")
    world.run("r1")
    del world.folder.contents["a"]
    world.plan("r2")
    world.folder.put("a", "one")
    world.finish("r2")
    assert world.index.held == {"a": "one", "b": "two"}
    assert not world.plan("r3").gone


def test_after_a_change_of_the_recipe_all_documents_are_prepared_again():
    world = World(a="one", b="two")
    world.run("r1")
    world.recipe = RECIPE.model_copy(update={"chunks": ChunkOptions(chunk_size=400)})
    assert world.plan("r2").documents == 2


def test_what_another_recipe_prepared_and_a_run_did_not_meet_is_met_by_the_next():
    world = World(a="one", b="two")
    world.run("r1")
    world.recipe = RECIPE.model_copy(update={"chunks": ChunkOptions(chunk_size=400)})
    summary = world.plan("r2", batch_documents=1)
    world.prepare_batch(world.batches(summary)[0])
    assert world.finish("r2").again
    assert world.plan("r2").documents == 1


def test_what_is_remembered_survives_another_writer(monkeypatch):
    world = World(a="one")
    world.prepare(world.plan("r1"))
    write = world.store.write
    refused = iter([True])

    def write_at_the_second_go(key, data, *, replaces):
        if key == mirror_key("shelf") and next(refused, False):
            raise PreconditionFailed(key)
        return write(key, data, replaces=replaces)

    monkeypatch.setattr(world.store, "write", write_at_the_second_go)
    world.finish("r1")
    assert read_mirror(world.store, "shelf").documents.keys() == {"a"}


def test_batches_are_bounded_in_documents_and_in_bytes():
    world = World(a="1", b="2", c="3", d="x" * 50, e="4")

    def sizes_of(summary):
        return [[planned.item.source for planned in batch.items] for batch in world.batches(summary)]

    assert sizes_of(world.plan("r", batch_documents=2)) == [["a", "b"], ["c", "d"], ["e"]]
    sizes = sizes_of(world.plan("r", batch_bytes=10))
    assert sizes == [["a", "b", "c"], ["d"], ["e"]]


def test_a_run_without_a_plan_cannot_be_finished():
    with pytest.raises(IndexCorrupt, match=r"plan\.json is missing"):
        World().finish("r1")


def test_reports_are_listed_in_the_order_of_their_runs():
    world = World(a="one")
    world.run("second-by-name")
    world.folder.put("b", "two")
    world.run("first-by-name")
    assert [read_report(world.store, key).run for key in reports(world.store, "shelf")] == [
        "second-by-name",
        "first-by-name",
    ]


class Machine:
    """Step Functions' answers to StartExecution, by the execution's name."""

    def __init__(self, *ended: str, code: str = "ExecutionAlreadyExists") -> None:
        self.started: list[dict[str, str]] = []
        self._ended = ended
        self._code = code

    def start_execution(self, **parameters):
        from botocore.exceptions import ClientError

        if parameters["name"] in self._ended:
            raise ClientError({"Error": {"Code": self._code}}, "StartExecution")
        self.started.append(parameters)


def test_all_uploads_of_a_window_have_one_execution_that_looks_after_the_last_of_them():
    machine = Machine()
    starter = IngestStarter(machine, "arn", window_s=30)
    runs = {starter.start("shelf", now_s=now) for now in (1_800_000_000, 1_800_000_029.9)}
    assert len(runs) == 1
    told = json.loads(machine.started[0]["input"])
    assert told == {"collection": "shelf", "run": runs.pop(), "startAt": "2027-01-15T08:00:30Z"}


def test_an_upload_after_an_execution_that_was_stopped_gets_the_next_windows():
    name = execution_name("shelf", 60_000_000)
    machine = Machine(name)
    run = IngestStarter(machine, "arn", window_s=30).start("shelf", now_s=1_800_000_000)
    assert run == execution_name("shelf", 60_000_001)
    assert json.loads(machine.started[0]["input"])["startAt"] == "2027-01-15T08:01:00Z"


def test_a_start_that_step_functions_refuses_fails():
    machine = Machine(execution_name("shelf", 60_000_000), code="AccessDeniedException")
    with pytest.raises(WorkflowUnavailable):
        IngestStarter(machine, "arn", window_s=30).start("shelf", now_s=1_800_000_000)


def test_executions_of_collections_in_any_alphabet_have_names_of_their_own():
    names = {execution_name(collection, 1) for collection in ("手冊", "手册", "shelf", "x" * 64)}
    assert len(names) == 4
    assert all(len(name) <= 80 and name.isascii() for name in names)

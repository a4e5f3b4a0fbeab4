"""Uploads below ``incoming/``: which keys are documents, what a run plans and commits, and what it remembers."""

from __future__ import annotations

import json
from datetime import UTC, datetime

import pytest

from cicada.corpus.chunking.options import ChunkOptions
from cicada.errors import DocumentBroken, IndexCorrupt, ModelBusy, OutOfTime, WorkflowUnavailable
from cicada.index.store import PreconditionFailed
from cicada.ingest.contracts import IngestReport, Prepared, Quarantined, Recipe
from cicada.ingest.incoming.bucket import Upload, UploadChanged
from cicada.ingest.incoming.kept import read_mirror
from cicada.ingest.incoming.places import collection_and_source, execution_name, mirror_key
from cicada.ingest.incoming.records import Batch
from cicada.ingest.incoming.starting import IngestStarter
from cicada.ingest.incoming.steps import TIME_MARGIN_S, finish, plan, prepare, read_report, reports
from tests.support.object_stores import InMemoryStore

RECIPE = Recipe(embedding_model_id="m", dimensions=4)


class Folder:
    """The uploads of one collection; what a document holds decides what becomes of it."""

    def __init__(self, **contents: str) -> None:
        self.contents = contents
        self.times: dict[str, int] = {}
        self.downloads: list[str] = []

    def put(self, source: str, content: str) -> None:
        self.contents[source] = content
        self.times[source] = self.times.get(source, 0) + 1

    def uploads(self, collection):
        for source, content in sorted(self.contents.items()):
            stamp = f"{content} {self.times.get(source, 0)}"
            yield Upload(source, f"incoming/{collection}/{source}", content, len(content), stamp)

    def download(self, item, path):
        self.downloads.append(item.source)
        if self.contents.get(item.source) != item.etag:
            raise UploadChanged(item.key)
        path.write_text(self.contents[item.source])
        return item


def prepare_one(item, path):
    content = path.read_text()
    if content == "broken":
        raise DocumentBroken("the file breaks off")
    if content == "busy":
        raise ModelBusy("throttled")
    return Prepared(source=item.source, key=f"prepared/{content}", digest=content, passages=1, embedded=1, reused=False)


class Index:
    """What a commit has published."""

    def __init__(self) -> None:
        self.held: dict[str, str] = {}
        self.commits = 0

    def commit(self, collection, prepared, gone):
        self.commits += 1
        before = dict(self.held)
        self.held |= {one.source: one.digest for one in prepared}
        removed = tuple(source for source in gone if self.held.pop(source, None))
        return IngestReport(
            collection=collection,
            documents=len(prepared),
            loaded=len(prepared),
            unchanged=sum(before.get(one.source) == one.digest for one in prepared),
            removed=removed,
            passages=len(self.held),
            version=f"v{self.commits}",
            published=True,
        )


class World:
    def __init__(self, **contents: str) -> None:
        self.store = InMemoryStore()
        self.folder = Folder(**contents)
        self.index = Index()
        self.recipe = RECIPE

    def plan(self, run, **bounds):
        return plan(self.folder, self.store, "shelf", run, self.recipe, **bounds)

    def batches(self, summary):
        return [Batch.model_validate(found) for found in json.loads(self.store.read(summary.batches_key).data)]

    def prepare(self, summary, *, remaining_s=lambda: 900.0):
        for batch in self.batches(summary):
            prepare(batch, self.folder, self.store, prepare_one, remaining_s=remaining_s)

    def finish(self, run):
        return finish(
            "shelf",
            run,
            self.folder,
            self.store,
            self.index.commit,
            now=lambda: datetime(2026, 1, 1, tzinfo=UTC),
        )

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


def test_what_could_not_be_prepared_for_no_fault_of_its_own_is_named_and_tried_again_by_the_next_run():
    world = World(a="one", b="busy")
    summary = world.plan("r1", batch_documents=1)
    first, second = world.batches(summary)
    prepare(first, world.folder, world.store, prepare_one, remaining_s=lambda: 900.0)
    with pytest.raises(ModelBusy):
        prepare(second, world.folder, world.store, prepare_one, remaining_s=lambda: 900.0)
    done = world.finish("r1")
    assert done.not_prepared == 1
    assert world.report().not_prepared == ("b",)
    world.folder.contents["b"] = "two"
    assert world.plan("r2").documents == 1


def test_a_batch_whose_time_runs_out_is_given_back():
    world = World(a="one")
    (batch,) = world.batches(world.plan("r1"))
    with pytest.raises(OutOfTime):
        prepare(batch, world.folder, world.store, prepare_one, remaining_s=lambda: TIME_MARGIN_S - 1)
    assert world.folder.downloads == []


def test_a_batch_that_is_repeated_leaves_one_outcome():
    world = World(a="one")
    summary = world.plan("r1")
    world.prepare(summary)
    world.prepare(summary)
    assert world.finish("r1").loaded == 1


def test_what_is_uploaded_while_a_run_is_under_way_is_left_to_the_run_that_was_started_for_it():
    world = World(a="one", b="two", c="three")
    summary = world.plan("r1")
    world.folder.put("a", "changed before it was read")
    world.prepare(summary)
    world.folder.put("b", "changed after it was read")
    world.finish("r1")
    assert world.index.held == {"c": "three"}
    assert world.report().superseded == ("a", "b")
    world.run("r2")
    assert world.index.held == {"a": "changed before it was read", "b": "changed after it was read", "c": "three"}


def test_a_source_that_was_gone_when_planned_and_is_back_when_committed_stays():
    world = World(a="one", b="two")
    world.run("r1")
    del world.folder.contents["a"]
    world.plan("r2")
    world.folder.put("a", "one")
    world.finish("r2")
    assert world.index.held == {"a": "one", "b": "two"}


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
    prepare(world.batches(summary)[0], world.folder, world.store, prepare_one, remaining_s=lambda: 900.0)
    world.finish("r2")
    assert world.plan("r3").documents == 1


def test_two_runs_that_end_at_the_same_time_both_remember_what_they_met():
    world = World(a="one")
    summary = world.plan("r1")
    world.prepare(summary)
    world.folder.put("b", "two")
    second = world.plan("r2")
    write = world.store.write
    meanwhile = iter([True])

    def write_after_the_other(key, data, *, replaces):
        if key == mirror_key("shelf") and next(meanwhile, False):
            world.prepare(second)
            world.finish("r2")
            raise PreconditionFailed(key)
        return write(key, data, replaces=replaces)

    world.store.write = write_after_the_other
    world.finish("r1")
    assert read_mirror(world.store, "shelf")[0].documents.keys() == {"a", "b"}


def test_batches_are_bounded_in_documents_and_in_bytes():
    world = World(a="1", b="2", c="3", d="x" * 50, e="4")
    sizes = [[item.source for item in batch.items] for batch in world.batches(world.plan("r", batch_documents=2))]
    assert sizes == [["a", "b"], ["c", "d"], ["e"]]
    sizes = [[item.source for item in batch.items] for batch in world.batches(world.plan("r2", batch_bytes=10))]
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

"""``cicada ingest``: runs over uploads, started by the command, and their reports; over S3 and Step Functions."""

from __future__ import annotations

import itertools
import json
import os
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from aiohttp import web

from cicada.errors import DocumentBroken, ModelBusy
from cicada.index.s3 import S3Store
from cicada.ingest.contracts import IngestReport, Prepared, Recipe, SourceItem
from cicada.ingest.incoming import turns
from cicada.ingest.incoming.batches import prepare
from cicada.ingest.incoming.bucket import IncomingBucket
from cicada.ingest.incoming.finishing import finish
from cicada.ingest.incoming.planning import plan
from cicada.ingest.incoming.run_records import Batch
from cicada.ingest.incoming.turns import take_turn
from cicada_cli import ingest
from cicada_cli.aws import Aws
from cicada_cli.deployment import Deployment
from cicada_cli.exits import Exit
from cicada_cli.main import main
from tests.wire.ingest_machine import ingest_machine
from tests.wire.local_services import Services, running_services

BUCKET = "cli-ingest-tests"
RECIPE = Recipe(embedding_model_id="m", dimensions=4)
_numbers = itertools.count()


@pytest.fixture(scope="module")
def services() -> Iterator[Services]:
    with running_services() as running:
        yield running


@pytest.fixture(scope="module")
def machine_arn(services: Services) -> Iterator[str]:
    with ingest_machine(services, BUCKET) as arn:
        yield arn


class Shelf:
    """A collection's uploads, and the workflow's functions: what a document holds decides what becomes of it."""

    def __init__(self, services: Services) -> None:
        self.collection = f"shelf-{next(_numbers)}"
        self._s3 = services.client("s3")
        self._store = S3Store(self._s3, BUCKET)
        self._uploads = IncomingBucket(self._s3, BUCKET)
        self._loaded: set[str] = set()
        self.plan_error: str | None = None
        self.another_asks = False
        services.invoke = self._invoke

    def put(self, **documents: str) -> None:
        for source, content in documents.items():
            self._s3.put_object(Bucket=BUCKET, Key=f"incoming/{self.collection}/{source}", Body=content.encode())

    def delete(self, source: str) -> None:
        self._s3.delete_object(Bucket=BUCKET, Key=f"incoming/{self.collection}/{source}")

    def _invoke(self, name: str, event: Any) -> Any:
        try:
            return self._step(name, event)
        except ModelBusy as error:
            return _failure(type(error).__name__)

    def _step(self, name: str, event: Any) -> Any:
        if name == "plan":
            if self.plan_error:
                return _failure(self.plan_error)
            planned = plan(
                self._uploads,
                self._store,
                event["collection"],
                event["run"],
                RECIPE,
                held=lambda _collection: dict.fromkeys(self._loaded, 2),
                is_running=lambda _run: True,
            )
            return planned.model_dump(by_alias=True)
        if name == "document":
            batch = Batch.model_validate(event)
            prepare(batch, self._uploads, self._store, _prepared, remaining_s=lambda: 900.0)
            return web.json_response(None)
        if self.another_asks:
            self.another_asks = False
            take_turn(self._store, event["collection"], "another", lambda _run: True)
        done = finish(
            event["collection"],
            event["run"],
            self._uploads,
            self._store,
            self._committed,
            remaining_s=lambda: 900.0,
        )
        return done.model_dump(by_alias=True)

    def _committed(self, collection: str, prepared: Any, gone: Any, declares: Any) -> IngestReport:
        removed = tuple(source for source in gone if source in self._loaded)
        self._loaded = (self._loaded | {one.source for one in prepared}) - set(gone)
        return IngestReport(
            collection=collection,
            documents=len(prepared),
            loaded=len(prepared),
            unchanged=0,
            removed=removed,
            added=2 * len(prepared),
            passages=2 * len(self._loaded),
            version="v7",
            published=True,
            notes={one.source: one.notes for one in prepared if one.notes},
        )


def _prepared(item: SourceItem, path: Path) -> Prepared:
    content = path.read_text()
    if content == "broken":
        raise DocumentBroken("the file breaks off")
    if content == "busy":
        raise ModelBusy("throttled")
    notes = ("a page was skipped",) if content == "noted" else ()
    return Prepared(source=item.source, key="k", digest="d", passages=2, embedded=2, reused=False, notes=notes)


def _failure(error: str) -> web.Response:
    body = {"errorType": error, "errorMessage": "why"}
    return web.json_response(body, headers={"X-Amz-Function-Error": "Unhandled"})


@pytest.fixture
def shelf(services: Services, machine_arn: str, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Shelf:
    for variable in list(os.environ):
        if variable.startswith(("CICADA_", "AWS_")):
            monkeypatch.delenv(variable)
    settings = {
        "AWS_ACCESS_KEY_ID": "test",
        "AWS_SECRET_ACCESS_KEY": "test",
        "AWS_REGION": "us-east-1",
        "AWS_ENDPOINT_URL": services.endpoint_url,
        "CICADA_INDEX_BUCKET": BUCKET,
        "CICADA_INGEST_MACHINE_ARN": machine_arn,
    }
    for variable, value in settings.items():
        monkeypatch.setenv(variable, value)
    monkeypatch.setattr(ingest, "WINDOW_S", 1)
    monkeypatch.setattr(ingest, "POLL_S", 0.05)
    monkeypatch.setattr(turns, "MAX_ROUNDS", 0)  # what cannot be prepared is not waited for
    monkeypatch.chdir(tmp_path)
    return Shelf(services)


Command = Callable[..., tuple[int, str, str]]


@pytest.fixture
def command(shelf: Shelf, capsys: pytest.CaptureFixture[str]) -> Command:
    """Runs ``cicada ingest``; its status, and what it says on both streams."""

    def run(name: str, *options: str) -> tuple[int, str, str]:
        capsys.readouterr()
        status = main(["ingest", name, "--collection", shelf.collection, *options])
        told = capsys.readouterr()
        return status, told.out, told.err

    return run


def test_a_run_loads_what_is_uploaded_and_the_report_tells_the_same(shelf: Shelf, command: Command) -> None:
    shelf.put(a="one", b="noted")
    status, out, err = command("run")
    first, *rest = out.splitlines()
    assert (status, err) == (Exit.DONE, "")
    assert first.startswith(f"Run {shelf.collection}-")
    assert rest == [
        f"{shelf.collection}: loaded 2 of 2 documents (2 new or changed; 4 passages added, 0 deleted).",
        "Published version v7.",
        "Note on b: a page was skipped",
    ]
    assert command("report") == (Exit.DONE, out, "")


def test_what_is_set_aside_is_named_with_its_reason_and_again_until_it_is_mended(
    shelf: Shelf, command: Command
) -> None:
    shelf.put(a="one", bad="broken")
    status, out, _ = command("run")
    assert status == Exit.INCOMPLETE
    assert "Quarantined: bad: the file breaks off (document_broken)" in out
    shelf.put(b="two")
    status, out, _ = command("run")
    assert status == Exit.DONE
    assert "Still quarantined: bad: the file breaks off (document_broken)" in out
    assert "loaded 2 of 3 documents (1 new or changed" in out
    shelf.put(bad="mended")
    assert "set aside" not in command("run")[1].lower()


def test_what_could_not_be_prepared_is_named_and_tried_again(shelf: Shelf, command: Command) -> None:
    shelf.put(a="one", b="busy")
    status, out, _ = command("run")
    assert status == Exit.INCOMPLETE
    assert "Not prepared, will be retried: b" in out
    shelf.put(b="two")
    assert command("run")[0] == Exit.DONE


def test_deletions_are_followed(shelf: Shelf, command: Command) -> None:
    shelf.put(a="one", b="two")
    command("run")
    shelf.delete("a")
    assert "Removed: a." in command("run")[1]


def test_a_run_that_has_looked_again_for_another_and_found_nothing_more_tells_what_it_loaded(
    shelf: Shelf, command: Command
) -> None:
    shelf.put(a="one")
    shelf.another_asks = True
    status, out, _ = command("run")
    assert status == Exit.DONE
    assert "loaded 1 of 1 document (1 new or changed" in out


def test_a_run_without_anything_to_do_says_so_and_leaves_no_report(shelf: Shelf, command: Command) -> None:
    assert command("run")[:2] == (Exit.DONE, "Nothing to do.\n")
    status, out, _ = command("run", "--json")
    assert (status, json.loads(out)["needed"]) == (Exit.DONE, False)
    status, out, err = command("report")
    assert (status, out) == (Exit.FAILED, "")
    assert f"no run of {shelf.collection} has a report" in err


def test_a_report_is_json_where_that_is_asked_for_and_can_be_of_an_earlier_run(shelf: Shelf, command: Command) -> None:
    shelf.put(a="one")
    first = json.loads(command("run", "--json")[1])
    shelf.put(b="two")
    second = json.loads(command("run", "--json")[1])
    assert [one["report"]["documents"] for one in (first, second)] == [1, 2]
    assert json.loads(command("report", "--json", "--run", first["run"])[1]) == first
    status, out, err = command("report", "--run", "never")
    assert (status, out) == (Exit.FAILED, "")
    assert "unknown run never, or it has no report" in err


def test_a_run_can_be_left_to_itself(shelf: Shelf, command: Command) -> None:
    status, out, _ = command("run", "--no-wait")
    assert status == Exit.DONE
    assert out.startswith(f"Started run {shelf.collection}-")
    assert out.startswith("Started run ")
    assert json.loads(command("run", "--no-wait", "--json")[1])["run"].startswith(shelf.collection)


def test_a_run_that_fails_is_told_with_its_error(shelf: Shelf, command: Command) -> None:
    shelf.plan_error = "IndexUnavailable"
    status, out, err = command("run")
    assert (status, out) == (Exit.FAILED, "")
    assert "ended with FAILED: IndexUnavailable" in err


@pytest.mark.parametrize("name", ["../up", "a/b", "", "x" * 65])
def test_what_is_no_collections_name_is_refused_at_once(name: str, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as exit_:
        main(["ingest", "run", "--collection", name])
    assert exit_.value.code == Exit.USAGE
    assert "invalid collection name" in capsys.readouterr().err


@pytest.mark.usefixtures("shelf")
@pytest.mark.parametrize(
    ("variable", "arguments", "code"),
    [
        ("CICADA_INDEX_BUCKET", ["report"], "index_unavailable"),
        ("CICADA_INGEST_MACHINE_ARN", ["run"], "workflow_unavailable"),
    ],
)
def test_a_place_that_is_not_there_is_told_without_a_trace(
    variable: str,
    arguments: list[str],
    code: str,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    known = os.environ[variable]
    monkeypatch.setenv(variable, known.replace("cli-ingest", "nowhere") if "cli-ingest" in known else known + "x")
    assert main(["ingest", *arguments, "--collection", "shelf"]) == Exit.FAILED
    assert f"({code}: " in capsys.readouterr().err


class Machine:
    """Step Functions, as it tells of an execution one look after another; and S3, with nothing in it."""

    def __init__(self, *looks: str) -> None:
        self._looks = iter(looks)

    def start_execution(self, **_: Any) -> None:
        """It is started."""

    def get_paginator(self, _: str) -> Machine:
        """Of a bucket without objects."""
        return self

    def paginate(self, **_: Any) -> list[dict[str, Any]]:
        return [{}]

    def describe_execution(self, **_: Any) -> dict[str, Any]:
        from botocore.exceptions import ClientError

        look = next(self._looks, "RUNNING")
        if look.endswith("Exception") or look == "ExecutionDoesNotExist":
            raise ClientError({"Error": {"Code": look}}, "DescribeExecution")
        return {"status": look, "output": "{}"}


@pytest.mark.parametrize(
    ("looks", "status", "told"),
    [
        (("ExecutionDoesNotExist", "RUNNING", "SUCCEEDED"), Exit.DONE, "Nothing to do."),
        (("RUNNING",), Exit.FAILED, "is still in progress: cicada ingest report --collection shelf"),
        (("TIMED_OUT",), Exit.FAILED, "ended with TIMED_OUT: no error given"),
        (("AccessDeniedException",), Exit.FAILED, "(workflow_unavailable: "),
    ],
)
def test_a_run_is_waited_for_until_it_has_ended_or_the_time_is_up(
    looks: tuple[str, ...],
    status: Exit,
    told: str,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.setattr(Aws, "client", lambda *_: Machine(*looks))
    arn = "arn:aws:states:us-east-1:1:stateMachine:m"
    deployment = Deployment({"bucket": "b", "ingest_machine_arn": arn}, Aws())
    slept: list[float] = []
    done = ingest.run(deployment, "shelf", wait=True, as_json=False, sleep=slept.append, wait_s=3)
    captured = capsys.readouterr()
    assert (done, told in captured.out + captured.err) == (status, True)
    assert len(slept) <= 3

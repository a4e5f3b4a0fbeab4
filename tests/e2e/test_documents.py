"""Documents in by upload, out through the functions for integrators and as cited answers: over the deployed thing."""

from __future__ import annotations

import json
import time
from pathlib import Path
from typing import Any
from urllib.request import urlopen
from uuid import uuid4

import pytest

from cicada.index.access_rules import declare_readers
from cicada.index.s3 import S3Store
from cicada_local.testing import LocalCloud
from tests.e2e.reading import function_name, types

SHELF = Path(__file__).parents[2] / "samples" / "shelf"
WAIT_S = 120
WINDOW_S = 5
"""The deployment's ``ingest.quietS``."""


class Shelf:
    """A collection's folder below ``incoming/``, and the functions that other systems call."""

    def __init__(self, cloud: LocalCloud) -> None:
        self.name = f"shelf-{uuid4().hex[:8]}"
        self._s3, self._sfn, self._lambda = (cloud.client(name) for name in ("s3", "stepfunctions", "lambda"))
        self._bucket = cloud.outputs["IndexBucket"]
        self._machine = cloud.outputs["IngestMachineArn"]
        self._runs: set[str] = set()

    def declare_readers(self, *groups: str) -> None:
        """Let members of these groups alone read the collection; without any, everybody."""
        declare_readers(S3Store(self._s3, self._bucket), self.name, groups or None)

    def begin(self) -> None:
        """Wait for the beginning of a window: what is uploaded now goes into one run."""
        time.sleep(WINDOW_S - time.time() % WINDOW_S + 0.1)

    def put(self, source: str, data: bytes, **said: str) -> None:
        key = f"incoming/{self.name}/{source}"
        self._s3.put_object(Bucket=self._bucket, Key=key, Body=data, Metadata=said)

    def delete(self, source: str) -> None:
        self._s3.delete_object(Bucket=self._bucket, Key=f"incoming/{self.name}/{source}")

    def loaded(self, documents: int) -> dict[str, Any]:
        """Wait for the end of the runs that were started since the last time; the last one's report.

        That is of so many documents: what is uploaded slowly goes into several runs.
        """
        deadline = time.monotonic() + WAIT_S
        while time.monotonic() < deadline:
            every = self._sfn.list_executions(stateMachineArn=self._machine)["executions"]
            runs = [run for run in every if run["name"].startswith(self.name) and run["name"] not in self._runs]
            if runs and all(run["status"] != "RUNNING" for run in runs):
                assert {run["status"] for run in runs} == {"SUCCEEDED"}
                names = {run["name"] for run in runs}
                report = self._report(names)
                if report["report"]["documents"] == documents:
                    self._runs |= names
                    return report
            time.sleep(0.2)
        raise AssertionError("no run has ended")

    def _report(self, runs: set[str]) -> dict[str, Any]:
        """The last report of these runs. Not by their outputs: a run that looked again for another ends with that."""
        left = self._s3.list_objects_v2(Bucket=self._bucket, Prefix=f"ingests/{self.name}/")["Contents"]
        of_runs = [one for one in left if one["Key"].split("/")[2] in runs and "/report" in one["Key"]]
        last = max(of_runs, key=lambda one: one["LastModified"])
        report: dict[str, Any] = json.loads(self._s3.get_object(Bucket=self._bucket, Key=last["Key"])["Body"].read())
        return report

    def call(self, function: str, **event: Any) -> dict[str, Any]:
        answer = self._lambda.invoke(FunctionName=f"Cicada-{function}", Payload=json.dumps(event))
        assert "FunctionError" not in answer, answer["Payload"].read()
        found: dict[str, Any] = json.loads(answer["Payload"].read())
        return found

    def eventually(self, function: str, wanted: Any, **event: Any) -> dict[str, Any]:
        """Call until the function's index has caught up: it looks for new versions every few seconds."""
        deadline = time.monotonic() + 30
        while not wanted(found := self.call(function, **event)):
            assert time.monotonic() < deadline, found
            time.sleep(0.5)
        return found


@pytest.fixture(scope="module")
def shelf(deployment: LocalCloud) -> Shelf:
    """The sample's shelf, uploaded, with a broken file among it."""
    shelf = Shelf(deployment)
    shelf.begin()
    for path in sorted(SHELF.iterdir()):
        shelf.put(path.name, path.read_bytes(), **{"workflow-id": shelf.name})
    shelf.put("scans/broken.pdf", b"%PDF-1.7 and no more")
    return shelf


@pytest.fixture(scope="module")
def report(shelf: Shelf) -> dict[str, Any]:
    return shelf.loaded(7)


def test_a_folder_of_uploads_is_loaded_and_what_cannot_be_read_is_set_aside(
    shelf: Shelf, report: dict[str, Any]
) -> None:
    told = report["report"]
    assert (told["documents"], told["loaded"]) == (7, 6)
    assert [(one["source"], one["code"]) for one in told["quarantined"]] == [("scans/broken.pdf", "document_broken")]
    assert told["published"]
    assert report["notPrepared"] == []


def test_an_uploaded_manual_answers_a_question_with_its_page(
    connect: Any, shelf: Shelf, report: dict[str, Any]
) -> None:
    shelf.eventually(
        "retrieve", lambda found: found["count"], query="lamp wick", pipeline="standard", workflow_id=shelf.name
    )
    deadline = time.monotonic() + 30
    while True:
        events = connect().answer("How often is the wick trimmed?", collections=[shelf.name])
        citations = events[-2]["citations"] if "citations" in types(events) else []
        if citations or time.monotonic() > deadline:
            break
    assert events[-1]["type"] == "complete"
    assert {citation["verdict"] for citation in citations} == {"verified"}
    locator = citations[0]["locator"]
    assert (locator["kind"], locator["source"], locator["page"]) == ("document", "keepers-manual.pdf", 3)


def test_retrieval_by_pipelines(shelf: Shelf, report: dict[str, Any]) -> None:
    found = shelf.call("retrieve", query="How often is the wick trimmed?", workflow_id=shelf.name, top_k=3)
    assert found["success"]
    assert (found["pipeline"], found["reranked"], found["hyde_used"], found["degraded"]) == ("advanced", True, True, [])
    best = found["documents"][0]
    assert (best["metadata"]["source"], best["metadata"]["page"], best["doc_type"]) == ("keepers-manual.pdf", 3, "pdf")
    assert "Trim the wick" in best["metadata"]["captions"][0]["text"]
    assert best["metadata"]["workflow_id"] == shelf.name


def test_another_workflows_documents_are_not_found(shelf: Shelf, report: dict[str, Any]) -> None:
    for pipeline in ("standard", "rerank", "advanced"):
        found = shelf.call("retrieve", query="How often is the wick trimmed?", workflow_id="another", pipeline=pipeline)
        assert (found["success"], found["documents"]) == (True, [])
    refused = shelf.call(
        "get-document-summary", collection=shelf.name, source="keepers-manual.pdf", workflow_id="another"
    )
    assert refused["error"]["code"] == "document_unknown"


def test_codes_are_counted_and_entities_are_tied(shelf: Shelf, report: dict[str, Any]) -> None:
    where = {"filters": {"collections": [shelf.name]}}
    counted = shelf.call("facets", fields=["entity_codes", "doc_type"], **where)
    codes, kinds = counted["facets"]
    assert codes["unique"] >= 10
    assert {value["value"] for value in kinds["values"]} == {"pdf", "docx", "markdown", "text", "csv", "json"}
    same = shelf.call("retrieve", query="how many unique codes?", pipeline="facets", **where)
    assert same["facets"][0]["unique"] == codes["unique"]
    named = shelf.call("facets", fields=["entities"], **where)["facets"][0]["values"][0]["value"]
    around = shelf.call("graph-query", operation="neighbours", entity=named.upper(), **where)
    assert around["entities"][0]["name"] == named
    nobody = shelf.call("graph-query", operation="neighbours", entity=named + "x", **where)
    assert nobody["unknown"][0]["closest"][0] == named


def test_a_summary_is_made_once(shelf: Shelf, report: dict[str, Any]) -> None:
    asked = {"collection": shelf.name, "source": "parts.md"}
    first, second = (shelf.call("get-document-summary", **asked) for _ in range(2))
    assert (first["made"], second["made"]) == (True, False)
    assert first["summary"] == second["summary"] != ""


def test_the_corpus_is_listed_searched_and_read_with_its_files(
    connect: Any, shelf: Shelf, report: dict[str, Any]
) -> None:
    socket = connect()
    (listed,) = (one for one in told(socket, "collections", "collections")["collections"] if one["name"] == shelf.name)
    assert (listed["documents"], listed["upload"]) == (6, False)
    documents = told(socket, "documents", "documents", collection=shelf.name)["documents"]
    manual = next(one for one in documents if one["source"] == "keepers-manual.pdf")
    assert {one["original"] for one in documents} == {True}
    best = told(socket, "search", "found", query="trim the wick", documents=["keepers-manual.pdf"])["sources"][0]
    read = told(socket, "read", "passages", passageId=best["passageId"], collection=shelf.name, before=30, after=30)
    assert len(read["passages"]) == manual["passages"]
    assert read["passages"][read["at"]]["text"] == best["text"]
    with urlopen(read["document"]["original"]["url"], timeout=30) as file:
        assert file.read().startswith(b"%PDF")


def told(socket: Any, action: str, kind: str, **fields: Any) -> dict[str, Any]:
    """The reply of an action about the corpus."""
    request_id = str(uuid4())
    socket.send(action, requestId=request_id, **fields)
    reply: dict[str, Any] = socket.until(kind, "error", request_id=request_id)
    assert reply["type"] == kind, reply
    return reply


def test_a_collection_for_some_does_not_exist_for_others(connect: Any, shelf: Shelf, report: dict[str, Any]) -> None:
    """Neither for functions nor for who asks, from the next call on."""
    where = {"filters": {"collections": [shelf.name]}}
    question = "How often is the wick trimmed?"
    before = shelf.call("facets", **where)["total"]
    shelf.declare_readers("staff")
    try:
        for function, asked in (
            ("facets", {}),
            ("retrieve", {"query": question}),
            ("graph-query", {"operation": "cooccurring"}),
        ):
            refused, absent = (
                shelf.call(function, **asked, filters={"collections": [name]}) for name in (shelf.name, "nowhere")
            )
            refused, absent = ({**told, "timings_ms": {}, "model_uses": []} for told in (refused, absent))
            assert refused["error"]["code"] == "collection_unknown"
            assert json.dumps(refused).replace(shelf.name, "nowhere") == json.dumps(absent)
        unknown = shelf.call("get-document-summary", collection=shelf.name, source="parts.md")
        assert unknown["error"]["code"] == "document_unknown"
        assert shelf.call("facets", **where, groups=["staff"])["total"] == before
        end = connect().answer(question, collections=[shelf.name])[-1]
        assert (end["type"], end["code"]) == ("error", "collection_unknown")
        assert shelf.name not in end["known"]
        assert shelf.name not in json.dumps(told(connect(), "collections", "collections"))
    finally:
        shelf.declare_readers()
    assert shelf.call("facets", **where)["total"] == before


def test_citations_of_any_answer_are_checked(shelf: Shelf) -> None:
    found = shelf.call(
        "extract-citations",
        answer="Trim the wick every morning [1]. It is trimmed daily [1]. It is long [Doc 1: a.pdf, Page 2].",
        passages=[{"content": "Trim the wick every morning.", "source": "a.pdf", "page": 1}],
    )
    verdicts = [marker["verdict"] for sentence in found["sentences"] for marker in sentence["markers"]]
    assert verdicts == ["verified", "unchecked", "unverified"]


def test_a_schema_is_explained_with_its_sources(shelf: Shelf, report: dict[str, Any]) -> None:
    table = {"name": "gauge_readings", "columns": [{"name": "reading_ft"}, {"name": "taken_by"}]}
    found = shelf.call("enrich-schema", tables=[table], workflow_id=shelf.name)
    assert found["success"]
    assert [column["name"] for column in found["tables"][0]["columns"]] == ["reading_ft", "taken_by"]
    assert any("gauge" in source["content"].lower() for source in found["sources"])


def test_one_document_is_loaded_changed_and_deleted_by_a_call(shelf: Shelf) -> None:
    place = {"collection": f"{shelf.name}-notes", "source": "notes/tides.md"}
    first = shelf.call("index-document", **place, content="# Tides\n\nThe spring tide comes on the ninth.")
    assert (first["success"], first["passages"], first["published"]) == (True, 1, True)
    assert shelf.call("index-document", **place, content="# Tides\n\nThe spring tide comes on the ninth.")["unchanged"]
    changed = shelf.call("index-document", **place, content="# Tides\n\nThe spring tide comes on the tenth.")
    assert (changed["added"], changed["deleted"]) == (1, 1)
    assert shelf.call("index-document", **place, delete=True)["deleted"] == 1


def test_what_is_wrong_with_a_call_is_told(shelf: Shelf) -> None:
    refused = shelf.call("retrieve", query="x", top_k=0)
    assert (refused["success"], refused["error"]["code"]) == (False, "invalid_request")
    assert "top_k" in refused["error"]["message"]
    broken = shelf.call("index-document", collection="notes", source="a.pdf", content="no PDF")
    assert broken["error"]["code"] == "document_broken"


def test_what_is_deleted_from_the_folder_is_deleted_from_the_collection(shelf: Shelf, report: dict[str, Any]) -> None:
    shelf.begin()
    shelf.delete("gauge-march-1961.csv")
    shelf.put("parts.md", (SHELF / "parts.md").read_bytes() + b"\n\nA word more.\n")
    ended = shelf.loaded(6)
    told = ended["report"]
    assert told["removed"] == ["gauge-march-1961.csv"]
    assert (told["documents"], told["loaded"], told["unchanged"]) == (6, 5, 4)
    assert [one["source"] for one in ended["stillRefused"]] == ["scans/broken.pdf"]
    found = shelf.eventually(
        "facets",
        lambda answer: len(answer["facets"][0]["values"]) == 5,
        fields=["source"],
        filters={"collections": [shelf.name]},
    )
    assert "gauge-march-1961.csv" not in {value["value"] for value in found["facets"][0]["values"]}


def test_an_ingest_whose_workers_are_killed_and_whose_model_is_throttled_loads_everything_once(
    cloud: LocalCloud,
) -> None:
    shelf = Shelf(cloud)
    sources = {f"note-{number:02}.md" for number in range(24)}
    shelf.begin()
    for number, source in enumerate(sorted(sources)):
        words = " ".join(f"word{number}x{place}" for place in range(40))
        shelf.put(source, f"# Note {number}\n\n{words}.\n".encode())
    cloud.arm("bedrock.embed_throttle", times=5)
    worker = function_name(cloud, "Document")
    killed = 0
    deadline = time.monotonic() + WAIT_S
    while killed < 3 and time.monotonic() < deadline:
        killed += len(cloud.kill_workers(worker))
        time.sleep(0.1)
    assert killed >= 3
    told = shelf.loaded(24)
    assert told["notPrepared"] == []
    assert (told["report"]["loaded"], told["report"]["passages"]) == (24, 24)
    counted = shelf.eventually(
        "facets",
        lambda answer: answer["facets"][0]["unique"] == 24,
        fields=["source"],
        filters={"collections": [shelf.name]},
    )
    assert counted["total"] == 24

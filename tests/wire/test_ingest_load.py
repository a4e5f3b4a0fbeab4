"""``cicada load`` and ``unload`` of documents, against S3 and Bedrock Runtime as their stand-ins speak them."""

from __future__ import annotations

import contextlib
import io
import json
import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import boto3
import pytest
from moto.server import ThreadedMotoServer
from rich.console import Console

from cicada_cli import load as load_command
from cicada_cli.aws import Aws
from cicada_cli.deployment import Deployment
from cicada_cli.exits import Exit
from cicada_cli.load import load
from cicada_cli.load_options import LoadOptions
from cicada_cli.main import main
from cicada_local import loading
from tests.support.declared import declared_yaml
from tests.support.embedding import WordEmbedder
from tests.support.ingest import script_of, shelf
from tests.wire.bedrock_service import BedrockService, serving
from tests.wire.deployment_environment import empty_deployment

ROOT = Path(__file__).resolve().parents[2]
MODEL, DIMENSIONS = "local.all-minilm-l6-v2", 384
TEXTS = {
    "guide/lamp.md": "# The lamp\n\nThe lamp of the breakwater is lit at dusk by the keeper.\n",
    "notes.txt": "Nobody rang the bell in the night.\n",
    "boats.csv": "name,colour\nHeron,green\nTern,white\n",
    "ep1.jsonl": script_of({"m1": "The boat left at noon."}),
}


@pytest.fixture(scope="module")
def s3() -> Iterator[str]:
    server = ThreadedMotoServer(ip_address="127.0.0.1", port=0, verbose=False)
    server.start()
    host, port = server.get_host_and_port()
    yield f"http://{host}:{port}"
    server.stop()


@pytest.fixture(scope="module")
def bedrock() -> Iterator[BedrockService]:
    with serving() as service:
        yield service


@pytest.fixture
def bucket(s3: str, bedrock: BedrockService, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> str:
    """An empty bucket of a deployment that the environment names."""
    bedrock.raw_bodies.clear()
    bedrock.faults.disarm()
    bedrock.embed = lambda texts: WordEmbedder(dimensions=DIMENSIONS).embed(texts, time_budget_s=1)
    return empty_deployment(monkeypatch, tmp_path, s3=s3, bedrock=bedrock.url, model=MODEL, dimensions=DIMENSIONS)


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    return shelf(tmp_path / "shelf", TEXTS)


def loaded(capsys: pytest.CaptureFixture[str], *arguments: str) -> tuple[int, dict[str, Any]]:
    capsys.readouterr()
    status = main(["load", *arguments, "--collection", "shelf", "--json"])
    return status, json.loads(capsys.readouterr().out)


def sources(capsys: pytest.CaptureFixture[str], *arguments: str) -> set[str]:
    """Of everything that a search finds."""
    capsys.readouterr()
    assert main(["search", "the", *arguments, "--min-score", "0", "--top-k", "100", "--json"]) == 0
    passages = [hit["passage"] for hit in json.loads(capsys.readouterr().out)["hits"]]
    return {passage["locator"].get("source") or passage["metadata"]["source"] for passage in passages}


def embedded(bedrock: BedrockService) -> list[str]:
    return [body["inputText"] for body in bedrock.bodies]


def _untitled(bedrock: BedrockService) -> list[str]:
    """The texts, without the titles that stand before them."""
    return [text.rpartition("\n\n")[2] for text in embedded(bedrock)]


@pytest.mark.usefixtures("bucket")
def test_a_folder_of_documents_is_loaded_and_found(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["load", str(folder), "--collection", "shelf"]) == 0
    told = capsys.readouterr()
    assert told.out.startswith("shelf: indexed 4 documents (")
    for stage in ("preparing: 4 of 4 documents", "writing: 1 of 1 segments", "publishing: 1 of 1 version"):
        assert stage in told.err
    assert sources(capsys) == set(TEXTS)


@pytest.mark.usefixtures("bucket")
def test_a_second_load_embeds_and_publishes_nothing(
    folder: Path, bedrock: BedrockService, capsys: pytest.CaptureFixture[str]
) -> None:
    _, first = loaded(capsys, str(folder))
    bedrock.raw_bodies.clear()
    status, again = loaded(capsys, str(folder))
    assert (status, again["published"], again["unchanged"], again["version"]) == (0, False, 4, first["version"])
    assert bedrock.raw_bodies == []


@pytest.mark.usefixtures("bucket")
def test_poison_is_named_with_its_reason_and_the_rest_is_loaded(
    folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (folder / "scan.pdf").write_bytes(b"%PDF-1.7\nnothing of a PDF")
    (folder / "photo.jpg").write_bytes(b"\xff\xd8\xff\xe0")
    assert main(["load", str(folder), "--collection", "shelf"]) == Exit.INCOMPLETE
    told = capsys.readouterr()
    assert "indexed 4 documents" in told.out
    assert "could not load 2 documents" in told.err
    assert "photo.jpg: " in told.err
    assert "(document_unsupported)" in told.err
    assert "scan.pdf: " in told.err
    status, report = loaded(capsys, str(folder))
    assert status == Exit.INCOMPLETE
    assert {one["source"] for one in report["quarantined"]} == {"scan.pdf", "photo.jpg"}
    assert report["unchanged"] == 4


@pytest.mark.usefixtures("bucket")
def test_documents_are_added_and_deleted_by_name(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    loaded(capsys, str(folder))
    new = shelf(folder.parent / "new", {"new.md": "The tide table hangs at the door."})
    _, report = loaded(capsys, str(new), "--add", "--workflow-id", "w7", "--metadata", "shelf=door")
    assert (report["loaded"], report["removed"]) == (1, [])
    assert sources(capsys) == {*TEXTS, "new.md"}
    assert sources(capsys, "--metadata", "workflow_id=w7", "--metadata", "shelf=door") == {"new.md"}
    assert main(["unload", "notes.txt", "new.md", "--collection", "shelf"]) == 0
    assert sources(capsys) == TEXTS.keys() - {"notes.txt"}
    assert main(["unload", "notes.txt", "--collection", "shelf"]) == 1
    assert "unknown document notes.txt in shelf" in capsys.readouterr().err


@pytest.mark.usefixtures("bucket")
def test_exactly_these_documents_are_held(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    loaded(capsys, str(folder))
    shelf(folder, {"notes.txt": TEXTS["notes.txt"]})
    _, report = loaded(capsys, str(folder))
    assert report["removed"] == ["boats.csv", "ep1.jsonl", "guide/lamp.md"]
    assert sources(capsys) == {"notes.txt"}


@pytest.mark.usefixtures("bucket")
def test_an_estimate_reads_everything_and_loads_nothing(
    folder: Path, bedrock: BedrockService, capsys: pytest.CaptureFixture[str]
) -> None:
    status, estimate = loaded(capsys, str(folder), "--estimate")
    assert (status, estimate["documents"], estimate["prepared"], estimate["costUsd"]) == (0, 4, 0, 0.0)
    assert estimate["embeddingTokens"] > 10
    assert bedrock.raw_bodies == []
    loaded(capsys, str(folder))
    _, again = loaded(capsys, str(folder), "--estimate")
    assert (again["documents"], again["prepared"], again["embeddingTokens"]) == (0, 4, 0)


@pytest.mark.usefixtures("bucket")
def test_throttles_are_waited_out(folder: Path, bedrock: BedrockService, capsys: pytest.CaptureFixture[str]) -> None:
    refusals = iter([True] * 5)

    def embed(texts: Any) -> Any:
        if next(refusals, False):
            raise RuntimeError("the model's service fails")
        return WordEmbedder(dimensions=DIMENSIONS).embed(texts, time_budget_s=1)

    bedrock.embed = embed
    status, report = loaded(capsys, str(folder))
    assert (status, report["loaded"]) == (0, 4)


@pytest.mark.parametrize(
    "wrong",
    [
        ["--add", "--start-over"],
        ["--chunk-size", "100", "--overlap", "100"],
        ["--summaries", "model"],
    ],
)
@pytest.mark.usefixtures("bucket")
def test_options_that_do_not_go_together_are_told(
    folder: Path, wrong: list[str], capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["load", str(folder), *wrong]) == Exit.USAGE
    assert "--" in capsys.readouterr().err


@pytest.mark.usefixtures("bucket")
@pytest.mark.parametrize("wrong", [["--chunk-size", "2001"], ["--chunk-size", "49"], ["--overlap", "2001"]])
def test_bounds_are_told(folder: Path, wrong: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as ended:
        main(["load", str(folder), *wrong])
    assert ended.value.code == Exit.USAGE
    assert "2,000" in capsys.readouterr().err


@pytest.mark.usefixtures("bucket")
def test_an_overlap_that_does_not_fit_is_told_with_its_default(
    folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["load", str(folder), "--chunk-size", "100"]) == Exit.USAGE
    assert "--overlap (200) must be less than --chunk-size (100)" in capsys.readouterr().err


def test_a_load_that_is_killed_half_way_is_taken_up_where_it_was(
    bucket: str, bedrock: BedrockService, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    texts = {f"page-{number:02}.md": f"Page {number} tells of the harbour number {number}." for number in range(24)}
    folder = shelf(tmp_path / "pages", texts)

    def embed(batch: Any) -> Any:
        time.sleep(0.05)  # so that there is a half way
        return WordEmbedder(dimensions=DIMENSIONS).embed(batch, time_budget_s=1)

    bedrock.embed = embed
    objects = boto3.client("s3")
    command = [
        sys.executable,
        "-m",
        "cicada_cli",
        "load",
        str(folder),
        "--collection",
        "shelf",
        "--workers",
        "2",
        "--no-wait",
    ]
    process = subprocess.Popen(command, cwd=ROOT, start_new_session=True, stderr=subprocess.DEVNULL)
    try:
        while len(prepared := _keys(objects, bucket, "prepared/")) < 6:
            assert process.poll() is None, "the load ended before it could be killed"
            time.sleep(0.02)
    finally:
        with contextlib.suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGKILL)
        process.wait()
    assert _keys(objects, bucket, "index/") == []
    prepared = _keys(objects, bucket, "prepared/")
    assert 6 <= len(prepared) < 24
    before = [text for text in _untitled(bedrock) if text in texts.values()]
    bedrock.raw_bodies.clear()

    status, report = loaded(capsys, str(folder))
    assert (status, report["loaded"], report["published"]) == (0, 24, True)
    after = [text for text in _untitled(bedrock) if text in texts.values()]
    assert len(after) == 24 - len(prepared)
    assert len(set(before) & set(after)) <= 2  # those that were under way, one a worker
    assert set(before) | set(after) >= set(texts.values())
    assert sources(capsys) == set(texts)
    bedrock.raw_bodies.clear()
    _, again = loaded(capsys, str(folder))
    assert (again["published"], again["unchanged"], bedrock.raw_bodies) == (False, 24, [])


@pytest.mark.usefixtures("bucket")
def test_ctrl_c_does_not_wait_for_a_model_that_does_not_answer(folder: Path, bedrock: BedrockService) -> None:
    asked, answer = threading.Event(), threading.Event()

    def embed(texts: Any) -> Any:
        asked.set()
        answer.wait(60)
        return WordEmbedder(dimensions=DIMENSIONS).embed(texts, time_budget_s=1)

    bedrock.embed = embed
    command = [sys.executable, "-m", "cicada_cli", "load", str(folder), "--collection", "shelf", "--no-wait"]
    process = subprocess.Popen(command, cwd=ROOT, stderr=subprocess.PIPE, text=True)
    try:
        assert asked.wait(60)
        process.send_signal(signal.SIGINT)
        _, told = process.communicate(timeout=30)
    finally:
        answer.set()
        process.kill()
    assert process.returncode == Exit.INTERRUPTED
    assert "interrupted: run the same command to resume" in told


@pytest.mark.parametrize(("answer", "status"), [("y", Exit.DONE), ("", Exit.FAILED)])
def test_on_a_terminal_a_load_that_costs_much_is_begun_after_a_yes(
    bucket: str, folder: Path, monkeypatch: pytest.MonkeyPatch, answer: str, status: Exit
) -> None:
    values = {"bucket": bucket, "embedding_model_id": MODEL, "embedding_dimensions": str(DIMENSIONS)}
    err = Console(file=io.StringIO(), force_terminal=True, width=200, highlight=False, markup=False)
    monkeypatch.setattr(load_command, "CONFIRM_ABOVE_USD", -1.0)
    monkeypatch.setattr("sys.stdin.isatty", lambda: True, raising=False)
    monkeypatch.setattr("builtins.input", lambda: answer)
    assert load(Deployment(values, Aws()), LoadOptions((folder,)), err=err) == status
    shown = err.file.getvalue()  # type: ignore[attr-defined]
    assert "4 documents to prepare" in shown
    assert shown.rstrip().endswith("Load? [y/N]") or status == Exit.DONE


def test_the_sample_script_is_loaded_as_it_declares_itself_and_one_episode_alone_as_a_plain_script(
    bucket: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    def told(path: Path) -> Any:
        arguments = ["--bucket", bucket, "--model", MODEL, "--dimensions", str(DIMENSIONS)]
        assert loading.main([str(path), *arguments]) == 0
        return json.loads(capsys.readouterr().out.splitlines()[-1])

    def found() -> set[str | None]:
        assert main(["search", "the", "--min-score", "0", "--top-k", "100", "--json"]) == 0
        passages = [hit["passage"] for hit in json.loads(capsys.readouterr().out)["hits"]]
        assert {passage["collection"] for passage in passages} == {"script"}
        return {passage["metadata"].get("section") for passage in passages}

    episodes = told(loading.SAMPLE)["episodes"]
    assert [episode["id"] for episode in episodes] == ["ep1", "ep2", "ep3", "ep4", "ep5"]
    assert found() == {"drafts", "fair_copy"}
    assert [episode["id"] for episode in told(loading.SAMPLE / "episode-1.jsonl")["episodes"]] == ["ep1"]
    assert found() == {None}


@pytest.mark.usefixtures("bucket")
def test_a_load_says_that_it_withdraws_a_declaration(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    texts = {"log.md": "# Boats\n\nThe Heron leaks.\n"}
    declared = shelf(tmp_path / "shelf", {**texts, "collection.yaml": declared_yaml()})
    assert main(["load", str(declared)]) == 0
    assert main(["unload", "collection.yaml", "--collection", "shelf"]) == 0
    assert capsys.readouterr().out.splitlines()[-1].startswith("shelf has no declaration now")
    assert main(["load", str(declared)]) == 0
    assert main(["load", str(shelf(declared, texts)), "--collection", "shelf"]) == 0
    assert "\nshelf has no declaration now" in capsys.readouterr().out


def _keys(client: Any, bucket: str, prefix: str) -> list[str]:
    return [found["Key"] for found in client.list_objects_v2(Bucket=bucket, Prefix=prefix).get("Contents", ())]

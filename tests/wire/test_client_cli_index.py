"""``cicada load`` and ``cicada search`` against S3 and Bedrock Runtime as their stand-ins speak them."""

from __future__ import annotations

import io
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from moto.server import ThreadedMotoServer
from rich.console import Console

from cicada.retrieval.ports import SearchQuery
from cicada.rights import EVERYTHING
from cicada_cli.aws import Aws
from cicada_cli.collection_rules import collection_rules
from cicada_cli.deployment import Deployment
from cicada_cli.load import load
from cicada_cli.load_options import LoadOptions
from cicada_cli.main import main
from cicada_cli.search import search
from tests.support.embedding import WordEmbedder
from tests.wire.bedrock_service import BedrockService, serving
from tests.wire.deployment_environment import empty_deployment

MODEL, DIMENSIONS = "local.all-minilm-l6-v2", 384
SCRIPT = [
    ("ep1", "The Boathouse", "ep1-001", "Narrator", "The launch Heron carried her across the lake."),
    ("ep1", "The Boathouse", "ep1-002", "Ada", "Who rang the bell in the night?"),
    ("ep2", "The Gauge Tower", "ep2-001", "Narrator", "She came on foot over the causeway."),
    ("ep2", "The Gauge Tower", "ep2-002", "Ada", "The bell rang twice and nobody rang it."),
]


@pytest.fixture(scope="module")
def s3() -> Iterator[str]:
    """The URL of an S3."""
    server = ThreadedMotoServer(ip_address="127.0.0.1", port=0, verbose=False)
    server.start()
    host, port = server.get_host_and_port()
    yield f"http://{host}:{port}"
    server.stop()


@pytest.fixture(scope="module")
def bedrock() -> Iterator[BedrockService]:
    with serving() as service:
        service.embed = lambda texts: WordEmbedder(dimensions=DIMENSIONS).embed(texts, time_budget_s=1)
        yield service


@pytest.fixture
def bucket(s3: str, bedrock: BedrockService, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> str:
    """An empty bucket of a deployment that the environment names."""
    bedrock.calls.clear()
    bedrock.faults.disarm()
    return empty_deployment(monkeypatch, tmp_path, s3=s3, bedrock=bedrock.url, model=MODEL, dimensions=DIMENSIONS)


@pytest.fixture
def script(tmp_path: Path) -> Path:
    """A file of :data:`SCRIPT`."""
    return written(tmp_path / "script.jsonl", SCRIPT)


def written(path: Path, lines: list[tuple[str, str, str, str, str]]) -> Path:
    names = ("episodeId", "episodeName", "messageId", "speaker", "textENG")
    messages = [{**dict(zip(names, line, strict=True)), "chapterId": f"{line[0]}-c1"} for line in lines]
    path.write_text("".join(json.dumps(message) + "\n" for message in messages), encoding="utf-8")
    return path


def hits(capsys: pytest.CaptureFixture[str], *arguments: str) -> list[dict[str, Any]]:
    """What a search finds, whatever its score."""
    capsys.readouterr()
    assert main(["search", *arguments, "--min-score", "0", "--json"]) == 0
    found: list[dict[str, Any]] = json.loads(capsys.readouterr().out)["hits"]
    return found


def places(found: list[dict[str, Any]]) -> list[str]:
    return [hit["passage"]["locator"]["messageId"] for hit in found]


@pytest.mark.usefixtures("bucket")
def test_a_script_is_loaded_and_found(script: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["load", str(script)]) == 0
    told = capsys.readouterr()
    assert told.out.startswith("script: indexed 4 messages of 2 episodes from 1 file ")
    for stage in ("reading: 1 of 1 files", "writing: 1 of 1 segments", "publishing: 1 of 1 version"):
        assert stage in told.err
    found = hits(capsys, "who rang the bell in the night")
    assert places(found)[0] == "ep1-002"
    assert found == sorted(found, key=lambda hit: -hit["score"])
    assert {hit["passage"]["collection"] for hit in found} == {"script"}


@pytest.mark.usefixtures("bucket")
def test_a_load_reports_to_machines(script: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["load", str(script), "--collection", "drafts", "--json"]) == 0
    first = json.loads(capsys.readouterr().out)
    assert {name: first[name] for name in ("collection", "files", "messages", "episodes", "published")} == {
        "collection": "drafts",
        "files": 1,
        "messages": 4,
        "episodes": 2,
        "published": True,
    }
    assert first["embedded"] >= 4
    assert main(["load", str(script), "--collection", "drafts", "--json"]) == 0
    again = json.loads(capsys.readouterr().out)
    assert (again["published"], again["embedded"], again["version"]) == (False, 0, first["version"])


@pytest.mark.usefixtures("bucket")
def test_what_is_there_already_is_said_to_be(script: Path, capsys: pytest.CaptureFixture[str]) -> None:
    main(["load", str(script)])
    capsys.readouterr()
    assert main(["load", str(script)]) == 0
    assert "4 messages of 2 episodes from 1 file already indexed" in capsys.readouterr().out


@pytest.mark.usefixtures("bucket")
def test_filters_and_bounds_reach_the_search(script: Path, capsys: pytest.CaptureFixture[str]) -> None:
    main(["load", str(script)])
    assert places(hits(capsys, "bell", "--episode", "ep1", "--speaker", "Ada")) == ["ep1-002"]
    assert len(hits(capsys, "bell", "--episode", "ep1", "--episode", "ep2")) == 4
    assert main(["search", "bell", "--collection", "other"]) == 2
    assert "collection_unknown" in capsys.readouterr().err
    assert len(hits(capsys, "bell", "--top-k", "1")) == 1
    assert main(["search", "bell", "--min-score", "1", "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["hits"] == []


@pytest.mark.usefixtures("bucket")
def test_in_a_pipe_a_hit_is_a_line_of_fields(script: Path, capsys: pytest.CaptureFixture[str]) -> None:
    main(["load", str(script)])
    capsys.readouterr()
    assert main(["search", "who rang the bell in the night", "--min-score", "0"]) == 0
    best = capsys.readouterr().out.splitlines()[0].split("\t")
    assert len(best) == 4
    assert 0 <= float(best[0]) <= 1
    assert best[2:] == ["The Boathouse · ep1-c1 · ep1-002 · Ada", "Who rang the bell in the night?"]


@pytest.mark.usefixtures("bucket")
def test_a_damaged_script_names_file_line_and_field_and_changes_nothing(
    script: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    main(["load", str(script)])
    bad = tmp_path / "bad.jsonl"
    lines = script.read_text(encoding="utf-8").splitlines()
    lines[2] = lines[2].replace('"speaker": "Narrator"', '"speaker": 7')
    bad.write_text("\n".join(lines) + "\n", encoding="utf-8")
    capsys.readouterr()
    assert main(["load", str(bad)]) == 1
    told = capsys.readouterr()
    assert told.out == ""
    assert f"{bad}:3: speaker" in told.err
    assert len(hits(capsys, "bell")) == 4


@pytest.mark.usefixtures("bucket")
def test_a_path_that_is_not_there_is_named(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["load", str(tmp_path / "missing.json")]) == 1
    assert "missing.json: there is no such file" in capsys.readouterr().err


@pytest.mark.usefixtures("bucket")
def test_searching_before_anything_is_loaded_says_so(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["search", "bell"]) == 1
    assert "index_missing" in capsys.readouterr().err


def test_a_bucket_that_is_not_there_is_named(script: Path, bucket: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["load", str(script), "--bucket", f"{bucket}-gone"]) == 1
    assert f"{bucket}-gone" in capsys.readouterr().err


def test_on_a_terminal_hits_are_a_table_and_progress_is_bars(
    bucket: str, script: Path, s3: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    deployment = Deployment(
        {"bucket": bucket, "embedding_model_id": MODEL, "embedding_dimensions": str(DIMENSIONS)}, Aws()
    )
    err, out = (Console(file=io.StringIO(), force_terminal=True, width=120) for _ in range(2))
    asked = LoadOptions((script,), "script", start_over=True)
    assert load(deployment, asked, err=err) == 0
    bars = err.file.getvalue()  # type: ignore[attr-defined]
    for stage in ("reading", "embedding", "writing", "publishing"):
        assert stage in bars
    query = SearchQuery("the bell", min_score=0, readable=EVERYTHING)
    assert search(deployment, query, groups=None, as_json=False, out=out) == 0
    table = out.file.getvalue()  # type: ignore[attr-defined]
    assert "ep2-002" in table
    assert "4 hits in" in table


NOTES = [("ep3", "The Attic", "ep3-001", "Ada", "The bell is in the attic.")]
RULES = '{"default": "everybody", "collections": {"notes": ["editors", "staff"], "cellar": []}}'


@pytest.fixture
def two_collections(script: Path, tmp_path: Path, bucket: str, capsys: pytest.CaptureFixture[str]) -> None:
    """A script that everybody may read, and notes."""
    del bucket
    assert main(["load", str(script), "--collection", "script"]) == 0
    assert main(["load", str(written(tmp_path / "notes.jsonl", NOTES)), "--collection", "notes"]) == 0
    capsys.readouterr()


@pytest.mark.usefixtures("two_collections")
def test_a_search_can_be_made_as_members_of_groups_would_make_it(capsys: pytest.CaptureFixture[str]) -> None:
    def found(*options: str) -> list[str]:
        assert main(["search", "bell", "--min-score", "0", "--json", "--access", RULES, *options]) == 0
        return sorted(hit["passage"]["collection"] for hit in json.loads(capsys.readouterr().out)["hits"])

    assert found() == found("--groups", "staff, others") == ["notes", *["script"] * 4]
    assert found("--groups", "others") == found("--groups", "") == ["script"] * 4
    assert main(["search", "bell", "--groups", "others", "--access", RULES, "--collection", "notes"]) == 2
    assert "Unknown collection “notes”. Available: “script”." in capsys.readouterr().err
    facets = ["retrieve", "--pipeline", "facets", "--facet", "collection", "--access", RULES]
    assert main([*facets, "--groups", "others"]) == 0
    assert capsys.readouterr().out == "collection\t4\tscript\n"
    assert main(facets) == 0
    assert capsys.readouterr().out == "collection\t4\tscript\ncollection\t1\tnotes\n"
    with pytest.raises(SystemExit):
        main(["search", "bell", "--groups", "a\x01b"])
    capsys.readouterr()
    assert main(["search", "bell", "--groups", "others", "--access", "[]"]) == 2
    assert "invalid access settings" in capsys.readouterr().err


@pytest.mark.usefixtures("two_collections")
def test_collections_are_listed_with_their_readers(
    bucket: str, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("CICADA_ACCESS", RULES)
    assert main(["collections"]) == 0
    told = capsys.readouterr()
    assert told.out == "cellar\t0\t\tnobody\nnotes\t1\t\teditors, staff\nscript\t4\t\teverybody\n"
    assert told.err == "cicada: the access rules name a collection that does not exist: cellar\n"
    assert main(["collections", "--json", "--access", '{"default": "nobody"}']) == 0
    assert [json.loads(line) for line in capsys.readouterr().out.splitlines()] == [
        {"collection": "notes", "passages": 1, "kind": None, "readers": []},
        {"collection": "script", "passages": 4, "kind": None, "readers": []},
    ]
    out = Console(file=io.StringIO(), force_terminal=True, width=120)
    assert collection_rules(Deployment({"bucket": bucket, "access": RULES}, Aws()), as_json=False, out=out) == 0
    table = out.file.getvalue()  # type: ignore[attr-defined]
    assert "readers" in table
    assert "editors, staff" in table

"""``cicada status`` and ``cicada collections`` against a deployment with fixed replies."""

from __future__ import annotations

import json
import os
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

from cicada.breakers.decide import BreakerState
from cicada.errors import UnknownAction
from cicada.protocol.corpus import CollectionListed, Collections, EpisodeListed, SectionListed
from cicada.protocol.events import Refused
from cicada_cli import breakers, status
from cicada_cli.aws import Aws
from cicada_cli.deployment import Deployment
from cicada_cli.doctor.findings import Status
from cicada_cli.main import main
from tests.support.scripted_deployment import ScriptedDeployment

SCRIPT = CollectionListed(
    name="script",
    title="The Boathouse",
    passages=20,
    documents=2,
    episodes=(EpisodeListed(id="ep1", name="The Bell", passages=12), EpisodeListed(id="ep2", passages=8)),
    sections=(SectionListed(path="people", passages=5),),
    more_episodes=1,
)
MANUALS = CollectionListed(name="manuals", passages=7, documents=3)


@pytest.fixture(autouse=True)
def place(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.chdir(tmp_path)
    for name in [name for name in os.environ if name.startswith(("CICADA_", "AWS_"))]:
        monkeypatch.delenv(name)
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path))
    monkeypatch.setenv("AWS_CONFIG_FILE", os.devnull)
    monkeypatch.setenv("CICADA_STACK_PREFIX", "Nothing")


def replying(reply: Any) -> ScriptedDeployment:
    return ScriptedDeployment(reply=lambda action: reply.model_copy(update={"request_id": action.request_id}))


@pytest.fixture
def url() -> Iterator[str]:
    reply = Collections(
        index_version="v7", collections=(MANUALS, SCRIPT), examples=("Who rings the bell?",), empty=False
    )
    with replying(reply) as server:
        yield server.url


def test_collections_are_listed_a_line_each_or_as_json(url: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["collections", "--url", url]) == 0
    assert capsys.readouterr().out == "manuals\t7\t3\t0\t\nscript\t20\t2\t3\tThe Boathouse\n"
    assert main(["collections", "--url", url, "--json"]) == 0
    assert [json.loads(line)["name"] for line in capsys.readouterr().out.splitlines()] == ["manuals", "script"]


def test_the_parts_of_one_collection_are_listed(url: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["collections", "script", "--url", url]) == 0
    told = capsys.readouterr()
    assert told.out == "episode\tep1\t12\tThe Bell\nepisode\tep2\t8\t\nsection\tpeople\t5\t\n"
    assert told.err == "1 other episode or section not listed\n"


def test_an_unknown_collection_is_said_to_be_unknown(url: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["collections", "scirpt", "--url", url]) == 2
    assert capsys.readouterr().err == "cicada: unknown collection 'scirpt'. Did you mean 'script'?\n"


def test_an_empty_corpus_says_how_to_load_one(capsys: pytest.CaptureFixture[str]) -> None:
    with replying(Collections(index_version=None, collections=(), empty=True)) as server:
        assert main(["collections", "--url", server.url]) == 0
        assert "cicada load PATH" in capsys.readouterr().err
        assert main(["status", "--url", server.url]) == 0
    assert "warning\tindex\tversion\tnothing is loaded" in capsys.readouterr().out


def test_an_earlier_server_is_said_to_be_one(capsys: pytest.CaptureFixture[str]) -> None:
    with replying(Refused.of(UnknownAction())) as server:
        assert main(["collections", "--url", server.url]) == 1
        assert "earlier release" in capsys.readouterr().err
        assert main(["status", "--url", server.url]) == 0
    assert "unknown\tindex\tversion\t" in capsys.readouterr().out


def test_the_status_shows_what_a_user_can_see(url: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["status", "--url", url, "--json"]) == 0
    found = {one["check"]: one for one in map(json.loads, capsys.readouterr().out.splitlines())}
    assert [*found] == ["deployment", "sign-in", "index", "collections", "loads", "breakers", "alarms"]
    assert found["index"]["message"] == "v7"
    assert found["collections"]["message"] == "2 collections, 27 passages: manuals (7), script (20)"
    assert {found[check]["status"] for check in ("loads", "breakers", "alarms")} == {"unknown"}


def test_a_deployment_that_does_not_answer_is_status_3(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    with ScriptedDeployment(token="right") as server:
        assert main(["status", "--url", server.url, "--token", "wrong"]) == 3
    assert capsys.readouterr().out.startswith(f"problem\tdeployment\t{server.url}\t")


OPERATED = Deployment({"bucket": "b", "requests_table": "t"}, Aws())
NOW = datetime(2026, 11, 25, 12, tzinfo=UTC)


def test_an_open_breaker_is_a_problem(monkeypatch: pytest.MonkeyPatch) -> None:
    states = [
        BreakerState("cache", "closed", 1, None, 0, None, False, None),
        BreakerState("index", "open", 5, 1_795_000_000.0, 2, None, False, "index_unavailable"),
    ]
    monkeypatch.setattr(breakers, "read_states", lambda *_: states)
    (found,) = status._open_breakers(OPERATED)
    assert (found.status, found.subject) == (Status.PROBLEM, "index")
    assert "cause index_unavailable" in found.message
    monkeypatch.setattr(breakers, "read_states", lambda *_: states[:1])
    (found,) = status._open_breakers(OPERATED)
    assert found.status is Status.OK


def test_the_last_change_of_the_index_is_shown(monkeypatch: pytest.MonkeyPatch) -> None:
    from cicada.audit import listing
    from cicada_cli import index

    def recorded(action: str, outcome: listing.Ending) -> listing.Recorded:
        return listing.Recorded("id", NOW, action, "arn:ada", None, {}, outcome, "KeyError")

    records = [recorded("user_added", "done"), recorded("version_published", "failed")]
    monkeypatch.setattr(index, "store_of", lambda _: None)
    monkeypatch.setattr(listing, "list_records", lambda *_, **__: iter(records))
    (found,) = status._last_load(OPERATED)
    assert found.status is Status.PROBLEM
    assert found.message == "last change 2026-11-25T12:00:00Z: version published by arn:ada failed: KeyError"

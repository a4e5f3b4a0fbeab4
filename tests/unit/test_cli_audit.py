"""``cicada audit``: a table on a terminal, lines in a pipe, objects as JSON; newest first and made safe."""

from __future__ import annotations

import io
import json
from datetime import UTC, datetime, timedelta

import pytest
from rich.console import Console

from cicada.audit.records import record
from cicada.errors import IndexUnavailable
from cicada_cli import audit as command
from cicada_cli.aws import Aws
from cicada_cli.deployment import Deployment
from cicada_cli.main import build_parser
from tests.support.object_stores import InMemoryStore

NOON = datetime(2026, 11, 25, 12, 0, tzinfo=UTC)
HOSTILE = "jo\x1b[31m"
DEPLOYMENT = Deployment({"bucket": "records"}, Aws())


@pytest.fixture
def store(monkeypatch: pytest.MonkeyPatch) -> InMemoryStore:
    store = InMemoryStore()
    monkeypatch.setattr("cicada_cli.index.store_of", lambda _: store)
    with record(store, "user_removed", actor="jo", subject="user/5f", now=lambda: NOON - timedelta(days=2)):
        pass
    with (
        pytest.raises(KeyError),
        record(store, "limits_set", actor=HOSTILE, details={"usdDay": 2}, now=lambda: NOON),
    ):
        raise KeyError
    return store


def run(capsys: pytest.CaptureFixture[str], *words: str, terminal: bool = False) -> str:
    args = build_parser().parse_args(["audit", *words])
    out = Console(file=io.StringIO(), force_terminal=True, width=200) if terminal else Console()
    done = command.audit(
        DEPLOYMENT, since_s=args.since, actions=args.action, as_json=args.json, out=out, now=lambda: NOON
    )
    assert done == 0
    told = capsys.readouterr()
    return told.err + (out.file.getvalue() if terminal and isinstance(out.file, io.StringIO) else told.out)


@pytest.mark.usefixtures("store")
def test_in_a_pipe_each_record_is_a_line_newest_first(capsys: pytest.CaptureFixture[str]) -> None:
    newest, oldest = (line.split("\t") for line in run(capsys).splitlines())
    assert newest[:4] == ["2026-11-25T12:00:00.000Z", "limits_set", "failed: KeyError", ""]
    assert newest[5] == "usdDay=2"
    assert oldest[1:5] == ["user_removed", "done", "user/5f", "jo"]


@pytest.mark.usefixtures("store")
def test_records_are_chosen_by_time_and_action(capsys: pytest.CaptureFixture[str]) -> None:
    assert [line.split("\t")[1] for line in run(capsys, "--since", "1d").splitlines()] == ["limits_set"]
    chosen = run(capsys, "--since", "90d", "--action", "user_removed", "--action", "user_erased", "--json")
    (found,) = map(json.loads, chosen.splitlines())
    assert found.items() >= {"action": "user_removed", "outcome": "done", "actor": "jo", "subject": "user/5f"}.items()
    with pytest.raises(SystemExit):
        build_parser().parse_args(["audit", "--action", "made_up"])


@pytest.mark.usefixtures("store")
def test_on_a_terminal_records_are_a_table_in_which_nothing_is_unsafe(capsys: pytest.CaptureFixture[str]) -> None:
    shown = run(capsys, terminal=True)
    assert all(column in shown for column in command.COLUMNS)
    assert "user_removed" in shown
    assert "\x1b[31m" not in shown
    assert "No changes in this period" in run(capsys, "--action", "version_published", terminal=True)


def test_records_that_cannot_be_read_are_told(
    store: InMemoryStore, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def down(_: str) -> None:
        raise IndexUnavailable("AccessDenied")

    monkeypatch.setattr(store, "entries", down)
    done = command.audit(DEPLOYMENT, since_s=60, actions=[], as_json=False, out=Console())
    assert done == 1
    assert "cannot read the audit records: AccessDenied" in capsys.readouterr().err

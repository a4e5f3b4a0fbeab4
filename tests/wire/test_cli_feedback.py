"""``cicada feedback``: lists, counts and exports ratings, made safe; from a table as the deployment fills it."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import replace
from uuid import UUID

import pytest

from cicada.delivery.dynamodb import STORE_CONFIG
from cicada.delivery.record import RequestKey
from cicada.feedback.record import FeedbackRecord
from cicada.feedback.store import DynamoDbFeedback
from cicada_cli import feedback as command
from cicada_cli.main import main
from tests.support.dynamodb import TABLE, requests_table
from tests.support.questions import NOW_S, new_head

DAY_S = 24 * 3600
HOSTILE = "It\x1b[31m cites the wrong night."
Run = Callable[..., str]


@pytest.fixture
def run(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Run:
    def run_one(*words: str) -> str:
        with requests_table(monkeypatch, STORE_CONFIG) as client:
            monkeypatch.setattr(command, "table_client", lambda _deployment: client)
            monkeypatch.setattr("cicada_cli.feedback.time.time", lambda: NOW_S)
            store = DynamoDbFeedback(client, TABLE)
            for n, days in enumerate((0, 2, 40)):
                asked_at_ms = (NOW_S - days * DAY_S) * 1000
                down = n == 1
                key = RequestKey("mara", str(UUID(int=n)))
                record = FeedbackRecord(
                    request_id=key.request_id,
                    rating="down" if down else "up",
                    reason="bad_sources" if down else None,
                    comment=HOSTILE if down else None,
                    given_at_ms=asked_at_ms,
                    asked_at_ms=asked_at_ms,
                    question=f"Who rang the bell {n} times?",
                    state="complete",
                    strategies=("hybrid", "rag"),
                    collections=("manuals", "script") if down else (),
                )
                store.put(replace(new_head(), key=key, accepted_at_ms=asked_at_ms), record, expires_at=NOW_S + DAY_S)
            assert main(["feedback", *words, "--table", TABLE]) == 0
        told = capsys.readouterr()
        return told.err + told.out

    return run_one


def test_in_a_pipe_each_rating_is_a_line_newest_first(run: Run) -> None:
    newest, oldest = (line.split("\t") for line in run("list").splitlines())
    assert newest[1:6] == ["up", "", "rag", "", "Who rang the bell 0 times?"]
    assert oldest[1:6] == ["down", "bad_sources", "rag", "manuals, script", "Who rang the bell 1 times?"]
    assert "\x1b" not in "".join(oldest)
    assert oldest[7] == str(UUID(int=1))


def test_ratings_are_chosen_by_time_rating_and_reason(run: Run) -> None:
    assert len(run("list", "--since", "90d").splitlines()) == 3
    assert len(run("list", "--since", "90d", "--rating", "up").splitlines()) == 2
    assert len(run("list", "--reason", "bad_sources", "--reason", "wrong").splitlines()) == 1
    assert run("list", "--reason", "outdated") == "No feedback in this period.\n"


def test_ratings_are_counted(run: Run) -> None:
    assert [line.split("\t") for line in run("count", "--since", "90d").splitlines()] == [
        ["rating", "down", "0", "1"],
        ["rating", "up", "2", "0"],
        ["reason", "bad_sources", "0", "1"],
        ["collection", "manuals", "0", "1"],
        ["collection", "script", "0", "1"],
        ["collection", "-", "2", "0"],
        ["strategy", "rag", "2", "1"],
    ]
    first = json.loads(run("count", "--json").splitlines()[0])
    assert first == {"by": "rating", "value": "down", "up": 0, "down": 1}


def test_an_export_has_every_field_and_loses_nothing(run: Run) -> None:
    (_, line) = run("export").splitlines()
    exported = json.loads(line)
    assert FeedbackRecord.model_validate_json(json.dumps(exported)).comment == HOSTILE
    assert exported.keys() == {field.alias or name for name, field in FeedbackRecord.model_fields.items()}
    assert "\x1b" not in line

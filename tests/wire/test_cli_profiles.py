"""``cicada profile`` and the client's profile calls over real sockets, against the real operations."""

from __future__ import annotations

import asyncio
import json
import os
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from cicada.answering.profile_api import ProfileApi
from cicada.errors import CicadaError, ProfilesUnavailable
from cicada.profiles.service import ProfileService
from cicada.protocol.events import (
    ChangedField,
    Chunk,
    Complete,
    Confirm,
    Confirmed,
    LogEvent,
    Metrics,
    ProfileChanged,
    Receipt,
    Refused,
    dump_event,
    event_frame,
    reply_frame,
)
from cicada_cli.main import main
from cicada_client import CicadaClient, ConnectionLost, InvalidQuestion, RequestRefused
from tests.support.profiles import InMemoryProfiles
from tests.wire.test_client_cli import running
from tests.wire.test_client_wire import FAST, Deployment


class Keeping(Deployment):
    """A deployment that keeps one user's profiles."""

    def __init__(self, **misbehaviour: Any) -> None:
        super().__init__(replies=self._reply, **misbehaviour)
        self.store = InMemoryProfiles()
        self.counter = ProfileApi(ProfileService(self.store))
        self.refusals: list[CicadaError] = []

    def _reply(self, action: Any) -> str | list[str] | None:
        if action.action != "profile":
            return None
        try:
            if self.refusals:
                raise self.refusals.pop(0)
            return reply_frame(self.counter.handle(action, "mara"))
        except CicadaError as error:
            return reply_frame(Refused.of(error, action.request_id, detail=str(error)))


@pytest.fixture(autouse=True)
def no_surroundings(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """No deployment but the one that the test names."""
    monkeypatch.chdir(tmp_path)
    for name in list(os.environ):
        if name.startswith(("CICADA_", "AWS_")):
            monkeypatch.delenv(name)


@pytest.fixture
def cicada(capsys: pytest.CaptureFixture[str]) -> Any:
    """Runs the command against one deployment: its status, and what it printed."""
    with running(Keeping()) as url:

        def run(*arguments: str) -> tuple[int, str, str]:
            status = main(["profile", *arguments, "--url", url])
            told = capsys.readouterr()
            return status, told.out, told.err

        yield run


def test_a_profile_is_made_changed_shown_and_deleted(cicada: Any) -> None:
    status, out, _ = cicada("create", "character", "Tamsin Oake", "hair=red", "room=attic")
    assert (status, out.splitlines()[1].split("\t")[:2]) == (0, ["hair", "red"])
    status, out, _ = cicada("set", "tamsin oake", "hair=black")
    assert status == 0
    assert "“Tamsin Oake”, character, version 2" in out
    status, out, _ = cicada("unset", "Tamsin Oake", "room")
    assert "attic" not in out
    _, out, _ = cicada("show", "Tamsin Oake")
    fact = next(line.split("\t") for line in out.splitlines() if line.startswith("hair"))
    assert fact[1] == "black"
    assert fact[2].startswith("you, ")
    _, out, _ = cicada("history", "Tamsin Oake")
    rows = [line.split("\t") for line in out.splitlines()]
    assert [(row[0], *row[2:]) for row in rows] == [
        ("3", "removed room", "attic", ""),
        ("2", "changed hair", "red", "black"),
        ("1", "set hair", "", "red"),
        ("", "set room", "", "attic"),
    ]
    status, out, _ = cicada("delete", "Tamsin Oake")
    assert (status, out) == (0, "Deleted character “Tamsin Oake” and its history.\n")
    assert cicada("list")[1] == ""


def test_a_change_is_taken_back(cicada: Any) -> None:
    cicada("create", "character", "Tamsin Oake", "hair=red")
    cicada("set", "tamsin oake", "hair=black")
    status, out, _ = cicada("undo", "tamsin oake")
    assert (status, out.splitlines()[1].split("\t")[:2]) == (0, ["hair", "red"])
    status, _, err = cicada("undo", "tamsin oake", "--version", "2")
    assert (status, "changed after version 2" in err) == (1, True)
    cicada("create", "character", "Corin")
    status, out, _ = cicada("undo", "Corin")
    assert (status, "Deleted character" in out) == (0, True)


class Asking(Keeping):
    """A deployment whose answer has made a profile, and asks to delete another."""

    def __init__(self) -> None:
        super().__init__()
        self.confirmed: list[bool] = []
        change = ProfileChanged(
            operation="updated",
            id="5d0c3b1e9f7a24680bce",
            kind="character",
            name="Tamsin\x1b[2J",
            version=2,
            fields=(ChangedField(field="hair", before="red", after="black"),),
            undoable=True,
        )
        self.asks = Confirm(
            attempt=1,
            confirmation_id="0" * 32,
            operation="delete",
            id="0" * 20,
            kind="theory",
            name="Ren lies",
            version=1,
            expires_at_ms=1,
        )
        self.log: list[LogEvent] = [
            Chunk(attempt=1, content="Noted."),
            Receipt(attempt=1, change=change),
            self.asks,
            DONE,
        ]

    def _reply(self, action: Any) -> str | list[str] | None:
        if action.action == "ask":
            return [event_frame(action.request_id, n, dump_event(event)) for n, event in enumerate(self.log, start=1)]
        if action.action == "confirm":
            self.confirmed.append(action.accept)
            outcome = "done" if action.accept else "declined"
            told = Confirmed(request_id=action.request_id, confirmation_id=action.confirmation_id, outcome=outcome)
            return reply_frame(told)
        return super()._reply(action)


DONE = Complete(
    attempt=1,
    answered_by="profile_agent",
    attempted=("profile_agent",),
    model="m",
    grounded=False,
    stop_reason="end_turn",
    changes=2,
    metrics=Metrics(latency_ms=10, attempt_ms=9, first_chunk_ms=8),
)


@pytest.mark.parametrize(("typed", "accepted"), [("y", True), ("", False), ("what?", False)])
def test_a_receipt_is_shown_and_a_deletion_is_confirmed_at_the_terminal(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], typed: str, accepted: bool
) -> None:
    monkeypatch.setattr("sys.stdin.isatty", lambda: True)
    monkeypatch.setattr("builtins.input", lambda prompt: typed)
    deployment = Asking()
    with running(deployment) as url:
        assert main(["ask", "Note it", "--url", url]) == 0
    told = capsys.readouterr().out
    assert "✎ Tamsin (character) changed\n  hair: “red” → “black”" in told
    assert "cicada profile undo 5d0c3b1e9f7a24680bce --version 2" in told
    assert "Delete with its history: Ren lies (theory)" in told
    assert deployment.confirmed == [accepted]
    assert ("Deleted." if accepted else "Nothing was deleted.") in told


def test_nothing_is_deleted_where_nobody_can_confirm_it(capsys: pytest.CaptureFixture[str]) -> None:
    deployment = Asking()
    with running(deployment) as url:
        assert main(["ask", "Note it", "--url", url]) == 0
    assert deployment.confirmed == []
    assert "confirm the deletion on a terminal" in capsys.readouterr().err


def test_an_answer_that_changed_nothing_though_it_was_asked_to_says_so(capsys: pytest.CaptureFixture[str]) -> None:
    deployment = Asking()
    deployment.log = [Chunk(attempt=1, content="I noted it."), DONE.model_copy(update={"changes": 0})]
    with running(deployment) as url:
        assert main(["ask", "Note it", "--url", url]) == 0
    assert "No profile was changed." in capsys.readouterr().out


def test_profiles_are_listed_a_line_each_or_as_json(cicada: Any) -> None:
    cicada("create", "location", "The Boathouse", "door=locked")
    cicada("create", "theory", "The key", "--statement", "Ilse moved the key", "--episode", "ep1")
    _, out, _ = cicada("list")
    assert [line.split("\t")[:4] for line in out.splitlines()] == [
        ["location", "The Boathouse", "1", "1 fact"],
        ["theory", "Ilse moved the key", "1", "0 facts"],
    ]
    _, out, _ = cicada("list", "--kind", "theory", "--json")
    (theory,) = map(json.loads, out.splitlines())
    assert (theory["name"], theory["statement"]) == ("The key", "Ilse moved the key")


def test_a_theory_is_refined_and_keeps_its_episodes(cicada: Any) -> None:
    cicada("create", "theory", "The key", "--statement", "Ilse moved the key", "--episode", "ep1")
    _, out, _ = cicada("set", "the key", "--statement", "Ilse hid the key")
    assert "Statement: Ilse hid the key\nEpisodes: ep1\nNo verdict yet." in out
    _, out, _ = cicada("set", "the key", "--episode", "ep2", "--json")
    shown = json.loads(out)
    assert (shown["theory"]["statement"], shown["theory"]["episodes"]) == ("Ilse hid the key", ["ep2"])


def test_an_export_is_one_json_document_with_every_profile_and_its_history(cicada: Any) -> None:
    for n in range(12):
        cicada("create", "character", f"Person {n}", f"note={'é' * 900}")
    status, out, _ = cicada("export")
    profiles = json.loads(out)["profiles"]
    assert (status, len(profiles)) == (0, 12)
    assert {one["history"][0]["operation"] for one in profiles} == {"created"}


@pytest.mark.parametrize(
    ("arguments", "status", "told"),
    [
        (["show", "Nobody"], 1, "profile_unknown"),
        (["show", "0" * 20], 1, "profile_unknown"),
        (["create", "character", "corin"], 1, "profile_conflict"),
        (["set", "Corin", "hair=red", "--version", "7"], 1, "version 1 is current"),
        (["unset", "Corin", "beard"], 1, "beard"),
        (["set", "Corin", "--statement", "x"], 1, "theory"),
        (["create", "character", "x" * 81], 2, "name"),
    ],
)
def test_what_cannot_be_done_is_said(cicada: Any, arguments: list[str], status: int, told: str) -> None:
    cicada("create", "character", "Corin")
    done, _, err = cicada(*arguments)
    assert done == status
    assert told in err


def test_of_a_name_that_nothing_has_the_closest_are_told(cicada: Any) -> None:
    cicada("create", "character", "Tamsin Oake")
    cicada("create", "location", "The Boathouse")
    assert "Did you mean 'Tamsin Oake'?" in cicada("show", "tamsin")[2]
    assert "Did you mean 'The Boathouse'?" in cicada("delete", "the boat house")[2]
    assert "Did you mean" not in cicada("history", "Ilse")[2]
    assert "Did you mean" not in cicada("show", "Tamsin", "--kind", "location")[2]


@pytest.mark.parametrize(
    "arguments",
    [
        ["set", "x", "hair"],
        ["set", "x", "hair=red", "room=attic", "Hair=black"],
        ["create", "character", "x", "hair=red", "hair=black"],
        ["create", "person", "x"],
        ["unset", "x"],
        [],
    ],
)
def test_a_command_line_that_is_not_valid_is_status_2(arguments: list[str]) -> None:
    with pytest.raises(SystemExit) as ended:
        main(["profile", *arguments])
    assert ended.value.code == 2


def client(url: str, **timing: Any) -> CicadaClient:
    return CicadaClient(url, timing=replace(FAST, **timing))


@pytest.mark.parametrize("drops_after", [[0], [0, 0, 0]])
def test_a_connection_that_is_lost_before_the_reply_makes_no_second_change(drops_after: list[int]) -> None:
    deployment = Keeping(drops_after=drops_after)

    async def create() -> int:
        async with deployment.serving() as url, client(url) as asking:
            return (await asking.profiles.create("character", "Tamsin", {"hair": "red"})).version

    assert asyncio.run(create()) == 1
    assert deployment.store.writes == 1
    assert deployment.actions == ["profile"] * (len(drops_after) + 1)


def test_a_store_that_fails_for_a_moment_is_asked_again_and_a_conflict_is_not() -> None:
    deployment = Keeping()
    deployment.refusals = [ProfilesUnavailable("throttled")] * 2

    async def use() -> None:
        async with deployment.serving() as url, client(url) as asking:
            made = await asking.profiles.create("character", "Tamsin")
            with pytest.raises(RequestRefused) as refused:
                await asking.profiles.update(made.id, 9, {"hair": "red"})
            assert refused.value.code == "profile_conflict"

    asyncio.run(use())
    assert deployment.actions == ["profile"] * 4


def test_a_server_that_never_answers_is_given_up() -> None:
    async def use() -> None:
        async with Keeping(deaf=1_000).serving() as url, client(url, reply_s=0.05, attempts=2) as asking:
            await asking.profiles.list()

    with pytest.raises(ConnectionLost):
        asyncio.run(use())


def test_what_breaks_the_protocol_is_refused_before_it_is_sent() -> None:
    deployment = Keeping()

    async def use() -> None:
        async with deployment.serving() as url, client(url) as asking:
            await asking.profiles.show()

    with pytest.raises(InvalidQuestion, match="either id or name"):
        asyncio.run(use())
    assert deployment.actions == []


def test_questions_and_calls_share_the_connection() -> None:
    deployment = Keeping()

    async def use() -> str:
        async with deployment.serving() as url, client(url) as asking:
            answer, _ = await asyncio.gather(
                asking.answer("Who rang?"),
                asyncio.gather(*(asking.profiles.create("character", f"Person {n}") for n in range(20))),
            )
            assert len(await asking.profiles.list()) == 20
            return answer.text

    assert asyncio.run(use())
    assert deployment.connections == 1

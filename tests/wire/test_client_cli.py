"""``cicada ask`` and ``cicada chat`` over real sockets."""

from __future__ import annotations

import asyncio
import contextlib
import json
import os
import re
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from cicada import errors as codes
from cicada.protocol.actions import Ask, Cancel
from cicada.protocol.events import (
    Accepted,
    Chunk,
    Complete,
    Failed,
    LogEvent,
    Refused,
    dump_event,
    event_frame,
    reply_frame,
)
from cicada.usage.limits import LimitState
from cicada_cli.main import main
from tests.wire.test_client_wire import LOG, TEXT, Deployment

ROOT = Path(__file__).resolve().parents[2]


@pytest.fixture(autouse=True)
def no_surroundings(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """No deployment but the one that the test names, and no history but its own."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    for name in list(os.environ):
        if name.startswith(("CICADA_", "AWS_")):
            monkeypatch.delenv(name)


@contextmanager
def running(deployment: Deployment) -> Iterator[str]:
    """Serve it from a thread."""
    loop = asyncio.new_event_loop()
    thread = threading.Thread(target=loop.run_forever, daemon=True)
    thread.start()
    serving = deployment.serving()
    url = asyncio.run_coroutine_threadsafe(serving.__aenter__(), loop).result(10)
    try:
        yield url
    finally:
        asyncio.run_coroutine_threadsafe(serving.__aexit__(None, None, None), loop).result(10)
        loop.call_soon_threadsafe(loop.stop)
        thread.join(10)
        loop.close()


def only(event: LogEvent) -> Callable[[Any], str]:
    """A reply to everything: a log of one event."""
    return lambda action: event_frame(action.request_id, 1, dump_event(event))


def test_an_answer_is_printed_and_the_status_is_0(capsys: pytest.CaptureFixture[str]) -> None:
    with running(Deployment()) as url:
        assert main(["ask", "Who rang?", "--url", url]) == 0
    told = capsys.readouterr()
    assert told.out.startswith(f"{TEXT.strip()}\n")
    assert "answered by direct" in told.out
    assert "rag failed: The answer was interrupted." in told.err


def test_with_json_standard_output_holds_the_events_and_nothing_else(capsys: pytest.CaptureFixture[str]) -> None:
    with running(Deployment()) as url:
        assert main(["ask", "Who rang?", "--url", url, "--json"]) == 0
    events = [json.loads(line) for line in capsys.readouterr().out.splitlines()]
    assert [event["seq"] for event in events] == list(range(1, len(LOG) + 1))
    assert [event["type"] for event in events] == [event.type for event in LOG]


def test_what_the_question_is_limited_to_goes_out_with_it() -> None:
    deployment = Deployment()
    with running(deployment) as url:
        options = [
            "--episode",
            "ep1",
            "--episode",
            "ep2",
            "--collection",
            "script",
            "--document",
            "a.md",
            "--top-k",
            "7",
            "--json",
        ]
        assert main(["ask", "Who rang?", "--url", url, *options]) == 0
    asked = next(iter(deployment.asked.values()))
    assert (asked.query, asked.episodes, asked.collections, asked.documents, asked.top_k) == (
        "Who rang?",
        ("ep1", "ep2"),
        ("script",),
        ("a.md",),
        7,
    )


def test_a_question_can_come_from_standard_input(monkeypatch: pytest.MonkeyPatch) -> None:
    deployment = Deployment()
    read, write = os.pipe()
    os.write(write, b"Who rang\nthe bell?\n")
    os.close(write)
    with running(deployment) as url, os.fdopen(read) as stdin:
        monkeypatch.setattr(sys, "stdin", stdin)
        assert main(["ask", "-", "--url", url, "--json"]) == 0
    assert next(iter(deployment.asked.values())).query == "Who rang\nthe bell?"


def test_the_url_and_the_token_can_come_from_the_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    deployment = Deployment()
    with running(deployment) as url:
        monkeypatch.setenv("CICADA_URL", url)
        monkeypatch.setenv("CICADA_TOKEN", "secret")
        assert main(["ask", "Who rang?", "--json"]) == 0
    assert deployment.tokens == ["Bearer secret"]


def test_a_token_file_is_read(tmp_path: Path) -> None:
    deployment = Deployment()
    path = tmp_path / "token"
    path.write_text("from-file\n", encoding="utf-8")
    with running(deployment) as url:
        assert main(["ask", "Who rang?", "--url", url, "--token-file", str(path), "--json"]) == 0
    assert deployment.tokens == ["Bearer from-file"]


def test_an_error_event_is_status_1(capsys: pytest.CaptureFixture[str]) -> None:
    with running(Deployment(replies=only(Failed.of(codes.ModelBusy())))) as url:
        assert main(["ask", "Who rang?", "--url", url]) == 1
    assert capsys.readouterr().err == "cicada: The model is busy. Please try again shortly. (model_busy)\n"


def test_a_refusal_is_status_1(capsys: pytest.CaptureFixture[str]) -> None:
    def refuse(action: Any) -> str:
        return reply_frame(Refused.of(codes.RequestConflict(), action.request_id))

    with running(Deployment(replies=refuse)) as url:
        assert main(["ask", "Who rang?", "--url", url]) == 1
    assert "request_conflict" in capsys.readouterr().err


def test_a_limit_is_status_5_at_once(capsys: pytest.CaptureFixture[str]) -> None:
    tomorrow_ms = int((time.time() + 86_400) * 1000)
    limit = LimitState(account="user", limit="usdDay", most=2, left=0.25, resets_at_ms=tomorrow_ms)

    def refuse(action: Any) -> str:
        return reply_frame(Refused.of(codes.LimitReached(limit), action.request_id))

    with running(Deployment(replies=refuse)) as url:
        assert main(["ask", "Who rang?", "--url", url]) == 5
    said = capsys.readouterr()
    assert said.out == ""
    assert said.err.startswith(
        "cicada: You have reached your limit of $2.00 a day. $0.25 left, which is too little for a question. You"
    )
    assert said.err.endswith(" (limit_reached)\n")


@pytest.mark.parametrize(
    "arguments",
    [
        ["ask"],
        ["answer", "?"],
        ["ask", "?", "--top-k", "0"],
        ["ask", "?", "--top-k", "many"],
        ["ask", "?", "--token", "a", "--token-file", "b"],
        ["search", "?", "--min-score", "1.5"],
        ["search", "?", "--min-score", "nan"],
        ["load"],
    ],
)
def test_a_command_line_that_is_not_valid_is_status_2(arguments: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    try:
        status = main(arguments)
    except SystemExit as ended:
        status = int(ended.code or 0)
    assert status == 2
    told = capsys.readouterr()
    assert told.out == ""
    assert re.search(r"\nRun `cicada[a-z -]*` for (usage|the list of commands)\.\n$", told.err)


@pytest.mark.parametrize(
    ("arguments", "suggestion"),
    [
        (["aks", "?"], "unknown command 'aks'. Did you mean 'ask'?"),
        (["index", "verisons"], "unknown command 'verisons'. Did you mean 'versions'?"),
        (["ask", "?", "--profile", "work"], "unknown option '--profile'. Did you mean '--aws-profile'"),
        (["search", "?", "--mode", "dens"], "argument --mode: unknown value 'dens'. Did you mean 'dense'?"),
        (["retrieve", "--pipeline", "x"], "unknown value 'x'. Valid: standard, rerank, advanced, facets."),
        (["help", "lod"], "unknown command 'lod'. Did you mean 'load'"),
    ],
)
def test_unknown_names_are_said_to_be_unknown(
    arguments: list[str], suggestion: str, capsys: pytest.CaptureFixture[str]
) -> None:
    with contextlib.suppress(SystemExit):
        assert main(arguments) == 2
    assert suggestion in capsys.readouterr().err


def test_an_unknown_episode_is_status_2_and_near_ones_are_suggested(capsys: pytest.CaptureFixture[str]) -> None:
    unknown = codes.EpisodeUnknown("unknown", told="Unknown episode “ep-3”.", known=("ep1", "ep2", "ep3"))
    with running(Deployment(replies=only(Failed.of(unknown)))) as url:
        assert main(["ask", "Who rang?", "--url", url, "--episode", "ep-3"]) == 2
    assert capsys.readouterr().err.startswith("cicada: Unknown episode “ep-3”. Did you mean 'ep3'")


@pytest.mark.parametrize("arguments", [[], ["--help"], ["help"], ["--plain"], ["-h", "ask"]])
def test_the_command_alone_lists_what_to_type_first(arguments: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    assert main(arguments) == 0
    told = capsys.readouterr()
    assert "Start here:" in told.out
    assert told.err == ""


def test_help_shows_a_commands_options_and_examples(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["help", "index", "rollback"]) == 0
    told = capsys.readouterr().out
    assert told.startswith("usage: cicada index rollback [options] VERSION\n")
    assert "\nexamples:\n  cicada index rollback " in told


@pytest.mark.parametrize("command", [["ask", "?"], ["chat"], ["load", "x.json"], ["search", "?"]])
def test_a_command_without_a_deployment_is_status_2_and_says_what_helps(
    command: list[str], capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("AWS_CONFIG_FILE", os.devnull)
    monkeypatch.setenv("CICADA_STACK_PREFIX", "Nothing")  # passes a local cloud of this very tree over
    assert main(command) == 2
    assert "make up" in capsys.readouterr().err


def test_an_empty_question_is_status_2(capsys: pytest.CaptureFixture[str]) -> None:
    with running(Deployment()) as url:
        assert main(["ask", " ", "--url", url]) == 2
    assert "query" in capsys.readouterr().err


@pytest.mark.parametrize("status", [401, 404])
def test_a_server_that_lets_nobody_in_is_status_3(status: int, capsys: pytest.CaptureFixture[str]) -> None:
    with running(Deployment(statuses=[status])) as url:
        assert main(["ask", "Who rang?", "--url", url]) == 3
    assert str(status) in capsys.readouterr().err


def test_the_reader_of_the_output_may_leave_early() -> None:
    with running(Deployment()) as url:
        command = [sys.executable, "-m", "cicada_cli", "ask", "Who rang?", "--url", url, "--json"]
        with subprocess.Popen(
            command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, env=_environment(), cwd=ROOT
        ) as ask:
            assert ask.stdout is not None
            assert ask.stderr is not None
            ask.stdout.close()
            assert ask.wait(30) == 1
            assert ask.stderr.read() == b""


def test_ctrl_c_cancels_the_answer_and_is_status_130() -> None:
    def begin_only(action: Any) -> str:
        match action:
            case Cancel(request_id=request_id):
                return event_frame(request_id, 2, dump_event(Failed.of(codes.Cancelled())))
        return event_frame(action.request_id, 1, dump_event(LOG[0]))

    deployment = Deployment(replies=begin_only)
    with running(deployment) as url:
        command = [sys.executable, "-m", "cicada_cli", "ask", "Who rang?", "--url", url, "--json"]
        with subprocess.Popen(
            command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, env=_environment(), cwd=ROOT
        ) as ask:
            assert ask.stdout is not None
            assert json.loads(ask.stdout.readline())["type"] == "accepted"
            ask.send_signal(signal.SIGINT)
            out, err = ask.communicate(timeout=30)
            assert ask.returncode == 130
    assert json.loads(out)["code"] == "cancelled"
    assert b"Traceback" not in err
    assert deployment.actions == ["ask", "cancel"]


def _environment() -> dict[str, str]:
    return {**os.environ, "PYTHONPATH": os.pathsep.join([str(ROOT), str(ROOT / "layers" / "cicada" / "python")])}


# --- chat ---


@pytest.fixture
def typed(monkeypatch: pytest.MonkeyPatch) -> Any:
    """Sets the lines that are typed."""

    def type_lines(*lines: str) -> None:
        pending = iter(lines)

        def read(prompt: str) -> str:
            line = next(pending, None)
            if line is None:
                raise EOFError
            if line == "^C":
                raise KeyboardInterrupt
            return line

        monkeypatch.setattr("builtins.input", read)

    return type_lines


def chat(deployment: Deployment, *options: str) -> int:
    with running(deployment) as url:
        return main(["chat", "--url", url, *options])


def test_a_chat_is_one_session_over_one_connection(typed: Any, capsys: pytest.CaptureFixture[str]) -> None:
    deployment = Deployment()
    typed("Who rang?", "", "And why?")
    assert chat(deployment) == 0
    asked = list(deployment.asked.values())
    assert [ask.query for ask in asked] == ["Who rang?", "And why?"]
    assert asked[0].session_id is not None
    assert asked[0].session_id == asked[1].session_id
    assert deployment.connections == 1
    assert capsys.readouterr().out.count(TEXT.strip()) == 2


def test_episodes_are_chosen_and_let_go(typed: Any) -> None:
    deployment = Deployment()
    typed("one", "/episodes ep2 ep3", "two", "/episodes", "three")
    assert chat(deployment, "--episode", "ep1") == 0
    assert [ask.episodes for ask in deployment.asked.values()] == [("ep1",), ("ep2", "ep3"), ()]


def test_quit_leaves_what_is_typed_after_it_unread(typed: Any) -> None:
    deployment = Deployment()
    typed("/quit", "too late")
    assert chat(deployment) == 0
    assert deployment.asked == {}


def test_ctrl_c_at_the_prompt_leaves_the_chat_open(typed: Any, capsys: pytest.CaptureFixture[str]) -> None:
    deployment = Deployment()
    typed("^C", "Who rang?")
    assert chat(deployment) == 0
    assert len(deployment.asked) == 1
    assert "Ctrl-D" in capsys.readouterr().out


def test_a_failed_answer_leaves_the_chat_open(typed: Any, capsys: pytest.CaptureFixture[str]) -> None:
    def fail_first(action: Any) -> str | None:
        if isinstance(action, Ask) and action.query == "first":
            return event_frame(action.request_id, 1, dump_event(Failed.of(codes.ModelBusy())))
        return None

    typed("first", "x" * 4001, "second")
    assert chat(Deployment(replies=fail_first)) == 0
    told = capsys.readouterr()
    assert "model_busy" in told.err
    assert "query" in told.err
    assert TEXT.strip() in told.out


def test_the_last_answers_sources_are_listed_and_shown_whole(typed: Any, capsys: pytest.CaptureFixture[str]) -> None:
    def with_sources(action: Any) -> list[str]:
        source = {
            "n": 1,
            "passageId": "p1",
            "collection": "script",
            "locator": {
                "kind": "script",
                "episodeId": "ep1",
                "episodeName": "The Boathouse",
                "chapterId": "c1",
                "messageId": "m1",
                "speaker": "Ada",
            },
            "score": 0.5,
            "text": f"{'long ' * 100}end",
        }
        done = next(event for event in LOG if isinstance(event, Complete))
        events = [
            dump_event(next(event for event in LOG if isinstance(event, Accepted))),
            json.dumps({"type": "sources", "attempt": 2, "indexVersion": "v", "searched": 9, "sources": [source]}),
            dump_event(Chunk(attempt=2, content="It rang [1].")),
            dump_event(done),
        ]
        return [event_frame(action.request_id, seq, body) for seq, body in enumerate(events, start=1)]

    typed("/sources", "Who rang?", "/sources", "/sources 1", "/sources 2")
    assert chat(Deployment(replies=with_sources)) == 0
    told = capsys.readouterr()
    assert told.out.count("The Boathouse · c1 · m1 · Ada") == 2
    assert told.out.count("long end") == 1
    assert "the last answer has no sources" in told.err
    assert "no source 2" in told.err


def test_unknown_commands_are_named_and_help_lists_the_known(typed: Any, capsys: pytest.CaptureFixture[str]) -> None:
    deployment = Deployment()
    typed("/dance now", "/help")
    assert chat(deployment) == 0
    told = capsys.readouterr()
    assert "unknown command '/dance'. /help lists the commands." in told.err
    for command in ("/episodes", "/sources", "/help", "/quit"):
        assert command in told.out
    assert deployment.asked == {}

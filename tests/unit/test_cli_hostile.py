"""Every command, with hostile values in every argument and hostile words from every service: a line, no traceback."""

from __future__ import annotations

import argparse
import contextlib
import functools
import io
import logging
import os
import sys
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import pytest
from botocore.exceptions import ClientError as AwsError

from cicada_cli import aws, deployment, main, session
from cicada_cli.doctor import settings, tools
from cicada_cli.main import build_parser
from cicada_cli.text import printable
from cicada_client import ConnectionLost

EVIL = "x\x1b]0;title\x07\x1b[2J\u202e\u2066\U000e0041\x9b31m"
VALUES = {
    "controls": EVIL,
    "option": f"--{EVIL}",
    "long": "a" * 5_000,
    "NUL": "a\0b",
    "not UTF-8": "a\udcffb",
    "lines and markup": "a\nb\rc [red]{0}%s",
}
USUAL = {
    "request_id": "00000000-0000-4000-8000-000000000000",
    "paths": ".",
    "url": "ws://127.0.0.1:1/",
    "bucket": "bucket",
    "embedding_model": "amazon.titan-embed-text-v2:0",
    "dimensions": "256",
    "vector_index": "arn:aws:s3vectors:us-east-1:111111111111:bucket/b/index/i",
    "table": "table",
    "ingest_machine": "arn:aws:states:us-east-1:111111111111:stateMachine:i",
}
DENIED = AwsError({"Error": {"Code": "AccessDeniedException", "Message": EVIL}}, "Call")
UNKNOWN = AwsError({"Error": {"Code": EVIL, "Message": EVIL}}, "Call")
GUESSES = ("1", "0.5", "1h", "a=b", "12345678")


class EvilClient:
    """An AWS client of which every call fails, with words that are not ours."""

    def __init__(self, error: Exception) -> None:
        self._error = error

    def __getattr__(self, name: str) -> Any:
        if name == "get_paginator":
            return lambda _: self

        def call(*_: object, **__: object) -> None:
            raise self._error

        return call


class EvilSession:
    """A connection that is lost at once."""

    def __init__(self, *_: object) -> None: ...

    def __enter__(self) -> EvilSession:
        return self

    def __exit__(self, *_: object) -> None: ...

    def __getattr__(self, name: str) -> Any:
        def call(*_: object, **__: object) -> None:
            raise ConnectionLost(EVIL)

        return call


def leaves(parser: argparse.ArgumentParser, path: tuple[str, ...] = ()) -> Iterator[tuple[str, ...]]:
    below = [action for action in parser._actions if isinstance(action, argparse._SubParsersAction)]
    if not below:
        yield path
    for action in below:
        for name, command in action.choices.items():
            yield from leaves(command, (*path, name))


read_settings = functools.cache(settings.read_settings)
"""Doctor reads the same settings at each of its runs, in a process that takes a second."""
PARSER = build_parser()
"""Built once: building it takes ten times as long as a command that is refused."""


@functools.cache
def actions_of(path: tuple[str, ...]) -> list[argparse.Action]:
    parser: argparse.ArgumentParser = PARSER
    for name in path:
        (below,) = (action for action in parser._actions if isinstance(action, argparse._SubParsersAction))
        parser = below.choices[name]
    return [action for action in parser._actions if not isinstance(action, argparse._HelpAction)]


def usual(action: argparse.Action) -> str:
    if action.dest in USUAL:
        return USUAL[action.dest]
    if action.choices:
        return str(next(iter(action.choices)))
    for guess in GUESSES:
        try:
            action.type(guess) if callable(action.type) else None
        except (argparse.ArgumentTypeError, ValueError):
            continue
        return guess
    raise AssertionError(f"no usual value of {action.dest} is known")


def command_line(path: tuple[str, ...], given: Mapping[str, str]) -> list[str]:
    """A command with its usual arguments but for those that are given."""
    options, positional = [], []
    for action in actions_of(path):
        if not action.option_strings:
            positional.append(given[action.dest] if action.dest in given else usual(action))
        elif action.dest in given or action.dest in USUAL or action.required:
            value = given[action.dest] if action.dest in given else usual(action)
            options.append(f"{action.option_strings[-1]}={value}")
    return [*path, *options, *(["--"] if any(value.startswith("-") for value in positional) else []), *positional]


COMMANDS = list(leaves(PARSER))
each_command = pytest.mark.parametrize("path", COMMANDS, ids=" ".join)


@pytest.fixture(autouse=True)
def place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    for name in [name for name in os.environ if name.startswith(("AWS_", "CICADA_"))]:
        monkeypatch.delenv(name)
    monkeypatch.setenv("AWS_REGION", "us-east-1")
    monkeypatch.setattr("time.sleep", lambda _: None)
    monkeypatch.setattr(main, "parser_of", lambda *_: PARSER)
    monkeypatch.setattr(session, "ClientSession", EvilSession)
    monkeypatch.setattr(sys, "stdin", io.StringIO(f"{EVIL}\n"))
    monkeypatch.setattr(deployment, "_PROJECT_ROOT", tmp_path)
    monkeypatch.setattr(tools, "_output", lambda _: "22.0.0")
    monkeypatch.setattr(settings, "read_settings", read_settings)
    answering(monkeypatch, DENIED)
    (tmp_path / f"name {EVIL}.txt".replace("/", "")).write_text("text")
    return tmp_path


def answering(monkeypatch: pytest.MonkeyPatch, error: Exception) -> None:
    monkeypatch.setattr(aws.Aws, "client", lambda *_: EvilClient(error))


def run(capsys: pytest.CaptureFixture[str], argv: list[str]) -> str:
    """What a command says; whatever it raises fails the test."""
    capsys.readouterr()
    with contextlib.suppress(SystemExit):
        main.main(argv)
    said = "".join(capsys.readouterr())
    assert said == printable(said), argv
    assert "Traceback" not in said
    return said


@each_command
def test_hostile_arguments_are_told_in_words(path: tuple[str, ...], capsys: pytest.CaptureFixture[str]) -> None:
    for action in actions_of(path):
        if action.nargs == 0:
            continue
        for value in VALUES.values():
            run(capsys, command_line(path, {action.dest: value}))
    assert "unknown option" in run(capsys, [*command_line(path, {}), f"--{EVIL}"])


@each_command
def test_hostile_words_of_services_are_told_without_what_is_unsafe(
    path: tuple[str, ...], capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    wants_json = "json" in {action.dest for action in actions_of(path)}
    for error in (DENIED, UNKNOWN, RuntimeError(EVIL)):
        answering(monkeypatch, error)
        run(capsys, command_line(path, {}))
        if wants_json:
            run(capsys, [*path, "--json", *command_line(path, {})[len(path) :]])
    run(capsys, [*path, *(usual(action) for action in actions_of(path) if not action.option_strings)])


@pytest.mark.parametrize("value", VALUES.values(), ids=VALUES)
def test_a_hostile_command_is_told_in_words(value: str, capsys: pytest.CaptureFixture[str]) -> None:
    run(capsys, [value])
    run(capsys, ["index", value])


@pytest.mark.parametrize("value", VALUES.values(), ids=VALUES)
def test_a_hostile_endpoint_is_no_deployment(
    value: str, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.undo()
    assert "unexpected" not in run(capsys, ["index", "versions", "--bucket=b", f"--endpoint-url={value}"])


def test_what_no_command_foresees_is_a_line_and_can_be_traced(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    answering(monkeypatch, RuntimeError(EVIL + "z" * 10_000))
    said = run(capsys, ["index", "versions", "--bucket", "b"])
    assert said.startswith("cicada: unexpected error: RuntimeError: x]0;title")
    assert len(said.splitlines()) == 1
    assert len(said) < 500
    monkeypatch.setenv("CICADA_TRACEBACK", "1")
    assert main.main(["index", "versions", "--bucket", "b"]) == 1
    traced = capsys.readouterr().err
    assert "Traceback" in traced
    assert traced == printable(traced)


def test_what_libraries_log_is_printed_without_what_is_unsafe(capsys: pytest.CaptureFixture[str]) -> None:
    main.main(["index", "versions", "--bucket", "b"])
    capsys.readouterr()
    assert logging.lastResort is not None
    logging.lastResort.handle(logging.LogRecord("urllib3", logging.WARNING, "", 0, "%s", (EVIL,), None))
    assert capsys.readouterr().err == "cicada: x]0;title31m\n"


def test_a_terminal_without_a_letter_shows_its_number(monkeypatch: pytest.MonkeyPatch) -> None:
    written = io.BytesIO()
    out = io.TextIOWrapper(written, encoding="latin-1")
    monkeypatch.setattr(sys, "stdout", out)
    with pytest.raises(SystemExit):
        main.main(["--version"])
    print("記録")
    out.flush()
    assert written.getvalue().endswith(rb"\u8a18\u9332" + b"\n")

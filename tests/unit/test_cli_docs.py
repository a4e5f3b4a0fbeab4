"""The command line's page names all that there is, and nothing else."""

from __future__ import annotations

import argparse
import re
from pathlib import Path

import pytest

from cicada_cli.chat import HELP
from cicada_cli.exits import Exit
from cicada_cli.main import build_parser

PAGE = (Path(__file__).resolve().parents[2] / "docs" / "cli.md").read_text(encoding="utf-8")
SECTIONS: dict[str, str] = dict(re.findall(r"^## (.+?)\n(.*?)(?=^## |\Z)", PAGE, re.MULTILINE | re.DOTALL))


def commands(parser: argparse.ArgumentParser | None = None, prefix: str = "") -> dict[str, argparse.ArgumentParser]:
    """Every command by its words; those of a command that has commands of its own, in its place."""
    found: dict[str, argparse.ArgumentParser] = {}
    for action in (parser or build_parser())._actions:
        if isinstance(action, argparse._SubParsersAction):
            for name, command in action.choices.items():
                found |= commands(command, f"{prefix}{name} ") or {f"{prefix}{name}": command}
    return found


def options(parser: argparse.ArgumentParser) -> set[str]:
    return {
        option
        for action in parser._actions
        for option in action.option_strings
        if option.startswith("--") and option != "--help"
    }


def section(command: str) -> str:
    return next(text for heading, text in SECTIONS.items() if heading.startswith(f"`cicada {command}"))


@pytest.mark.parametrize("command", commands())
def test_every_option_of_a_command_is_in_its_section(command: str) -> None:
    documented = set(
        re.findall(r"--[a-z][a-z-]+", "\n".join(re.findall(r"^\| (.+?) \|", section(command), re.MULTILINE)))
    )
    assert documented == options(commands()[command])


def test_every_section_is_of_a_command() -> None:
    documented = [heading for heading in SECTIONS if heading.startswith("`cicada ")]
    assert len(documented) == len(commands())
    for heading in documented:
        assert any(heading.startswith((f"`cicada {command}`", f"`cicada {command} ")) for command in commands())


def test_every_option_and_command_has_a_help_text() -> None:
    for parser in (build_parser(), *commands().values()):
        assert parser.description
        for action in parser._actions:
            assert action.help or isinstance(action, argparse._SubParsersAction)


def test_every_command_of_the_chat_is_in_its_section() -> None:
    for usage, _ in HELP:
        assert f"`{usage.split()[0]}" in section("chat")


def test_every_exit_status_is_in_the_table() -> None:
    table = {int(status) for status in re.findall(r"^\| (\d+) \|", PAGE, re.MULTILINE)}
    assert table == {int(status) for status in Exit}


def test_every_variable_that_is_read_is_named() -> None:
    sources = Path(__file__).resolve().parents[2] / "cicada_cli"
    read = {name for path in sources.glob("*.py") for name in re.findall(r"CICADA_[A-Z_]+", path.read_text("utf-8"))}
    assert read == set(re.findall(r"CICADA_[A-Z_]+", PAGE))

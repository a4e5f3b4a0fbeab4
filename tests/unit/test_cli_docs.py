"""The command line's page names all that there is, and nothing else."""

from __future__ import annotations

import argparse
import re
import shlex
from pathlib import Path

import pytest

from cicada_cli.chat import HELP
from cicada_cli.commands import COMMANDS
from cicada_cli.exits import Exit
from cicada_cli.grammar import Parser
from cicada_cli.main import build_parser
from cicada_cli.overview import START, overview

PAGE = (Path(__file__).resolve().parents[2] / "docs" / "cli.md").read_text(encoding="utf-8")
EXAMPLES = [line[2:] for line in re.findall(r"^\$ cicada.*", PAGE, re.MULTILINE) if "…" not in line]
"""The command lines of the page."""
SECTIONS: dict[str, str] = dict(re.findall(r"^##+ (.+?)\n(.*?)(?=^##+ |\Z)", PAGE, re.MULTILINE | re.DOTALL))


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


def documented(section: str) -> set[str]:
    """The options in the first columns of a section's tables."""
    return set(re.findall(r"--[a-z][a-z-]+", "\n".join(re.findall(r"^\| (.+?) \|", section, re.MULTILINE))))


def section(command: str) -> str:
    return next(text for heading, text in SECTIONS.items() if heading.startswith(f"`cicada {command}"))


@pytest.mark.parametrize("command", commands())
def test_every_option_of_a_command_is_in_its_section(command: str) -> None:
    known, common = options(commands()[command]), documented(SECTIONS["Common options"])
    assert documented(section(command)) | (common & known) == known


def test_every_section_is_of_a_command() -> None:
    headings = [heading for heading in SECTIONS if heading.startswith("`cicada ")]
    assert len(headings) == len(commands())
    for heading in headings:
        assert any(heading.startswith((f"`cicada {command}`", f"`cicada {command} ")) for command in commands())


def test_every_option_and_command_has_a_help_text() -> None:
    for parser in (build_parser(), *commands().values()):
        assert parser.description
        for action in parser._actions:
            assert action.help or isinstance(action, argparse._SubParsersAction)


def test_every_command_has_examples_that_parse() -> None:
    for name, parser in commands().items():
        assert isinstance(parser, Parser)
        assert parser.examples, name
        for example in parser.examples:
            parses(example)


@pytest.mark.parametrize("example", EXAMPLES)
def test_every_example_of_the_page_parses(example: str) -> None:
    parses(example)


def parses(example: str) -> None:
    words = shlex.split(re.split(r" [|>] | < ", example)[0], comments=True)
    assert words[0] == "cicada"
    if words[1:]:
        build_parser().parse_args(words[1:])


def test_the_overview_lists_every_command_and_the_first_steps_parse() -> None:
    shown = overview()
    for name, command in COMMANDS.items():
        assert re.search(rf"^  {name} +{re.escape(command.summary)}$", shown, re.MULTILINE)
    for words in START:
        build_parser().parse_args(shlex.split(words))


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

"""What ``cicada`` prints by itself, and ``cicada help``."""

from __future__ import annotations

import argparse
from collections.abc import Iterator
from typing import TYPE_CHECKING

from cicada_cli.commands import COMMANDS, DESCRIPTION, GROUPS, PROG, parser_of
from cicada_cli.exits import Exit, UsageError
from cicada_cli.near_names import unknown_name
from cicada_cli.output import say

if TYPE_CHECKING:
    from cicada_cli.grammar import Commands

START = {
    "status": "check the deployment",
    "collections": "see what the corpus holds",
    'ask "Who rings the fog bell?"': "ask a question",
    "load manuals/": "load your own documents",
}
"""What to type first."""


def overview() -> str:
    """The commands by group, and what to type first."""
    return "\n".join(_lines())


def _lines() -> Iterator[str]:
    yield from (DESCRIPTION, "", f"usage: {PROG} COMMAND [options]", "", "Start here:")
    width = max(map(len, START))
    yield from (f"  {PROG} {words:<{width}}  {meaning}" for words, meaning in START.items())
    width = max(map(len, COMMANDS))
    for group, commands in GROUPS.items():
        yield from ("", f"{group}:")
        yield from (f"  {command.name:<{width}}  {command.summary}" for command in commands)
    yield from (
        "",
        "Options:",
        "  --plain       no colours, tables or live views",
        "  --version     show the version",
        "",
        f"`{PROG} help COMMAND` shows a command's options and examples.",
    )


def add_help(commands: Commands) -> None:
    """Add the command's parser."""
    parser = commands.add_parser(
        "help",
        help="show a command's help",
        description="Show the help of a command, or list all commands.",
        examples=("cicada help ask", "cicada help index rollback"),
    )
    parser.add_argument("words", nargs="*", metavar="COMMAND", help="the command, such as `ask` or `index versions`")
    parser.set_defaults(run=_help)


def _help(args: argparse.Namespace) -> Exit:
    if not args.words:
        say(overview())
        return Exit.DONE
    parser: argparse.ArgumentParser = parser_of(args.words[0]) if args.words[0] in COMMANDS else parser_of()
    for place, word in enumerate(args.words):
        below = next((one for one in parser._actions if isinstance(one, argparse._SubParsersAction)), None)
        known = COMMANDS if place == 0 else below.choices if below else {}
        if below is None or word not in known:
            raise UsageError(unknown_name("command", " ".join(args.words[: place + 1]), known))
        parser = below.choices[word]
    parser.print_help()
    return Exit.DONE

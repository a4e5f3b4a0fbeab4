"""``cicada completion``: a script with which a shell completes commands, options and their values."""

from __future__ import annotations

import argparse
from typing import TYPE_CHECKING

from cicada_cli.exits import Exit
from cicada_cli.output import say

if TYPE_CHECKING:
    from cicada_cli.grammar import Commands

SHELLS = ("bash", "zsh", "fish")


def add_completion(commands: Commands) -> None:
    """Add the command's parser."""
    parser = commands.add_parser(
        "completion",
        help="print a completion script for your shell",
        description="Print a script with which your shell completes commands, options and their values. "
        "Print it again after an upgrade.",
        examples=(
            "cicada completion bash > ~/.local/share/bash-completion/completions/cicada",
            "cicada completion zsh > ~/.zfunc/_cicada       # with fpath+=~/.zfunc before compinit",
            "cicada completion fish > ~/.config/fish/completions/cicada.fish",
        ),
    )
    parser.add_argument("shell", metavar="SHELL", choices=SHELLS, help=f"one of {', '.join(SHELLS)}")
    parser.set_defaults(run=_completion)


def _completion(args: argparse.Namespace) -> Exit:
    import shtab

    from cicada_cli.commands import build_parser

    say(shtab.complete(_with_files(build_parser()), shell=args.shell))
    return Exit.DONE


def _with_files(parser: argparse.ArgumentParser) -> argparse.ArgumentParser:
    """The parser, with arguments that are paths marked for shtab."""
    from pathlib import Path

    import shtab

    for action in parser._actions:
        if isinstance(action, argparse._SubParsersAction):
            for below in action.choices.values():
                _with_files(below)
        elif action.type is Path:
            action.complete = shtab.FILE  # type: ignore[attr-defined]
    return parser

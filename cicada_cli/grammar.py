"""Parsers of the command line: short usage, examples in the help, and near names for what is unknown."""

from __future__ import annotations

import argparse
from collections.abc import Iterable, Sequence
from typing import Any, NoReturn, TypeAlias

from cicada_cli.near_names import unknown_name
from cicada_cli.output import complain
from cicada_cli.text import printable

Commands: TypeAlias = "argparse._SubParsersAction[Parser]"
"""What a command adds its parser to."""


class Parser(argparse.ArgumentParser):
    """A parser of a command or of the whole command line.

    Everything that it prints is made safe: an argument may be the name of a file that a shell expanded.
    """

    def __init__(self, *args: Any, examples: Sequence[str] = (), **kwargs: Any) -> None:
        """``examples``: command lines for the end of the help, each with a comment after ``#`` if it needs one."""
        kwargs = {"formatter_class": _Formatter, "allow_abbrev": False, **kwargs}
        super().__init__(*args, **kwargs)
        self.examples = tuple(examples)
        self.add_argument(
            "--plain", action="store_true", default=argparse.SUPPRESS, help="no colours, tables or live views"
        )

    def add_subparsers(self, **kwargs: Any) -> Any:
        """Add commands, whose usage begins with this parser's name."""
        return super().add_subparsers(**{"prog": self.prog, **kwargs})

    def format_help(self) -> str:
        """The help, ending with the examples."""
        told = super().format_help()
        if not self.examples:
            return told
        return "\n".join([told, "examples:", *(f"  {line}" for line in self.examples), ""])

    def parse_args(self, args: Any = None, namespace: Any = None) -> Any:
        """Parse; an unknown option is an error that suggests near ones."""
        found, unknown = self.parse_known_args(args, namespace)
        if unknown:
            parser = self._command_of(found)
            words = [word for word in unknown if word.startswith("-")] or unknown
            parser.error(unknown_name("option" if words[0].startswith("-") else "argument", words[0], parser.options()))
        return found

    def options(self) -> list[str]:
        """The long options."""
        return [option for action in self._actions for option in action.option_strings if option.startswith("--")]

    def error(self, message: str) -> NoReturn:
        """Say what is wrong with the command line and where its options are listed, and end with status 2."""
        complain(f"{message}\nRun `{self.prog} --help` for usage.")
        self.exit(2)

    def _command_of(self, namespace: argparse.Namespace) -> Parser:
        """The parser of the command that was typed."""
        for action in self._actions:
            if isinstance(action, argparse._SubParsersAction):
                below = action.choices.get(getattr(namespace, action.dest, None) or "")
                if isinstance(below, Parser):
                    return below._command_of(namespace)
        return self

    def _check_value(self, action: argparse.Action, value: Any) -> None:
        if action.choices is None or value in action.choices:
            return
        kind = "command" if isinstance(action, argparse._SubParsersAction) else "value"
        told = unknown_name(kind, str(value), map(str, action.choices))
        raise argparse.ArgumentError(None if kind == "command" else action, told)

    def _print_message(self, message: str, file: Any = None) -> None:
        super()._print_message(printable(message), file)


class _Formatter(argparse.HelpFormatter):
    """Shows what a command needs in its usage; the options are listed below it."""

    def __init__(self, prog: str, **kwargs: Any) -> None:
        super().__init__(prog, max_help_position=28, **kwargs)

    def add_usage(self, usage: str | None, actions: Iterable[argparse.Action], groups: Any, prefix: Any = None) -> None:
        if usage is None:
            needed = [action for action in actions if action.required or not action.option_strings]
            words = " ".join(("%(prog)s", "[options]", *map(self._usage_of, needed)))
            usage = words.replace("[options] ", "") if needed and _has_commands(needed) else words
        super().add_usage(usage, (), groups, prefix)

    def _usage_of(self, action: argparse.Action) -> str:
        if not action.option_strings:
            return self._format_args(action, self._get_default_metavar_for_positional(action))
        values = self._format_args(action, self._get_default_metavar_for_optional(action))
        return f"{action.option_strings[-1]} {values}".rstrip()


def _has_commands(actions: Iterable[argparse.Action]) -> bool:
    return any(isinstance(action, argparse._SubParsersAction) for action in actions)

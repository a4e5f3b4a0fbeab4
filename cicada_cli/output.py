"""What every command prints with: nothing that is not ours reaches a terminal as it is.

Names of files and collections, passages, notes, answers and messages of services come from elsewhere, and can hold
control sequences, bidirectional overrides and characters that nobody sees.
"""

from __future__ import annotations

import argparse
import json
import logging
import re
import sys
from collections.abc import Iterable
from typing import Any

from rich.console import Console, ConsoleOptions, RenderableType
from rich.segment import Segment

from cicada_cli.text import UNSAFE, printable


def say(text: str = "", *, flush: bool = False) -> None:
    """Print lines on standard output."""
    print(printable(text), flush=flush)


def say_json(value: Any, *, indent: int | None = None, readable: bool = False, flush: bool = False) -> None:
    """Print a value as JSON on standard output; what is unsafe in a string is escaped, so that nothing is lost.

    Args:
        value: what :func:`json.dumps` takes.
        indent: as that has it.
        readable: whether letters beyond ASCII stand for themselves.
        flush: at once.
    """
    text = json.dumps(value, ensure_ascii=not readable, indent=indent)
    print(_UNSAFE_CHARACTER.sub(_escaped, text), flush=flush)


def complain(text: str) -> None:
    """Tell on standard error what is wrong."""
    print(f"cicada: {printable(text)}", file=sys.stderr, flush=True)


def note(text: str, *, end: str = "\n") -> None:
    """Tell on standard error what the user should know or do, or ask for something."""
    print(printable(text), end=end, file=sys.stderr, flush=True)


def console(*, stderr: bool = False) -> Console:
    """A console for tables, colours and live views, whose texts are made safe after they are laid out."""
    return _SafeConsole(stderr=stderr, highlight=False, markup=False, emoji=False)


class Parser(argparse.ArgumentParser):
    """One whose help and complaints are safe: an argument may be the name of a file that a shell put in its place."""

    def _print_message(self, message: str, file: Any = None) -> None:
        super()._print_message(printable(message), file)


class Notes(logging.Handler):
    """Prints what libraries log, for want of a handler of theirs."""

    def emit(self, record: logging.LogRecord) -> None:
        """Print a record on standard error."""
        complain(self.format(record))


_UNSAFE_CHARACTER = re.compile(UNSAFE)


def _escaped(match: re.Match[str]) -> str:
    return json.dumps(match.group())[1:-1] if match.group() != "\x7f" else "\\u007f"


class _SafeConsole(Console):
    """A console that shows no text as it is, in whatever it lies; the terminal's own control codes are not text."""

    def render(self, renderable: RenderableType, options: ConsoleOptions | None = None) -> Iterable[Segment]:
        for text, style, control in super().render(renderable, options):
            yield Segment(text if control else printable(text), style, control)

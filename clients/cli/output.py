"""What every command prints with: nothing that is not ours reaches a terminal as it is.

Names of files and collections, passages, notes, answers and messages of services come from elsewhere, and can hold
control sequences, bidirectional overrides and characters that nobody sees.
"""

from __future__ import annotations

import json
import re
import sys
from collections.abc import Iterable
from typing import Any

from rich.console import Console, ConsoleOptions, ConsoleRenderable, RenderHook, RenderResult
from rich.segment import Segment

from clients.cli.text import UNSAFE, printable


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


def console(*, stderr: bool = False) -> Console:
    """A console for tables, colours and live views, whose texts are made safe after they are laid out."""
    made = Console(stderr=stderr, highlight=False, markup=False, emoji=False)
    made.push_render_hook(_MadeSafe())
    return made


_UNSAFE_CHARACTER = re.compile(UNSAFE)


def _escaped(match: re.Match[str]) -> str:
    return json.dumps(match.group())[1:-1] if match.group() != "\x7f" else "\\u007f"


class _MadeSafe(RenderHook):
    def process_renderables(self, renderables: list[ConsoleRenderable]) -> list[ConsoleRenderable]:
        return [_Safe(one) for one in renderables]


class _Safe:
    """A renderable whose text is printable; the terminal's own control codes are not its text."""

    def __init__(self, renderable: ConsoleRenderable) -> None:
        self._renderable = renderable

    def __rich_console__(self, made: Console, options: ConsoleOptions) -> RenderResult:
        rendered: Iterable[Segment] = made.render(self._renderable, options)
        for text, style, control in rendered:
            yield Segment(text if control else printable(text), style, control)

"""How every command prints: safe text, and lists as tables, tab-separated lines or JSON.

Names of files and collections, passages, answers and messages of services can hold control sequences, bidirectional
overrides and invisible characters. Only this module prints, so none of them reaches a terminal.

A list is a table on a terminal. In a pipe, or with ``--plain``, it is a line per item with tabs between its fields,
without a heading. With ``--json`` it is a JSON object per line.
"""

from __future__ import annotations

import json
import logging
import re
import sys
from collections.abc import Callable, Iterable, Sequence
from typing import TYPE_CHECKING, Any, TypeVar

from cicada_cli.text import UNSAFE, encodable, one_line, printable

if TYPE_CHECKING:  # Rich takes longer to import than the rest of a command's help
    from rich.console import Console
    from rich.text import Text

T = TypeVar("T")
_plain = False


def use_plain(plain: bool) -> None:
    """Whether the consoles of this process print as into a pipe, whatever they print to."""
    global _plain  # noqa: PLW0603 -- one process runs one command
    _plain = plain


def say(text: str = "", *, flush: bool = False) -> None:
    """Print lines on standard output."""
    print(encodable(printable(text), sys.stdout.encoding), flush=flush)


def say_json(value: Any, *, indent: int | None = None, readable: bool = False, flush: bool = False) -> None:
    """Print a value as JSON on standard output. Unsafe characters are escaped, so nothing is lost.

    Args:
        value: what :func:`json.dumps` takes.
        indent: as that has it.
        readable: whether to write letters beyond ASCII as they are.
        flush: at once.
    """
    text = json.dumps(value, ensure_ascii=not readable, indent=indent)
    print(_UNSAFE_CHARACTER.sub(_escaped, text), flush=flush)


def complain(text: str) -> None:
    """Print a problem on standard error."""
    print(f"cicada: {encodable(printable(text), sys.stderr.encoding)}", file=sys.stderr, flush=True)


def note(text: str, *, end: str = "\n") -> None:
    """Print a remark or a question to the user on standard error."""
    print(encodable(printable(text), sys.stderr.encoding), end=end, file=sys.stderr, flush=True)


def console(*, stderr: bool = False) -> Console:
    """A console for tables, colours and live views.

    Colours follow ``NO_COLOR``, the width follows the terminal or ``COLUMNS``.
    """
    from cicada_cli.safe_console import SafeConsole

    terminal = False if _plain else None
    return SafeConsole(stderr=stderr, highlight=False, markup=False, emoji=False, force_terminal=terminal)


def show_list(
    columns: Sequence[str],
    items: Iterable[T],
    *,
    row: Callable[[T], Sequence[str]],
    data: Callable[[T], Any],
    as_json: bool,
    out: Console,
    numbers: Sequence[str] = (),
    empty: str = "",
) -> None:
    """Print a list of items.

    Args:
        columns: names of the fields, shown on a terminal.
        items: the items.
        row: an item's fields as text.
        data: an item for ``--json``.
        as_json: whether ``--json`` was given.
        out: where to print.
        numbers: names of the columns to align right.
        empty: what to say on standard error where there are no items.
    """
    found = list(items)
    if as_json:
        for item in found:
            say_json(data(item))
        return
    show_rows(columns, map(row, found), out, numbers=numbers)
    if empty and not found:
        note(empty)


def show_rows(
    columns: Sequence[str],
    rows: Iterable[Sequence[str | Text]],
    out: Console,
    *,
    numbers: Sequence[str] = (),
    wide: Sequence[str] = (),
    piped: Iterable[Sequence[str]] | None = None,
) -> None:
    """Print rows: a table on a terminal, otherwise a line per row with tabs between the fields.

    Args:
        columns: the headings, shown on a terminal.
        rows: the rows.
        out: where to print.
        numbers: headings of the columns to align right.
        wide: headings of the columns that share the rest of the terminal's width.
        piped: the rows for a pipe, where they differ.
    """
    if not out.is_terminal:
        for row in rows if piped is None else piped:
            say("\t".join(one_line(str(cell)) for cell in row))
        return
    if not (found := list(rows)):
        return
    from rich.table import Table
    from rich.text import Text

    table = Table(box=None, pad_edge=False, header_style="bold")
    for column in columns:
        justify = "right" if column in numbers else "left"
        table.add_column(column, overflow="fold", justify=justify, ratio=1 if column in wide else None)  # type: ignore[arg-type]
    for row in found:
        table.add_row(*(cell if isinstance(cell, Text) else Text(one_line(cell)) for cell in row))
    out.print(table)


class Notes(logging.Handler):
    """Prints what libraries log, where they have no handler of their own."""

    def emit(self, record: logging.LogRecord) -> None:
        """Print a record on standard error."""
        complain(self.format(record))


_UNSAFE_CHARACTER = re.compile(UNSAFE)


def _escaped(match: re.Match[str]) -> str:
    return json.dumps(match.group())[1:-1] if match.group() != "\x7f" else "\\u007f"

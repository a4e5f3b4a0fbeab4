"""Tables in documents: rows of cells, whose first row may name the columns."""

from __future__ import annotations

import re
from collections.abc import Sequence

from cicada.corpus.readers.blocks import Blocks, column_name, column_names, one_line

_NUMBER = re.compile(r"[-+(]?[\W_]?\d[\d\s.,:/%'’-]*\)?[^\W\d_]{0,4}\W?")
"""Amounts, dates and times: typical of cells, not of headers."""
_YEAR = re.compile(r"1[5-9]\d\d|20\d\d|21\d\d")
SAMPLE_ROWS = 20  # rows below the first that are looked at


def names_columns(first: Sequence[str], below: Sequence[Sequence[str]]) -> bool:
    """Whether a first row names the columns, judged by it and some rows below it.

    Names are unique, at most one is blank, and not all are numbers. If some are numbers, such as years, another name
    must be above numbers, or all of them are years.
    """
    cells = [one_line(cell) for cell in first]
    named = [cell for cell in cells if cell]
    if len(named) < max(2, len(cells) - 1) or len({cell.casefold() for cell in named}) < len(named):
        return False
    numbers = [cell for cell in named if _NUMBER.fullmatch(cell)]
    if not numbers or len(numbers) == len(named):
        return not numbers
    words = (at for at, cell in enumerate(cells) if cell and not _NUMBER.fullmatch(cell))
    return any(_is_numeric(below, at) for at in words) or all(_YEAR.fullmatch(cell) for cell in numbers)


def _is_numeric(rows: Sequence[Sequence[str]], column: int) -> bool:
    cells = [cell for row in rows if column < len(row) and (cell := one_line(row[column]))]
    return bool(cells) and all(_NUMBER.fullmatch(cell) for cell in cells)


def add_table(blocks: Blocks, rows: Sequence[Sequence[str]], page: int | None = None, *, named: bool | None) -> None:
    """Add a table's rows; ``named``: whether its first row names the columns, if the document says so."""
    if max(map(len, rows), default=0) < 2:
        for row in rows:
            blocks.add("paragraph", "\n".join(row), page)
        return
    if named is None:
        named = names_columns(rows[0], rows[1 : 1 + SAMPLE_ROWS])
    named = named and len(rows) > 1
    names = column_names(rows[0]) if named else []
    table = blocks.new_table()
    for row in rows[named:]:
        blocks.fields("row", with_names(names, row), table, page)


def with_names(names: Sequence[str], row: Sequence[str]) -> list[tuple[str, str]]:
    """A row's cells with their column's name, or its number."""
    return [
        (names[number - 1] if number <= len(names) else column_name(number), cell)
        for number, cell in enumerate(row, start=1)
    ]

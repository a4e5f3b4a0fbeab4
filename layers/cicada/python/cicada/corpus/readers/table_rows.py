"""Tables as they lie in a document: rows of cells, whose first row may name the columns."""

from __future__ import annotations

import re
from collections.abc import Sequence

from cicada.corpus.readers.blocks import Blocks, column_name, column_names, one_line

_NUMBER = re.compile(r"[-+(]?[\W_]?\d[\d\s.,:/%'’-]*\)?[^\W\d_]{0,4}\W?")
"""Amounts, dates and times: what stands in a table rather than above it."""
_YEAR = re.compile(r"1[5-9]\d\d|20\d\d|21\d\d")
SAMPLE_ROWS = 20  # rows below the first that are looked at


def names_columns(first: Sequence[str], below: Sequence[Sequence[str]]) -> bool:
    """Whether a first row names the columns, by its looks and those of some rows below it.

    Names are there once each, at most one is blank, and not all are numbers. Where some are numbers, as years and hours
    may be, another must stand above numbers, or all of them are years.
    """
    cells = [one_line(cell) for cell in first]
    named = [cell for cell in cells if cell]
    if len(named) < max(2, len(cells) - 1) or len({cell.casefold() for cell in named}) < len(named):
        return False
    numbers = [cell for cell in named if _NUMBER.fullmatch(cell)]
    if not numbers or len(numbers) == len(named):
        return not numbers
    above_numbers = any(
        cell and not _NUMBER.fullmatch(cell) and _are_numbers([row[at] for row in below if at < len(row)])
        for at, cell in enumerate(cells)
    )
    return above_numbers or all(_YEAR.fullmatch(cell) for cell in numbers)


def _are_numbers(cells: Sequence[str]) -> bool:
    lines = [line for cell in cells if (line := one_line(cell))]
    return bool(lines) and all(_NUMBER.fullmatch(line) for line in lines)


def add_table(blocks: Blocks, rows: Sequence[Sequence[str]], page: int | None = None, *, named: bool | None) -> None:
    """Add a table's rows; ``named``: whether its first row names the columns, None if the document does not say."""
    if max(map(len, rows), default=0) < 2:
        for row in rows:
            blocks.add("paragraph", "\n".join(row), page)
        return
    header = (
        rows[0]
        if len(rows) > 1 and (names_columns(rows[0], rows[1 : 1 + SAMPLE_ROWS]) if named is None else named)
        else ()
    )
    names = column_names(header)
    table = blocks.new_table()
    for row in rows[bool(header) :]:
        blocks.fields("row", with_names(names, row), table, page)


def with_names(names: Sequence[str], row: Sequence[str]) -> list[tuple[str, str]]:
    """A row's cells with their columns' names; cells beyond the last name get their column's number."""
    return [
        (names[number - 1] if number <= len(names) else column_name(number), cell)
        for number, cell in enumerate(row, start=1)
    ]

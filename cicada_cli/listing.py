"""Lists as tables on a terminal, and as lines of fields for other programs."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from rich.console import Console
from rich.table import Table
from rich.text import Text

from cicada_cli.output import say
from cicada_cli.text import one_line


def show_rows(
    columns: Sequence[str], rows: Iterable[Sequence[str]], out: Console, *, numbers: Sequence[str] = ()
) -> None:
    """Show rows: with their columns' names on a terminal, elsewhere a line each, separated by tabs.

    ``numbers`` names the columns that are aligned to the right.
    """
    if not out.is_terminal:
        for row in rows:
            say("\t".join(map(one_line, row)))
        return
    table = Table(box=None, pad_edge=False, header_style="bold")
    for column in columns:
        table.add_column(column, overflow="fold", justify="right" if column in numbers else "left")
    for row in rows:
        table.add_row(*(Text(one_line(cell)) for cell in row))
    out.print(table)

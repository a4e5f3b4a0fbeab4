"""CSV files: each row with the names of its columns."""

from __future__ import annotations

import csv
import io
import itertools
import re
import sys
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace

from cicada.corpus.readers.blocks import Blocks, Content, column_names
from cicada.corpus.readers.decoding import decoded
from cicada.corpus.readers.limits import ReadLimits
from cicada.corpus.readers.table_rows import SAMPLE_ROWS, names_columns, with_names
from cicada.errors import DocumentTooLarge

_DELIMITERS = ",;\t|"
_DECLARED = re.compile(r'("?)sep=([^\w\s"]|\t)\1(?:\r\n?|\n|\Z)', re.IGNORECASE)
"""A first line that tells Excel the delimiter."""
_SAMPLE_ROWS = 100
_SAMPLE_CHARS = 65_536


def read_csv(data: bytes, limits: ReadLimits) -> Content:
    """A block a row. The delimiter is given by a first line ``sep=;``, or is the best fit of ``, ; tab |``.

    If the first row does not look like names, it is data, and columns are named ``column 1`` and so on. A quotation
    mark that does not enclose a whole cell is text, with a note. Raises DocumentBroken and DocumentTooLarge.
    """
    text, notes = decoded(data)
    text = text.replace("\0", "")
    declared = _DECLARED.match(text)
    start = declared.end() if declared else 0
    delimiter = declared[2] if declared else delimiter_of(text)
    try:
        return _content(_rows(text[start:], delimiter, strict=True), notes, limits)
    except csv.Error:
        loose: list[int] = []
        content = _content(_loose_rows(text, start, delimiter, loose), notes, limits)
    told = (f"a quotation mark on line {line:,} encloses no cell: such marks were kept as text" for line in loose)
    return replace(content, notes=(*content.notes, *told))


def delimiter_of(text: str) -> str:
    """The delimiter that gives most of the first rows one width of at least two; among equals the widest."""
    sample = text[:_SAMPLE_CHARS]
    if len(sample) < len(text):
        sample = sample[: sample.rfind("\n") + 1] or sample

    def fit(delimiter: str) -> tuple[float, int]:
        found = _filled(_rows(f"{sample}\n.", delimiter, strict=False))
        rows = list(itertools.islice(found, _SAMPLE_ROWS + 1))
        rows.pop()  # the full stop, or an unclosed quotation with it
        if not rows:  # the first row has an unclosed quotation
            rows = list(itertools.islice(_filled(_loose_rows(sample, 0, delimiter, [])), _SAMPLE_ROWS)) or [[]]
        width, count = Counter(map(len, rows)).most_common(1)[0]
        return (count / len(rows), width) if width > 1 else (0.0, 0)

    return max(_DELIMITERS, key=fit)


def _content(found: Iterator[list[str]], notes: tuple[str, ...], limits: ReadLimits) -> Content:
    rows = _filled(found)
    begin = list(itertools.islice(rows, 1 + SAMPLE_ROWS))
    blocks = Blocks(limits)
    if not begin:
        return Content("csv", (), notes=notes)
    _check_width(begin[0], limits)
    named = names_columns(begin[0], begin[1:])
    names = column_names(begin[0]) if named else []
    if not named:
        notes += ("its first row does not name the columns",)
    table = blocks.new_table()
    for row in itertools.chain(begin[named:], rows):
        _check_width(row, limits)
        blocks.fields("row", with_names(names, row), table)
    return Content("csv", blocks.all(), notes=notes)


def _rows(text: str, delimiter: str, *, strict: bool) -> Iterator[list[str]]:
    csv.field_size_limit(sys.maxsize)  # the file is bounded as a whole
    return csv.reader(io.StringIO(text, newline=""), delimiter=delimiter, skipinitialspace=True, strict=strict)


def _loose_rows(text: str, at: int, delimiter: str, loose: list[int]) -> Iterator[list[str]]:
    """The rows from a place on; a quotation mark that does not enclose a whole cell is text.

    Unlike non-strict :mod:`csv`, an unclosed quotation does not swallow the next rows, and no mark is lost. ``loose``
    receives the line of the first such mark.
    """
    ends = re.escape(delimiter) + r"\r\n"
    cells = re.compile(rf' *+"((?:[^"]++|"")*+)" *+(?=[{ends}]|\Z)|([^{ends}]*+)')
    row: list[str] = []
    while cell := cells.match(text, at):
        quoted, plain = cell.groups()
        row.append(plain if quoted is None else quoted.replace('""', '"'))
        if not loose and quoted is None and plain.lstrip(" ").startswith('"'):
            before = text[:at]
            loose.append(1 + before.count("\n") + before.count("\r") - before.count("\r\n"))
        at = cell.end()
        if text.startswith(delimiter, at):
            at += 1
            continue
        yield row
        row = []
        if at == len(text):
            return
        at += 2 if text.startswith("\r\n", at) else 1


def _filled(rows: Iterable[list[str]]) -> Iterator[list[str]]:
    return (row for row in rows if any(cell and not cell.isspace() for cell in row))


def _check_width(row: Sequence[str], limits: ReadLimits) -> None:
    if len(row) > limits.max_fields:
        raise DocumentTooLarge(f"has a row of more than {limits.max_fields:,} fields (max_fields)")

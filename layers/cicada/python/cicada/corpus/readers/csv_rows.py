"""CSV files: each row with the names of its columns."""

from __future__ import annotations

import csv
import io
import itertools
import sys
from collections import Counter
from collections.abc import Iterator, Sequence

from cicada.corpus.readers.blocks import Blocks, column_names
from cicada.corpus.readers.content import Content
from cicada.corpus.readers.decoding import decoded, guess_note
from cicada.corpus.readers.limits import ReadLimits
from cicada.corpus.readers.table_rows import SAMPLE_ROWS, names_columns, with_names
from cicada.errors import DocumentBroken, DocumentTooLarge

_DELIMITERS = ",;\t|"
_SAMPLE_ROWS = 100
_SAMPLE_CHARS = 65_536


def read_csv(data: bytes, limits: ReadLimits) -> Content:
    """A block a row. The delimiter is the one of ``, ; tab |`` that gives the rows most alike.

    Where the first row does not look like names the columns are called ``column 1`` and so on, and it is a row like the
    others.

    Raises:
        DocumentBroken: a quotation mark is not closed, or the file is no text.
        DocumentTooLarge: a limit is reached.
    """
    text, guessed = decoded(data)
    rows = _rows(text.replace("\0", ""), delimiter_of(text))
    begin = list(itertools.islice(rows, 1 + SAMPLE_ROWS))
    notes = list(guess_note(guessed))
    blocks = Blocks(limits)
    if not begin:
        return Content("csv", (), notes=tuple(notes))
    _check_width(begin[0], limits)
    named = names_columns(begin[0], begin[1:])
    names = column_names(begin[0]) if named else []
    if not named:
        notes.append("its first row does not name the columns")
    table = blocks.new_table()
    for row in itertools.chain(begin[named:], rows):
        _check_width(row, limits)
        blocks.fields("row", with_names(names, row), table)
    return Content("csv", blocks.all(), notes=tuple(notes))


def delimiter_of(text: str) -> str:
    """The delimiter with which most of the first rows have one width, of at least two; the widest among equals."""
    sample = text[:_SAMPLE_CHARS]
    if len(sample) < len(text):
        sample = sample[: sample.rfind("\n") + 1] or sample

    def fit(delimiter: str) -> tuple[float, int]:
        try:
            rows = list(itertools.islice(_rows(sample, delimiter, strict=False), _SAMPLE_ROWS))
        except DocumentBroken:
            return 0.0, 0
        width, count = Counter(map(len, rows)).most_common(1)[0] if rows else (0, 0)
        return (count / len(rows), width) if width > 1 else (0.0, 0)

    return max(_DELIMITERS, key=fit)


def _rows(text: str, delimiter: str, *, strict: bool = True) -> Iterator[list[str]]:
    csv.field_size_limit(sys.maxsize)  # the file is bounded as a whole
    lines = csv.reader(io.StringIO(text, newline=""), delimiter=delimiter, skipinitialspace=True, strict=strict)
    try:
        for row in lines:
            if any(cell and not cell.isspace() for cell in row):
                yield row
    except csv.Error as error:
        raise DocumentBroken(f"line {lines.line_num}: {error}") from None


def _check_width(row: Sequence[str], limits: ReadLimits) -> None:
    if len(row) > limits.max_fields:
        raise DocumentTooLarge(f"has a row of more than {limits.max_fields:,} fields (max_fields)")

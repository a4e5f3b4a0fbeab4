"""Collect a document's blocks: cleaned, below their headings, within the limits."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field

from cicada.corpus.documents import METADATA_KEYS, BlockKind, DocType, DocumentBlock
from cicada.corpus.messages import MAX_METADATA_VALUE_CHARS
from cicada.corpus.readers.limits import ReadLimits
from cicada.errors import DocumentTooLarge
from cicada.text.visible import visible

_LINE_ENDS = re.compile("\r\n?|[\x0b\x0c\x85\u2028\u2029]")
_SPACES = re.compile("[\u00a0\u2000-\u200a\u202f\u205f\u3000]")
_HIDDEN_RUN = re.compile("[\u200c\u200d\ufe00-\ufe0f]{3,}")
"""More than two joiners or variation selectors in a row have no legitimate use: they can hide a message."""
_BLANK_LINES = re.compile(r"\n{3,}")
_END_OF_LINE = re.compile(r"[ \t]+(?=\n|$)")


def cleaned(text: str, *, indented: bool = False) -> str:
    """A block's text: uniform line ends and spaces, without invisible characters, stripped; ``indented`` keeps the
    first line's indentation, as of a list's item or code."""
    text = visible(_HIDDEN_RUN.sub("", _SPACES.sub(" ", _LINE_ENDS.sub("\n", text))))
    text = _BLANK_LINES.sub("\n\n", _END_OF_LINE.sub("", text))
    return text.lstrip("\n").rstrip() if indented else text.strip()


def one_line(text: str) -> str:
    """A name, a heading or a cell: cleaned and single-spaced."""
    return " ".join(cleaned(text).split())


MAX_HEADING_CHARS = 300  # a longer heading is cut in section paths; its own block is whole
MAX_LEVELS = 9  # nested headings, at most


class Blocks:
    """The blocks read so far, and the headings above the next one."""

    def __init__(self, limits: ReadLimits) -> None:
        self.limits = limits
        self._blocks: list[DocumentBlock] = []
        self._chars = 0
        self._headings: list[tuple[int, str]] = []
        self._tables = 0

    def heading(self, text: str, level: int, page: int | None = None) -> None:
        """Add a heading, unless blank; it ends those of its level and below."""
        if not (line := one_line(text)):
            return
        self.enter(line, level)
        self._add(DocumentBlock("heading", line, self._section(), page))

    def enter(self, heading: str, level: int) -> None:
        """Put what follows under a heading that is not a block itself."""
        level = min(max(level, 1), MAX_LEVELS)
        self._headings = [held for held in self._headings if held[0] < level]
        self._headings.append((level, heading[:MAX_HEADING_CHARS]))

    def place(self, headings: Sequence[str]) -> None:
        """Put what follows under exactly these headings, which are not blocks themselves."""
        self._headings = [(level, heading[:MAX_HEADING_CHARS]) for level, heading in enumerate(headings, start=1)]

    def add(self, kind: BlockKind, text: str, page: int | None = None) -> None:
        """Add text, unless blank."""
        if line := cleaned(text, indented=kind in ("list_item", "code")):
            self._add(DocumentBlock(kind, line, self._section(), page))

    def new_table(self) -> int:
        """Begin a table; its number."""
        self._tables += 1
        return self._tables

    def fields(
        self, kind: BlockKind, fields: Iterable[tuple[str, str]], table: int | None = None, page: int | None = None
    ) -> None:
        """Add a row or a record, without empty values, unless all are empty."""
        kept = tuple((one_line(name), line) for name, value in fields if (line := one_line(value)))
        if len(kept) > self.limits.max_fields:
            raise DocumentTooLarge(f"has a {kind} of more than {self.limits.max_fields:,} fields (max_fields)")
        if kept:
            self._add(DocumentBlock(kind, rendered(kept), self._section(), page, kept, table))

    def first_heading(self) -> str | None:
        """The first block if it is a heading, which is the title of many documents."""
        first = self._blocks[0] if self._blocks else None
        return first.text[:MAX_HEADING_CHARS] if first and first.kind == "heading" else None

    def all(self) -> tuple[DocumentBlock, ...]:
        """Every block, in reading order."""
        return tuple(self._blocks)

    def _section(self) -> tuple[str, ...]:
        return tuple(heading for _, heading in self._headings)

    def _add(self, block: DocumentBlock) -> None:
        self._chars += len(block.text)
        if self._chars > self.limits.max_text_chars:
            raise DocumentTooLarge(f"has more than {self.limits.max_text_chars:,} characters (max_text_chars)")
        if len(self._blocks) == self.limits.max_blocks:
            raise DocumentTooLarge(f"has more than {self.limits.max_blocks:,} blocks (max_blocks)")
        self._blocks.append(block)


def rendered(fields: Sequence[tuple[str, str]]) -> str:
    """The text of a row or a record: ``name: value``, one a line."""
    return "\n".join(f"{name}: {value}" if name else value for name, value in fields)


def column_names(header: Sequence[str]) -> list[str]:
    """A table's column names, unique; blank and repeated ones get their column's number."""
    names: list[str] = []
    seen: set[str] = set()
    for number, cell in enumerate(header, start=1):
        name = one_line(cell) or column_name(number)
        names.append(f"{name} ({number})" if name in seen else name)
        seen.add(names[-1])
    return names


def column_name(number: int) -> str:
    """The name of a column without one, from 1."""
    return f"column {number}"


def bounded_metadata(found: Mapping[str, str | None]) -> dict[str, str]:
    """A file's :data:`METADATA_KEYS`, without blanks, cut to the bounds of passage metadata."""
    lines = {name.casefold(): one_line(value or "") for name, value in found.items()}
    return {key: lines[key][:MAX_METADATA_VALUE_CHARS] for key in METADATA_KEYS if lines.get(key)}


@dataclass(frozen=True)
class Content:
    """The content of one file."""

    doc_type: DocType
    blocks: tuple[DocumentBlock, ...]
    title: str | None = None  # from the file itself
    pages: int | None = None
    metadata: Mapping[str, str] = field(default_factory=dict)
    notes: tuple[str, ...] = ()

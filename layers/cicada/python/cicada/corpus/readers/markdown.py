"""Markdown (CommonMark with tables): its structure, without its marks."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

from cicada.corpus.documents import BlockKind
from cicada.corpus.readers.blocks import Blocks, bounded_metadata
from cicada.corpus.readers.content import Content
from cicada.corpus.readers.decoding import decoded
from cicada.corpus.readers.limits import ReadLimits
from cicada.corpus.readers.markup import Markup
from cicada.corpus.readers.table_rows import add_table
from cicada.errors import DocumentTooLarge

if TYPE_CHECKING:
    from markdown_it.token import Token

_FRONT_MATTER = re.compile(r"---[ \t]*\n(.*?)\n(?:---|\.\.\.)[ \t]*(?:\n|\Z)", re.DOTALL)
_ENTRY = re.compile(r"([A-Za-z][\w -]{0,63}):(?:[ \t]+(.*))?")
_BELOW_AN_ENTRY = re.compile(r"[ \t].*|-(?:[ \t].*)?|#.*|")
"""A continuation, an item of a list, a comment, a blank line."""
_NO_VALUE = re.compile(r"[|>][+-]?\d?|[\[{].*|")
"""What says that the value follows below, or is none of one line."""
_ABSOLUTE = re.compile(r"(?:https?|mailto):", re.IGNORECASE)
_INDENT = "  "


def read_markdown(data: bytes, limits: ReadLimits) -> Content:
    """Headings, paragraphs, items of lists with their numbers, quotes, code and the rows of tables.

    Comments, HTML tags and what they hide are left out. Of links the text is kept, and an address that leads somewhere
    else. Simple entries of a front matter become metadata, its ``title`` the title.

    Raises:
        DocumentBroken: it is no text.
        DocumentTooLarge: a limit is reached.
    """
    from markdown_it import MarkdownIt

    text, notes = decoded(data)
    text = text.replace("\r\n", "\n").replace("\r", "\n")
    metadata, start = _front_matter(text)
    # Twice the depth: the parser leaves out what lies deeper than it is told, which must be seen to be refused.
    parser = MarkdownIt("commonmark", {"maxNesting": 2 * limits.max_depth}).enable(["table", "strikethrough"])
    blocks = Blocks(limits)
    _Walk(blocks, parser.parse(text[start:])).run()
    named = {name.casefold(): value for name, value in metadata.items()}
    return Content(
        "markdown",
        blocks.all(),
        title=named.get("title") or blocks.first_heading(),
        metadata=bounded_metadata({name: value for name, value in metadata.items() if name.casefold() != "title"}),
        notes=notes,
    )


def _front_matter(text: str) -> tuple[dict[str, str], int]:
    """The simple entries of a front matter, and where it ends; text between two rules is none."""
    front = _FRONT_MATTER.match(text)
    lines = front[1].split("\n") if front else []
    entries = [_ENTRY.fullmatch(line) for line in lines]
    if front is None or not entries[0]:
        return {}, 0
    if not all(entry or _BELOW_AN_ENTRY.fullmatch(line) for entry, line in zip(entries, lines, strict=True)):
        return {}, 0
    found = {entry[1]: (entry[2] or "").strip() for entry in entries if entry}
    return {name: value.strip(" \"'") for name, value in found.items() if not _NO_VALUE.fullmatch(value)}, front.end()


class _Walk:
    """From the parser's flat list of tokens to blocks."""

    def __init__(self, blocks: Blocks, tokens: Sequence[Token]) -> None:
        self._blocks = blocks
        self._tokens = tokens
        self._markup = Markup()
        self._quotes = 0
        self._items: list[str] = []
        """The marks of the open items; blank once written."""
        self._rows: list[list[str]] = []
        self._heading = 0

    def run(self) -> None:
        for token in self._tokens:
            if token.level > self._blocks.limits.max_depth:
                raise DocumentTooLarge(f"is nested more than {self._blocks.limits.max_depth} deep (max_depth)")
            match token.type:
                case "blockquote_open" | "blockquote_close":
                    self._quotes += token.nesting
                case "list_item_open":
                    self._items.append(f"{token.info}{token.markup}" if token.info else "-")
                case "list_item_close":
                    self._items.pop()
                case "heading_open":
                    self._heading = int(token.tag[1:])
                case "heading_close":
                    self._heading = 0
                case "table_open":
                    self._rows = []
                case "table_close":
                    add_table(self._blocks, self._rows, named=True)
                    self._rows = []
                case "tr_open":
                    self._rows.append([])
                case "inline":
                    self._inline(token)
                case "fence" | "code_block":
                    self._markup.begin_block()
                    if not self._markup.hidden:
                        self._blocks.add("code", token.content)
                case "html_block":
                    self._text(self._markup.shown(token.content))

    def _inline(self, token: Token) -> None:
        opened = self._markup.begin_block()
        text = "".join(_shown(token.children or [], self._markup))
        self._markup.end_block(opened)
        if self._rows:
            self._rows[-1].append(text)
        elif self._heading and not (self._quotes or self._items):
            self._blocks.heading(text, self._heading)
        else:
            self._text(text)

    def _text(self, text: str) -> None:
        if not text.strip():
            return
        kind: BlockKind = "paragraph"
        if self._items:
            kind = "list_item"
            mark, self._items[-1] = self._items[-1], ""
            text = _INDENT * (len(self._items) - 1) + (f"{mark} {text}" if mark else _INDENT + text)
        elif self._quotes:
            kind = "quote"
        self._blocks.add(kind, text)


def _shown(children: Sequence[Token], markup: Markup) -> Iterator[str]:
    """What a page would show of a block's tokens."""
    address, since = "", ""
    for child in children:
        if child.type == "html_inline":
            markup.shown(child.content)
        if markup.hidden:
            continue
        match child.type:
            case "text" | "code_inline":
                since += child.content
                yield child.content
            case "softbreak":
                yield " "
            case "hardbreak":
                yield "\n"
            case "image":
                yield child.content
            case "link_open":
                address, since = str(child.attrs.get("href", "")), ""
            case "link_close" if _ABSOLUTE.match(address) and since not in (address, address.removeprefix("mailto:")):
                yield f" ({address})"

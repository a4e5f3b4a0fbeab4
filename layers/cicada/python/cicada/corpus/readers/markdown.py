"""Read Markdown (CommonMark with tables): its structure without markup; HTML in it as a browser shows it."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from html.parser import HTMLParser
from typing import TYPE_CHECKING

from cicada.corpus.documents import BlockKind
from cicada.corpus.readers.blocks import Blocks, Content, bounded_metadata
from cicada.corpus.readers.decoding import decoded
from cicada.corpus.readers.limits import ReadLimits
from cicada.corpus.readers.table_rows import add_table
from cicada.errors import DocumentTooLarge

if TYPE_CHECKING:
    from markdown_it.token import Token

_NOT_SHOWN = frozenset({"script", "style", "template", "noscript", "head", "title", "iframe", "object"})
_BREAKS = frozenset({"br", "p", "div", "li", "tr", "table", "ul", "ol", "h1", "h2", "h3", "h4", "h5", "h6", "hr"})
_VOID = frozenset(  # elements without content or end
    {"area", "base", "br", "col", "embed", "hr", "img", "input", "link", "meta", "source", "track", "wbr"}
)
_ENDED_BY_LIKE = frozenset({"li", "dt", "dd", "tr", "td", "th", "option"})  # ended by the next of their kind


class Markup:
    """The open elements over all HTML of a document: a hidden one may begin in one piece and end in another, with
    Markdown between them."""

    def __init__(self) -> None:
        self._open: list[str] = []  # the outermost hidden element, and those in it

    @property
    def hidden(self) -> bool:
        """Whether the following text is in a hidden element."""
        return bool(self._open)

    def begin_block(self) -> int:
        """Begin a block, which ends an open paragraph; the number of open elements, for :meth:`end_block`."""
        if "p" in self._open:
            del self._open[self._open.index("p") :]
        return len(self._open)

    def end_block(self, opened: int) -> None:
        """End a block of Markdown, and the elements opened in it."""
        del self._open[opened:]

    def shown(self, html: str) -> str:
        """The visible text of a piece of HTML."""
        parser = _Shown(self)
        parser.feed(html)
        parser.close()
        lines = (" ".join(line.split()) for line in "".join(parser.parts).split("\n"))
        return "\n".join(line for line in lines if line)

    def start(self, tag: str, *, hides: bool) -> None:
        """Handle a start tag."""
        if tag in _VOID:
            return
        if tag in _BREAKS:
            self.begin_block()
        if tag in _ENDED_BY_LIKE and self._open[-1:] == [tag]:
            self._open.pop()
        if self._open or hides:
            self._open.append(tag)

    def end(self, tag: str) -> None:
        """Handle an end tag, which ends the last element of its name, and those in it."""
        if tag in self._open:
            del self._open[len(self._open) - 1 - self._open[::-1].index(tag) :]


class _Shown(HTMLParser):
    def __init__(self, markup: Markup) -> None:
        super().__init__(convert_charrefs=True)
        self.parts: list[str] = []
        self._markup = markup

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self._markup.start(tag, hides=tag in _NOT_SHOWN or any(name == "hidden" for name, _ in attrs))
        if tag in _BREAKS:
            self.parts.append("\n")
        elif tag in ("td", "th"):
            self.parts.append(" ")

    def handle_endtag(self, tag: str) -> None:
        self._markup.end(tag)

    def handle_data(self, data: str) -> None:
        if not self._markup.hidden:
            self.parts.append(data)


_FRONT_MATTER = re.compile(r"---[ \t]*\n(.*?)\n(?:---|\.\.\.)[ \t]*(?:\n|\Z)", re.DOTALL)
_ENTRY = re.compile(r"([A-Za-z][\w -]{0,63}):(?:[ \t]+(.*))?")
_BELOW_AN_ENTRY = re.compile(r"[ \t].*|-(?:[ \t].*)?|#.*|")
"""A continuation, an item of a list, a comment, a blank line."""
_NO_VALUE = re.compile(r"[|>][+-]?\d?|[\[{].*|")  # the value follows below, or is not a plain scalar
_ABSOLUTE = re.compile(r"(?:https?|mailto):", re.IGNORECASE)
_INDENT = "  "


def read_markdown(data: bytes, limits: ReadLimits) -> Content:
    """Headings, paragraphs, items of lists with their numbers, quotes, code and the rows of tables.

    Comments, HTML tags and hidden elements are left out. Links keep their text, and an absolute address. Simple entries
    of a front matter become metadata, its ``title`` the title. Raises DocumentBroken and DocumentTooLarge.
    """
    from markdown_it import MarkdownIt

    text, notes = decoded(data)
    text = text.replace("\r\n", "\n").replace("\r", "\n")
    metadata, start = _front_matter(text)
    # Twice the depth: the parser drops deeper elements, which must be seen to be refused.
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
    """The simple entries of a front matter, and where it ends; text between two rules is not one."""
    front = _FRONT_MATTER.match(text)
    if front is None:
        return {}, 0
    lines = front[1].split("\n")
    entries = [entry for line in lines if (entry := _ENTRY.fullmatch(line))]
    others = [line for line in lines if not _ENTRY.fullmatch(line)]
    if not _ENTRY.fullmatch(lines[0]) or not all(map(_BELOW_AN_ENTRY.fullmatch, others)):
        return {}, 0
    found = {entry[1]: (entry[2] or "").strip() for entry in entries}
    return {name: value.strip(" \"'") for name, value in found.items() if not _NO_VALUE.fullmatch(value)}, front.end()


class _Walk:
    """Makes blocks of the parser's flat list of tokens."""

    def __init__(self, blocks: Blocks, tokens: Sequence[Token]) -> None:
        self._blocks = blocks
        self._tokens = tokens
        self._markup = Markup()
        self._quotes = 0
        self._items: list[str] = []  # marks of the open items; blank once written
        self._rows: list[list[str]] = []
        self._heading = 0

    def run(self) -> None:
        for token in self._tokens:
            if token.level > self._blocks.limits.max_depth:
                raise DocumentTooLarge(f"is nested more than {self._blocks.limits.max_depth} deep (max_depth)")
            if token.nesting:
                self._open_or_close(token)
            else:
                self._leaf(token)

    def _open_or_close(self, token: Token) -> None:
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

    def _leaf(self, token: Token) -> None:
        match token.type:
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
    """The visible text of a block's tokens."""
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

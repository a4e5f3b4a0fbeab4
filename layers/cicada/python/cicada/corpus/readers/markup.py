"""The HTML that stands in a Markdown file: what a browser would show of it, and of the Markdown between its tags."""

from __future__ import annotations

from html.parser import HTMLParser

_NOT_SHOWN = frozenset({"script", "style", "template", "noscript", "head", "title", "iframe", "object"})
_BREAKS = frozenset({"br", "p", "div", "li", "tr", "table", "ul", "ol", "h1", "h2", "h3", "h4", "h5", "h6", "hr"})
_VOID = frozenset(
    {"area", "base", "br", "col", "embed", "hr", "img", "input", "link", "meta", "source", "track", "wbr"}
)
"""Elements without content or end."""
_ENDED_BY_LIKE = frozenset({"li", "dt", "dd", "tr", "td", "th", "option"})
"""Elements that the next of their kind ends."""


class Markup:
    """Which elements are open, over all HTML of a document in order: what is hidden may begin in one piece of it and
    end in another, with Markdown between them."""

    def __init__(self) -> None:
        self._open: list[str] = []
        """The outermost hidden element that is open, and those in it."""

    @property
    def hidden(self) -> bool:
        """Whether what comes next is in a hidden element."""
        return bool(self._open)

    def begin_block(self) -> int:
        """Begin a block of Markdown, which ends an open paragraph as any block does.

        Returns:
            How many elements are open, for :meth:`end_block`.
        """
        if "p" in self._open:
            del self._open[self._open.index("p") :]
        return len(self._open)

    def end_block(self, opened: int) -> None:
        """End a block of Markdown, and so whatever was opened in it."""
        del self._open[opened:]

    def shown(self, html: str) -> str:
        """The text of a piece of HTML, without tags, comments and what no reader sees."""
        parser = _Shown(self)
        parser.feed(html)
        parser.close()
        lines = (" ".join(line.split()) for line in "".join(parser.parts).split("\n"))
        return "\n".join(line for line in lines if line)

    def start(self, tag: str, *, hides: bool) -> None:
        """Take a start tag."""
        if tag in _VOID:
            return
        if tag in _BREAKS:
            self.begin_block()
        if tag in _ENDED_BY_LIKE and self._open[-1:] == [tag]:
            self._open.pop()
        if self._open or hides:
            self._open.append(tag)

    def end(self, tag: str) -> None:
        """Take an end tag, which ends the last element of its name, and what is open in that."""
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

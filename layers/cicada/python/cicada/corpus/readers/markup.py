"""The text of HTML that stands in a Markdown file: what a browser would show of it."""

from __future__ import annotations

from html.parser import HTMLParser

_NOT_SHOWN = frozenset({"script", "style", "template", "noscript", "head", "title", "iframe", "object"})
_BREAKS = frozenset({"br", "p", "div", "li", "tr", "table", "ul", "ol", "h1", "h2", "h3", "h4", "h5", "h6", "hr"})


class _Shown(HTMLParser):
    def __init__(self) -> None:
        super().__init__(convert_charrefs=True)
        self.parts: list[str] = []
        self._hidden: list[str] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        if tag in _NOT_SHOWN or any(name == "hidden" for name, _ in attrs):
            self._hidden.append(tag)
        if tag in _BREAKS:
            self.parts.append("\n")
        elif tag in ("td", "th"):
            self.parts.append(" ")

    def handle_endtag(self, tag: str) -> None:
        if self._hidden and self._hidden[-1] == tag:
            self._hidden.pop()

    def handle_data(self, data: str) -> None:
        if not self._hidden:
            self.parts.append(data)


def shown_text(html: str) -> str:
    """The text between the tags, without comments and what no reader sees."""
    parser = _Shown()
    parser.feed(html)
    parser.close()
    lines = (" ".join(line.split()) for line in "".join(parser.parts).split("\n"))
    return "\n".join(line for line in lines if line)

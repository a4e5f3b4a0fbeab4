"""XML that is not trusted: no document type, no entities of its own, bounded depth."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, NoReturn
from xml.parsers import expat

from cicada.errors import DocumentBroken, DocumentTooLarge, DocumentUnsafe

_SEPARATOR = " "


class Element:
    """An element by its local name. Attributes are by local name, too: the formats read here do not mix them."""

    __slots__ = ("attributes", "children", "name", "text")

    def __init__(self, name: str, attributes: dict[str, str]) -> None:
        self.name = name
        self.attributes = attributes
        self.children: list[Element] = []
        self.text = ""
        """All character data directly in it."""

    def child(self, name: str) -> Element | None:
        """The first child of this name."""
        return next((child for child in self.children if child.name == name), None)

    def value(self, *path: str) -> str | None:
        """The ``val`` of the element at the end of a path of names."""
        found: Element | None = self
        for name in path:
            found = found and found.child(name)
        return found.attributes.get("val") if found else None

    def has(self, *path: str) -> bool:
        """Whether a switch is there and not off, as Word writes its booleans."""
        found: Element | None = self
        for name in path:
            found = found and found.child(name)
        return found is not None and found.attributes.get("val", "true") not in ("0", "false", "off", "none")

    def walk(self) -> Iterator[Element]:
        """It and all below it, in order."""
        waiting = [self]
        while waiting:
            element = waiting.pop()
            yield element
            waiting.extend(reversed(element.children))


def parsed(data: bytes, max_depth: int, max_elements: int) -> Element:
    """The document's element.

    Raises:
        DocumentBroken: it is not well-formed.
        DocumentTooLarge: it is nested more than ``max_depth`` deep, or has more than ``max_elements`` elements.
        DocumentUnsafe: it declares a document type: only that can define entities.
    """
    top = Element("", {})
    open_elements = [top]
    local = _LocalNames()
    left = max_elements

    def start(name: str, attributes: dict[str, str]) -> None:
        nonlocal left
        left -= 1
        if left < 0:
            raise DocumentTooLarge(f"has more than {max_elements:,} elements (max_elements)")
        if len(open_elements) > max_depth:
            raise DocumentTooLarge(f"is nested more than {max_depth} elements deep (max_depth)")
        element = Element(local[name], {local[key]: value for key, value in attributes.items()})
        open_elements[-1].children.append(element)
        open_elements.append(element)

    def end(_: str) -> None:
        open_elements.pop()

    def text(data: str) -> None:
        open_elements[-1].text += data

    def document_type(*_: Any) -> NoReturn:
        raise DocumentUnsafe("declares a document type, with which entities could be defined")

    parser = expat.ParserCreate(namespace_separator=_SEPARATOR)
    parser.buffer_text = True
    parser.StartElementHandler = start
    parser.EndElementHandler = end
    parser.CharacterDataHandler = text
    parser.StartDoctypeDeclHandler = document_type
    try:
        parser.Parse(data, True)
    except expat.ExpatError as error:
        if error.code == expat.errors.codes[expat.errors.XML_ERROR_NO_MEMORY]:
            raise MemoryError from None
        raise DocumentBroken(f"holds XML that is not well-formed: {expat.ErrorString(error.code)}") from None
    except (LookupError, UnicodeError):
        raise DocumentBroken("holds XML in an unknown encoding") from None
    return top.children[0]


class _LocalNames(dict[str, str]):
    """Names without their namespace, each cut once."""

    def __missing__(self, name: str) -> str:
        local = self[name] = name.rpartition(_SEPARATOR)[2]
        return local

"""Untrusted XML and ZIP archives: no document types, so no entities, and limited depth and size."""

from __future__ import annotations

import io
import zipfile
import zlib
from collections.abc import Iterator
from pathlib import PurePosixPath
from typing import Any, NoReturn
from xml.parsers import expat

from cicada.corpus.readers.limits import ReadLimits
from cicada.errors import DocumentBroken, DocumentEncrypted, DocumentTooLarge, DocumentUnsafe

_SEPARATOR = " "


class Element:
    """An element; names of elements and attributes are local, since the formats read here do not mix them."""

    __slots__ = ("attributes", "children", "name", "text")

    def __init__(self, name: str, attributes: dict[str, str]) -> None:
        self.name = name
        self.attributes = attributes
        self.children: list[Element] = []
        self.text = ""  # character data directly in it

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
        """Whether a switch is on, as Word writes its booleans."""
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
    """The document's element. Raises DocumentBroken if it is not well-formed, DocumentTooLarge, and DocumentUnsafe if
    it declares a document type, which could define entities."""
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
        raise DocumentUnsafe("contains a document type declaration (DTD), which is not allowed")

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
        raise DocumentBroken(f"contains malformed XML: {expat.ErrorString(error.code)}") from None
    except (LookupError, UnicodeError):
        raise DocumentBroken("contains XML in an unknown encoding") from None
    return top.children[0]


class _LocalNames(dict[str, str]):
    """Names without their namespace, cached."""

    def __missing__(self, name: str) -> str:
        local = self[name] = name.rpartition(_SEPARATOR)[2]
        return local


_ENCRYPTED = 0x1
_TELLS = (zipfile.BadZipFile, zlib.error, EOFError, NotImplementedError, OSError, ValueError, RuntimeError)
"""Raised by :mod:`zipfile` for broken and unsupported archives."""


class Archive:
    """An archive in memory, whose members are read one at a time. Nothing is written to a disk."""

    def __init__(self, data: bytes, limits: ReadLimits) -> None:
        """Read its directory. Raises DocumentBroken, DocumentEncrypted, DocumentTooLarge for too many members or bytes,
        and DocumentUnsafe if a member's name leads out of the archive, or is repeated."""
        try:
            self._zip = zipfile.ZipFile(io.BytesIO(data))
        except _TELLS as error:
            raise DocumentBroken(f"its archive cannot be opened: {type(error).__name__}") from None
        members = self._zip.infolist()
        if len(members) > limits.max_members:
            raise DocumentTooLarge(f"has more than {limits.max_members:,} members (max_members)")
        if any(_leads_out(member.orig_filename) for member in members):
            raise DocumentUnsafe("an archive member's path leads outside the archive")
        self.names = frozenset(member.filename for member in members)
        if len(self.names) < len(members):
            raise DocumentUnsafe("the archive has duplicate member names")
        if any(member.flag_bits & _ENCRYPTED for member in members):
            raise DocumentEncrypted("its archive is password-protected")
        self._max_bytes = limits.max_unpacked_bytes
        if sum(member.file_size for member in members) > self._max_bytes:  # zipfile unpacks no more than is declared
            raise DocumentTooLarge(f"unpacks to more than {self._max_bytes:,} bytes (max_unpacked_bytes)")

    def read(self, name: str) -> bytes | None:
        """A member's bytes, if it exists. Raises DocumentBroken if it cannot be unpacked or its checksum is wrong."""
        if name not in self.names:
            return None
        try:
            return self._zip.read(name)
        except _TELLS as error:
            raise DocumentBroken(f"a member of its archive cannot be unpacked: {type(error).__name__}") from None


def _leads_out(name: str) -> bool:
    path = PurePosixPath(name)
    return path.is_absolute() or ".." in path.parts or "\\" in name or "\0" in name or ":" in name.split("/")[0]

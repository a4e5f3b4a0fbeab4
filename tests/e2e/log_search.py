"""Looks for what no log may hold: who asks, their tokens, and what people and models write."""

from __future__ import annotations

import json
import re
import zlib
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

from boto3.dynamodb.types import Binary, TypeDeserializer

WINDOW = 24
"""Letters and digits in a row of a text that give it away: a log that quotes only a part of it is found too."""
LEAST = 12
"""A text with fewer letters and digits than this is too common to be looked for."""
PUBLIC = frozenset({"reasoning", "reason", "message", "told"})
"""Fields whose sentences are the code's own; logs may repeat them."""

_ESCAPED = re.compile(r"\\u([0-9a-fA-F]{4})")
_ESCAPES = re.compile(r"\\+[nrt\"'/\\]")
_OTHERS = re.compile(r"[\W_]+")


def plain(text: str) -> str:
    """Letters and digits alone: the same however a text is quoted, escaped, indented or wrapped."""
    return _OTHERS.sub("", _ESCAPES.sub(" ", _ESCAPED.sub(lambda code: chr(int(code[1], 16)), text))).casefold()


def is_distinctive(text: str) -> bool:
    """Whether a text that is found in a log can only have come from there."""
    return len(plain(text)) >= LEAST


class LogSearch:
    """Finds texts, whole or in part, and names."""

    def __init__(self, texts: Iterable[str], names: Iterable[str] = ()) -> None:
        """Prepare the search.

        Args:
            texts: whatever :func:`is_distinctive`; others are left out.
            names: looked for as whole words.
        """
        self._by_part: dict[str, str] = {}
        for text in texts:
            letters = plain(text)
            if len(letters) >= LEAST:
                width = min(WINDOW, len(letters))
                self._by_part.update((letters[at : at + width], text) for at in range(len(letters) - width + 1))
        self._widths = sorted({len(part) for part in self._by_part})
        self._begins = {part[:LEAST] for part in self._by_part}
        named = "|".join(re.escape(name) for name in sorted(set(names), key=len, reverse=True))
        self._names = re.compile(rf"(?<!\w)(?:{named})(?!\w)") if named else None

    def leaks(self, line: str) -> set[str]:
        """What a line of a log holds of them."""
        letters = plain(line)
        places = [at for at in range(len(letters) - LEAST + 1) if letters[at : at + LEAST] in self._begins]
        found = {
            self._by_part[letters[at : at + width]]
            for at in places
            for width in self._widths
            if letters[at : at + width] in self._by_part
        }
        return found | set(self._names.findall(line) if self._names else ())

    def in_files(self, files: Iterable[Path]) -> list[str]:
        """Every leak, with its file and line, for people."""
        told = []
        for file in files:
            for number, line in enumerate(file.read_text(encoding="utf-8", errors="replace").splitlines(), 1):
                for leak in sorted(self.leaks(line)):
                    told.append(f"{file.name}:{number}: {leak[:80]!r} in {line[:2_000]}")
        return told


def stored_items(dynamodb: Any) -> list[dict[str, Any]]:
    """Every item of every table."""
    read = TypeDeserializer().deserialize
    return [
        {name: read(value) for name, value in item.items()}
        for table in dynamodb.list_tables()["TableNames"]
        for page in dynamodb.get_paginator("scan").paginate(TableName=table)
        for item in page["Items"]
    ]


def texts_of(items: Iterable[dict[str, Any]]) -> set[str]:
    """Every text in stored items: questions, answers, passages, conversations, profiles."""
    return {text for item in items for text in _texts(item, "")}


def _texts(value: Any, name: str) -> Iterator[str]:
    """The texts in a value, also in JSON and in what is compressed; identifiers, which have no spaces, are none."""
    match value:
        case dict():
            for inner_name, inner in value.items():
                yield from _texts(inner, inner_name)
        case list():
            for inner in value:
                yield from _texts(inner, name)
        case Binary():
            yield from _texts(_unpacked(value.value), name)
        case str() if value[:1] in ("{", "["):
            yield from _texts(_parsed(value), name)
        case str() if name not in PUBLIC and re.search(r"\s|[^\x00-\x7f]", value):
            yield value


def _parsed(text: str) -> Any:
    try:
        return json.loads(text)
    except ValueError:
        return None


def _unpacked(data: bytes) -> str | None:
    try:
        return zlib.decompress(data).decode()
    except (zlib.error, UnicodeDecodeError):
        return None

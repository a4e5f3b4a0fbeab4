"""Replies that fit a frame: lists in pages, and texts cut to the room that is left."""

from __future__ import annotations

import json
from bisect import bisect_right
from collections.abc import Iterable
from typing import TypeVar

from pydantic import BaseModel

PAGE_BYTES = 20 * 1024
"""UTF-8 bytes of the items of one page: below the 24 KiB of a frame, with room for the rest of the reply."""

Item = TypeVar("Item", bound=BaseModel)


def page_of(items: Iterable[Item], room: int, *, may_be_empty: bool = False) -> tuple[tuple[Item, ...], bool]:
    """As many items as there is room for, at least one unless ``may_be_empty``; and whether there are more."""
    taken: list[Item] = []
    for item in items:
        room -= bytes_of(item) + 1
        if room < 0 and (taken or may_be_empty):
            return tuple(taken), True
        taken.append(item)
    return tuple(taken), False


def fitting(text: str, room: int) -> str:
    """The beginning of a text that takes at most so many bytes as a JSON string."""
    beyond = bisect_right(range(len(text) + 1), room, key=lambda length: json_bytes(text[:length]))
    return text[: max(0, beyond - 1)]


def json_bytes(text: str) -> int:
    """The bytes of a text as a JSON string."""
    return len(json.dumps(text, ensure_ascii=False).encode())


def bytes_of(item: BaseModel) -> int:
    """The bytes of an item as JSON."""
    return len(item.model_dump_json(by_alias=True).encode())

"""Lists of words, kept in data files beside the code that uses them."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Mapping
from importlib.resources import files

_HYPHEN, _SPACES = re.escape("-"), r"\s+"
SOURCE = "source"  # the entry that says where the words come from


def word_lists(package: str, file: str) -> Mapping[str, frozenset[str]]:
    """The lists of a file, by name.

    Args:
        package: the library's package in which the file lies.
        file: JSON: one object with, for each list, its words parted by spaces, in one string or in an array of them;
            and :data:`SOURCE`.
    """
    told: dict[str, str | list[str]] = json.loads((files(package) / file).read_text(encoding="utf-8"))
    return {name: _words(lines) for name, lines in told.items() if name != SOURCE}


def any_word(words: Iterable[str]) -> str:
    """A regular expression of any of some words, the longest first; a hyphen in one stands for spaces."""
    longest_first = sorted(words, key=lambda word: (-len(word), word))
    return f"(?:{'|'.join(re.escape(word).replace(_HYPHEN, _SPACES) for word in longest_first)})"


def _words(lines: str | list[str]) -> frozenset[str]:
    return frozenset((lines if isinstance(lines, str) else " ".join(lines)).split())

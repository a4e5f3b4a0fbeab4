"""Lists of words, kept in data files beside the code that uses them."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Mapping
from importlib.resources import files

_HYPHEN, _SPACES = re.escape("-"), r"\s+"
SOURCE = "source"  # the entry that says where the words come from


def word_lists(package: str, file: str) -> Mapping[str, frozenset[str]]:
    """The lists of a JSON file in a package, by name: words separated by spaces, in a string or an array of strings."""
    told: dict[str, str | list[str]] = json.loads((files(package) / file).read_text(encoding="utf-8"))
    lists = {name: [lines] if isinstance(lines, str) else lines for name, lines in told.items() if name != SOURCE}
    return {name: frozenset(" ".join(lines).split()) for name, lines in lists.items()}


def any_word(words: Iterable[str]) -> str:
    """A regular expression of any of some words, the longest first; a hyphen in one stands for spaces."""
    longest_first = sorted(words, key=lambda word: (-len(word), word))
    return f"(?:{'|'.join(re.escape(word).replace(_HYPHEN, _SPACES) for word in longest_first)})"

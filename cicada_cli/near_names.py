"""Messages about unknown names, with the known names that are most like them."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from difflib import get_close_matches

from cicada_cli.text import clipped, one_line

MAX_SUGGESTED = 3
"""Near names that a message lists."""
MAX_NAME_CHARS = 60
"""Of an unknown name that a message repeats."""
MAX_LISTED_CHARS = 200
"""Of the list of valid values that a message ends with; a longer list is left out."""
_SIMILARITY = 0.6
"""Of two names, 0 to 1, from which one is suggested for the other."""
_SHORTEST_PART = 3
"""Characters of a name from which it suggests the names that contain it."""


def near(name: str, known: Iterable[str]) -> list[str]:
    """The known names that are most like one, the nearest first; a part of a name counts, and case does not."""
    by_fold = {one.casefold(): one for one in known}
    folded = name.casefold()
    close = get_close_matches(folded, by_fold, MAX_SUGGESTED, _SIMILARITY)
    stem = folded.lstrip("-")
    parts = [one for one in by_fold if stem in one or ((bare := one.lstrip("-")) and bare in stem)]
    contained = sorted(parts, key=len) if len(stem) >= _SHORTEST_PART else []
    return [by_fold[one] for one in dict.fromkeys((*close, *contained))][:MAX_SUGGESTED]


def did_you_mean(name: str, known: Iterable[str]) -> str:
    """`` Did you mean a or b?``; empty if no name is near."""
    found = [_shown(one) for one in near(name, known)]
    return f" Did you mean {' or '.join(found)}?" if found else ""


def unknown_name(kind: str, name: str, known: Iterable[str]) -> str:
    """That a name is unknown, with near ones or, if none is near and they are few, all."""
    names = list(known)
    told = f"unknown {kind} {_shown(name)}."
    if suggested := did_you_mean(name, names):
        return told + suggested
    listed = ", ".join(names)
    return f"{told} Valid: {listed}." if kind == "value" and len(listed) <= MAX_LISTED_CHARS else told


def _shown(name: str) -> str:
    return f"'{clipped(one_line(name), MAX_NAME_CHARS)}'"


def suggestion(asked: Sequence[str], known: Sequence[str]) -> str:
    """The suggestion for an error that lists known names; empty if none is near to one that was asked for."""
    return next((told for name in asked if name not in known and (told := did_you_mean(name, known))), "")

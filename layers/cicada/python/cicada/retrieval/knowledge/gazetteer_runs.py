"""Names of scripts that are written without spaces, found in a run of their characters."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence

LEAST_CHARS = 2
"""A single character stands inside of too many words."""


class RunNames:
    """Names as runs, ready to be found. Immutable."""

    def __init__(self, names: Iterable[tuple[str, Sequence[int], bool]]) -> None:
        """Take names: each as its run, whose it is, and whether it is an alias."""
        self._names = {run: (tuple(owners), alias) for run, owners, alias in names if len(run) >= LEAST_CHARS}
        lengths: defaultdict[str, set[int]] = defaultdict(set)
        for run in self._names:
            lengths[run[:LEAST_CHARS]].add(len(run))
        self._lengths = {begins: sorted(found, reverse=True) for begins, found in lengths.items()}

    def find(self, run: str) -> Iterator[tuple[int, int, tuple[int, ...], bool]]:
        """The names in a run, the longest at each place: where one begins and ends, whose it is, whether an alias."""
        at = 0
        while at < len(run):
            end = at
            for length in self._lengths.get(run[at : at + LEAST_CHARS], ()):
                part = run[at : at + length]  # at the run's end it is shorter, and can be another name
                found = self._names.get(part)
                if found is not None and not _goes_on(run, at) and not _goes_on(run, at + len(part)):
                    end = at + len(part)
                    yield (at, end, *found)
                    break
            at = max(end, at + 1)


def _goes_on(run: str, at: int) -> bool:
    """Whether a word goes on over a place: a foreign one in katakana, or one of a script with spaces."""
    if not 0 < at < len(run):
        return False
    before, after = _sort(run[at - 1]), _sort(run[at])
    return before == after != ""


def _sort(character: str) -> str:
    if "\u30a1" <= character <= "\u30fa" or character == "ー":
        return "katakana"
    return "spaced" if character < "\u0e00" and character.isalnum() else ""

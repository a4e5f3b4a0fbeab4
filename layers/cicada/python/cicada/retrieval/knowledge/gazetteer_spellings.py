"""Names and aliases as the ways in which each can be written, and whose each way is."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterable, Sequence
from typing import NamedTuple

from cicada.retrieval.knowledge.gazetteer_words import line_of
from cicada.text.names import ARTICLES, bare_key


class Filed(NamedTuple):
    """A name as the index files it."""

    name: str
    passages: int
    """That name it."""
    given: bool = False
    """Whether a collection's declaration gives it: as one that has aliases, or by the heading of an entry."""


def merged(filed: Iterable[Filed], aliases: Sequence[tuple[str, Sequence[str]]]) -> list[Filed]:
    """The names, each once, as most passages spell it; those that aliases stand for among them.

    Spellings that differ in case, in what joins their words or by an article are of one name.
    """
    stands_for: dict[str, str] = {}
    spelt: dict[str, Filed] = {}
    for name, others in aliases:
        spelt.setdefault(bare_key(name), Filed(name, 0, given=True))
        for other in others:
            stands_for[bare_key(other)] = bare_key(name)
    declared, given = frozenset(spelt), set(spelt)
    passages: defaultdict[str, int] = defaultdict(int)
    most: defaultdict[str, int] = defaultdict(int)
    for one in filed:
        own = bare_key(one.name)
        key = own if own in declared else stands_for.get(own, own)
        passages[key] += one.passages
        if one.given:
            given.add(key)
        if key == own and one.passages > most[key]:
            most[key] = one.passages
            spelt[key] = one
    return [Filed(one.name, passages[key], key in given) for key, one in sorted(spelt.items())]


def owned(
    names: Sequence[Filed],
    aliases: Iterable[tuple[str, Sequence[str]]],
    ways: Callable[[str], Iterable[tuple[str, ...]]],
) -> dict[tuple[str, ...], tuple[tuple[int, ...], bool]]:
    """Each way to write a name: whose it is, and whether as an alias. A name's own way is nobody's alias."""
    own: defaultdict[tuple[str, ...], list[int]] = defaultdict(list)
    other: defaultdict[tuple[str, ...], list[int]] = defaultdict(list)
    number = {bare_key(one.name): place for place, one in enumerate(names)}
    for place, one in enumerate(names):
        for way in ways(one.name):
            own[way].append(place)
    for name, others in aliases:
        for alias in others:
            for way in ways(alias):
                if number[bare_key(name)] not in other[way]:
                    other[way].append(number[bare_key(name)])
    owned = {way: (tuple(places), True) for way, places in other.items()}
    return owned | {way: (tuple(places), False) for way, places in own.items()}


def ways_of(name: str) -> Iterable[tuple[str, ...]]:
    """A name as its folded words, with its article and without."""
    line = line_of(name)
    words = tuple(word.key for word in line.words)
    if line.run or not words:
        return
    yield words
    if len(words) > 1 and words[0] in ARTICLES:
        yield words[1:]


def runs_of(name: str) -> Iterable[tuple[str, ...]]:
    """A name with characters of a script without spaces as its run."""
    if not name.isascii() and (run := line_of(name).run):
        yield (run,)

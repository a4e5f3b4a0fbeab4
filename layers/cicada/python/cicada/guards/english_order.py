"""The words of an English question in one order, whichever of several its sentence has."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace

from cicada.guards.english_synonyms import term_of
from cicada.guards.reading import Word

OF = "of "
"""Before the number of a genitive: its marker."""
_DEPICTING = frozenset(
    map(term_of, "picture image portrait photo painting drawing statue story song film map copy account".split())
)
"""*A picture of Ada* need not be *Ada's picture*."""


def ordered(words: Sequence[Word]) -> Iterator[Word]:
    """Words with *of*-phrases before what they belong to, agents before their verbs, and lists in one order."""
    arranged = _agents_first(_genitives_first(words))
    group: list[Word] = []
    before: Word | None = None
    for word in arranged:
        if group and not word.joined:
            yield from _sorted_list(group, before)
            before, group = group[-1], []
        group.append(word)
    yield from _sorted_list(group, before)


def _sorted_list(group: Sequence[Word], before: Word | None) -> list[Word]:
    """A list in one order, unless its first word or its last may be a part of what stands beside it."""
    if len(group) < 2:
        return [replace(word, joined=False) for word in group]
    modified = before is not None and before.phrase == group[0].phrase
    alike = modified or any(word.owner for word in group)
    ordered_group = list(group) if alike else sorted(group, key=lambda word: word.term)
    first = group[0]
    return [
        replace(
            word, marker=first.marker, loose=first.loose, preposition=first.preposition, head=first.head, joined=False,
            phrase=first.phrase,
        )
        for word in ordered_group
    ]  # fmt: skip


def _genitives_first(words: Sequence[Word]) -> list[Word]:
    """*The name of the captain of the ship* as *the ship's captain's name*."""
    done: list[Word] = []
    thing: list[Word] = []  # with its owners before it
    owner: list[Word] = []
    for word in words:
        if word.marker.startswith(OF) and thing:
            if owner and owner[0].marker != word.marker:
                thing, owner = _owned(owner, thing), []
            owner.append(word)
        else:
            if owner or not thing or thing[-1].phrase != word.phrase:
                done += _owned(owner, thing)
                thing, owner = [], []
            thing.append(word)
    done += _owned(owner, thing)
    return [replace(word, marker="") if word.marker.startswith(OF) else word for word in done]


def _owned(owner: Sequence[Word], thing: Sequence[Word]) -> list[Word]:
    if not thing:
        return list(owner)
    last = thing[-1]
    if last.term in _DEPICTING:
        last = replace(last, marker=OF.strip())
    placed = (
        replace(word, marker=last.marker, loose=last.loose, preposition=last.preposition, head=last.head,
                genitive=True, phrase=last.phrase)
        for word in owner
    )  # fmt: skip
    return [*placed, *thing]


def _agents_first(words: Sequence[Word]) -> list[Word]:
    agents = [replace(word, marker="", loose=False) for word in words if word.marker == "by"]
    return agents + [word for word in words if word.marker != "by"]

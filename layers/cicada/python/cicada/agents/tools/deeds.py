"""What a statement says that was done, looked for in a passage: whether it was, and whose deed it is. English only.

A deed that is only wished, possible or a condition is none.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum

from cicada.agents.tools.doers import TITLES, UNDONE, Name, Subject, sentences
from cicada.citations.english_tables import NEGATIONS, STOP
from cicada.citations.english_terms import english_term
from cicada.citations.terms import matched
from cicada.guards.english_forms import LEMMAS, bases

MIN_TOLD = 0.6
"""The share of a statement's words beside names that one sentence of a passage must have to tell its deed."""
_NARROWER = {
    line.partition(":")[0]: frozenset(line.partition(":")[2].split())
    for line in """
put:place set lay snap fasten hang fix screw clip hook nail bolt slip stick mount fit click
take:grab seize snatch pocket steal pick lift collect
give:hand pass lend deliver
go:walk run row sail ride climb hurry drive cycle come
move:carry drag bring shift haul
lock:bolt padlock
kill:murder poison stab strangle shoot drown
destroy:burn smash wreck
break:smash snap shatter
say:tell shout whisper announce admit
see:watch notice spot glimpse
""".strip().split("\n")
}
"""Verbs, and those that say the same more closely: who snaps a lock through a hasp has put it there, not always the
other way round."""


class Deed(StrEnum):
    """What a passage tells of a statement's deed."""

    SAME = "same"
    """That it was done, by whom the statement says."""
    OTHERS = "others"
    """That it was done, by somebody else, whom it names."""
    UNKNOWN = "unknown"
    """Too little: not by whom it was done, or something else, or that it was only wished or possible."""
    UNTOLD = "untold"
    """All that the statement says beside its verb, and no verb for it."""


_DEEDS = (Deed.SAME, Deed.OTHERS, Deed.UNKNOWN)
"""The plainest first, of a passage with a verb for it."""


@dataclass(frozen=True)
class Told:
    """A deed as a passage tells it."""

    deed: Deed
    denied: bool = False
    """Whether the passage says there that it was not done."""


def says(verb: str, wanted: str) -> bool:
    """Whether a verb says what is wanted: the same, a synonym, or something closer."""
    if english_term(verb) == english_term(wanted):
        return True
    closer = {one for base in _lemmas(wanted) for one in _NARROWER.get(base, ())}
    return not closer.isdisjoint(_lemmas(verb))


def _lemmas(word: str) -> frozenset[str]:
    return bases(LEMMAS.get(word, word))


def same_name(one: Name, other: Name) -> bool:
    """Whether two names can be one person's: *Tamsin*, *Tamsin Oake*; not *Julian Roake*, *Ambrose Roake*."""
    return one <= other or other <= one


def names_missing(statement: str, text: str, voice: str) -> bool:
    """Whether a passage has not a name of a statement, and is not by them."""
    there = [name for sentence in sentences(text) for name in sentence.names]
    there += [frozenset(voice.lower().split()) - TITLES] if voice else []
    plain = {word for sentence in sentences(text) for word in sentence.words}
    wanted = (name for sentence in sentences(statement) for name in sentence.names)
    return any(not name <= plain and not any(same_name(name, other) for other in there) for name in wanted)


def deed_in(statement: str, text: str, voice: str) -> Told:
    """What a passage tells of a statement's deed.

    Args:
        statement: in English.
        text: the passage's own words.
        voice: whose words they are; empty for nobody's.
    """
    claimed = next(sentences(statement), None)
    at = claimed.verb_at() if claimed is not None else None
    if claimed is None or at is None:
        return Told(Deed.UNTOLD)
    wanted, wanted_verb = claimed.subject(at), claimed.verb(at)
    doers = wanted.names if wanted is not None else ()
    own = {word for name in doers for word in name}
    objects = {
        english_term(word)
        for sentence in sentences(statement)
        for word in sentence.words
        if word not in STOP | UNDONE | NEGATIONS and word not in own
    } - {english_term(wanted_verb)}
    every = frozenset().union(*(sentence.terms for sentence in sentences(text)))
    found: list[Told] = []
    without = Told(Deed.UNTOLD if all(matched(term, every) for term in objects) else Deed.UNKNOWN)
    earlier: list[Name] = []
    for sentence in sentences(text, voice):
        told = sum(matched(term, sentence.terms) for term in objects)
        whole = (1 + told) / (1 + len(objects)) >= MIN_TOLD
        for place in sentence.saying(lambda verb: says(verb, wanted_verb)):
            done = whole and (claimed.undone(at) or not sentence.undone(place))
            deed = _deed_of(doers, sentence.subject(place, earlier)) if done else Deed.UNKNOWN
            if deed == Deed.OTHERS and not told:
                deed = Deed.UNKNOWN  # that somebody else came, too, says nothing
            found.append(Told(deed, sentence.denied(place)))
        earlier += [name for name in sentence.names if name not in earlier]
    return min(found, key=lambda one: _DEEDS.index(one.deed), default=without)


def _deed_of(doers: Sequence[Name], subject: Subject | None) -> Deed:
    if not doers:
        return Deed.SAME
    if subject is None or not subject.names:
        return Deed.UNKNOWN
    if all(any(same_name(doer, name) for name in subject.names) for doer in doers):
        return Deed.SAME
    return Deed.OTHERS

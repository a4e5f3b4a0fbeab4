"""Whether two clauses with the same words say them of other people or things."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import combinations

from cicada.citations.clauses import Clause, Word
from cicada.citations.reading import ENGLISH
from cicada.citations.terms import is_family, matched
from cicada.guards.english_forms import PARTICIPLES, PAST, has_ed
from cicada.index.lexical.scripts import is_unspaced

_THAN = "than"
_VERY_SAME, _RATHER_SAME = 0.6, 0.4
"""The shares of the passage's clause, beside its subject, that a sentence about another one has."""


@dataclass(frozen=True)
class Exchanged:
    """Two words that have exchanged their parts."""

    reason: str
    compares: bool = False
    """Around *than*: with the opposite comparison it says the same again."""


@dataclass(frozen=True)
class OtherSubject:
    """Somebody else of whom the passage says it."""

    reason: str
    terms: tuple[str, ...]
    """The sentence's own subject, and something that is said of it."""


def exchanged(clause: Clause, other: Clause, language: str) -> Exchanged | None:
    """Which words have exchanged their parts between two clauses, or None.

    Two words that stand on both sides of a verb in both clauses, the other way round in one of them, have; and so has a
    name that stands just before its verb in one clause and just after it in the other, or a word on the other side of
    *than*. Of other languages than English names alone are compared, and no passives.
    """
    english = language == ENGLISH
    if _agentless(clause) != _agentless(other):  # it can be cancelled with the button: the button cancels it
        return None
    if not english and (clause.agent_at is not None or other.agent_at is not None):
        return None
    if english and (compared := _around_than(clause, other)) is not None:
        return compared
    mine, theirs = _ordered(clause), _ordered(other)
    at, there = _places(mine), _places(theirs)
    shared = [word for word in dict.fromkeys(word.term for word in mine) if word in there]
    names = {word.term for word in (*mine, *theirs) if word.name and (len(word.shown) > 1 or word.shown == "I")}
    verbs = [
        term
        for term in shared
        if term not in names and (not english or _is_verb(mine[at[term]]) or _is_verb(theirs[there[term]]))
    ]
    for verb in verbs:
        for one, two in combinations((term for term in shared if term != verb), 2):
            if not english and not {one, two} <= names:
                continue
            first, second = (one, two) if at[one] < at[two] else (two, one)
            if at[first] < at[verb] < at[second] and there[second] < there[verb] < there[first]:
                reason = f"the passage has {mine[at[first]].shown} and {mine[at[second]].shown} the other way round"
                return Exchanged(reason)
        for name in (term for term in shared if term in names):
            before, after = at[name] - at[verb], there[name] - there[verb]
            if {before, after} == {-1, 1}:
                return Exchanged(f"the passage gives {mine[at[name]].shown} another part")
    return None


def mirrored(clause: Clause, verb: Word, other: Clause, converse: Word) -> bool:
    """Whether names change sides between a verb and its converse: *Anna sold it to Paul*, *Paul bought it of Anna*."""
    mine, theirs = _ordered(clause), _ordered(other)
    if verb not in mine or converse not in theirs:
        return False
    at, there = _places(mine), _places(theirs)
    shared = [word.term for word in mine if word.term in there]
    return any((at[term] < at[verb.term]) != (there[term] < there[converse.term]) for term in shared)


def other_subject(
    clause: Clause, other: Clause, lone: Sequence[Word], known: Callable[[str], bool]
) -> OtherSubject | None:
    """The passage's subject, where the sentence says the same of somebody else.

    Of somebody whom the passage does not speak of, it must say the very same: a synonym is not known for one.
    """
    mine, theirs = _ordered(clause), _ordered(other)
    if len(mine) < 2 or not theirs:
        return None
    subject, rival = mine[0], theirs[0]
    if (
        subject not in lone
        or is_unspaced(subject.term[:1])
        or not (subject.name or subject.opens or subject.determined)
    ):
        return None
    elsewhere = known(subject.term)
    if _is_verb(rival) or other.words[0].term.startswith("#") or matched(rival.term, clause.terms):
        return None
    if not (rival.name or rival.opens or rival.determined):
        return None
    named = subject.name or (subject.opens and subject.shown[:1].isupper())
    rest = [word for word in mine[1:] if not (named and word.name)]
    said = [word.term for word in rest if word not in lone]
    strange = [word for word in rest if word in lone and not known(word.term)]
    if not elsewhere and (len(said) < len(rest) or len(rest) < 2):
        return None
    own = [word.term for word in theirs[1:]]
    if not elsewhere and sum(matched(term, said) for term in own) < len(own) * _VERY_SAME:
        return None
    if not said or strange or len(said) < len(rest) / 2 or (len(rest) > 1 and len(said) < 2):
        return None
    if matched(rival.term, said[:1]) or is_family(rival.term.partition("\t")[0], subject.term.partition("\t")[0]):
        return None
    if elsewhere and sum(matched(term, clause.terms) for term in own) < len(own) * _RATHER_SAME:
        return None
    return OtherSubject(f"the passage says it of {rival.shown}, not of {subject.shown}", (subject.term, said[-1]))


def _around_than(clause: Clause, other: Clause) -> Exchanged | None:
    mine, theirs = _sides(clause), _sides(other)
    if mine is None or theirs is None:
        return None
    for here, there in ((0, 1), (1, 0)):
        moved = (mine[here] & theirs[there]) - mine[there] - theirs[here]
        if moved:
            return Exchanged(f"the passage compares {min(moved)} the other way round", compares=True)
    return None


def _sides(clause: Clause) -> tuple[frozenset[str], frozenset[str]] | None:
    at = next((at for at, word in enumerate(clause.words) if word.term == _THAN), None)
    if at is None:
        return None
    sides = (clause.words[:at], clause.words[at + 1 :])
    before, after = (frozenset(word.term for word in side if not word.turning) for side in sides)
    return before, after


def _ordered(clause: Clause) -> list[Word]:
    """The clause's words that can have a part, in the order of an active sentence."""
    words = list(clause.words)
    at = clause.agent_at
    if at is not None and 0 < at < len(words):
        verb = clause.verb_at if clause.verb_at is not None and clause.verb_at < at else at - 1
        words = [*words[at:], words[verb], *words[:verb], *words[verb + 1 : at]]
    return [word for word in words if not (word.owner or word.turning or word.term.startswith("#"))]


def _agentless(clause: Clause) -> bool:
    return clause.verb_at is not None and clause.agent_at is None


def _is_verb(word: Word) -> bool:
    low = word.shown.lower()
    return has_ed(low) or low in PAST or low in PARTICIPLES


def _places(words: Sequence[Word]) -> dict[str, int]:
    places: dict[str, int] = {}
    for at, word in enumerate(words):
        places.setdefault(word.term, at)
    return places

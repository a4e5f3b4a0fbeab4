"""What two questions differ in, if in anything."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from functools import lru_cache
from itertools import product

from cicada.guards.english import read_english
from cicada.guards.english_synonyms import ANTONYMS, GENERIC
from cicada.guards.other_languages import read_other
from cicada.guards.parts import same_forms, same_persons, same_relations, same_roles
from cicada.guards.reading import GuardName, Reading
from cicada.index.lexical.stopwords import EVIDENCE
from cicada.text.tokens import normalised, tokens

_ENGLISH = "eng"
_ENGLISH_ALONE = frozenset(
    "who whom whose what which when where why how does did are can could should must the my your i you we "
    "explain list tell describe compare".split()
)
_READINGS_KEPT = 16_384
_NO_WORDS = frozenset({"?"})
_SAME_KINDS = frozenset({("list", "who"), ("list", "what"), ("who", "list"), ("what", "list")})
_SAME_SUBJECT: frozenset[GuardName] = frozenset({"question_word", "negation", "tense", "words", "relations"})
"""Differences over which passages can still be of use: they are about the same people, things and times."""


@dataclass(frozen=True)
class Difference:
    """Why two questions do not ask the same."""

    guard: GuardName
    beyond: frozenset[str] = frozenset()
    """Words of the question asked, as it has them, that the earlier one has no match for."""

    @property
    def same_subject(self) -> bool:
        """Whether the passages that answer one can be of use for the other."""
        return self.guard in _SAME_SUBJECT


def difference(asked: str, earlier: str, language: str) -> Difference | None:
    """The first difference that is found between two questions in one language; None if they ask the same.

    Args:
        asked: one question.
        earlier: the other.
        language: of both, ISO 639-3.
    """
    one, other = read(asked, language), read(earlier, language)
    guard = _differing(one, other)
    if guard is None:
        return None
    known = {word.term for word in other.words} | GENERIC
    return Difference(guard, frozenset(word.shown for word in one.words if word.shown and word.term not in known))


@lru_cache(_READINGS_KEPT)
def read(question: str, language: str) -> Reading:
    """A question, read by its language's rules."""
    if language == _ENGLISH and _speaks_for_english(question):
        return read_english(question)
    return read_other(question, language)


def _speaks_for_english(question: str) -> bool:
    """Whether a question that is taken for English has a word that gives it away, or more of its frequent words.

    Short questions of other languages are taken for English where nothing speaks for one of these.
    """
    evidence: Counter[str] = Counter()
    for token in tokens(normalised(question)):
        if token in _ENGLISH_ALONE:
            return True
        evidence.update(EVIDENCE.get(token, {}))
    return evidence[_ENGLISH] >= max(evidence.values(), default=0.0)


def _differing(one: Reading, other: Reading) -> GuardName | None:
    left, right = (Counter(word.term for word in reading.words) for reading in (one, other))
    only_left, only_right = _beyond(left - right), _beyond(right - left)
    if one.numbers != other.numbers:
        return "numbers"
    if any(frozenset(pair) in ANTONYMS for pair in product(only_left, only_right)):
        return "opposite"
    if _other_names(one, other):
        return "names"
    if one.negations != other.negations:
        return "negation"
    if one.kind != other.kind and (one.kind, other.kind) not in _SAME_KINDS:
        return "question_word"
    if one.tense != other.tense:
        return "tense"
    if only_left or only_right or ((left - right).keys() - _NO_WORDS and (right - left).keys() - _NO_WORDS):
        return "words"
    if one.links != other.links or not same_forms(one, other) or not same_persons(one, other):
        return "words"
    if not same_relations(one, other):
        return "relations"
    return None if same_roles(one, other) else "roles"


def _other_names(one: Reading, other: Reading) -> bool:
    """Whether a word that either of them writes like a name is not, letter for letter, in both."""
    shown = [{word.shown for word in reading.words} for reading in (one, other)]
    return bool((shown[0] ^ shown[1]) & (one.names | other.names))


def _beyond(terms: Counter[str]) -> set[str]:
    return set(terms) - GENERIC

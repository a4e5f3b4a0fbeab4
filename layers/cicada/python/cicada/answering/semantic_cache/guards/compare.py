"""What two questions differ in, if in anything."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from functools import lru_cache
from itertools import product

from cicada.answering.semantic_cache.guards.english import read_english
from cicada.answering.semantic_cache.guards.english_words import ANTONYMS, GENERIC, interchangeable
from cicada.answering.semantic_cache.guards.other_languages import read_other
from cicada.answering.semantic_cache.guards.reading import GuardName, Reading
from cicada.index.lexical.stopwords import EVIDENCE
from cicada.index.lexical.tokens import normalised, tokens

_ENGLISH = "eng"
_ENGLISH_ALONE = frozenset(
    "who whom whose what which when where why how does did are can could should must the my your i you we "
    "explain list tell describe compare".split()
)
_PRONOUNS = frozenset({"he", "she", "they"})
"""Whom they mean hangs on where they stand: *Ada's father and she* are not *Ada and her father*."""
_READINGS_KEPT = 16_384
_NO_WORDS = frozenset({"?"})
_SAME_KINDS = frozenset({("list", "who"), ("list", "what"), ("who", "list"), ("what", "list")})
_SAME_SUBJECT: frozenset[GuardName] = frozenset({"question_word", "negation", "words"})
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
    if (only_left | only_right) & (one.names | other.names):
        return "names"
    if one.negated != other.negated:
        return "negation"
    if one.kind != other.kind and (one.kind, other.kind) not in _SAME_KINDS:
        return "question_word"
    if only_left or only_right or ((left - right).keys() - _NO_WORDS and (right - left).keys() - _NO_WORDS):
        return "words"
    return None if _same_parts(one, other) else "roles"


def _beyond(terms: Counter[str]) -> set[str]:
    return set(terms) - GENERIC


def _same_parts(one: Reading, other: Reading) -> bool:
    """Whether what stands in a fixed place in both stands in one order, and prepositions make the same of the rest."""
    only_one, only_other = (_placed(one) - _placed(other)) - GENERIC, (_placed(other) - _placed(one)) - GENERIC
    swapped = only_one and only_other  # each has in a phrase what the other one has in a fixed place
    if swapped or ((only_one or only_other) and _PRONOUNS & {word.term for word in one.words}):
        return False
    placed = _placed(one) & _placed(other)
    order = [[word.term for word in reading.words if word.term in placed] for reading in (one, other)]
    return order[0] == order[1] and not _contradict(one, other) and not _contradict(other, one)


def _placed(reading: Reading) -> set[str]:
    return {word.term for word in reading.words if not word.marker and not word.loose}


def _contradict(one: Reading, other: Reading) -> bool:
    """Whether a preposition gives a word a part that it has not in the other question."""
    parts = {word.term: word.marker for word in other.words if not word.loose}
    prepositions = {word.term: word.preposition for word in other.words if word.loose}
    return any(
        (word.marker and word.marker != parts.get(word.term, word.marker))
        or not interchangeable(word.preposition, prepositions.get(word.term, ""))
        for word in one.words
    )

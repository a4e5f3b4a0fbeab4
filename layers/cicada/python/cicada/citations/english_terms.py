"""What an English word is compared by, and which terms speak against each other."""

from __future__ import annotations

from functools import lru_cache

from cicada.citations.english_groups import MORE_ANTONYMS, SYNONYMS
from cicada.guards.english_synonyms import ANTONYMS as QUESTION_ANTONYMS
from cicada.guards.english_synonyms import term_of

_TERMS_KEPT = 32_768

_GRADABLE = """
big bright broad calm cheap clean clear cold cool cruel dark deep dry early easy fair fast few fine full great happy
hard heavy high hot kind large late light long loud low near new old poor pretty quick quiet rare rich rough sad
safe sharp short sick simple slow small smart smooth soft strong tall thick thin tiny tough ugly warm weak wet wide
wild wise young
"""
"""Adjectives that are compared by an ending; *old* and *older* are one term."""

_CONVERSE = (
    "buy sell · give receive · give take · give get · lend borrow · teach learn · win lose · send get · rent let"
)

_EXCLUSIVE = """
spring summer autumn winter
morning noon afternoon evening night midnight
north south east west
northern southern eastern western
red orange yellow green blue violet purple brown black white grey
gold silver bronze copper iron
second minute hour day week month year decade century
today yesterday tomorrow
bus train ferry plane car bicycle
coffee tea
male female
monday tuesday wednesday thursday friday saturday sunday
"""
"""Sets of which a thing is one at most: a passage that has another speaks against a sentence."""

RELATIONS = frozenset(
    "before after above below over under until since more less fewer most least than except including without only "
    "first last inside outside up down during instead earlier later between behind beside near against all some "
    "both always often never seldom rarely".split()
)
"""Words too frequent to support anything, which turn a meaning when they are exchanged."""


def _compared(word: str, ending: str) -> str:
    if word.endswith("y"):
        return f"{word[:-1]}i{ending}"
    if word.endswith("e"):
        return f"{word}{ending[1:]}"
    doubled = len(word) > 2 and word[-1] in "bdgnt" and word[-2] in "aeiou" and word[-3] not in "aeiou"
    return f"{word}{word[-1] if doubled else ''}{ending}"


def _canonical() -> dict[str, str]:
    table: dict[str, str] = {}
    for word in _GRADABLE.split():
        for ending in ("er", "est"):
            table[term_of(_compared(word, ending))] = term_of(word)
    for line in SYNONYMS.strip().split("\n"):
        words = line.split()
        known = next((table[term_of(word)] for word in words if term_of(word) in table), term_of(words[0]))
        for word in words:
            table.setdefault(term_of(word), known)
    for term, known in list(table.items()):
        table[term] = table.get(known, known)
    return table


_CANONICAL = _canonical()


@lru_cache(_TERMS_KEPT)
def english_term(word: str) -> str:
    """What an English word is compared by."""
    if word in RELATIONS:
        return word
    term = term_of(word)
    return _CANONICAL.get(term, term)


def _pairs(text: str) -> frozenset[frozenset[str]]:
    pairs = [pair.split() for line in text.split("\n") for pair in line.split("·") if pair.strip()]
    return frozenset(frozenset((english_term(one), english_term(other))) for one, other in pairs)


def _exclusive() -> frozenset[frozenset[str]]:
    return frozenset(
        frozenset((english_term(one), english_term(other)))
        for line in _EXCLUSIVE.strip().split("\n")
        for one in line.split()
        for other in line.split()
        if one != other
    )


_NOT_OPPOSED = frozenset(
    frozenset(pair)
    for pair in (
        ("he", "she"),
        ("can", "must"),
        ("from", "to"),
        ("until", "since"),
        ("question", "answer"),
        ("refund", "pay"),
        ("reason", "result"),
        ("cause", "result"),
        ("before", "until"),
    )
)
"""Opposites in questions that a report may exchange, or that are read apart."""
CONVERSE = _pairs(_CONVERSE)
"""Opposites that say the same when who and whom are exchanged too."""
OPPOSITES = (
    (frozenset(frozenset(_CANONICAL.get(term, term) for term in pair) for pair in QUESTION_ANTONYMS) - _NOT_OPPOSED)
    | _pairs(MORE_ANTONYMS)
    | _exclusive()
    | CONVERSE
)
"""Pairs of terms of which one speaks against the other."""

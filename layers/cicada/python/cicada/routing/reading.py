"""How a question is built: where its requests begin, how many things it asks, whether it is more than courtesy."""

from __future__ import annotations

from bisect import bisect_right
from collections import Counter
from collections.abc import Iterator, Sequence
from enum import Enum
from typing import Literal, NamedTuple

from cicada.routing.lexicon import LEXICON
from cicada.routing.phrases import PhraseBook, Text, lines
from cicada.routing.small_talk import ABOUT_THE_ASSISTANT, AFTERWORDS, AMUSEMENTS, OPENERS, SALUTATIONS
from cicada.routing.text import PAUSES, QUOTED, SENTENCE_ENDS, Words

LONG_WORDS = 40
"""From how many words on a message counts as long."""
LONGEST_REMARK_WORDS = 10
"""A sentence that only tells something of its speakers is no longer than this: *that is what I needed*."""
LONGEST_SUBJECT_WORDS = 5
"""How many words of its subject are read while a statement's verb is looked for."""

_CONJUNCTIONS = frozenset(["and", "but", "or", "then", "so", "because", "plus", "also"])


class Fact(Enum):
    """What the build of a question shows, whatever it is about."""

    NO_WORDS = "no words"
    ONLY_SMALL_TALK = "only small talk"
    ADDS_A_REMARK = "makes a remark"
    ASKS_A_FACT = "asks a fact"
    ASKS_SEVERAL = "asks several things"
    ASSERTS = "asserts something"
    LONG = "long"
    NAMES_SOMEBODY = "names somebody"


class Reading(NamedTuple):
    """A question's words, with the places where requests and clauses begin, and what its build shows."""

    text: Text
    facts: frozenset[Fact]


class _Sentence(NamedTuple):
    start: int
    end: int
    """The index behind its last word."""
    begins: tuple[int, ...]
    """Where its request may begin: at its start, and behind each courtesy that it starts with."""
    is_marked: bool
    """It ends in a question mark."""


_Part = Literal["salutation", "afterword", "chat", "opener"]
_COURTESIES: PhraseBook[_Part] = PhraseBook(
    {
        "salutation": lines(SALUTATIONS),
        "afterword": lines(AFTERWORDS),
        "chat": lines(ABOUT_THE_ASSISTANT + AMUSEMENTS),
        "opener": lines(OPENERS),
    }
)

# What stands in the text at one place.
_ASKS_A_FACT = """
^ who|whom|whose|where
^ when @aux
^ which !@evidence|@backing|ones
^ what !@evidence|@backing|@uphold|@speak|is|are|if|else|in|other|could|would|can|do
^ in|on|at|to|from|with|by|for|of|under|behind|before|after|during|about which|what|whom|whose
^ how @amount !@backing
^ what is the name|title|colour|color|part|number|date|time|first|last
:|,|-|but|so who|whom|whose|where|which
:|,|- what|when @aux !you
:|,|- how @amount
"""
# One more question within a sentence.
_ASKS_ANOTHER = """
and|or|but|plus|; [also|then|finally|second|third] who|whom|whose|which|where|when * *
and|or|but|plus|; [also|then|finally|in|to] how|why|what|whether *
, how|why|what|whether * *
, where|when @aux *
: how|why|what|who|where|when *
and|; if not|so ,
and|or|; do|does|did|can|could|should *
"""
_QUESTIONS: PhraseBook[bool] = PhraseBook({False: lines(_ASKS_A_FACT), True: lines(_ASKS_ANOTHER)})


def read(words: Words) -> Reading:
    """Find a question's structure. Linear in its number of words."""
    tokens = words.tokens
    sentence_starts = [0, *(at for at, token in enumerate(tokens, start=1) if token in SENTENCE_ENDS)]
    request_starts = _behind_courtesies(tokens, sentence_starts)
    pauses = [at for at, token in enumerate(tokens, start=1) if token in PAUSES or token in _CONJUNCTIONS]
    text = Text(tokens, request_starts, request_starts | _behind_courtesies(tokens, pauses))
    return Reading(text, frozenset(_facts(text, words, tuple(_sentences(text, sentence_starts)))))


def _behind_courtesies(tokens: tuple[str, ...], starts: Sequence[int]) -> frozenset[int]:
    """Where something may begin: at ``starts``, and behind each courtesy that follows there."""
    text = Text(tokens, frozenset(starts))
    found: set[int] = set()
    for at in starts:
        while at < len(tokens) and at not in found:
            found.add(at)
            if tokens[at] in PAUSES:
                at += 1
            else:
                at = max((match.end for match, part in _COURTESIES.at(text, at) if part != "chat"), default=at)
    return frozenset(found)


def _sentences(text: Text, starts: Sequence[int]) -> Iterator[_Sentence]:
    ends = [*(start - 1 for start in starts[1:]), len(text.tokens)]
    for start, end in zip(starts, ends, strict=True):
        if start < end:
            begins = tuple(at for at in range(start, end) if at in text.request_starts)
            yield _Sentence(start, end, begins, text.tokens[end : end + 1] == ("?",))


def _facts(text: Text, words: Words, sentences: Sequence[_Sentence]) -> Iterator[Fact]:
    count = sum(map(_is_word, text.tokens))
    if not count:
        yield Fact.NO_WORDS
        return
    is_asking = any(sentence.is_marked for sentence in sentences)
    yield from _courtesy_facts(text, sentences, is_asking)
    asked = tuple(_QUESTIONS.everywhere(text))
    if any(not another for _, another in asked):
        yield Fact.ASKS_A_FACT
    further = {match.start for match, another in asked if another and _adds_a_question(text, match.start)}
    if _questions(text, sentences, further, is_asking) > 1:
        yield Fact.ASKS_SEVERAL
    if not is_asking and any(_is_statement(text, sentence) for sentence in sentences):
        yield Fact.ASSERTS
    if count >= LONG_WORDS:
        yield Fact.LONG
    if words.names:
        yield Fact.NAMES_SOMEBODY


def _courtesy_facts(text: Text, sentences: Sequence[_Sentence], is_asking: bool) -> Iterator[Fact]:
    covered: set[int] = set()
    greets = False
    for match, part in _COURTESIES.everywhere(text):
        if part != "opener":
            covered.update(range(match.start, match.end))
            greets |= part != "afterword" and match.start in text.clause_starts
    said = [token for at, token in enumerate(text.tokens) if _is_word(token) and at not in covered]
    is_chat = LEXICON["chat"].issuperset(said)
    if greets and is_chat:
        yield Fact.ONLY_SMALL_TALK
    elif is_chat and not LEXICON["dialogue"].isdisjoint(said):
        yield Fact.ADDS_A_REMARK
    elif is_asking or any(_begins_question(text, at) for at in text.request_starts):
        return
    elif is_chat or (greets and (len(said) == 1 or all(_is_remark(text, sentence) for sentence in sentences))):
        yield Fact.ADDS_A_REMARK


def _is_remark(text: Text, sentence: _Sentence) -> bool:
    """Whether a sentence is mere courtesy, or tells something short of its speakers."""
    said = text.tokens[sentence.begins[-1] : sentence.end]
    if not LEXICON["fact_asked"].isdisjoint(said):
        return False
    return _is_courtesy(text, sentence) or (said[0] in LEXICON["remark"] and len(said) <= LONGEST_REMARK_WORDS)


def _is_courtesy(text: Text, sentence: _Sentence) -> bool:
    """Whether a sentence ends with the courtesies that it starts with."""
    tokens, at = text.tokens, sentence.begins[-1]
    return tokens[at] in PAUSES or any(
        match.end >= sentence.end for match, part in _COURTESIES.at(text, at) if part != "chat"
    )


def _questions(text: Text, sentences: Sequence[_Sentence], further: set[int], is_asking: bool) -> int:
    """How many things are asked, courtesy aside: sentences that begin to ask, and what they ask besides."""
    starts = [sentence.start for sentence in sentences]
    besides = Counter(bisect_right(starts, at) - 1 for at in further)
    asked = 0
    for number, sentence in enumerate(sentences):
        if _is_courtesy(text, sentence):
            continue
        # Who marks questions marks all: behind the courtesies of an unmarked sentence is what led to them.
        begins = sentence.begins if sentence.is_marked or not is_asking else sentence.begins[:1]
        asked += any(_begins_question(text, at) for at in begins) + besides[number]
    return asked


def _adds_a_question(text: Text, at: int) -> bool:
    """Whether a question of its own follows the joint at ``at``: not so behind courtesy, nor in *when and where*."""
    return at + 1 not in text.request_starts and text.tokens[at - 1] not in LEXICON["asking"]


def _begins_question(text: Text, at: int) -> bool:
    word, after = (*text.tokens[at : at + 2], "", "")[:2]
    return word in LEXICON["asking"] or (word in LEXICON["preposition"] and after in LEXICON["asking"])


def _is_statement(text: Text, sentence: _Sentence) -> bool:
    """Whether a sentence states something of somebody: a subject, then a finite verb, and no clause between them."""
    at = sentence.begins[-1]
    if _begins_question(text, at) or text.tokens[at] in LEXICON["speaker"]:
        return False
    for token in text.tokens[at + 1 : min(sentence.end, at + 1 + LONGEST_SUBJECT_WORDS)]:
        if token in LEXICON["finite"]:
            return True
        if token in LEXICON["relative"] or not _is_word(token):
            return False
    return False


def _is_word(token: str) -> bool:
    return token not in PAUSES and token not in SENTENCE_ENDS and token != QUOTED

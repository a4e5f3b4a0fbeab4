"""How a question is built: where its requests begin, how many things it asks, whether it is more than courtesy."""

from __future__ import annotations

from collections.abc import Iterator
from enum import Enum
from typing import Literal, NamedTuple

from cicada.routing.lexicon import LEXICON
from cicada.routing.phrases import PhraseBook, Text, lines
from cicada.routing.small_talk import ABOUT_THE_ASSISTANT, AFTERWORDS, AMUSEMENTS, OPENERS, SALUTATIONS
from cicada.routing.text import PAUSES, QUOTED, SENTENCE_ENDS, Words

LONG_WORDS = 40
"""From how many words on a message counts as long."""
LONGEST_REMARK_WORDS = 10
LONGEST_SUBJECT_WORDS = 6

_CONJUNCTIONS = frozenset(["and", "but", "or", "then", "so", "because", "plus", "also"])


class Fact(Enum):
    """What the build of a question shows, whatever it is about."""

    NO_WORDS = "no words"
    ONLY_SMALL_TALK = "only small talk"
    ADDS_A_REMARK = "adds a remark to a greeting"
    ASKS_A_FACT = "asks a fact"
    ASKS_SEVERAL = "asks several things"
    ASSERTS = "asserts something"
    LONG = "long"
    NAMES_SOMEBODY = "names somebody"


class Reading(NamedTuple):
    """A question's words, with the places where requests and clauses begin, and what its build shows."""

    text: Text
    facts: frozenset[Fact]


_Part = Literal["salutation", "afterword", "chat", "opener"]
_COURTESIES: PhraseBook[_Part] = PhraseBook(
    {
        "salutation": lines(SALUTATIONS),
        "afterword": lines(AFTERWORDS),
        "chat": lines(ABOUT_THE_ASSISTANT + AMUSEMENTS),
        "opener": lines(OPENERS),
    }
)

_ASKS_A_FACT = """
^ who|whom|whose|where
^ when @aux
^ which !@evidence|@backing|ones
^ what !@evidence|@backing|@uphold|@speak|is|are|if|else|in|other|could|would|can|do
^ in|on|at|to|from|with|by|for|of|under|behind|before|after|during|about which|what|whom|whose
^ how @amount
^ what is the name|title|colour|color|part|number|date|time|first|last
:|,|-|but|so who|whom|whose|where|which
:|,|- what|when @aux
:|,|- how @amount
"""
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
    sentences = tuple(_sentences(words.tokens))
    # Only phrases without anchors take part before the anchors are known.
    request_starts: set[int] = set()
    bare = Text(words.tokens, frozenset(start for start, _ in sentences))
    for start, end in sentences:
        request_starts |= _skip_openers(bare, start, end)
    clause_starts = set(request_starts)
    for at, token in enumerate(words.tokens[:-1], start=1):
        if token in PAUSES or token in _CONJUNCTIONS:
            clause_starts |= _skip_openers(bare, at, len(words.tokens))
    text = Text(words.tokens, frozenset(request_starts), frozenset(clause_starts))
    return Reading(text, frozenset(_facts(text, words, sentences)))


def _sentences(tokens: tuple[str, ...]) -> Iterator[tuple[int, int]]:
    start = 0
    for at, token in enumerate(tokens):
        if token in SENTENCE_ENDS:
            if at > start:
                yield start, at
            start = at + 1
    if start < len(tokens):
        yield start, len(tokens)


def _skip_openers(text: Text, start: int, end: int) -> set[int]:
    """Where the request may begin: at ``start``, and behind each courtesy that follows there."""
    found = {start}
    at = start
    while at < end:
        if text.tokens[at] in PAUSES:
            at += 1
        else:
            ahead = max((m.end for m, part in _COURTESIES.at(text, at) if part != "chat"), default=at)
            if ahead == at:
                break
            at = ahead
        found.add(at)
    return found


def _facts(text: Text, words: Words, sentences: tuple[tuple[int, int], ...]) -> Iterator[Fact]:
    count = sum(_is_word(token) for token in text.tokens)
    if not count:
        yield Fact.NO_WORDS
        return
    yield from _courtesy_facts(text, sentences)
    asked = tuple(_QUESTIONS.everywhere(text))
    if any(not another for _, another in asked):
        yield Fact.ASKS_A_FACT
    further = {match.start for match, another in asked if another and match.start + 1 not in text.request_starts}
    if _questions(text, sentences, further) > 1:
        yield Fact.ASKS_SEVERAL
    if "?" not in text.tokens and any(_asserts(text, start, end) for start, end in sentences):
        yield Fact.ASSERTS
    if count >= LONG_WORDS:
        yield Fact.LONG
    if words.names:
        yield Fact.NAMES_SOMEBODY


def _courtesy_facts(text: Text, sentences: tuple[tuple[int, int], ...]) -> Iterator[Fact]:
    covered: set[int] = set()
    spoken_to = False
    for match, part in _COURTESIES.everywhere(text):
        if part != "opener":
            covered.update(range(match.start, match.end))
            spoken_to |= part != "afterword" and match.start in text.clause_starts
    said = [token for i, token in enumerate(text.tokens) if _is_word(token) and i not in covered]
    rest = [token for token in said if token not in LEXICON["chat"]]
    if spoken_to and not rest:
        yield Fact.ONLY_SMALL_TALK
    elif "?" in text.tokens:
        return
    elif (spoken_to and (len(said) == 1 or _only_remarks(text, sentences))) or not (rest or _begins_to_ask(text)):
        yield Fact.ADDS_A_REMARK


def _begins_to_ask(text: Text) -> bool:
    return any(_begins_question(text, at) for at in text.request_starts if at < len(text.tokens))


def _only_remarks(text: Text, sentences: tuple[tuple[int, int], ...]) -> bool:
    """Whether each sentence is courtesy, or tells something short of the speakers themselves: *that is what I needed*."""
    for start, end in sentences:
        at = max(at for at in text.request_starts if start <= at <= end)
        said = text.tokens[at:end]
        if said and (said[0] not in LEXICON["remark"] or len(said) > LONGEST_REMARK_WORDS):
            return False
        if not LEXICON["fact_asked"].isdisjoint(said):
            return False
    return True


def _questions(text: Text, sentences: tuple[tuple[int, int], ...], further: set[int]) -> int:
    """How many things are asked, courtesy aside: sentences that begin to ask, and what they ask besides."""
    asked = 0
    for start, end in sentences:
        begins = [at for at in text.request_starts if start <= at < end]
        if "?" in text.tokens and text.tokens[end : end + 1] != ("?",):
            begins = [start]  # who marks questions marks all: the rest of such a sentence tells what led to them
        asked += any(_begins_question(text, at) for at in begins) + sum(start < at < end for at in further)
    return asked


def _begins_question(text: Text, at: int) -> bool:
    word, *after = text.tokens[at : at + 2]
    return word in LEXICON["asking"] or (word in LEXICON["preposition"] and not LEXICON["asking"].isdisjoint(after))


def _asserts(text: Text, start: int, end: int) -> bool:
    """Whether a sentence states something of somebody: a subject, then a finite verb, with no clause between them."""
    at = max(at for at in text.request_starts if start <= at <= end)
    if at < end and (_begins_question(text, at) or text.tokens[at] in LEXICON["speaker"]):
        return False
    for token in text.tokens[at + 1 : min(end, at + LONGEST_SUBJECT_WORDS)]:
        if token in LEXICON["finite"]:
            return True
        if token in LEXICON["relative"] or not _is_word(token):
            return False
    return False


def _is_word(token: str) -> bool:
    return token not in PAUSES and token not in SENTENCE_ENDS and token != QUOTED

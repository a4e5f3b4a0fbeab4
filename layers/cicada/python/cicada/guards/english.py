"""Reading an English question: its kind, its names and numbers, and its words in the order of who does what to whom."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import replace

from cicada.guards import english_words as table
from cicada.guards.english_forms import PARTICIPLES, PAST, has_ed
from cicada.guards.english_numbers import counted
from cicada.guards.english_order import OF, ordered
from cicada.guards.english_phrases import courteous, plain
from cicada.guards.english_sentence import Sentence
from cicada.guards.english_synonyms import term_of
from cicada.guards.english_tense import tense
from cicada.guards.reading import Reading, Word
from cicada.guards.signs import signs
from cicada.text.tokens import normalised

_TOKEN = re.compile(r"\d+(?:[.,:]\d+)*(?:st|nd|rd|th)?|[^\W\d_][\w-]*(?:'s\b|')?|,")
_NAME = re.compile(r"(?<![.!?:\"“] )(?<!^)(?<!^[\"“‘'])\b([A-Z][^\W\d_]+)")
_QUESTION_WORDS = {
    "who": "who", "whom": "who", "whose": "whose", "what": "what", "which": "what", "when": "when", "where": "where",
    "why": "why", "how": "how", "how_many": "how many", "how_much": "how much", "how_long": "how long",
    "list_of": "list", "how_often": "how often", "how_old": "how old", "how_far": "how far",
    "what_time": "what time", "what_day": "what day",
}  # fmt: skip
_DO = frozenset("do does did doing done".split())
_MAIN_AFTER_AUXILIARY = {"do": "do", "doing": "do", "done": "do", "get": "get"}
_AUXILIARIES = frozenset(
    "do does did can could may might must should ought will would shall to have has had is are was were am be been "
    "how".split()
)
_NOT_NAMES = frozenset("i i'm i'd i've i'll ok please faq pdf url".split())
_OF_WORDS, _COMMAS = frozenset({"of"}), frozenset({","})
_WHAT_IS_ASKED = "?"
"""Stands for the person or thing that is asked for, where the sentence would have it."""
_NO_VERBS = frozenset({"to", "how"})
_LONGEST_PHRASE = 3
"""Words that belong to a question word: *which old red house*."""
_HAVE = frozenset("have has had having".split())
_NEAR_PARTICIPLE = 4
"""Words after *have* among which its participle is looked for."""
_BEGINS_A_SUBJECT = frozenset(
    "the a an this that these those my your our his her its their i you we he she it they somebody someone anyone "
    "anybody people".split()
)
_DETERMINERS = frozenset("the a an this that these those".split())
_PRICE = term_of("price")
_HAPPEN = term_of("happen")
_DUMMIES = frozenset({"?", "it", "there"})
_CAN = frozenset({"can"})


def read_english(text: str) -> Reading:
    """Read a question. Its grammar is guessed by word order, prepositions and forms: enough to tell two apart."""
    state = Sentence()
    names = frozenset(name.lower() for name in _NAME.findall(text) if name.lower() not in _NOT_NAMES)
    full = courteous(normalised(text))
    tokens = _with_main_verbs(counted(_TOKEN.findall(plain(full))))
    for place, token in enumerate(tokens):
        _read(state, token, tokens[place + 1] if place + 1 < len(tokens) else "", names)
    state.finish()
    words = state.words
    if state.asked_object:
        asked = [word for word in words if word.term == _WHAT_IS_ASKED]
        words = [*(word for word in words if word.term != _WHAT_IS_ASKED), *asked]
    kind = "+".join(state.kinds) if state.kinds else _kind_without_question_word(tokens)
    terms = [word.term for word in words]
    if kind in ("what", "how much") and (_PRICE in terms or kind == "how much"):
        kind = "how much"
        words = [word for word in words if word.term not in (_PRICE, _WHAT_IS_ASKED)]
    left_out = _CAN if kind == "how" and state.passive else frozenset()  # how do I open it: how can it be opened
    if kind in ("when", "where", "what day", "what time"):
        left_out |= {_HAPPEN}
    rest = [word for word in words if word.term not in left_out]
    words = rest if {word.term for word in rest} - _DUMMIES else words
    return Reading(
        kind,
        tuple(sorted(state.negations)),
        (*sorted(state.numbers), *signs(text)),
        names,
        tuple(ordered(words)),
        tense(_TOKEN.findall(full)),
        tuple(sorted(state.persons)),
        tuple(sorted(state.links)),
        tuple(sorted(state.stranded)),
        state.passive,
    )


def _with_main_verbs(tokens: Sequence[str]) -> list[str]:
    """Tokens with another one for *have* where no participle follows: *who has a sister* is not *who is a sister*."""
    found = []
    for place, token in enumerate(tokens):
        after = tokens[place + 1 : place + 1 + _NEAR_PARTICIPLE]
        perfect = any(word in PARTICIPLES or word in PAST or has_ed(word) or word == "been" for word in after)
        found.append("have_got" if token in _HAVE and not perfect else token)
    return found


def _read(state: Sentence, token: str, following: str, names: frozenset[str]) -> None:
    word = token.removesuffix("'s").removesuffix("'")
    if token in _COMMAS:
        state.joined = bool(state.words) and following not in table.MARKERS
        if following in _QUESTION_WORDS:
            state.joined = False
            state.begin_phrase()
        return
    if "#" in token or token[0].isdigit():
        state.numbers.append(token)
        state.add(token, token.rpartition("#")[2])
        return
    if word in _QUESTION_WORDS and not (state.kinds and word in ("what", "which", "who", "whom", "when", "where")):
        _read_question_word(state, _QUESTION_WORDS[word])
        return
    if word in table.NEGATIONS:
        if word == "without":
            state.begin_preposition("", "with")
        state.waiting_negations.append((table.NEGATIONS[word], state.last))
        return
    if word in ("and", "or"):
        state.joined = bool(state.words)
        state.waiting_links.append((word, state.last))
        return
    if word in _MAIN_AFTER_AUXILIARY and state.auxiliary:
        state.begin_phrase()
        state.add(_MAIN_AFTER_AUXILIARY[word], word)
        return
    if word in _AUXILIARIES:
        state.auxiliary = True
        _end_question_phrase(state, word, following, names)
    if word in table.BE:
        state.be_at = len(state.words)
        state.begin_phrase()
        return
    _read_word(state, word, of=word in _OF_WORDS, owner=word != token)


def _read_question_word(state: Sentence, kind: str) -> None:
    state.kinds.append(kind)
    state.auxiliary = kind == "how"
    if state.marker != "by":
        state.begin_phrase()
    elif kind not in ("who", "what"):
        state.stranded.append("by")  # by when, but not by whom
    if kind in ("who", "what", "whose", "how many", "how much"):
        state.asked_at = len(state.words)
        state.words.append(Word(_WHAT_IS_ASKED, state.marker))
    state.meet(_WHAT_IS_ASKED)


def _end_question_phrase(state: Sentence, word: str, following: str, names: frozenset[str]) -> None:
    """At the first auxiliary: *which dog does*… asks for an object, *which dog bit*… has no auxiliary there."""
    if word in _NO_VERBS or state.asked_at is None:
        return
    phrase = state.words[state.asked_at + 1 :]
    if len(phrase) <= (0 if state.kinds[0] == "who" else _LONGEST_PHRASE):
        begins_a_subject = following in _BEGINS_A_SUBJECT or following.removesuffix("'s") in names
        state.asked_object = word in _DO or (word not in table.BE and begins_a_subject)
        state.words[state.asked_at + 1 :] = [replace(one, loose=True) for one in phrase]
    state.asked_at = None


def _read_word(state: Sentence, word: str, *, of: bool, owner: bool) -> None:
    if of and state.words:
        state.genitives += 1
        state.strand()
        state.marker, state.loose, state.waiting_preposition = f"{OF}{state.genitives}", False, "of"
        return
    if word in table.PERSONS:
        state.waiting_persons.append(table.PERSONS[word])
        return
    if word in table.MARKERS and not (word == "like" and state.auxiliary and state.marker == ""):
        state.begin_preposition(table.MARKERS[word], "")
        if word in ("before", "after", "until", "since", "against", "instead", "than", "unlike"):
            state.words.append(Word(table.MARKERS[word], loose=True, shown=word))
        return
    if word in table.LOOSE_MARKERS:
        state.begin_preposition("", word)
        return
    if word in table.DROPPED:
        if word in _AUXILIARIES:
            state.begin_phrase()
        elif word in _DETERMINERS:
            state.phrase += 1
        return
    if word in table.DEGREES:
        state.add(table.DEGREES[word], word)
    after_be = state.words[state.be_at :] if state.be_at is not None else []
    cleft = len(after_be) > 1 and after_be[0].term == "it"  # was it Ada that hit him
    participle = word in PARTICIPLES or has_ed(word) or word.endswith(("-on", "-off"))
    if participle and not cleft and state.be_at is not None and state.verb_at is None:
        state.begin_phrase()
        _passive(state, word)
        return
    state.add(term_of(word), "" if word in _QUESTION_WORDS else word, owner=owner)


def _passive(state: Sentence, verb: str) -> None:
    """*Tom was betrayed*: the verb goes before its object, where *betray Tom* has it."""
    assert state.be_at is not None
    after_be = [place for place in range(state.be_at, len(state.words)) if not state.words[place].loose]
    at = after_be[0] if after_be else _start_of_object(state.words[: state.be_at])
    state.words.insert(at, Word(term_of(verb), shown=verb))
    state.meet(term_of(verb))
    state.passive = True
    state.verb_at = at
    state.be_at = None
    state.loose = True  # what follows a passive's verb is no object


def _start_of_object(words: Sequence[Word]) -> int:
    at = len(words)
    while at > 0 and not words[at - 1].loose and not words[at - 1].marker:
        at -= 1
    return at


def _kind_without_question_word(tokens: Sequence[str]) -> str:
    first = tokens[0] if tokens else ""
    return "whether" if first in _AUXILIARIES - {"to", "how"} or first in table.BE else "what"

"""Reading an English question: its kind, its names and numbers, and its words in the order of who does what to whom."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace

from cicada.answering.semantic_cache.guards import english_words as table
from cicada.answering.semantic_cache.guards.english_phrases import plain
from cicada.answering.semantic_cache.guards.reading import Reading, Word
from cicada.index.lexical.tokens import normalised

_TOKEN = re.compile(r"\d+(?:[.,:]\d+)*(?:st|nd|rd|th)?|[^\W\d_][\w-]*(?:'s\b|')?|,")
_ORDINAL = re.compile(r"(\d+)(?:st|nd|rd|th)")
_NAME = re.compile(r"(?<![.!?:\"“] )(?<!^)(?<!^[\"“‘'])\b([A-Z][^\W\d_]+)")
_QUESTION_WORDS = {
    "who": "who", "whom": "who", "whose": "whose", "what": "what", "which": "what", "when": "when", "where": "where",
    "why": "why", "how": "how", "how_many": "how many", "how_much": "how much", "how_long": "how long",
    "list_of": "list", "how_often": "how often", "how_old": "how old", "how_far": "how far",
}  # fmt: skip
_DO = frozenset("do does did doing done".split())
_MAIN_AFTER_AUXILIARY = {"do": "do", "doing": "do", "done": "do", "have": "have", "get": "obtain", "getting": "obtain"}
_AUXILIARIES = frozenset(
    "do does did can could may might must should ought will would shall to have has had is are was were am be been "
    "how".split()
)
_NOT_NAMES = frozenset("i i'm i'd i've i'll ok please faq pdf url".split())
_OF = "of "
_OF_WORDS, _COMMAS, _ONE, _ZERO = frozenset({"of"}), frozenset({","}), "one", "zero"
_WHAT_IS_ASKED = "?"
"""Stands for the person or thing that is asked for, where the sentence would have it."""
_NO_VERBS = frozenset({"to", "how"})
_LONGEST_PHRASE = 3
"""Words that belong to a question word: *which old red house*."""
_MODALS = frozenset({"can", "must", "should"})
_BEGINS_A_SUBJECT = frozenset(
    "the a an this that these those my your our his her its their i you we he she it they somebody someone anyone "
    "anybody people".split()
)
_DETERMINERS = frozenset("the a an this that these those".split())
_LEFT_OUT_MODALS = {
    "how": _MODALS,
    "how often": frozenset({"must", "should"}),
    "how long": frozenset({"must", "should"}),
    "who": frozenset({"must"}),
    "when": frozenset({"must"}),
    "where": frozenset({"must"}),
}
"""How can I, how do I, how should I: the same; who pays, who has to pay, too."""
_PRICE = table.term_of("price")
_HAPPEN = table.term_of("happen")


@dataclass
class _State:
    """What was met so far."""

    words: list[Word] = field(default_factory=list)
    kinds: list[str] = field(default_factory=list)
    numbers: list[str] = field(default_factory=list)
    persons: list[str] = field(default_factory=list)
    negations: int = 0
    phrase: int = 0
    genitives: int = 0
    marker: str = ""
    loose: bool = False
    preposition: str = ""
    joined: bool = False
    auxiliary: bool = False
    be_at: int | None = None
    """How many words came before the last form of *be*, whose participle has not been met."""
    verb_at: int | None = None
    """Where the verb of a passive stands."""
    asked_at: int | None = None
    """Where the question word stands, until the auxiliary after it (*which episode does*…) or another verb."""
    asked_object: bool = False
    """Whether the question word stands for what something is done to."""

    def add(self, term: str, shown: str) -> None:
        loose = self.loose or term in _MODALS
        self.words.append(Word(term, self.marker, loose, self.joined, self.preposition, shown, self.phrase))
        self.joined = False

    def begin_phrase(self) -> None:
        """What follows stands under no preposition."""
        self.marker, self.loose, self.preposition = "", False, ""
        self.phrase += 1


def read_english(text: str) -> Reading:
    """Read a question. Its grammar is guessed by word order, prepositions and forms: enough to tell two apart."""
    state = _State()
    names = frozenset(name.lower() for name in _NAME.findall(text) if name.lower() not in _NOT_NAMES)
    tokens = _counted(_TOKEN.findall(plain(normalised(text))))
    for place, token in enumerate(tokens):
        _read(state, token, tokens[place + 1] if place + 1 < len(tokens) else "", names)
    words = state.words
    if state.asked_object:
        asked = [word for word in words if word.term == _WHAT_IS_ASKED]
        words = [*(word for word in words if word.term != _WHAT_IS_ASKED), *asked]
    if len(set(state.persons)) > 1:  # who owes whom is then what is asked
        words = [*words, Word("+".join(state.persons), loose=True)]
    kind = state.kinds[0] if state.kinds else _kind_without_question_word(tokens)
    terms = [word.term for word in words]
    if kind in ("what", "how much") and (_PRICE in terms or kind == "how much"):
        kind = "how much"
        words = [word for word in words if word.term not in (_PRICE, _WHAT_IS_ASKED)]
    left_out = _LEFT_OUT_MODALS.get(kind, frozenset())
    if kind in ("when", "where"):
        left_out |= {_HAPPEN}
    words = [word for word in words if word.term not in left_out]
    return Reading(
        kind,
        state.negations % 2 == 1,
        tuple(sorted(state.numbers)),
        frozenset(table.term_of(name) for name in names),
        tuple(_ordered(words)),
    )


def _counted(tokens: Sequence[str]) -> list[str]:
    """Number words as digits, and those that name a thing (*episode 3*, *the third episode*) as one token with it."""
    plain_numbers = [_number(token, tokens[place - 1] if place else "") for place, token in enumerate(tokens)]
    joined: list[str] = []
    skip = False
    for place, token in enumerate(plain_numbers):
        if skip:
            skip = False
            continue
        following = plain_numbers[place + 1] if place + 1 < len(plain_numbers) else ""
        if token.rstrip("s") in table.COUNTED and following.isdigit():
            joined.append(f"{token.rstrip('s')}#{following}")
            skip = True
        elif token.isdigit() and following in table.COUNTED and _is_ordinal(tokens[place]):
            joined.append(f"{following}#{token}")
            skip = True
        elif token in ("last", "final", "latest") and following in table.COUNTED:
            joined.append(f"{following}#last")
            skip = True
        else:
            joined.append(token)
    return joined


def _is_ordinal(token: str) -> bool:
    return token in table.ORDINALS or _ORDINAL.fullmatch(token) is not None


def _number(token: str, before: str) -> str:
    if token == _ONE and before in ("which", "the", "this", "that", "no", "any", "every", "each"):
        return token
    if token in table.NUMBERS and token != _ZERO:
        return table.NUMBERS[token]
    if token in table.ORDINALS:
        return table.ORDINALS[token]
    ordinal = _ORDINAL.fullmatch(token)
    return ordinal.group(1) if ordinal else token.replace(",", "") if token[0].isdigit() else token


def _read(state: _State, token: str, following: str, names: frozenset[str]) -> None:
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
        state.negations += 1
        if word == "without":
            state.marker, state.loose = "with", True
        return
    if word in ("and", "or"):
        state.joined = bool(state.words)
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
    _read_word(state, word, of=word in _OF_WORDS)


def _read_question_word(state: _State, kind: str) -> None:
    state.kinds.append(kind)
    state.auxiliary = kind == "how"
    if state.marker not in ("by", "to", "from"):
        state.begin_phrase()
    if kind in ("who", "what", "whose", "how many", "how much"):
        state.asked_at = len(state.words)
        state.words.append(Word(_WHAT_IS_ASKED, state.marker))


def _end_question_phrase(state: _State, word: str, following: str, names: frozenset[str]) -> None:
    """At the first auxiliary: *which dog does*… asks for an object, *which dog bit*… has no auxiliary there."""
    if word in _NO_VERBS or state.asked_at is None:
        return
    phrase = state.words[state.asked_at + 1 :]
    if len(phrase) <= (0 if state.kinds[0] == "who" else _LONGEST_PHRASE):
        begins_a_subject = following in _BEGINS_A_SUBJECT or following.removesuffix("'s") in names
        state.asked_object = word in _DO or (word not in table.BE and begins_a_subject)
        state.words[state.asked_at + 1 :] = [replace(one, loose=True) for one in phrase]
    state.asked_at = None


def _read_word(state: _State, word: str, *, of: bool) -> None:
    if of and state.words:
        state.genitives += 1
        state.marker, state.loose = f"{_OF}{state.genitives}", False
        return
    if word in table.PERSONS:
        state.persons.append(table.PERSONS[word])
        return
    if word in table.MARKERS and not (word == "like" and state.auxiliary and state.marker == ""):
        state.begin_phrase()
        state.marker, state.joined = table.MARKERS[word], False
        if word in ("before", "after", "until", "since", "against", "instead", "than", "unlike"):
            state.words.append(Word(table.MARKERS[word], loose=True, shown=word))
        return
    if word in table.LOOSE_MARKERS:
        state.marker, state.loose, state.preposition, state.joined = "", True, word, False
        return
    if word in table.DROPPED:
        if word in _AUXILIARIES:
            state.begin_phrase()
        elif word in _DETERMINERS:
            state.phrase += 1
        return
    if word in table.DEGREES:
        state.add(table.DEGREES[word], word)
    participle = word in table.PARTICIPLES or word.endswith(("ed", "-on", "-off"))
    if participle and state.be_at is not None and state.verb_at is None:
        state.begin_phrase()
        _passive(state, word)
        return
    state.add(table.term_of(word), "" if word in _QUESTION_WORDS else word)


def _passive(state: _State, verb: str) -> None:
    """*Tom was betrayed*: the verb goes before its object, where *betray Tom* has it."""
    assert state.be_at is not None
    after_be = [place for place in range(state.be_at, len(state.words)) if not state.words[place].loose]
    at = after_be[0] if after_be else _start_of_object(state.words[: state.be_at])
    state.words.insert(at, Word(table.term_of(verb), shown=verb))
    state.verb_at = at
    state.be_at = None
    state.loose = True  # what follows a passive's verb is no object


def _start_of_object(words: Sequence[Word]) -> int:
    at = len(words)
    while at > 0 and not words[at - 1].loose and not words[at - 1].marker:
        at -= 1
    return at


def _ordered(words: Sequence[Word]) -> Iterator[Word]:
    """Words with *of*-phrases before what they belong to, agents before their verbs, and lists in one order."""
    arranged = _agents_first(_genitives_first(words))
    group: list[Word] = []
    for word in arranged:
        if group and not word.joined:
            yield from _sorted_list(group)
            group = []
        group.append(word)
    yield from _sorted_list(group)


def _sorted_list(group: Sequence[Word]) -> list[Word]:
    ordered = sorted(group, key=lambda word: word.term) if len(group) > 1 else list(group)
    return [replace(word, marker=group[0].marker, loose=group[0].loose, joined=False) for word in ordered]


def _genitives_first(words: Sequence[Word]) -> list[Word]:
    """*The name of the captain of the ship* as *the ship's captain's name*."""
    done: list[Word] = []
    thing: list[Word] = []  # with its owners before it
    owner: list[Word] = []
    for word in words:
        if word.marker.startswith(_OF) and thing:
            if owner and owner[0].marker != word.marker:
                thing, owner = _owned(owner, thing), []
            owner.append(word)
        else:
            if owner or not thing or thing[-1].phrase != word.phrase:
                done += _owned(owner, thing)
                thing, owner = [], []
            thing.append(word)
    done += _owned(owner, thing)
    return [replace(word, marker="") if word.marker.startswith(_OF) else word for word in done]


def _owned(owner: Sequence[Word], thing: Sequence[Word]) -> list[Word]:
    return [*(replace(word, marker=thing[-1].marker, loose=thing[-1].loose) for word in owner), *thing]


def _agents_first(words: Sequence[Word]) -> list[Word]:
    agents = [replace(word, marker="", loose=False) for word in words if word.marker == "by"]
    return agents + [word for word in words if word.marker != "by"]


def _kind_without_question_word(tokens: Sequence[str]) -> str:
    first = tokens[0] if tokens else ""
    return "whether" if first in _AUXILIARIES - {"to", "how"} or first in table.BE else "what"

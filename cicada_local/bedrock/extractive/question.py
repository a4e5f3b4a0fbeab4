"""What a question asks for: its parts, the kind of answer that each expects, and the persons it names."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass

from cicada_local.bedrock.extractive.prompt import NumberedPassage
from cicada_local.bedrock.extractive.text import NUMBER_WORDS, content_stems, stem, words

_QUESTION_WORDS = r"(?:who|whom|whose|what|which|when|where|why|how)"
_PART = re.compile(
    rf"\?\s+|;\s+|,?\s+(?:and|or|but)\s+(?=(?:(?:in|on|at|for|with|to|from)\s+)?{_QUESTION_WORDS}\b)", re.I
)
_TITLED_NAME = re.compile(r"\b(?:Mr|Mrs|Ms|Miss|Dr|Constable|Professor|Captain|Lady|Lord|Sir)\.?\s+([A-Z][\w'’-]+)")

_NUMBER = re.compile(
    r"\d|\b(?:no|nought|none|half|quarter|dozen|once|twice|hundred|thousand|million|"
    rf"{'|'.join(NUMBER_WORDS)}|thirty|forty|fifty|sixty|seventy|eighty|ninety)\b",
    re.I,
)
_HOUR = "(?:one|two|three|four|five|six|seven|eight|nine|ten|eleven|twelve)"
_TIME = re.compile(
    r"\d|\b(?:o'clock|noon|midnight|dawn|dusk|sunrise|sunset|morning|afternoon|evening|night|tonight|today|yesterday|"
    rf"tomorrow|half past|quarter (?:to|past)|(?:to|past|at|by|since|until|till) {_HOUR}|"
    r"(?:mon|tues|wednes|thurs|fri|satur|sun)day|january|february|march|april|june|july|august|september|october|"
    r"november|december|spring|summer|autumn|winter|ago|since|years?|weeks?|days?|hours?|minutes?|before|after)\b",
    re.I,
)
_PLACE = re.compile(
    r"\b(?:in|inside|into|at|on|onto|under|beneath|behind|beside|by|near|over|above|below|between|outside|through|from|to)"
    r"\s+(?:(?:the|a|an|my|his|her|its|our|your|their)\s+\w|[A-Z]\w)"
)
_REASON = re.compile(r"\b(?:because|since|so that|so as|in order|for fear|reason|therefore|that's why|as if)\b", re.I)
_AGE = re.compile(
    r"\byears? old\b|\baged?\b|\bbirthday\b|\bborn\b|\b(?:boy|girl|man|woman) of \w+|"
    r"\bat (?:\d\d?|(?:(?:twen|thir|for|fif|six|seven|eigh|nine)ty(?:-\w+)?)|\w+teen)\b(?! (?:past|to)\b)",
    re.I,
)
_PERSON = re.compile(
    r"\b(?:Mr|Mrs|Miss|Dr)\b|(?<=[a-z,;] )[A-Z][a-z]{2,}|\bI(?:'m|'d|'ll|'ve| am| was| did| do)\b|\b(?:me|mine)\b"
)
_MEASURE = r"many|much|tall|deep|high|wide|heavy"
_EXTENT = r"often|long|far|big|fast|soon"


@dataclass(frozen=True)
class Kind:
    """A kind of answer: what in a question asks for it, and what in a text can be it."""

    cue: re.Pattern[str]
    answer: re.Pattern[str]
    necessary: bool
    """Whether a text without it can hardly be the answer."""


_WHEN = (
    r"\bwhen (?:is|was|were|are|do|does|did|will|has|have|had|can|could)\b|"
    r"\b(?:what|which) (?:time|day|date|hour|year|month)\b"
)
_KINDS = (
    Kind(re.compile(r"\bhow old\b", re.I), _AGE, necessary=True),
    Kind(re.compile(rf"\bhow (?:{_MEASURE})\b", re.I), _NUMBER, necessary=True),
    Kind(re.compile(rf"\bhow (?:{_EXTENT})\b", re.I), _NUMBER, necessary=False),
    Kind(re.compile(_WHEN, re.I), _TIME, necessary=True),
    Kind(re.compile(r"\bwhere\b|\b(?:what|which) (?:room|place|town|city)\b", re.I), _PLACE, necessary=False),
    Kind(re.compile(r"\bwho(?:se|m)?\b", re.I), _PERSON, necessary=False),
    Kind(re.compile(r"\bwhy\b|\bwhat for\b", re.I), _REASON, necessary=False),
)
_HOW_MUCH = re.compile(rf"\b(how) (?:old|{_MEASURE}|{_EXTENT})\b", re.I)
_NAMED_WORD = re.compile(r"(?:\b(?:Mr|Mrs|Ms|Miss|Dr)\.? )?([^\W_]+(?:['’][^\W_]+)*)")


@dataclass(frozen=True)
class Part:
    """One thing that is asked."""

    text: str
    nameless: str
    """The same without persons' names: they make all that a person says look alike."""
    stems: frozenset[str]
    """What it is about; persons' names only if there is nothing else."""
    names: frozenset[str]
    """Stems of the persons' names in it."""

    def offered_by(self, text: str) -> bool:
        """Whether a text holds a kind of thing (a time, a place…) that is asked for."""
        return any(kind.answer.search(text) for kind in self._kinds)

    def missed_by(self, text: str) -> bool:
        """Whether a text lacks all that could be the answer."""
        return bool(self._kinds) and all(kind.necessary for kind in self._kinds) and not self.offered_by(text)

    @property
    def asks_how_much(self) -> bool:
        """Whether it asks for a number: how many, how long, how old."""
        return _HOW_MUCH.search(self.text) is not None

    @property
    def _kinds(self) -> list[Kind]:
        return [kind for kind in _KINDS if kind.cue.search(self.text)]


def parts_of(question: str, passages: Sequence[NumberedPassage]) -> list[Part]:
    """The parts of a compound question, at most four; none if it is not compound."""
    texts: list[str] = []
    for text in (piece.strip(" ,;") for piece in _PART.split(question)):
        if texts and not content_stems(text):  # "and where?" asks about what was just said
            texts[-1] += f", {text}"
        elif words(text):
            texts.append(text)
    known = _person_names(question, passages)
    return [_part(text, known) for text in texts[:4]] if len(texts) > 1 else []


def whole(question: str, passages: Sequence[NumberedPassage]) -> Part:
    """The question as one part."""
    return _part(question, _person_names(question, passages))


def _person_names(question: str, passages: Sequence[NumberedPassage]) -> frozenset[str]:
    """Stems of the names of persons that the prompt shows: speakers, and names after a title."""
    texts = [question, *(passage.text for passage in passages)]
    titled = [name for text in texts for name in _TITLED_NAME.findall(text)]
    speakers = [word for passage in passages for word in words(passage.speaker)]
    return frozenset(stem(word) for name in [*titled, *speakers] for word in words(name))


def _part(text: str, known_names: frozenset[str]) -> Part:
    stems = content_stems(_HOW_MUCH.sub(r"\1", text))  # "how old" is about an age, not about what is old
    names = stems & known_names
    return Part(text, _nameless(text, names), (stems - names) or stems, names)


def _nameless(text: str, names: frozenset[str]) -> str:
    def replaced(match: re.Match[str]) -> str:
        if stem(match[1].lower()) not in names:
            return match[0]
        return "someone's" if match[1].endswith(("'s", "’s")) else "someone"

    return re.sub(r"\bsomeone(?: someone)+", "someone", _NAMED_WORD.sub(replaced, text))

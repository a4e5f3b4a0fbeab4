"""A sentence's verbs, and who does what they say: by rule, from the order of words. English only.

The subject of a verb is the last person before it who stands at the beginning of a clause or right before a verb; of a
passive, who follows *by*. *I* is the speaker; *he* and *she* are whoever is the only one that was named.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property

from cicada.citations.date_names import is_date_name
from cicada.citations.english_tables import NEGATIONS, NOT_NAMES, STOP
from cicada.citations.english_terms import english_term
from cicada.citations.reading import ENGLISH
from cicada.guards.english_forms import LEMMAS, PARTICIPLES, PAST, has_ed

_TOKEN = re.compile(r"[^\W\d_]+(?:['’][^\W\d_]+)*|\d+|[.!?;:,…\n()–—\"“”]")
_SENTENCE_ENDS = frozenset(".!?…\n")
_PRONOUNS = frozenset("he she".split())
_UNKNOWN = frozenset("you we they it somebody someone nobody one everybody".split())
_DETERMINERS = frozenset("a an the this that these those my your his her its our their some any no every each".split())
_BE = frozenset("am is are was were be been being".split())
_AUXILIARIES = _BE | frozenset(
    "has have had do does did not never then also only always often still just once soon again".split()
)
UNDONE = frozenset("to will would shall should can could may might must cannot if whether unless".split())
_BREAKS = frozenset(',;:()–—"“”') | {"but"}
_LINKS = frozenset("and who".split())
TITLES = frozenset("mr mrs miss ms dr sir lady".split())

Name = frozenset[str]
"""Its words, in lower case."""


@dataclass(frozen=True)
class Subject:
    """Who does something."""

    names: tuple[Name, ...]
    """Several did it together; empty for somebody who is not named."""


class Sentence:
    """A sentence's words with their parts."""

    def __init__(self, tokens: Sequence[str], voice: str = "") -> None:
        self._tokens = [token.replace("’", "'") for token in tokens]
        self._low = [token.lower() for token in self._tokens]
        self._voice = frozenset(voice.lower().split()) - TITLES

    @cached_property
    def terms(self) -> frozenset[str]:
        """What its words are compared by."""
        return frozenset(english_term(word) for word in self.words)

    @cached_property
    def names(self) -> tuple[Name, ...]:
        """Those that it has."""
        return tuple(name for _, _, name in self._runs)

    @cached_property
    def _runs(self) -> tuple[tuple[int, int, Name], ...]:
        """Where each name begins and ends."""
        found: list[tuple[int, int, Name]] = []
        at = 0
        while at < len(self._tokens):
            end = at
            while end < len(self._tokens) and self._is_name(end):
                end += 1
                if self._low[end - 1].endswith("'s"):
                    break
            words = frozenset(low.removesuffix("'s") for low in self._low[at:end]) - TITLES
            if words:
                found.append((at, end, words))
            at = max(end, at + 1)
        return tuple(found)

    def _is_name(self, at: int) -> bool:
        written = self._tokens[at]
        bare = self._low[at].partition("'")[0]
        return (
            written[0].isupper()
            and bare not in STOP | _DETERMINERS | UNDONE
            and written not in NOT_NAMES
            and not is_date_name(bare, english_term(bare), ENGLISH, capital=True)
        )

    def verb_at(self) -> int | None:
        """Where its first verb stands that says more than *be* and *have*; else of these. None for none."""
        plain = [at for at in range(len(self._low)) if self.is_verb(at) and self._low[at] not in _AUXILIARIES]
        return next(iter(plain), next((at for at, low in enumerate(self._low) if low in _BE), None))

    def is_verb(self, at: int) -> bool:
        """Whether a verb stands there: by its form, or as what follows a person."""
        low = self._low[at]
        if not low[0].isalpha() or self._is_name(at) or self._before(at) in _DETERMINERS:
            return False
        if low in _BE or has_ed(low) or low in PAST or low in PARTICIPLES or low in LEMMAS:
            return True
        before = at - 1
        while before >= 0 and (self._low[before] in _AUXILIARIES or self._low[before].endswith("ly")):
            before -= 1
        if before < 0 or low in STOP or low.endswith("ly"):
            return False
        return (
            self._low[before] in _PRONOUNS | _UNKNOWN | _LINKS | {"i"}
            or (self._is_name(before) and not self._low[before].endswith("'s"))
            or (before != at - 1 and self._low[at - 1] in {"did", "does", "do"})
        )

    def _before(self, at: int) -> str:
        return self._low[at - 1] if at else ""

    def verb(self, at: int) -> str:
        """Of a place: the verb as it is compared."""
        return "be" if self._low[at] in _BE else self._low[at]

    @cached_property
    def words(self) -> tuple[str, ...]:
        """In lower case, without an owner's ending."""
        return tuple(low.removesuffix("'s") for low in self._low if low[0].isalnum())

    def saying(self, wanted: Callable[[str], bool]) -> Iterator[int]:
        """Where verbs stand that are wanted, what is only wished or possible among them."""
        for at in range(len(self._low)):
            if wanted(self.verb(at)) and (self.is_verb(at) or self._before(at) in UNDONE):
                yield at

    def denied(self, at: int) -> bool:
        """Whether a negation stands in the same clause as the verb there."""
        begins = max((place for place in range(at) if self._low[place] in _BREAKS), default=-1)
        ends = next((place for place in range(at, len(self._low)) if self._low[place] in _BREAKS | {"and"}), None)
        return any(low in NEGATIONS or low == "no" or low.endswith("n't") for low in self._low[begins + 1 : ends])

    def undone(self, at: int) -> bool:
        """Whether the verb there is only wished, possible, or a condition."""
        begins = max((place for place in range(at) if self._low[place] in _BREAKS), default=-1)
        return not UNDONE.isdisjoint(self._low[begins + 1 : at])

    def subject(self, at: int, earlier: Sequence[Name] = ()) -> Subject | None:
        """Who does what the verb there says; None where nobody is told."""
        low = self._low[at]
        if at and (has_ed(low) or low in PARTICIPLES) and self._is_passive(at):
            return self._agent(at)
        last: Subject | None = None
        place = 0
        runs = {start: (end, name) for start, end, name in self._runs}
        while place < at:
            if place in runs:
                end, _ = runs[place]
                group = [runs[place][1]]
                while end + 1 in runs and self._low[end] in {"and", ","} and end + 1 < at:
                    group.append(runs[end + 1][1])
                    end = runs[end + 1][0]
                owner = self._low[end - 1].endswith("'s")
                if not owner and (self._begins(place) or self._leads(end, at)):
                    last = Subject(tuple(group))
                elif owner and self._begins(place):
                    last = Subject(())
                place = end
                continue
            low = self._low[place]
            if low.partition("'")[0] == "i" and self._voice:
                last = Subject((self._voice,))
            elif low in _PRONOUNS:
                known = list(dict.fromkeys((*earlier, *(n for s, _, n in self._runs if s < place))))
                last = Subject((known[0],) if len(known) == 1 else ())
            elif low in _UNKNOWN and self._leads(place + 1, at):
                last = last if low == "it" and last else Subject(())
            elif self._before(place) in _DETERMINERS and low[0].isalpha() and self._leads(place + 1, at):
                last = Subject(())
            place += 1
        return last

    def _is_passive(self, at: int) -> bool:
        before = at - 1
        while before >= 0 and (self._low[before] in {"not", "never", "been"} or self._low[before].endswith("ly")):
            before -= 1
        return before >= 0 and (self._low[before] in _BE or self._low[at - 1] == "been")

    def _agent(self, at: int) -> Subject | None:
        by = next((place for place in range(at, len(self._low)) if self._low[place] == "by"), None)
        if by is None:
            return None
        if self._low[by + 1 : by + 2] == ["me"] and self._voice:
            return Subject((self._voice,))
        names: list[Name] = []
        end = by + 1
        for start, stop, name in self._runs:
            if start == end or (names and start == end + 1 and self._low[end] in {"and", ","}):
                names.append(name)
                end = stop
        return Subject(tuple(names)) if names else None

    def _begins(self, at: int) -> bool:
        return at == 0 or not self._low[at - 1][0].isalnum() or self._low[at - 1] in {"and", "but", "then", "when"}

    def _leads(self, at: int, verb: int) -> bool:
        """Whether only auxiliaries and adverbs stand between a place and a verb."""
        while at <= verb and (self._low[at] in _AUXILIARIES | {"who"} or self._low[at].endswith("ly")):
            if self._low[at] in _BE:
                return True
            at += 1
        return at <= verb and (at == verb or self.is_verb(at))


def sentences(text: str, voice: str = "") -> Iterator[Sentence]:
    """Of a text."""
    words: list[str] = []
    for token in _TOKEN.findall(text):
        if token in _SENTENCE_ENDS:
            if words and words[-1].lower() not in TITLES:
                yield Sentence(words, voice)
                words = []
            continue
        words.append(token)
    if words:
        yield Sentence(words, voice)

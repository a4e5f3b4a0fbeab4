"""Whether an English question leans on what was said before, by its words alone.

A pronoun is looked at with what it could refer to in the question itself: *what did Mara say when she came home?* is
complete; *what did Mara say to her?* is not, for an object is never the subject of its own clause (Chomsky's
principle B), and *what did she tell Mara?* is not, for a pronoun seldom comes before its name, unless its clause stands
before the main one: *when she came home, what did Mara do?*
"""

from __future__ import annotations

from collections.abc import Collection, Iterator
from dataclasses import dataclass
from typing import Literal

from cicada.answering.conversation import english_words as en
from cicada.routing.text import QUOTED, read_words

Reason = Literal["pronoun", "pointer", "ellipsis", "comparative"]

_FRAGMENT_WORDS = 4
_CLAUSE_BREAKS = frozenset(",;:-")


@dataclass(frozen=True)
class _Referent:
    """What a pronoun may refer to."""

    first: int
    last: int
    person: bool
    thing: bool
    owner: bool = False
    """It stands before *'s*: the clause it is in is another's."""


class EnglishQuestion:
    """A question's words."""

    def __init__(self, query: str, names: Collection[str] = ()) -> None:
        """``names``: those known from the conversation, case folded; they tell a name at the question's beginning."""
        words = read_words(query)
        first = next((at for at, word in enumerate(words.tokens) if word not in en.STARTERS | en.PUNCTUATION), 0)
        self.continues = any(word in en.CONTINUING for word in words.tokens[:first])
        self.follows = "then" in words.tokens[:first]
        self.tokens = words.tokens[first:]
        self.asks = "?" in words.tokens
        known = {at - first for at in words.names if at >= first}
        known |= {at for at, word in enumerate(self.tokens) if word in names}
        if self._at(1) == "'s" and self._at(0) not in en.FUNCTION:
            known.add(0)
        self.names = frozenset(known)
        self.spoken = [at for at, word in enumerate(self.tokens) if word not in en.PUNCTUATION]
        self.content = [at for at in self.spoken if self.tokens[at] not in en.FUNCTION | en.LIGHT or at in self.names]
        self.referents = tuple(self._find_referents())

    def reason(self) -> Reason | None:
        """Why it needs what was said before; None if it does not."""
        if self._points():
            return "pointer"
        if self.follows or self._is_fragment():
            return "ellipsis"
        if any(self._leans(at) for at in range(len(self.tokens))):
            return "pronoun"
        if self._compares():
            return "comparative"
        return "ellipsis" if self._continues_briefly() else None

    def _at(self, index: int) -> str:
        return self.tokens[index] if 0 <= index < len(self.tokens) else ""

    # --- what is in it to refer to ---

    def _find_referents(self) -> Iterator[_Referent]:
        for at in sorted(self.names):
            yield _Referent(at, at, person=True, thing=False, owner=self._at(at + 1) == "'s")
        for at, word in enumerate(self.tokens):
            if word in en.INDEFINITE_PERSONS:
                yield _Referent(at, at, person=True, thing=False)
            elif word == QUOTED:
                yield _Referent(at, at, person=False, thing=True)
            elif word in en.DETERMINERS or word == "'s" or word in ("which", "what", "whose"):
                yield from self._phrase(at)

    def _phrase(self, determiner: int) -> Iterator[_Referent]:
        last = determiner
        while self._at(last + 1) and self._at(last + 1) not in en.FUNCTION - {"old", "first", "second", "last"}:
            last += 1
        if last > determiner and last not in self.names:
            head = self._at(last)
            person = head in en.PERSONS or any(self._at(at) in en.PERSONS for at in range(determiner + 1, last + 1))
            yield _Referent(determiner, last, person, thing=not person, owner=self._at(last + 1) == "'s")

    # --- pronouns ---

    def _leans(self, at: int) -> bool:
        word = self.tokens[at]
        if word in en.PERSONAL:
            return not (self._refers_to_nothing(at) or self._resolved(at))
        if word in en.DEMONSTRATIVES:
            return self._demonstrates(at)
        if word == "there":
            return self._points_there(at)
        return False

    def _resolved(self, at: int) -> bool:
        word = self.tokens[at]
        fitting = [
            one for one in self.referents if (one.person and word in en.PEOPLES) or (one.thing and word in en.THINGS)
        ]
        before = [one for one in fitting if one.last < at]
        possessive = word in en.POSSESSIVES or (word == "her" and self._begins_phrase(at + 1))
        if possessive and self._wh_subject(at):
            return True
        if before:
            return (
                possessive
                or len(before) > 1
                or before[0].owner
                or any(self._clause_between(one.last, at) for one in before)
            )
        return self._stands_ahead(at) and any(one.first > at for one in fitting)

    def _wh_subject(self, at: int) -> bool:
        """*Who lost their keys?*"""
        return self._at(0) in ("who", "which") and self._at(1) not in en.AUXILIARIES and at > 1

    def _begins_phrase(self, at: int) -> bool:
        return bool(self._at(at)) and self._at(at) not in en.FUNCTION - en.COMPARATIVES - {
            "old",
            "last",
            "first",
            "own",
        }

    def _clause_between(self, start: int, end: int) -> bool:
        return any(
            word in en.SUBORDINATORS or word in _CLAUSE_BREAKS or word in "?." for word in self.tokens[start + 1 : end]
        )

    def _stands_ahead(self, at: int) -> bool:
        """Whether it stands in a clause before the main one: *before he died, what did the king say?*"""
        opens = self._at(0) in en.SUBORDINATORS | en.PREPOSITIONS and self._at(0) not in en.WH - {"when"}
        inverted = self._at(0) == "when" and self._at(1) in en.AUXILIARIES
        return opens and not inverted and "," in self.tokens[at:]

    def _refers_to_nothing(self, at: int) -> bool:
        if self.tokens[at] != "it":
            return False
        after = self.tokens[at + 1 : at + 6]
        goes_on = any(word in ("to", "that", "if", "when", "for", "in", "from", "on", "who", "at") for word in after)
        around = self.tokens[max(0, at - 2) : at + 3]
        weather = any(word in ("rain", "rains", "raining", "rained", "snow", "snows", "snowing") for word in after)
        cleft = at + 1 in self.names and any(word in ("who", "that") for word in after)
        return weather or cleft or (goes_on and any(word in en.PLEONASTIC for word in around))

    def _demonstrates(self, at: int) -> bool:
        word, before, after = self.tokens[at], self._at(at - 1), self._at(at + 1)
        if QUOTED in (before, after):
            return False
        if after in en.TIMES and self._at(at + 2) not in ("that", "when", "of"):
            return True
        if word != "that":
            return after not in en.HERE and self._at(at + 2) not in en.HERE
        ends = not after or after in en.PUNCTUATION or after in ("to", "and", "or", "in", "at", "about", "for", "with")
        if at == 0 or before in en.PUNCTUATION:
            return "who" not in self.tokens[at:]
        if before in ("is", "was", "are", "were") and self._at(at - 2) in en.WH:
            described = any(one in ("by", "of", "who", "that", "which") for one in self.tokens[at + 2 :])
            return not described
        if before in en.AUXILIARIES | en.PREPOSITIONS | {"so"} or before in en.WH:
            return not (before in ("so", "such") and not ends) or before in en.PREPOSITIONS
        if ends:
            return True
        return before in _TRANSITIVE and after not in en.FUNCTION

    def _points_there(self, at: int) -> bool:
        before, after = self._at(at - 1), self._at(at + 1)
        if before in en.AUXILIARIES or after in en.AUXILIARIES or after in ("not", "ever", "anything", "any"):
            return False  # "is there a map?"
        places = [one for one in self.referents if one.last < at and self._at(one.first - 1) in en.PREPOSITIONS]
        return not places

    # --- pointers, comparatives, ellipsis ---

    def _points(self) -> bool:
        text = f" {' '.join(self.tokens)} "
        if any(f" {phrase} " in text for phrase in en.REQUESTS) and len(self.content) <= 2:
            return True
        for phrase in en.POINTERS:
            if f" {phrase} " in text:
                after = text.partition(f" {phrase} ")[2].split()
                if phrase == "the same" and "as" in after:
                    continue
                if phrase in ("the others", "the rest") and self.content and self._clause_between(-1, len(self.tokens)):
                    continue
                return True
        return self._points_in_time()

    def _points_in_time(self) -> bool:
        words = [self.tokens[at] for at in self.spoken]
        if not words:
            return False
        if words[-1] in ("next", "then", "afterwards", "afterward", "later", "either", "instead", "too", "else"):
            return not (words[-1] == "then" and "when" in words)
        if words[-2:] == ["as", "well"]:
            return True
        else_at = words.index("else") if "else" in words else None
        return else_at is not None and len(self.content) <= 2 and words[else_at + 1 : else_at + 2] != ["has"]

    def _compares(self) -> bool:
        words = [self.tokens[at] for at in self.spoken]
        if not words or "than" in words or "or" in words:
            return False
        if words[-1] in en.COMPARATIVES:
            return True
        return len(words) > 1 and words[-2] in ("more", "less")

    def _is_fragment(self) -> bool:
        """Whether it is no whole question: *why?*, *and Mara?*, *in episode 2?*, *the second one*, *what about Tom?*"""
        words = [self.tokens[at] for at in self.spoken]
        if not words:
            return self.continues
        if words[:2] in (["what", "about"], ["how", "about"], ["what", "if"]):
            return len(words) <= _FRAGMENT_WORDS + 2
        if not self.content:
            return not ({"you", "your", "i"} & set(words)) or len(words) <= 2
        if len(words) > _FRAGMENT_WORDS + 1:
            return False
        if words[0] in en.AUXILIARIES:  # "did Jonas?", "was Mara there?"
            return all(at in self.names for at in self.content) and words[-1] not in en.WH and len(words) <= 3
        if words[0] in en.PREPOSITIONS | {"under"}:
            return not any(word in en.AUXILIARIES or word in en.WH - {"what", "which"} for word in words)
        if words[0] in en.WH:
            return self._bare_wh(words)
        phrase = not any(word in en.AUXILIARIES or word in en.WH for word in words)
        begins = (
            words[0] in en.DETERMINERS or words[1:2] == ["'s"] or (len(words) == 1 and self.content == [self.spoken[0]])
        )
        return phrase and begins and (self.asks or self.continues)

    def _bare_wh(self, words: list[str]) -> bool:
        """*Why Mara?*, *which episode?*, *what colour?*: nothing is done in it."""
        if len(words) > _FRAGMENT_WORDS - 1 or any(word in en.AUXILIARIES for word in words[1:]):
            return False
        if words[0] in ("who", "what", "which") and len(words) > 1:
            return len(words) == 2 and words[0] != "who" and not words[1].endswith(("ed", "s"))
        return True

    def _continues_briefly(self) -> bool:
        """*And what did the doctor say?*: the question is whole, and what it is about is not in it."""
        words = {self.tokens[at] for at in self.spoken}
        return self.continues and len(self.content) <= 2 and not words & en.PREPOSITIONS and self._says_little()

    def _says_little(self) -> bool:
        topical = [at for at in self.content if at not in self.names and self.tokens[at] not in en.PERSONS]
        return all(self.tokens[at] in _REACTIONS for at in topical)


_REACTIONS = frozenset("answer answered reply replied respond responded react reacted lie lied want wanted".split())
_TRANSITIVE = frozenset(
    "wrote write take took taken find found open opened read send sent made make break broke buy bought kill killed "
    "use used lock locked steal stole hide hid see saw tell told give gave bring brought hear heard own owned wear "
    "wore touch touched cause caused sing sang paint painted leave left tie tied undo surprise surprised".split()
)
"""Verbs after which *that* stands before its noun."""


def english_reason(query: str, names: Collection[str] = ()) -> Reason | None:
    """Why an English question needs what was said before; None if it does not. See :class:`EnglishQuestion`."""
    return EnglishQuestion(query, names).reason()

"""Whether a completed question in English still asks what was asked, by its words and its grammar's small words."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass, replace

from cicada.answering.conversation import english_words as en
from cicada.answering.conversation import fidelity_words as words_of
from cicada.answering.conversation.fidelity_words import ADDED, KIND, NEGATION, ORDER, WORDS
from cicada.routing.text import read_words

_QUOTES = str.maketrans(dict.fromkeys('"“”„«»「」', " "))
_LEAST_STEM = 4
_MOST_ENDING = 3


@dataclass(frozen=True)
class English:
    """A question in English."""

    tokens: tuple[str, ...]
    """Its words and punctuation, without what stands before the question itself."""
    kind: str
    """Its question word, ``yes or no``, a request's verb, or ``part`` of a question."""
    short: bool
    """Whether it leaves out what the one before it said."""
    negations: tuple[int, ...]
    """Where its negations stand."""

    @classmethod
    def of(cls, text: str) -> English:
        """Read a question."""
        words = list(read_words(text.translate(_QUOTES)).tokens)
        while len(words) > 1 and words[0] in en.STARTERS | en.PUNCTUATION:
            del words[0]
        tokens = tuple(words)
        about = tokens[:2] in words_of.ABOUT
        kind = "part" if about else _kind(tokens)
        return cls(
            tokens,
            kind,
            about or _is_short(tokens, kind),
            tuple(at for at, word in enumerate(tokens) if word in words_of.NEGATIONS),
        )

    @property
    def asking(self) -> set[str]:
        """Its question words."""
        return {_same(word) for word in self.tokens if word in en.WH}

    @property
    def kept(self) -> tuple[str, ...]:
        """What no completion leaves out of it, in its order: the words that tell something."""
        first = 2 if self.tokens[:2] in words_of.ABOUT else 0
        return tuple(
            word
            for at, word in enumerate(self.tokens)
            if at >= first
            and word not in en.PUNCTUATION
            and (self._tells(at) if word in words_of.TELLING else word not in en.FUNCTION)
        )

    def _tells(self, at: int) -> bool:
        following = self.tokens[at + 1] if at + 1 < len(self.tokens) else "?"
        return self.tokens[at] not in words_of.ORDINALS or following not in {"one", "ones", "?", "option"}


def english_change(done: English, asked: English, before: Sequence[English]) -> str | None:
    """See :func:`cicada.answering.conversation.fidelity.change`; ``before`` is the last turn's question."""
    held_to = before if asked.short else ()
    if len(done.negations) != max(len(one.negations) for one in (asked, *held_to)):
        return NEGATION
    telling = [word for word in asked.kept if word not in words_of.NEGATIONS]
    if not asked.short and _scopes(done, telling) != _scopes(asked, telling):
        return NEGATION
    if done.kind not in _kinds(asked, held_to) or not _asking(asked) <= done.asking:
        return KIND
    spoken = {word for one in (asked, *held_to) for word in one.tokens}
    if words_of.ADDRESS & set(done.tokens) - spoken:
        return ADDED
    if not all(_holds(done.tokens, word) for word in asked.kept):
        return WORDS
    return None if asked.short or _in_order(done, asked) else ORDER


def _in_order(done: English, asked: English) -> bool:
    """Whether the question's words follow one another as in the question: who does what to whom is told by that alone.

    What stands before the question's first comma may have moved behind the rest.
    """
    comma = asked.tokens.index(",") if "," in asked.tokens else 0
    moved = replace(asked, tokens=(*asked.tokens[comma:], *asked.tokens[:comma]))
    return any(_is_subsequence(one.kept, done.tokens) for one in (asked, moved))


def _is_subsequence(wanted: Iterable[str], words: Iterable[str]) -> bool:
    left = iter(words)
    return all(any(_holds([word], one) for word in left) for one in wanted)


def _kinds(asked: English, held_to: Sequence[English]) -> set[str]:
    """What kinds of question it may be completed to."""
    kinds = {asked.kind, *(one.kind for one in held_to)}
    if asked.short:
        kinds |= {"what", *asked.asking}
    return kinds | {"yes or no"} if asked.kind == "part" else kinds


def _asking(asked: English) -> set[str]:
    """The question words that a completion must have."""
    return set() if asked.tokens[:2] in words_of.ABOUT else asked.asking


def _kind(tokens: Sequence[str]) -> str:
    at = _head(tokens)
    if at is None and "," in tokens:  # "in episode 2, who locked it?"
        rest = tokens[tokens.index(",") + 1 :]
        found = _head(rest)
        return _named(rest, found)
    return _named(tokens, at)


def _named(tokens: Sequence[str], head: int | None) -> str:
    if head is None:
        return "part"
    word = tokens[head]
    if word in en.AUXILIARIES:
        return "yes or no"
    if word == "how" and head + 1 < len(tokens) and tokens[head + 1] in {"many", "much"}:
        return f"how {tokens[head + 1]}"
    return _same(word)


def _head(tokens: Sequence[str]) -> int | None:
    """Where the word stands that tells the question's kind: the first, or a question word after a preposition."""
    at = 0
    while at < len(tokens) and tokens[at] in en.PREPOSITIONS:
        at += 1
    if at >= len(tokens):
        return None
    word, following = tokens[at], tokens[at + 1] if at + 1 < len(tokens) else "?"
    if word in words_of.SUBORDINATE and following not in en.AUXILIARIES | en.PUNCTUATION:
        return None
    if word in en.WH or (at == 0 and (word in en.AUXILIARIES or word in words_of.WANTED)):
        return at
    return None


def _is_short(tokens: Sequence[str], kind: str) -> bool:
    if kind == "part":
        return True
    plain = " ".join(word for word in tokens if word not in en.PUNCTUATION)
    if any(phrase == plain or plain.startswith(f"{phrase} ") for phrase in en.REQUESTS):
        return True
    return not any(word in en.AUXILIARIES or word not in en.FUNCTION for word in tokens)


def _scopes(one: English, telling: Collection[str]) -> list[str | None]:
    """For each negation, the first of some words that follows it: what it negates, for all that such words tell."""
    return [
        next((told for word in one.tokens[at + 1 :] for told in telling if _holds([word], told)), None)
        for at in one.negations
    ]


def _same(word: str) -> str:
    return {"whom": "who"}.get(word, word)


def _holds(words: Iterable[str], wanted: str) -> bool:
    """Whether a word is there, be it with another ending: *locked*, *locking*, *hid*."""
    bare = wanted.removesuffix("e")
    if len(bare) < _LEAST_STEM - 1:
        return wanted in words
    stem = bare[: max(_LEAST_STEM, len(bare) - _MOST_ENDING)]
    return any(word.startswith(stem) and abs(len(word) - len(wanted)) <= _MOST_ENDING for word in words)

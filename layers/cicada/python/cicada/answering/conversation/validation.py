"""Whether what a model wrote is the question, completed, and nothing else."""

from __future__ import annotations

import re
import unicodedata
from collections import Counter
from collections.abc import Sequence

from cicada.answering.conversation.english_words import FUNCTION, LIGHT
from cicada.answering.conversation.fidelity import change
from cicada.answering.conversation.fidelity_words import WORDS
from cicada.answering.conversation.names import names_in
from cicada.answering.conversation.turns import Turn
from cicada.index.lexical.scripts import is_unspaced, pairs, script_of
from cicada.index.lexical.stopwords import EVIDENCE

MAX_COMPLETED_CHARS = 400
LEAST_KNOWN = 0.6
"""Of the completed question's content words, the share that must stand in the turns or in the question."""
MOST_NEW = 1
"""Of its content words, in a script with spaces, how many may stand in neither."""
LEAST_KEPT = 0.5
"""Of the question's own content words, the share that must still be there."""
_MARKS = (('"', '"'), ("“", "”"), ("«", "»"), ("„", "“"), ("「", "」"), ("'", "'"), ("‘", "’"))
_WORD = re.compile(r"[^\W_]+(?:['’-][^\W_]+)*")
_NUMBER = re.compile(r"\d+")
_HIRAGANA = re.compile(r"[\u3041-\u309f]+")
"""In Japanese, grammar for the most part."""
_LEAST_STEM = 3
_MOST_ENDING = 3
_SHORT_CHARS = 12


def tidied(written: str) -> str:
    """What a model wrote without the white space and the one pair of quotation marks that may stand around it."""
    text = written.strip()
    for opening, closing in _MARKS:
        if len(text) > 1 and text.startswith(opening) and text.endswith(closing):
            inner = text[1:-1]
            return inner.strip() if opening not in inner and closing not in inner else text
    return text


def refusal(completed: str, question: str, turns: Sequence[Turn]) -> str | None:
    """Why a completed question is not taken, in words without any of its text; None if it is taken.

    Taken is one line of at most :data:`MAX_COMPLETED_CHARS`, in a script of the conversation, whose names and numbers
    all stand in the turns or the question, which consists for the most part of their words, and which still asks what
    the question asks (:func:`cicada.answering.conversation.fidelity.change`).
    """
    if not any(character.isalnum() for character in completed):
        return "it is empty"
    if len(completed.splitlines()) > 1:
        return "it has several lines"
    if len(completed) > MAX_COMPLETED_CHARS:
        return "it is too long"
    if "<" in completed and "<" not in question:
        return "it has markup"
    known = " ".join([question, *(f"{turn.query} {turn.asked} {turn.answer}" for turn in turns)])
    if _script(completed) not in {_script(question), *(_script(turn.asked) for turn in turns[-1:])}:
        return "it is in another script"
    if not set(_NUMBER.findall(completed)) <= set(_NUMBER.findall(known)):
        return "it has a number that nobody named"
    words = _Words(known)
    if not all(words.hold(part) for name in names_in(completed) for part in _WORD.findall(name)):
        return "it has a name that nobody named"
    content = _content(completed)
    new = [word for word in content if not is_unspaced(word) and not words.hold(word)]
    if words.share(content) < LEAST_KNOWN or len(new) > MOST_NEW:
        return "it says what nobody said"
    if _tells_its_topic(question) and _Words(completed).share(_content(question)) < LEAST_KEPT:
        return WORDS
    return change(completed, question, turns)


class _Words:
    """The words of a text, to be found again in other inflections."""

    def __init__(self, text: str) -> None:
        self._folded = unicodedata.normalize("NFKC", text).casefold()
        self._words = frozenset(_split(self._folded))

    def hold(self, word: str) -> bool:
        """Whether it is there, be it with another ending: *Mara's*, *Марой*, *locked*."""
        folded = unicodedata.normalize("NFKC", word).casefold()
        if folded in self._words or is_unspaced(folded):
            return folded in self._folded
        stem = folded[: max(_LEAST_STEM, len(folded) - _MOST_ENDING)]
        return any(one.startswith(stem) and abs(len(one) - len(folded)) <= _MOST_ENDING for one in self._words)

    def share(self, words: Sequence[str]) -> float:
        """The share of some words that it holds; 1 of none."""
        return sum(self.hold(word) for word in words) / len(words) if words else 1.0


def _tells_its_topic(question: str) -> bool:
    """In a script without spaces, a short question that leans is little but grammar."""
    return len(question) > _SHORT_CHARS or not any(is_unspaced(word) for word in _WORD.findall(question))


def _split(text: str) -> list[str]:
    """Words; of a script without spaces, the pairs of its characters."""
    found: list[str] = []
    for word in _WORD.findall(text):
        found += pairs(list(word)) or [word] if is_unspaced(word) else [word]
    return found


def _content(text: str) -> list[str]:
    folded = unicodedata.normalize("NFKC", text).casefold()
    words = (word for word in _split(folded) if not _HIRAGANA.fullmatch(word))
    return [word for word in words if word not in FUNCTION | LIGHT and word not in EVIDENCE]


def _script(text: str) -> str:
    """The script that most of a text's letters are in; kana and Han are one, as Japanese has both."""
    counted = Counter(script_of(letter) for letter in text if letter.isalpha())
    counted["han"] += counted.pop("kana", 0)
    return counted.most_common(1)[0][0] if counted.total() else ""

"""Completing a question by rule: what the conversation is about, added to it."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator, Sequence

from cicada.answering.conversation.english_words import FUNCTION, LIGHT
from cicada.answering.conversation.names import names_in
from cicada.answering.conversation.turns import Turn, clipped
from cicada.index.lexical.scripts import is_unspaced
from cicada.index.lexical.stopwords import EVIDENCE

MAX_TOPIC_WORDS = 8
MAX_TOPIC_CHARS = 200
_ANSWERS_NAMES = 3
"""Of the names in an answer, how many are taken up: those it uses most."""
_WORD = re.compile(r"[^\W_]+(?:['’-][^\W_]+)*")


def complete_by_rule(question: str, turns: Sequence[Turn]) -> str | None:
    """A question with the names and the topic of the last turn that has any: *and why? (Mara, boathouse)*.

    It is made to be searched with, and to tell a reader what is meant; it says nothing that the turns do not say.

    Returns:
        At most :data:`MAX_TOPIC_CHARS` and a few characters more than ``question``; None if no turn is about anything.
    """
    for turn in reversed(turns):
        topic = _topic(question, turn)
        if topic:
            return f"{question.strip()} ({topic})"
    return None


def _topic(question: str, turn: Turn) -> str:
    if any(is_unspaced(word) for word in turn.query):
        return clipped(turn.query, MAX_TOPIC_CHARS)  # no spaces to tell its words by
    said = question.casefold()
    kept: dict[str, str] = {}
    for word in (*names_in(turn.query), *_content_words(turn.query), *_names_of_answer(turn)):
        folded = word.casefold()
        if folded not in said and not any(folded in other for other in kept):
            kept[folded] = word
    return clipped(", ".join(list(kept.values())[:MAX_TOPIC_WORDS]), MAX_TOPIC_CHARS)


def _content_words(text: str) -> Iterator[str]:
    for word in _WORD.findall(text):
        folded = word.casefold()
        if folded not in FUNCTION and folded not in LIGHT and folded not in EVIDENCE and len(word) > 1:
            yield re.sub(r"['’]s$", "", word)


def _names_of_answer(turn: Turn) -> list[str]:
    names = names_in(turn.answer)
    uses = Counter({name: turn.answer.count(name) for name in names})
    return [name for name, _ in uses.most_common(_ANSWERS_NAMES)]

"""Completes a follow-up question from the turns of its prompt, as a model is asked to.

The library's own classifier tells whether there is anything to complete. The completed question is the last question,
the first sentence of its answer and the follow-up, joined: it names everything that the follow-up can mean, in any
language, and nothing here can guess wrong. A model would write one sentence.
"""

from __future__ import annotations

import html
import re

from cicada.conversation.completion import UNCHANGED
from cicada.conversation.leaning import leaning
from cicada.text.sentences import sentences

MAX_CHARS = 400
MAX_ANSWERED_CHARS = 120
"""An answer's first sentence that is longer stays out of the question."""
LEAST_LEANING = 0.6
"""The probability of leaning on the turns below which a question needs none of them."""
_TURN = re.compile(r"<turn\b[^<>]*+>\s*+<asked>([^<]*+)</asked>\s*+<answered>([^<]*+)</answered>\s*+</turn>")
_QUESTION = re.compile(r"<question>([^<]*+)</question>")


def asks_to_complete(user: str) -> bool:
    """Whether a user's turn is a question to be completed: it begins with the turns before it."""
    return user.lstrip().startswith("<turns>") and _QUESTION.search(user) is not None


def complete_from(user: str) -> str:
    """The completed question of such a turn: one line of at most :data:`MAX_CHARS`, or that it needs nothing."""
    turns = [(_line(asked), _line(answered)) for asked, answered in _TURN.findall(user)]
    question = _line(_QUESTION.findall(user)[-1])
    if leaning(question) < LEAST_LEANING:
        return UNCHANGED
    if not turns:
        return question
    asked, answered = turns[-1]
    first = next(iter(sentences(answered)), "")
    first = first if len(first) <= MAX_ANSWERED_CHARS else ""
    for completed in (f"{asked} {first.strip()} {question}", f"{asked} {question}"):
        if len(completed) <= MAX_CHARS:
            return _line(completed)
    return question


def _line(text: str) -> str:
    return " ".join(html.unescape(text).split())

"""Whether a question needs the conversation to be understood, decided without a model."""

from __future__ import annotations

from collections.abc import Sequence

from cicada.answering.conversation.english import english_reason
from cicada.answering.conversation.foreign import ENGLISH, foreign_leans, language_of
from cicada.answering.conversation.names import names_in
from cicada.answering.conversation.turns import Turn
from cicada.routing.classifier import classify

MOST_CHARS = 400
"""A question longer than this says itself what it is about."""


def needs_context(query: str, turns: Sequence[Turn]) -> bool:
    """Whether a question leans on the turns before it: by a pronoun without an antecedent, a pointer, an ellipsis.

    It is decided by the question's words; the turns tell its language, and which of its words are names. Without
    turns it is decided all the same: an answer that could not read them can say so. Linear in the question's length.
    """
    if len(query) > MOST_CHARS:
        return False
    language = language_of(query, [turn.query for turn in turns])
    names = {name.casefold() for turn in turns for name in names_in(f"{turn.query} . {turn.answer}")}
    names |= {part for name in names for part in name.split()}
    if language != ENGLISH:
        return foreign_leans(query, language, names)
    reason = english_reason(query, names)
    return reason == "pointer" or (reason is not None and not _is_small_talk(query))


def _is_small_talk(query: str) -> bool:
    """*ok*, *thank you very much*: what has the direct route, and asks nothing."""
    return "?" not in query and classify(query).route == "direct"

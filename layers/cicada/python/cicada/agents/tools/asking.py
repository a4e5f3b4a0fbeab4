"""What a user's message asks, and what it says: who asks whether something is so has not said that it is."""

from __future__ import annotations

import re
from collections.abc import Sequence

_NOT = r"(?:n['’]?t)?"
_DO = rf"(?:did|does|do|was|were|is|are|has|have|had){_NOT}"
_MODAL = rf"(?:can|could|will|would|should|might|must|wo){_NOT}"
_WHICH = "what|why|who|whose|whom|when|where|which|how"
_GERMAN = "hat|haben|wird|wurde|was|warum|wer|wann|wo|wie"
_ASKING = rf"(?:{_DO}|{_WHICH}|if|{_GERMAN}|wenn)\b"
_ONLY_ASKS = re.compile(
    rf"(?:^|[,;:…–—(\n])\W*{_ASKING}|\b(?:{_WHICH})\s+(?:[^\W_]+\s+)?(?:{_DO}|{_MODAL})\b", re.IGNORECASE
)
_ASKS_WHETHER = re.compile(
    rf"^\W*(?:¿|(?:(?:so|and|but|or|und|oder)\b\W*)*(?:{_ASKING}|{_MODAL}\s+(?!you\b)[^\W_]|"
    rf"{_MODAL}\s+you\s+(?:say|think|agree|believe|know|tell)\b|(?:ist|sind|war|waren|hast|bist|est-ce)\b))",
    re.IGNORECASE,
)
_SENTENCE_END = re.compile(r"(?:(?<!\.)\.(?!\.)|[!?][.!?]*)(?=\s|$)|[。！？]+|\n(?=[^\S\n]*(?:\n|[-*•–]|\d{1,2}[.)]))")
"""A mark within a word ends nothing, nor do an ellipsis and a line's end in the middle of a paragraph."""
Span = tuple[int, int]


def sentences_in(message: str, names: Sequence[Span] = ()) -> list[Span]:
    """Where the sentences of a message begin and end.

    Args:
        message: the user's.
        names: where names stand, whose full stops end no sentence.
    """
    found = [0]
    found += [
        mark.end()
        for mark in _SENTENCE_END.finditer(message)
        if not any(start <= mark.start() < end for start, end in names)
    ]
    return [(start, end) for start, end in zip(found, [*found[1:], len(message)], strict=True) if start < end]


def only_asks(beginning: str) -> bool:
    """Whether a sentence asks whether or why something is so, as far as its beginning tells."""
    return _ONLY_ASKS.search(beginning) is not None


def said_in(message: str) -> str:
    """A message without the sentences that ask whether something is so: *Is Oswin a thief?* says nothing of him.

    *Can you note that he is a thief?* asks for something to be done, and says it.
    """
    sentences = (message[start:end] for start, end in sentences_in(message))
    return "".join(one for one in sentences if not (one.rstrip().endswith(("?", "？")) and _ASKS_WHETHER.match(one)))

"""What a passage's vector and words are made of.

An embedding model reads only the beginning of a long text (256 to 512 tokens are common), and one vector of many
sentences is near to none of them. So a longer passage counts as a whole and again by its windows of whole sentences.
Its headings and its document's title count beside it, so that it is found by what only they name.
``benchmarks/chunking.py`` measures both.
"""

from __future__ import annotations

import math
from itertools import accumulate

from cicada.corpus.chunking.pieces import pieces
from cicada.corpus.chunking.sentences import sentences
from cicada.corpus.indexable import Part
from cicada.tokens import estimated_tokens

WINDOW_TOKENS = 320
"""Of a window, about: what the estimate gives for the 256 word pieces that small models read."""
WINDOW_WEIGHT = 1.0
HEADINGS_WEIGHT = 0.5
"""More helps where headings say what the text is about, and drowns it where they are a file's name."""


def parts_of(text: str, headings: str) -> tuple[Part, ...]:
    """The parts of a passage: its text, its windows where it has more than one, and its headings if any."""
    windows = windows_of(text)
    parts = [Part(text, 1.0)]
    if len(windows) > 1:
        parts += [Part(window, WINDOW_WEIGHT) for window in windows]
    if headings:
        parts.append(Part(headings, HEADINGS_WEIGHT))
    return tuple(parts)


def windows_of(text: str) -> list[str]:
    """As few windows of whole sentences as suffice, of about equal length: each will count the same."""
    found = [piece for sentence in sentences(text) for piece in pieces(sentence, WINDOW_TOKENS)]
    tokens = [estimated_tokens(piece) for piece in found]
    total = sum(tokens)
    count = max(1, math.ceil(total / WINDOW_TOKENS))
    windows = [""] * count
    for piece, size, end in zip(found, tokens, accumulate(tokens), strict=True):
        middle = end - size / 2
        windows[min(int(middle * count / max(total, 1)), count - 1)] += piece
    return [window.strip() for window in windows if window.strip()]

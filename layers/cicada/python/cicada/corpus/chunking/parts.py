"""What a passage's vector and words are made of.

An embedding model reads only the beginning of a long text (256 to 512 tokens are common), and one vector of many
sentences is near to none of them. So a longer passage counts as a whole and again by its windows of whole sentences.
Its document's title and its headings stand before each, so that it is found by what only they name: as a part of their
own they would find no more, and one text more would have to be embedded. ``benchmarks/chunking.py`` measures both.
"""

from __future__ import annotations

import math
from itertools import accumulate

from cicada.corpus.indexable import Part
from cicada.text.pieces import pieces
from cicada.text.sentences import sentences
from cicada.text.token_estimates import estimated_tokens

WINDOW_TOKENS = 320
"""Of a window, about: what the estimate gives for the 256 word pieces that small models read."""


def parts_of(text: str, headings: str) -> tuple[Part, ...]:
    """The parts of a passage: its text, and its windows where it has more than one, each below its headings if any."""
    windows = windows_of(text)
    above = f"{headings}\n\n" if headings else ""
    return tuple(Part(above + own, 1.0) for own in [text, *(windows if len(windows) > 1 else ())])


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

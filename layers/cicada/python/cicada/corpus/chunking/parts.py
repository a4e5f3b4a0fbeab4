"""What a passage's vector and words are made of.

An embedding model reads only the beginning of a long text (256 to 512 tokens are common), and one vector of many
sentences is near to none of them. So a longer passage counts as a whole and again by its windows of whole sentences.
Its headings and its document's title count a little, so that it is found by what only they name.
``benchmarks/chunking.py`` measures both.
"""

from __future__ import annotations

from collections.abc import Iterator

from cicada.corpus.chunking.pieces import pieces
from cicada.corpus.chunking.sentences import sentences
from cicada.corpus.indexable import Part
from cicada.tokens import estimated_tokens

WINDOW_TOKENS = 250
"""Of a window at most."""
WINDOW_WEIGHT = 1.0
HEADINGS_WEIGHT = 0.5


def parts_of(text: str, headings: str) -> tuple[Part, ...]:
    """The parts of a passage: its text, its windows where it has more than one, and its headings if any."""
    windows = list(windows_of(text))
    parts = [Part(text, 1.0)]
    if len(windows) > 1:
        parts += [Part(window, WINDOW_WEIGHT) for window in windows]
    if headings:
        parts.append(Part(headings, HEADINGS_WEIGHT))
    return tuple(parts)


def windows_of(text: str, limit: int = WINDOW_TOKENS) -> Iterator[str]:
    """Whole sentences, as many as fit into each; what is longer is cut as for chunks."""
    window: list[str] = []
    tokens = 0
    for piece in (piece for sentence in sentences(text) for piece in pieces(sentence, limit)):
        more = estimated_tokens(piece)
        if window and tokens + more > limit:
            yield "".join(window).strip()
            window, tokens = [], 0
        window.append(piece)
        tokens += more
    yield "".join(window).strip()

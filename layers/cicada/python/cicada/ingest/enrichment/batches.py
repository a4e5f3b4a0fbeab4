"""Which texts go to a model together: as many as its answer and its attention have room for, in order."""

from __future__ import annotations

from collections.abc import Sequence

from cicada.text.token_estimates import estimated_tokens

MAX_BATCH_TEXTS = 10
"""More together, and a small model begins to mix them up."""
MAX_BATCH_TOKENS = 6_000
"""Of a batch's texts, as estimated."""
SUMMARY_TOKENS = 80
"""Of an answer, a passage's summary: two sentences."""
NAMES_TOKENS = 80
"""Of an answer, a passage's entities and codes."""
ABSTRACT_TOKENS = 300
"""Of an answer, a document's summary."""
OVERHEAD_TOKENS = 20
"""Of an answer, what surrounds a passage's fields."""


def batches(
    texts: Sequence[str],
    *,
    most_texts: int = MAX_BATCH_TEXTS,
    most_tokens: int = MAX_BATCH_TOKENS,
) -> list[range]:
    """Consecutive texts, by their places, in as few batches as the bounds allow; a longer text is a batch by itself."""
    found: list[range] = []
    first = tokens = 0
    for place, text in enumerate(texts):
        more = estimated_tokens(text)
        if place > first and (tokens + more > most_tokens or place - first >= most_texts):
            found.append(range(first, place))
            first, tokens = place, 0
        tokens += more
    if first < len(texts):
        found.append(range(first, len(texts)))
    return found


def answer_tokens(*, summaries: bool, names: bool) -> int:
    """About what a model writes of one passage."""
    return OVERHEAD_TOKENS + SUMMARY_TOKENS * summaries + NAMES_TOKENS * names


def pieces(text: str, *, most_tokens: int = MAX_BATCH_TOKENS) -> list[str]:
    """A text in pieces of at most so many tokens, as estimated, cut at white space where there is any."""
    if estimated_tokens(text) <= most_tokens:
        return [text]
    middle = len(text) // 2
    space = text.rfind(" ", middle // 2, middle + 1)
    cut = space if space > 0 else middle
    return [*pieces(text[:cut], most_tokens=most_tokens), *pieces(text[cut:], most_tokens=most_tokens)]

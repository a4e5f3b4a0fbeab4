"""A summary made of a text's own sentences: the first, and those that say most of what the others say."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

from cicada_local.bedrock.extractive.text import content_stems, sentences

MAX_SENTENCES = 200
"""Of a text, those that are weighed."""
MAX_SENTENCE_CHARS = 300


def summary(texts: Sequence[str], most: int = 2) -> str:
    """At most ``most`` sentences of the texts, in their order; empty if there is none that says anything."""
    said = [sentence for text in texts for sentence in sentences(text)][:MAX_SENTENCES]
    stems = [content_stems(sentence) for sentence in said]
    telling = [place for place, words in enumerate(stems) if words]
    if not telling:
        return ""
    frequency = Counter(word for words in stems for word in words)
    first = telling[0]
    central = sorted(
        telling[1:], key=lambda place: (-sum(frequency[word] for word in stems[place]) / (len(stems[place]) + 3), place)
    )
    chosen = sorted([first, *central[: most - 1]])
    return " ".join(said[place][:MAX_SENTENCE_CHARS] for place in chosen)

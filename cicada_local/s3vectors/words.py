"""Full-text search over metadata: BM25 with the constants of Lucene. The service publishes neither its own nor its
analyzer; this one folds case and accents, and cuts Chinese and Japanese into pairs of characters.

Source: S. Robertson, H. Zaragoza, "The Probabilistic Relevance Framework: BM25 and Beyond", 2009.
"""

from __future__ import annotations

import math
import re
import unicodedata
from collections import Counter
from collections.abc import Iterable, Mapping

K1, B = 1.2, 0.75

_WORD = re.compile(r"\w+")
_UNSPACED = re.compile(r"[぀-ヿ㐀-鿿豈-﫿]+")


def tokens(text: str) -> list[str]:
    """The words of a text."""
    folded = "".join(c for c in unicodedata.normalize("NFKD", text.casefold()) if not unicodedata.combining(c))
    return [token for word in _WORD.findall(folded) for token in _pieces(word)]


def _pieces(word: str) -> list[str]:
    found: list[str] = []
    end = 0
    for run in _UNSPACED.finditer(word):
        if word[end : run.start()]:
            found.append(word[end : run.start()])
        characters = run[0]
        found += [characters[at : at + 2] for at in range(max(1, len(characters) - 1))]
        end = run.end()
    return [*found, word[end:]] if word[end:] else found


class WordIndex:
    """The texts of one metadata key, by vector key."""

    def __init__(self) -> None:
        self._counts: dict[str, Counter[str]] = {}
        self._postings: dict[str, set[str]] = {}
        self._length = 0

    def put(self, key: str, text: str | None) -> None:
        """Take a text in, in place of the one that the key had; None for none."""
        for word, count in self._counts.pop(key, Counter()).items():
            self._postings[word].discard(key)
            self._length -= count
        if text is not None:
            counts = Counter(tokens(text))
            self._counts[key] = counts
            self._length += counts.total()
            for word in counts:
                self._postings.setdefault(word, set()).add(key)

    def scores(self, query: str, allowed: Iterable[str] | None) -> Mapping[str, float]:
        """The BM25 score of each allowed key that has a word of the query. Statistics are over all keys."""
        total = len(self._counts)
        allowed_keys = None if allowed is None else set(allowed)
        found: dict[str, float] = {}
        for word in dict.fromkeys(tokens(query)):
            keys = self._postings.get(word, set())
            weight = math.log(1 + (total - len(keys) + 0.5) / (len(keys) + 0.5))
            for key in keys if allowed_keys is None else keys & allowed_keys:
                counts = self._counts[key]
                relative = counts.total() * total / (self._length or 1)
                count = counts[word]
                score = weight * count * (K1 + 1) / (count + K1 * (1 - B + B * relative))
                found[key] = found.get(key, 0.0) + score
        return found

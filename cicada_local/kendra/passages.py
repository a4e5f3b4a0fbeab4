"""Documents cut into passages, and their ranking: BM25 over the passages' words. Kendra's own is not published."""

from __future__ import annotations

import itertools
import math
import re
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from cicada.text.word_lists import word_lists
from cicada_local.kendra.attributes import Value

PASSAGE_WORDS = 200
"""Token words of a passage that Retrieve returns, at most."""
QUERY_WORDS = 30
"""Token words of a query that are looked at, without stop words and punctuation."""

K1, B = 1.2, 0.75
_WORD = re.compile(r"\w+")
_STOP_WORDS = word_lists("cicada_local", "words.json")["kendra_stop_words"]


@dataclass(frozen=True)
class Document:
    """A document of an index."""

    id: str
    title: str
    passages: tuple[str, ...]
    attributes: Mapping[str, Value]
    allowed: frozenset[tuple[str, str]] = frozenset()
    """The users and groups that may read it, by type and name; everybody if empty."""
    denied: frozenset[tuple[str, str]] = frozenset()

    def shown_to(self, principals: frozenset[tuple[str, str]] | None) -> bool:
        """Whether a user with these groups may read it; None for a search without a user."""
        if principals is None:
            return True
        return not self.denied & principals and (not self.allowed or bool(self.allowed & principals))


@dataclass(frozen=True)
class Found:
    """A passage that matches."""

    document: Document
    text: str
    share: float
    """What it scores of the most that any passage could, in [0, 1]."""


def cut(text: str) -> tuple[str, ...]:
    """A text's passages, of as many words as fit each."""
    ends = [match.end() for match in _WORD.finditer(text)]
    cuts = [0, *ends[PASSAGE_WORDS - 1 : -1 : PASSAGE_WORDS], len(text)]
    pieces = (text[start:end].strip() for start, end in itertools.pairwise(cuts))
    return tuple(piece for piece in pieces if piece)


def query_words(text: str) -> list[str]:
    """The words of a query that count."""
    words = [word for word in map(str.casefold, _WORD.findall(text)) if word not in _STOP_WORDS]
    return list(dict.fromkeys(words[:QUERY_WORDS]))


def rank(documents: Iterable[Document], words: Sequence[str]) -> list[Found]:
    """The passages that have a word of the query, best first."""
    passages = [(document, text, _counts(document, text)) for document in documents for text in document.passages]
    total = len(passages)
    average = sum(counts.total() for *_, counts in passages) / total if total else 1.0
    weights = {}
    for word in words:
        having = sum(word in counts for *_, counts in passages)
        weights[word] = math.log(1 + (total - having + 0.5) / (having + 0.5))
    most = sum(weights.values()) * (K1 + 1) or 1.0
    found = []
    for document, text, counts in passages:
        norm = K1 * (1 - B + B * counts.total() / average)
        score = sum(weights[word] * counts[word] * (K1 + 1) / (counts[word] + norm) for word in words)
        if score > 0:
            found.append(Found(document, text, score / most))
    return sorted(found, key=lambda one: (-one.share, one.document.id))


def _counts(document: Document, text: str) -> Counter[str]:
    """Of the passage and its document's title."""
    return Counter(map(str.casefold, _WORD.findall(f"{document.title} {text}")))


def confidence(found: Found) -> str:
    """The confidence bucket; there are some for English alone."""
    if found.document.attributes.get("_language_code", "en") != "en":
        return "NOT_AVAILABLE"
    buckets = ((0.6, "VERY_HIGH"), (0.4, "HIGH"), (0.2, "MEDIUM"))
    return next((name for least, name in buckets if found.share >= least), "LOW")

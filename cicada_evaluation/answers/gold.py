"""An answer held against the right answers that a set tells in words.

Source: Rajpurkar et al., "SQuAD: 100,000+ Questions for Machine Comprehension of Text", 2016 (the normalisation, and F1
over tokens); Gao et al., "Enabling Large Language Models to Generate Text with Citations" (ALCE), 2023 (containment,
for answers that are longer than the right one). In scripts without spaces each character is a token, as in Lewis et
al., "MLQA: Evaluating Cross-lingual Extractive Question Answering", 2020.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Sequence
from functools import cache

from cicada.protocol.markers import without_markers
from cicada.text.characters import UNSPACED, normalised

_ARTICLES = frozenset({"a", "an", "the"})


def contained(answer: str, gold: Sequence[str]) -> bool:
    """Whether the answer has one of the right answers in it, token by token; its markers are no part of it."""
    told = _tokens(without_markers(answer))
    return any(_within(wanted, told) for wanted in map(_tokens, gold))


def token_f1(answer: str, gold: Sequence[str]) -> float:
    """The F1 of the answer's tokens and the right answer's, in [0, 1]: of the right answer that fits best."""
    told = Counter(_tokens(without_markers(answer)))
    return max((_f1(told, Counter(_tokens(one))) for one in gold), default=0.0)


def _tokens(text: str) -> list[str]:
    """Words and numbers without case, punctuation and articles; characters where words are not divided."""
    return [token for token in _pattern().findall(normalised(text)) if token not in _ARTICLES]


@cache
def _pattern() -> re.Pattern[str]:
    return re.compile(rf"\d+(?:[.,]\d+)*|[{UNSPACED}]|[^\W\d_{UNSPACED}]+")


def _within(wanted: Sequence[str], told: Sequence[str]) -> bool:
    length = len(wanted)
    return length > 0 and any(told[at : at + length] == wanted for at in range(len(told) - length + 1))


def _f1(told: Counter[str], wanted: Counter[str]) -> float:
    shared = (told & wanted).total()
    return 2 * shared / (told.total() + wanted.total()) if shared else 0.0

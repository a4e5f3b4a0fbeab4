"""The most frequent words of each stemmed language: what tells languages of one script apart."""

from __future__ import annotations

from collections import Counter

from cicada.text.characters import normalised
from cicada.text.word_lists import word_lists

FREQUENT: dict[str, frozenset[str]] = {
    code: frozenset(map(normalised, words)) for code, words in word_lists("cicada.text", "frequent_words.json").items()
}
"""By ISO 639-3 code, in normal form."""

_SHARED = Counter(word for words in FREQUENT.values() for word in words)
EVIDENCE: dict[str, dict[str, float]] = {}
"""By word: how much it speaks for each language; a word that several share speaks less for each."""
for _code, _words in FREQUENT.items():
    for _word in sorted(_words):
        EVIDENCE.setdefault(_word, {})[_code] = 1 / _SHARED[_word]

"""Words that tell names from other capitalised words: lists of the file ``words.json``."""

from __future__ import annotations

from functools import cache

from cicada.text.frequent import FREQUENT
from cicada.text.word_lists import word_lists

_LISTS = word_lists("cicada.ingest.enrichment", "words.json")

PARTICLES = _LISTS["particles"]
"""Small words that stand inside of names."""
OF_WHAT = _LISTS["of_what"]
"""What is named by an ``of``; other names that one stands between are two."""
HONORIFICS = _LISTS["honorifics"]
"""Left out before names, and no names by themselves."""
DESCRIBING = _LISTS["describing"]
"""Words that begin names, and are none by themselves."""
REFERENCES = _LISTS["references"]
"""No names where a number follows."""
NAMING_FIELDS = _LISTS["naming_fields"]
"""Words in the names of columns whose values are names."""
GERMAN_ARTICLES = _LISTS["german_articles"]
NOBODY = _LISTS["nobody"]
"""What an honorific follows in Japanese without being a name."""
GERMAN_NOUN_ENDINGS = tuple(_LISTS["german_noun_endings"])
NARRATORS = frozenset(name.replace("-", " ") for name in _LISTS["narrators"])
"""Speakers who are nobody."""
_COMMON = _LISTS["dates"] | _LISTS["tongues"] | _LISTS["formats"] | _LISTS["openers"]


@cache
def common_words(language: str) -> frozenset[str]:
    """Words that are no names by themselves, in lower case.

    Dates, tongues, formats, what sentences often begin with, and the most frequent words of English and of a language.

    Args:
        language: ISO 639-3.
    """
    return _COMMON | FREQUENT.get(language, frozenset()) | FREQUENT["eng"]

"""Which languages an embedding model knows, and so how far its cosines are to be trusted for a query.

A model that never learned a language still gives every text a vector: of its punctuation, its digits, its familiar
fragments. Such cosines rank, confidently, by the wrong things. That is known before anything is searched: from what
the model was trained on, and from the query.
"""

from __future__ import annotations

from collections.abc import Mapping

from cicada.text.detection import language_of
from cicada.text.languages import STEMMED, UNSTEMMED_SCRIPTS

ENGLISH_MODELS = ("local.all-minilm-l6-v2", "cohere.embed-english-v3")
"""Models trained on English alone, by the service's id. Every other one is taken for multilingual, as Titan Text
Embeddings v2 and Cohere's multilingual models are."""

NEIGHBOUR_TRUST = 0.2
"""Of an English model's cosines, in another language in Latin letters: names, numbers and borrowed words are known."""
FOREIGN_TRUST = 0.1
"""... in any other script: little more than a tie-breaker between passages that match as many words."""

_ENGLISH = "eng"
_ACCENTED = 0.1
"""A share of letters outside A to Z that English does not reach, and Vietnamese, Czech or Turkish do."""


def trust_in(model_id: str, text: str, languages: Mapping[str, int]) -> float:
    """How much of the weight that a model's cosines have for English they keep for a query, in (0, 1].

    Args:
        model_id: the embedding model.
        text: the query.
        languages: how many of the passages searched are in each language (ISO 639-3). They decide where the query
            does not: *Super Bowl*, asked of Chinese passages, is a question about Chinese.
    """
    if not _knows_english_alone(model_id):
        return 1.0
    language = query_language(text, languages)
    if language == _ENGLISH:
        return 1.0
    return NEIGHBOUR_TRUST if _script(language) == "latin" else FOREIGN_TRUST


def query_language(text: str, languages: Mapping[str, int]) -> str:
    """The language of a query to passages in some languages (ISO 639-3); ``und`` for one in accented Latin letters.

    Where no frequent word speaks for a language, the passages' most frequent one is told.
    """
    usual = max(languages, key=lambda name: languages[name], default=_ENGLISH)
    language = language_of(text, otherwise=usual, by_frequent_words=bool(languages))
    return "und" if language == _ENGLISH and _accented_share(text) >= _ACCENTED else language


def _knows_english_alone(model_id: str) -> bool:
    """The id may have the prefix of a region, or of an ARN."""
    return model_id.endswith(ENGLISH_MODELS)


def _accented_share(text: str) -> float:
    letters = [letter for letter in text if letter.isalpha()]
    return sum(not letter.isascii() for letter in letters) / max(len(letters), 1)


def _script(language: str) -> str:
    return STEMMED[language].script if language in STEMMED else UNSTEMMED_SCRIPTS.get(language, "latin")

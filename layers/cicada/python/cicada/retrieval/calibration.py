"""Calibrate an embedding model's cosines: scores that compare across models, and the languages it knows.

Embedding models spread their cosines differently: a passage that answers a question may stand at 0.3 with one model
and at 0.8 with another, so that one ``min_score`` over raw cosines would fit none. A logistic function of the cosine
maps them to [0, 1], monotonically: ranking is untouched. It is fitted between two classes, the passages that answer a
question and the best that a corpus has for a question it knows nothing of; at 0.5 a passage is as likely of either,
when a lost one counts half as much again as one too many.

Source: J. Platt, "Probabilistic Outputs for Support Vector Machines", 1999. The numbers are fitted by
``benchmarks/retrieval_calibration.py``, which does it for any model.

A model embeds texts in unknown languages too: by punctuation, digits and familiar fragments. Such cosines rank by the
wrong things. The model's training and the query's language show that before the search.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass

from cicada.text.detection import language_of
from cicada.text.languages import script_of_language


@dataclass(frozen=True)
class Calibration:
    """A logistic function: 0.5 at ``midpoint``, and the steeper the larger ``slope``."""

    midpoint: float
    slope: float

    def score(self, cosine: float) -> float:
        """The relevance in [0, 1] of a cosine in [-1, 1]."""
        return 1 / (1 + math.exp(-self.slope * (cosine - self.midpoint)))


DEFAULT_CALIBRATION = Calibration(midpoint=0.25, slope=9.0)
"""For a model that was not measured, such as Titan Text v2: a little below what was fitted for another one."""

CALIBRATIONS: Mapping[str, Calibration] = {"local.all-minilm-l6-v2": Calibration(midpoint=0.277, slope=9.32)}
"""By the service's model id."""


def calibration_of(model_id: str) -> Calibration:
    """The model's calibration, or the default's if it was not measured."""
    return CALIBRATIONS.get(model_id, DEFAULT_CALIBRATION)


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
    """The share of an English query's weight that a model's cosines keep for this query, in (0, 1].

    ``languages`` counts the searched passages by language (ISO 639-3). They decide where the query does not: *Super
    Bowl*, asked of Chinese passages, is a question about Chinese.
    """
    if not model_id.endswith(ENGLISH_MODELS):  # the id may have the prefix of a Region, or of an ARN
        return 1.0
    language = query_language(text, languages)
    if language == _ENGLISH:
        return 1.0
    return NEIGHBOUR_TRUST if script_of_language(language) == "latin" else FOREIGN_TRUST


def query_language(text: str, languages: Mapping[str, int]) -> str:
    """The language of a query (ISO 639-3); ``und`` for accented Latin letters, else the passages' most frequent one."""
    usual = max(languages, key=lambda name: languages[name], default=_ENGLISH)
    language = language_of(text, otherwise=usual, by_frequent_words=True)
    return "und" if language == _ENGLISH and _accented_share(text) >= _ACCENTED else language


def _accented_share(text: str) -> float:
    letters = [letter for letter in text if letter.isalpha()]
    return sum(not letter.isascii() for letter in letters) / max(len(letters), 1)

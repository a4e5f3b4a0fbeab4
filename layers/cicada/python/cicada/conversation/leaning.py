"""Whether a question can be understood by itself, decided without a model."""

from __future__ import annotations

import re

from cicada.routing.classifier import classify
from cicada.text.linear import LinearClassifier
from cicada.text.normal import normalised
from cicada.text.tokens import tokens
from cicada.text.words import content_words

LEAST_LEANING = 0.35
"""The probability of leaning on the conversation from which on a model is asked: about one of sixty whole questions
has it, and four of five that lean, on hands that did not train the classifier."""
SURE_SMALL_TALK = 0.95
"""The probability of the route ``direct`` from which on a question is small talk; *why?* is routed there, too, less
surely."""
MOST_CHARS = 400  # A question longer than this says itself what it is about
_LEANS = "leans"
_MOST_COUNTED = 9
_CAPITAL = re.compile(r"(?<=\s)[^\W\d_]")


def is_whole(query: str) -> bool:
    """Whether a question plainly needs nothing of the conversation; small talk needs nothing either."""
    if len(query) > MOST_CHARS or leaning(query) < LEAST_LEANING:
        return True
    routed = classify(query)
    return routed.route == "direct" and routed.confidence >= SURE_SMALL_TALK


def leaning(query: str) -> float:
    """The probability that a question leans on what was said before, by a trained classifier.

    ``python -m training.followups`` makes its weights from labelled questions.
    """
    classifier = LinearClassifier.of("cicada.conversation", "followups")
    return classifier.decide(query, beside=shape_of(query), most_telling=0).probabilities[_LEANS]


def shape_of(query: str) -> tuple[str, ...]:
    """What n-grams do not tell of a question: how many words tell something, numbers, names."""
    spoken = tokens(normalised(query))
    telling = min(len(content_words(query)), _MOST_COUNTED)
    names = sum(match[0].isupper() for match in _CAPITAL.finditer(query))
    return (
        f"telling {telling}",
        f"telling {telling} of {min(len(spoken), _MOST_COUNTED)}",
        f"{spoken[0] if spoken else ''} telling {min(telling, 4)}",
        f"names {min(names, 3)}",
        f"number {any(map(str.isdigit, query))}",
        f"long {min(len(query) // 6, 15)}",
    )

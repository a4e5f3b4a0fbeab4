"""From a question to a route, without a model: a trained linear classifier over hashed n-grams.

``python -m training.routing`` makes its weights from labelled questions. A wrong route is mended by adding labelled
questions, never by a rule.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import cast, get_args

from cicada.protocol.events import Route
from cicada.text.linear import Decision, LinearClassifier

LEAST_CERTAINTY = {"direct": 0.5, "profile_agent": 0.5, "cag": 0.6, "theory_agent": 0.6}
"""Of a route that does not search the text: the probability that it needs beside those of the routes that do. Below it
is a doubt. ``cag`` and ``theory_agent`` need more: encyclopedic questions on laws, prices and proofs resemble them."""
ROUTES: tuple[Route, ...] = get_args(Route)

_MEANINGS: dict[Route, str] = {
    "direct": "Small talk",
    "rag": "A question for the text",
    "hybrid": "A complex question for the text",
    "cag": "A question about terms and policies",
    "profile_agent": "A request about the asker's own notes",
    "theory_agent": "A theory to be weighed",
}


@dataclass(frozen=True, slots=True)
class Classification:
    """A route, how sure it is, and why in words an operator understands."""

    route: Route
    confidence: float  # the calibrated probability of the route, in [0, 1]
    reasoning: str  # quotes words of the question: not for logs


def classify(query: str) -> Classification:
    """Decide how a question is answered.

    Deterministic and total: any text has a route. Takes a bounded time: of a long text the beginning and the end are
    read.
    """
    decision = LinearClassifier.of("cicada.routing", "routing").decide(query)
    route = cast(Route, decision.label)
    probability = decision.probabilities[route]
    searched = decision.probabilities["rag"] + decision.probabilities["hybrid"]
    if probability < LEAST_CERTAINTY.get(route, 0.0) * (probability + searched):
        doubt = f"In doubt, so the text is searched: {route} is {probability:.0%} likely, rag or hybrid {searched:.0%}."
        return Classification("rag", decision.probabilities["rag"], doubt)
    return Classification(route, probability, _reasoning(route, decision))


def _reasoning(route: Route, decision: Decision) -> str:
    telling = ", ".join(f"“{word}”" for word in decision.telling)
    return f"{_MEANINGS[route]}, mainly by {telling}." if telling else f"{_MEANINGS[route]}."

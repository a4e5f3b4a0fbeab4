"""From a question to a route, without a model: evidence is looked for, weighed and named.

The routes' scores are log-odds: the sum of the weights of the evidence found (:mod:`cicada.routing.evidence`), with a
head start for ``rag``. The confidence is the softmax of the scores. Where no other route clearly leads, the route is
``rag``: searching the text is the answer that is seldom wrong.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import get_args

from cicada.protocol.events import Route
from cicada.routing.evidence import EVIDENCE
from cicada.routing.evidence.table import RAG_PRIOR, Evidence
from cicada.routing.phrases import Match, PhraseBook
from cicada.routing.reading import read
from cicada.routing.text import read_words

LEAST_LEAD = 0.5
"""By how many nats a route other than ``rag`` must lead; with less it is a doubt, and doubts go to ``rag``."""
ROUTES: tuple[Route, ...] = get_args(Route)

_PHRASES = PhraseBook({row: row.phrases for row in EVIDENCE if row.phrases})
_BY_FACT = tuple(row for row in EVIDENCE if row.facts)
_REASONS_NAMED = 2


@dataclass(frozen=True, slots=True)
class Classification:
    """A route, how sure it is, and why in words an operator understands."""

    route: Route
    confidence: float
    """The probability, in [0, 1], that the evidence gives the route."""
    reasoning: str


@dataclass(frozen=True, slots=True)
class _Found:
    """A row of evidence with the words that gave it, if words did."""

    row: Evidence
    words: str = ""

    def __str__(self) -> str:
        return f"{self.row.why} (“{self.words}”)" if self.words else self.row.why


def classify(query: str) -> Classification:
    """Decide how a question is answered.

    Deterministic and total: any text has a route. Takes time linear in the length of ``query``, of which the first
    ``MAX_QUERY_CHARS`` characters are read.
    """
    found = _evidence(query)
    scores = dict.fromkeys(ROUTES, 0.0)
    scores["rag"] = RAG_PRIOR
    for item in found:
        scores[item.row.route] += item.row.weight
    first, second = sorted(ROUTES, key=lambda route: -scores[route])[:2]
    route: Route = first if scores[first] - scores[second] >= LEAST_LEAD else "rag"
    return Classification(route, _softmax(scores, route), _reasoning(route, first, second, found))


def _evidence(query: str) -> list[_Found]:
    text, facts = read(read_words(query))
    found = {row: _Found(row) for row in _BY_FACT if row.facts <= facts}
    for match, row in _PHRASES.everywhere(text):
        if row not in found:
            found[row] = _Found(row, _words(match, text.tokens))
    return list(found.values())


def _words(match: Match, tokens: tuple[str, ...]) -> str:
    """The words that a phrase names, with an ellipsis where it leaves some out."""
    spoken = ""
    for before, at in zip((match.named[0], *match.named), match.named, strict=False):
        glue = "" if not spoken or tokens[at] == "'s" else " " if at == before + 1 else " … "
        spoken += glue + tokens[at]
    return spoken


def _softmax(scores: dict[Route, float], route: Route) -> float:
    return 1.0 / math.fsum(math.exp(score - scores[route]) for score in scores.values())


def _reasoning(route: Route, first: Route, second: Route, found: list[_Found]) -> str:
    if route != first:
        return f"In doubt between {first} and {second}, so the text is searched: {_cases((first, second), found)}."
    because = _because(route, found)
    if route != "rag":
        return f"The asker {because}."
    rivals = tuple(other for other in ROUTES if other != route and _because(other, found))
    if not because and not rivals:
        return "Nothing speaks for another route, so this is taken for a question about the text."
    plain = f"The asker {because}." if because else "This is taken for a question about the text."
    return f"{plain} What speaks for another route is too weak: {_cases(rivals, found)}." if rivals else plain


def _cases(routes: tuple[Route, ...], found: list[_Found]) -> str:
    cases = ((route, _because(route, found)) for route in routes)
    return "; ".join(f"for {route}, the asker {because}" for route, because in cases if because)


def _because(route: Route, found: list[_Found]) -> str:
    """The weightiest evidence for a route, in words; empty where there is none."""
    reasons = sorted((item for item in found if item.row.route == route and item.row.weight > 0), key=_by_weight)
    return " and ".join(str(item) for item in reasons[:_REASONS_NAMED])


def _by_weight(item: _Found) -> float:
    return -item.row.weight

"""From a question to a route, without a model: evidence is looked for, weighed and named.

The routes' scores are log-odds: the sum of the weights of the evidence found (:mod:`.evidence`), with a head start for
``rag``. ``confidence`` is the softmax of the scores. Where no other route clearly leads, the route is ``rag``.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import get_args

from cicada.protocol.events import Route
from cicada.routing.evidence import EVIDENCE
from cicada.routing.evidence.table import RAG_PRIOR, Evidence
from cicada.routing.lexicon import LEXICON
from cicada.routing.phrases import Match, PhraseBook
from cicada.routing.reading import COURTESY_WORDS, Reading, read
from cicada.routing.text import Speller, read_words, split_literal

LEAST_LEAD = 0.5
"""By how many nats a route other than ``rag`` must lead; with less it is a doubt, and doubts go to ``rag``."""
ROUTES: tuple[Route, ...] = get_args(Route)


@dataclass(frozen=True, slots=True)
class Classification:
    """A route, how sure it is, and why in words an operator understands."""

    route: Route
    confidence: float
    """The probability, in [0, 1], that the evidence gives the route."""
    reasoning: str


_BOOK: PhraseBook[Evidence] = PhraseBook(
    ((phrase, row) for row in EVIDENCE for phrase in row.phrases), LEXICON, split_literal
)
_BY_FACT = tuple(row for row in EVIDENCE if row.facts)
_SPELLER = Speller(_BOOK.words | COURTESY_WORDS)


def classify(query: str) -> Classification:
    """Decide how a question is answered.

    Deterministic and total: any text has a route. Takes time linear in the length of ``query``, of which the first
    ``MAX_QUERY_CHARS`` characters are read.
    """
    found = _evidence(read(read_words(query, _SPELLER)))
    scores = dict.fromkeys(ROUTES, 0.0)
    scores["rag"] = RAG_PRIOR
    for row in found:
        scores[row.route] += row.weight
    first, second = sorted(ROUTES, key=lambda route: -scores[route])[:2]
    route: Route = first if scores[first] - scores[second] >= LEAST_LEAD else "rag"
    return Classification(route, _softmax(scores, route), _reasoning(route, first, second, found))


def _evidence(reading: Reading) -> dict[Evidence, Match | None]:
    found: dict[Evidence, Match | None] = {row: None for row in _BY_FACT if row.facts <= reading.facts}
    for match, row in _BOOK.everywhere(reading.text):
        found.setdefault(row, match)
    return found


def _softmax(scores: dict[Route, float], route: Route) -> float:
    return 1.0 / math.fsum(math.exp(score - scores[route]) for score in scores.values())


def _reasoning(route: Route, first: Route, second: Route, found: dict[Evidence, Match | None]) -> str:
    return "; ".join(f"{r.route}{r.weight:+g} {r.why} {' '.join(m.words) if m else ''}" for r, m in found.items()) or "x"

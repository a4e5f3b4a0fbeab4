"""The shape of a row of evidence, and what its weight means.

Weights are in nats: a row multiplies the odds of its route by ``exp(weight)``; a negative row speaks against its
route. Each row counts once, however often it is found.
"""

from __future__ import annotations

from typing import NamedTuple

from cicada.protocol.events import Route
from cicada.routing.phrases import lines
from cicada.routing.reading import Fact

RAG_PRIOR = 4.0
"""The head start of ``rag``: two faint hints or a weak one never leave it."""

HINT = 0.25
"""Names a reason and decides nothing."""
FAINT = 1.0
WEAK = 2.5
FAIR = 5.0
"""From here on a row alone is enough to leave ``rag``, as long as nothing speaks against it."""
STRONG = 7.5
DECISIVE = 10.0


class Evidence(NamedTuple):
    """A kind of evidence for a route: any of its phrases is found, or all of its facts hold."""

    route: Route
    weight: float
    why: str
    """What the asker does, in words for an operator; completes *the asker …*."""
    phrases: tuple[str, ...] = ()
    facts: frozenset[Fact] = frozenset()


def said(route: Route, weight: float, why: str, phrases: str) -> Evidence:
    """A row of phrases, one a line (their language: :mod:`cicada.routing.phrases`)."""
    return Evidence(route, weight, why, phrases=lines(phrases))


def seen(route: Route, weight: float, why: str, *facts: Fact) -> Evidence:
    """A row about how the question is built."""
    return Evidence(route, weight, why, facts=frozenset(facts))

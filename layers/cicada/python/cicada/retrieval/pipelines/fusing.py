"""From the rankings of several searches to one list of candidates."""

from __future__ import annotations

from collections.abc import Hashable, Sequence

from cicada.corpus.passages import Passage
from cicada.retrieval.pipelines.fusion import fused
from cicada.retrieval.pipelines.state import Candidate, Ranking, identity

HYDE_WEIGHT = 1.0
"""What the search by a made-up passage counts beside that for another wording, which counts 1."""


def candidates_of(rankings: Sequence[Ranking], original_weight: float) -> tuple[Candidate, ...]:
    """The passages of several searches, best first; of one alone, as it ranked them, with its scores.

    Several are fused by their ranks. A made-up passage resembles passages more than any question does, so its search's
    scores do not compare with those of the others: what it alone has found counts, for later comparisons of scores, as
    the least relevant of what the wordings have found; and where they have found nothing, there is nothing.

    Args:
        rankings: the first is that of the query as it was asked.
        original_weight: what that one counts beside the others, which count 1.
    """
    if len(rankings) == 1:
        return tuple(Candidate(hit.passage, hit.score, hit.score) for hit in rankings[0].hits)
    passages: dict[Hashable, Passage] = {}
    scores: dict[Hashable, float] = {}
    for ranking in rankings:
        for hit in ranking.hits:
            key = identity(hit.passage)
            passages.setdefault(key, hit.passage)
            if ranking.query is not None:
                scores[key] = max(hit.score, scores.get(key, 0.0))
    if not scores:
        return ()
    least = min(scores.values())
    weights = [original_weight, *(HYDE_WEIGHT if ranking.query is None else 1.0 for ranking in rankings[1:])]
    order = fused([[identity(hit.passage) for hit in ranking.hits] for ranking in rankings], weights)
    return tuple(Candidate(passages[key], scores.get(key, least), score) for key, score in order.items())

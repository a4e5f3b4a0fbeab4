"""Putting candidates into the order of new scores, where not every one has such a score."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from cicada.retrieval.pipelines.state import Candidate


def by_score(candidates: Sequence[Candidate], score_of: Callable[[Candidate], float | None]) -> tuple[Candidate, ...]:
    """Those with a score by that, best first, ties in their order; one without a score keeps its very place.

    To put what nobody could judge behind all others would lose it, and nothing says that it is worse.
    """
    scored = sorted((one for one in candidates if score_of(one) is not None), key=lambda one: -(score_of(one) or 0.0))
    following = iter(scored)
    return tuple(one if score_of(one) is None else next(following) for one in candidates)

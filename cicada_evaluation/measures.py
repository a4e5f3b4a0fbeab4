"""The measures of a ranking, by ``ir_measures`` (over ``pytrec_eval``, trec_eval's own code).

nDCG has linear gains and a logarithmic discount (Järvelin and Kekäläinen, "Cumulated gain-based evaluation of IR
techniques", 2002); recall is the share of all relevant documents that are among the first k; MRR is the mean of one
over the rank of the first relevant document, 0 beyond k.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from importlib.util import find_spec
from typing import TYPE_CHECKING

from cicada_evaluation.errors import EvaluationRefused

if TYPE_CHECKING:
    from ir_measures.measures.base import Measure

RANKS = 10
"""Ranks that nDCG and MRR look at."""
DEFAULT_RECALL = (10, 100)


def measure_names(recall: Sequence[int]) -> tuple[str, ...]:
    """What is measured, with recall at these ranks: ``ndcg@10``, ``recall@k``…, ``mrr@10``."""
    return (f"ndcg@{RANKS}", *(f"recall@{k}" for k in sorted(set(recall))), f"mrr@{RANKS}")


def require_measures() -> None:
    """Raises EvaluationRefused if ``ir_measures`` is not installed."""
    if find_spec("ir_measures") is None:
        raise EvaluationRefused("measuring needs the extra eval: pip install '.[eval]' in Cicada's repository")


def measure(
    judgements: Mapping[str, Mapping[str, int]], rankings: Mapping[str, Sequence[str]], recall: Sequence[int]
) -> dict[str, dict[str, float]]:
    """Measure rankings, each for itself.

    Args:
        judgements: by query and document, the gain.
        rankings: by query, documents, best first and each once. A query without one counts as having found nothing.
        recall: the ranks of recall@k.

    Returns:
        By measure (in the order of :func:`measure_names`) and query (in that of the judgements), in [0, 1].
    """
    import ir_measures

    names: dict[Measure, str] = {ir_measures.nDCG @ RANKS: f"ndcg@{RANKS}", ir_measures.RR @ RANKS: f"mrr@{RANKS}"}
    names |= {ir_measures.R @ k: f"recall@{k}" for k in recall}
    judged = [
        ir_measures.Qrel(query, document, gain)
        for query, gains in judgements.items()
        for document, gain in gains.items()
    ]
    found = [
        ir_measures.ScoredDoc(query, document, -float(rank))  # trec_eval orders by score, and ties by name
        for query, ranking in rankings.items()
        for rank, document in enumerate(ranking, start=1)
    ]
    values = {name: dict.fromkeys(judgements, 0.0) for name in measure_names(recall)}
    for value in ir_measures.iter_calc(list(names), judged, found):
        values[names[value.measure]][value.query_id] = float(value.value)
    return values

"""Fit a model's calibration: ``python -m benchmarks.retrieval_calibration [BEIR folder]``.

Two classes of cosines: those between the sample's questions and the passages that answer them; and, for each foreign
question, the cosine of the best passage that the script has for it. A logistic function is fitted between them
(Platt, 1999, with his smoothed targets), by Newton's method. The first class weighs half as much again as the second:
a passage that is lost can cost an answer, one too many costs its tokens. Midpoint and slope go into
``cicada.retrieval.calibration``; the shares printed are of five-fold cross-validation.

A folder's queries are foreign to the sample too: with one, the fit is checked on them.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from benchmarks.retrieval_data import (
    SAMPLE,
    Judged,
    beir_questions,
    embedder_of,
    model_arguments,
    retriever_over,
    sample_passages,
    sample_questions,
    script_argument,
)
from benchmarks.retrieval_foreign import FOREIGN_QUESTIONS
from cicada.retrieval.calibration import Calibration, calibration_of
from cicada.retrieval.ports import SearchQuery
from cicada.retrieval.shards import ShardRetriever
from cicada.rights import EVERYTHING

FOLDS = 5
"""At most: no more than passages that answer."""
NEWTON_STEPS = 50
RELEVANT_WEIGHT = 1.5
"""Of the class of passages that answer, against the foreign one's."""

Cosines = NDArray[np.float64]


def fit(relevant: Cosines, foreign: Cosines) -> Calibration:
    """The logistic function between two classes of cosines."""
    cosines = np.concatenate([relevant, foreign])
    targets = np.concatenate(
        [
            np.full(len(relevant), (len(relevant) + 1) / (len(relevant) + 2)),
            np.full(len(foreign), 1 / (len(foreign) + 2)),
        ]
    )
    weights = np.concatenate(
        [np.full(len(relevant), RELEVANT_WEIGHT / len(relevant)), np.full(len(foreign), 1 / len(foreign))]
    )
    features = np.stack([np.ones_like(cosines), cosines], axis=1)
    parameters = np.zeros(2)
    for _ in range(NEWTON_STEPS):
        scores = 1 / (1 + np.exp(-features @ parameters))
        gradient = features.T @ (weights * (scores - targets))
        curvature = (features * (weights * scores * (1 - scores))[:, None]).T @ features
        parameters -= np.linalg.solve(curvature, gradient)
    intercept, slope = parameters
    return Calibration(midpoint=float(-intercept / slope), slope=float(slope))


def shares(calibration: Calibration, relevant: Cosines, foreign: Cosines) -> tuple[float, float]:
    """The share of passages that answer at or above 0.5, and of foreign ones below it."""
    return float((relevant >= calibration.midpoint).mean()), float((foreign < calibration.midpoint).mean())


def cross_validated(relevant: Cosines, foreign: Cosines) -> tuple[float, float]:
    """The shares among what was not fitted."""
    generator = np.random.default_rng(0)
    folds = min(FOLDS, len(relevant))
    parts = [np.array_split(generator.permutation(cosines), folds) for cosines in (relevant, foreign)]
    found = []
    for fold in range(folds):
        kept = [np.concatenate([part for at, part in enumerate(cosines) if at != fold]) for cosines in parts]
        found.append(shares(fit(*kept), parts[0][fold], parts[1][fold]))
    relevant_share, foreign_share = np.mean(found, axis=0)
    return float(relevant_share), float(foreign_share)


def relevant_cosines(
    retriever: ShardRetriever, model_id: str, questions: Sequence[Judged], passage_count: int
) -> Cosines:
    """The cosine of each passage that answers a question."""
    found: list[float] = []
    for question in questions:
        query = SearchQuery(
            question.text, question.filters, passage_count, min_score=0.0, mode="dense", readable=EVERYTHING
        )
        hits = retriever.search(query).hits
        found += [_cosine(hit.score, model_id) for hit in hits if hit.passage.id in question.gains]
    return np.array(found)


def best_cosines(retriever: ShardRetriever, model_id: str, questions: Sequence[str]) -> Cosines:
    """The cosine of the best passage for each question."""
    queries = (SearchQuery(text, top_k=1, min_score=0.0, mode="dense", readable=EVERYTHING) for text in questions)
    return np.array([_cosine(retriever.search(query).hits[0].score, model_id) for query in queries])


def _cosine(score: float, model_id: str) -> float:
    """Undo the calibration that is in use."""
    calibration = calibration_of(model_id)
    return calibration.midpoint + float(np.log(score / (1 - score))) / calibration.slope


def _describe(name: str, cosines: Cosines) -> None:
    shares = "  ".join(f"{share}%: {np.percentile(cosines, share):.3f}" for share in (5, 25, 50, 75, 95))
    print(f"{name:34} n={len(cosines):<5} {shares}")


def main(argv: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description="Fit the calibration of the embedding model.")
    parser.add_argument("folder", nargs="?", type=Path, help="a corpus in BEIR's layout: its queries are foreign")
    model_arguments(parser)
    script_argument(parser)
    args = parser.parse_args(argv)
    embedder = embedder_of(args.model, args.dimensions)
    items = sample_passages(args.script)
    retriever = retriever_over(items, SAMPLE, embedder, embedder_of(args.model, args.dimensions, "query"))
    relevant = relevant_cosines(retriever, embedder.model_id, sample_questions(items), len(items))
    foreign = best_cosines(retriever, embedder.model_id, FOREIGN_QUESTIONS)
    fitted = fit(relevant, foreign)
    _describe("passages that answer", relevant)
    _describe("best for a foreign question", foreign)
    print(f"fitted: midpoint {fitted.midpoint:.3f}, slope {fitted.slope:.2f}")
    for name, (kept, refused) in {
        "on what was not fitted, by folds": cross_validated(relevant, foreign),
        f"in use, {calibration_of(embedder.model_id)}": shares(calibration_of(embedder.model_id), relevant, foreign),
    }.items():
        print(f"at 0.5, {name}: {kept:.3f} of the passages that answer kept, {refused:.3f} of the foreign ones refused")
    if args.folder:
        other = best_cosines(retriever, embedder.model_id, [question.text for question in beir_questions(args.folder)])
        _describe(f"best for {args.folder.name}", other)
        print(f"of these refused: {(other < fitted.midpoint).mean():.3f}")
    return 0


if __name__ == "__main__":
    sys.exit(main())

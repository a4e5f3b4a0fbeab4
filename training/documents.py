"""Fit how the local answerer chooses sentences of documents: ``python -m training.documents``.

The questions are those of ``training/data/manuals`` whose authors train, asked over the manuals of this machine:
gathered, read, cut, indexed and searched by the code of the functions, and turned into their prompt. Beside each
answerable question stands the same one with what answers it taken out of its prompt: an unanswerable one.

The ranking is a conditional logit (which of a prompt's excerpts holds the answer?), the decision a logistic regression
over the best excerpt's features, both with a ridge on standardised features. The figures that are printed are of
each author's questions, by weights that were fitted to the other authors'.
"""

from __future__ import annotations

import argparse
import json
import math
import sys
import tempfile
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import minimize

from cicada.answering.prompt import number_sources, rag_prompt
from cicada.index.reader import IndexReader
from cicada.index.writer import IndexWriter
from cicada.protocol.events import Source
from cicada.retrieval.ports import SearchQuery
from cicada.retrieval.shards import ShardRetriever
from cicada.rights import EVERYTHING
from cicada_evaluation.answers.finding import Searching
from cicada_evaluation.answers.gold import contained
from cicada_evaluation.document_sets import DOCUMENTS, QUESTIONS
from cicada_evaluation.folder_store import FolderStore
from cicada_evaluation.judged import JudgedSet
from cicada_evaluation.sets import read_set
from cicada_local.bedrock.extractive import documents
from cicada_local.bedrock.extractive.documents import DECIDE, LEAST_PROBABILITY, RANK, Excerpt, usual_score
from cicada_local.bedrock.extractive.prompt import parse_prompt
from cicada_local.bedrock.minilm import CachedEmbedder
from cicada_local.places import Places
from training import manuals

WEIGHTS = Path(documents.__file__).with_name("documents.json")
COLLECTION = "manuals"
RANK_RIDGE, DECIDE_RIDGE = 3.0, 1.0
REMOVED_WEIGHT = 0.7
"""What a question without its answer counts: it is an easier one than those that people write."""
Numbers = NDArray[np.float64]


@dataclass(frozen=True)
class Asked:
    """A question and the excerpts of its prompt."""

    id: str
    gold: tuple[str, ...]  # none where nothing answers
    excerpts: tuple[Excerpt, ...]
    weight: float = 1.0

    @property
    def author(self) -> str:
        """Who wrote the question, as its id begins."""
        return self.id.partition("-")[0]

    def matrix(self, names: Sequence[str] = RANK) -> Numbers:
        """The excerpts' features, shape ``(excerpts, names)``."""
        return np.array([[one.features[name] for name in names] for one in self.excerpts])

    def right(self) -> NDArray[np.bool_]:
        """Which excerpts hold the answer."""
        return np.array([contained(one.text, self.gold) for one in self.excerpts])


class _Embedder:
    model_id, dimensions = "local.all-minilm-l6-v2", 384

    def __init__(self) -> None:
        self.model = CachedEmbedder(Places.default().embeddings)

    def embed(self, texts: Sequence[str], *, time_budget_s: float) -> list[list[float]]:  # noqa: ARG002 (the port's)
        vectors: list[list[float]] = self.model.embed(texts).tolist()
        return vectors


def main(arguments: Sequence[str] | None = None) -> int:
    """Fit, show and write the weights."""
    parser = argparse.ArgumentParser(prog="python -m training.documents", description=__doc__)
    parser.add_argument(
        "--trial", metavar="N", type=int, help="with N questions and their documents; nothing is written"
    )
    asked_for = parser.parse_args(arguments)
    split = json.loads((manuals.FOLDER / "split.json").read_text(encoding="utf-8"))
    with tempfile.TemporaryDirectory(prefix="cicada-") as work:
        folder = Path(work) / COLLECTION
        manuals.main([str(folder), "--authors", ",".join(split["training"])])
        if asked_for.trial is not None:
            _keep(folder, asked_for.trial)
        asked = list(_asked(read_set(folder), Path(work) / "index"))
    fitted = fit(asked)
    _show(asked)
    written = json.dumps(fitted, indent=1) + "\n"
    print(f"{WEIGHTS.name}: {written}" if asked_for.trial is not None else f"written to {WEIGHTS.name}")
    if asked_for.trial is None:
        WEIGHTS.write_text(written, encoding="utf-8")
    return 0


def fit(asked: Sequence[Asked]) -> dict[str, dict[str, float]]:
    """The weights of the ranking and of the decision."""
    rank = _rank_weights(asked)
    decide = _decide_weights(asked, rank)
    return {
        "rank": {name: round(float(weight), 3) for name, weight in zip((*RANK, "typical"), rank, strict=True)},
        "decide": {name: round(float(weight), 3) for name, weight in zip((*DECIDE, "bias"), decide, strict=True)},
    }


def _keep(folder: Path, count: int) -> None:
    """Leave so many questions, whose documents are there, and those documents."""
    there = {path.name for path in (folder / DOCUMENTS).iterdir()}
    lines = (folder / QUESTIONS).read_text(encoding="utf-8").splitlines()
    kept = [one for one in map(json.loads, lines) if one["documents"] and there.issuperset(one["documents"])][:count]
    for name in there - {name for one in kept for name in one["documents"]}:
        (folder / DOCUMENTS / name).unlink()
    (folder / QUESTIONS).write_text("".join(f"{json.dumps(one)}\n" for one in kept), encoding="utf-8")


def _asked(judged: JudgedSet, index: Path) -> Iterator[Asked]:
    embedder, store, searching = _Embedder(), FolderStore(index), Searching()
    IndexWriter(store, embedder).replace(COLLECTION, judged.corpus)
    reader = IndexReader(store, embedding_model_id=embedder.model_id, dimensions=embedder.dimensions)
    retriever = ShardRetriever(reader, embedder)

    def excerpts(question: str, sources: Sequence[Source]) -> tuple[Excerpt, ...]:
        passages = parse_prompt(rag_prompt(question, sources).user).passages
        return tuple(documents.ranked(question, passages, embedder.model))

    for query in (*judged.queries, *judged.without_judgements):
        search = SearchQuery(query.text, top_k=searching.top_k, min_score=searching.min_score, readable=EVERYTHING)
        sources = number_sources(retriever.search(search).hits[: searching.prompt_passages])
        gold = judged.gold.get(query.id, ())
        yield Asked(query.id, gold, excerpts(query.text, sources))
        if gold:
            left = [source for source in sources if source.passage_id not in judged.judgements[query.id]]
            renumbered = [source.model_copy(update={"n": n}) for n, source in enumerate(left, 1)]
            yield Asked(query.id, (), excerpts(query.text, renumbered), REMOVED_WEIGHT)
    reader.close()


def _rank_weights(asked: Sequence[Asked]) -> Numbers:
    """Those of :data:`RANK`, and the typical score under them."""
    groups = [(one.matrix(), one.right()) for one in asked if one.gold and one.excerpts]
    groups = [(features, right) for features, right in groups if right.any()]
    scale = np.concatenate([features for features, _ in groups]).std(axis=0) + 1e-9

    def loss(weights: Numbers) -> tuple[float, Numbers]:
        total, gradient = float(weights @ weights) * RANK_RIDGE / 2, RANK_RIDGE * weights
        for features, right in groups:
            scores = features / scale @ weights
            shares = np.exp(scores - scores.max())
            shares /= shares.sum()
            held = float(shares[right].sum())
            total -= math.log(held)
            gradient = gradient + (features / scale).T @ (shares - shares * right / held)
        return total, gradient

    found: Numbers = minimize(loss, np.zeros(len(RANK)), jac=True, method="L-BFGS-B").x / scale
    typical = np.concatenate([one.matrix() for one in asked if one.excerpts]).mean(axis=0) @ found
    weights: Numbers = np.append(found, typical)
    return weights


def _best(asked: Asked, rank: Numbers) -> list[float]:
    """The features of the decision about the best excerpt."""
    scores = asked.matrix() @ rank[:-1]
    at = int(scores.argmax())
    best = float(scores[at])
    features = asked.excerpts[at].features | {"score": best, "spread": best - usual_score(scores.tolist(), rank[-1])}
    return [features[name] for name in DECIDE]


def _decide_weights(asked: Sequence[Asked], rank: Numbers) -> Numbers:
    asked = [one for one in asked if one.excerpts]
    features = np.array([_best(one, rank) for one in asked])
    middle, scale = features.mean(axis=0), features.std(axis=0) + 1e-9
    rows = np.c_[(features - middle) / scale, np.ones(len(asked))]
    answered = np.array([bool(one.gold) for one in asked], dtype=np.float64)
    counted = np.array([one.weight for one in asked])
    ridge = DECIDE_RIDGE * np.eye(rows.shape[1])
    ridge[-1, -1] = 1e-6
    weights = np.zeros(rows.shape[1])
    for _ in range(50):  # Newton's method
        shares = 1 / (1 + np.exp(-rows @ weights))
        slope = rows.T @ (counted * (shares - answered)) + ridge @ weights
        weights -= np.linalg.solve((rows * (counted * shares * (1 - shares))[:, None]).T @ rows + ridge, slope)
    plain = weights[:-1] / scale
    fitted: Numbers = np.append(plain, weights[-1] - plain @ middle)
    return fitted


def _show(asked: Sequence[Asked]) -> None:
    for author in sorted({one.author for one in asked}):
        train = [one for one in asked if one.author != author]
        if not any(one.gold for one in train):
            continue
        rank = _rank_weights(train)
        decide = _decide_weights(train, rank)
        right, declined, answerable, unanswerable = 0, 0, 0, 0
        for one in asked:
            if one.author == author and one.weight == 1:
                quoted = _quoted(one, rank, decide)
                answerable += bool(one.gold)
                unanswerable += not one.gold
                right += bool(one.gold) and contained(" ".join(quoted), one.gold)
                declined += not one.gold and not quoted
        print(f"{author}, by the others: right {right} of {answerable}, rightly declined {declined} of {unanswerable}")


def _quoted(asked: Asked, rank: Numbers, decide: Numbers) -> list[str]:
    if not asked.excerpts or 1 / (1 + np.exp(-np.r_[_best(asked, rank), 1.0] @ decide)) < LEAST_PROBABILITY:
        return []
    scored = [
        replace(one, score=float(score)) for one, score in zip(asked.excerpts, asked.matrix() @ rank[:-1], strict=True)
    ]
    scored.sort(key=lambda one: -one.score)
    return [
        one.text for one in documents.chosen([one for one in scored if one.score > scored[0].score - documents.MARGIN])
    ]


if __name__ == "__main__":
    sys.exit(main())

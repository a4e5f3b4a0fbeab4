"""How good hybrid search is beside its parts and rank fusion: ``python -m benchmarks.fusion [BEIR folder ...]``.

On the sample's questions and each folder (by default all of ``../shared/datasets``), nDCG@10 of

- *words*: the library's BM25;
- *meaning*: exact cosines of the embedding model;
- *RRF*: equal-weight reciprocal rank fusion (k = 60) of bm25s and the cosines (bm25s: stop words, stems, and pairs of
  characters where a script has no spaces; where it is not installed, the library's BM25);
- *hybrid*: :func:`cicada.retrieval.ranking.fuse`, over the best 100 of either, at the minimum scores 0 and 0.5.

Then what the choice of weights is worth: the weight of meaning that is best on all other sets, applied to the one left
out; and the trust in an English model for other languages, over a range. Then what happens when one side gets worse: a
share of noise in the query's vector, or a share of the query's words that answer replaced by other questions' words
(which a script without spaces, of few words, hardly feels).
Last, how many questions that have nothing to do with the sample find something in it.
"""

from __future__ import annotations

import argparse
import importlib
import re
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from benchmarks.peers import peer
from benchmarks.retrieval_data import (
    ROOT,
    SAMPLE,
    Judged,
    Measured,
    beir_documents,
    beir_questions,
    embedder_of,
    mean_and_interval,
    model_arguments,
    sample_passages,
    sample_questions,
    script_argument,
)
from benchmarks.retrieval_foreign import FOREIGN_QUESTIONS
from cicada.corpus.indexable import Indexable
from cicada.corpus.passages import ScriptLocator
from cicada.index.embedding import passage_vectors, unit_vectors
from cicada.index.lexical.analysis import analyse
from cicada.index.lexical.codec import encode_lexical
from cicada.index.lexical.part import LexicalPart
from cicada.index.lexical.search import LexicalQuery
from cicada.models.ports import Embedder
from cicada.retrieval import calibration
from cicada.retrieval.calibration import Calibration, calibration_of
from cicada.retrieval.ranking import Candidates, QueryEvidence, dense_score, fuse, keyword_score
from cicada.text.characters import UNSPACED, normalised
from cicada.text.tokens import tokens
from tests.support.sections import MemorySections, gather_resident

DATASETS = ROOT.parent / "shared" / "datasets"
CANDIDATES = 100
RRF_K = 60
EMBED_BUDGET_S = 600.0
WEIGHTS = (0.25, 0.5, 0.7, 1.0, 1.4, 2.0, 4.0)
TRUSTS = (0.0, 0.05, 0.1, 0.2, 0.3, 0.5, 1.0)
NOISES = (0.0, 0.5, 0.6, 0.7, 0.8, 0.9)
REPLACED = (0.0, 0.25, 0.5, 0.75, 1.0)

Floats = NDArray[np.float32]


@dataclass(frozen=True)
class Asked:
    """A question with what is known of every passage that its filters allow."""

    text: str
    gains: Mapping[int, float]
    rows: NDArray[np.intp]
    """The passages allowed."""
    cosine: Floats
    bm25: Floats
    peer: Floats
    """By bm25s, if it is installed."""
    ideal: float
    languages: Mapping[str, int]

    def best(self, scores: Floats, count: int = CANDIDATES) -> NDArray[np.intp]:
        """The positions of the best scores, best first."""
        return np.argsort(-scores, kind="stable")[:count]

    @cached_property
    def candidates(self) -> NDArray[np.intp]:
        """The best by meaning, and the best that have any of the words."""
        found = self.best(self.bm25)
        return np.union1d(self.best(self.cosine), found[self.bm25[found] > 0])

    def evidence(self, model_id: str) -> QueryEvidence:
        """What the fusion is told."""
        return QueryEvidence(self.text, model_id, self.ideal, self.languages)

    def ndcg(self, ranking: NDArray[np.intp]) -> float:
        """nDCG@10 of positions, best first."""
        gains = {str(row): gain for row, gain in self.gains.items()}
        return Measured.of([str(row) for row in self.rows[ranking[:10]]], gains).ndcg


System = Callable[[Asked], NDArray[np.intp]]
"""Positions, best first."""


def by_words(asked: Asked) -> NDArray[np.intp]:
    """The library's BM25."""
    found = asked.best(asked.bm25)
    return found[asked.bm25[found] > 0]


def by_meaning(asked: Asked) -> NDArray[np.intp]:
    """Cosines."""
    return asked.best(asked.cosine)


def rrf(asked: Asked) -> NDArray[np.intp]:
    """Cormack, Clarke and Buettcher, "Reciprocal Rank Fusion", 2009, of bm25s and the cosines."""
    fused = np.zeros(len(asked.rows), np.float32)
    for scores, floor in ((asked.cosine, -np.inf), (asked.peer, 0.0)):
        found = asked.best(scores)
        found = found[scores[found] > floor]
        fused[found] += 1 / (RRF_K + 1 + np.arange(len(found)))
    return asked.best(fused)


def hybrid(model_id: str, *, weight: float = 1.0, min_score: float = 0.0) -> System:
    """The library's fusion, with meaning counting ``weight`` times as much."""
    known = calibration_of(model_id)
    calibration = Calibration(known.midpoint, known.slope * weight)

    def rank(asked: Asked) -> NDArray[np.intp]:
        chosen = asked.candidates
        found = Candidates(asked.cosine[chosen], asked.bm25[chosen])
        scores = fuse(found, asked.evidence(model_id), calibration)
        ranking = np.argsort(-scores, kind="stable")
        return chosen[ranking[scores[ranking] >= min_score]]

    return rank


def ndcgs(questions: Sequence[Asked], system: System) -> list[float]:
    """nDCG@10 of each question."""
    return [asked.ndcg(system(asked)) for asked in questions]


def mean_ndcg(questions: Sequence[Asked], system: System) -> float:
    """nDCG@10."""
    return float(np.mean(ndcgs(questions, system)))


# --- sets ---


class Corpus:
    """Passages with their vectors and their words, to which questions can be put."""

    def __init__(self, items: Sequence[Indexable], embedder: Embedder) -> None:
        self.rows_of: dict[str, list[int]] = {}
        self.episodes: list[str] = []
        for row, item in enumerate(items):
            locator = item.passage.locator
            if not isinstance(locator, ScriptLocator):
                raise TypeError(f"{item.passage.id} is of no script")
            self.rows_of.setdefault(locator.message_id, []).append(row)
            self.episodes.append(locator.episode_id)
        self._embedder = embedder
        self._vectors, _ = passage_vectors(embedder, items, {}, _tell)
        rows = analyse([item.parts for item in items], [None] * len(items))
        encoded = encode_lexical(rows, np.arange(len(items)))
        self._words = LexicalPart(MemorySections({"lexical": encoded}), len(items))
        bm25s = peer("bm25s")
        self._peer = bm25s and Bm25s(bm25s, [" ".join(part.text for part in item.parts) for item in items])

    def query_vectors(self, texts: Sequence[str]) -> Floats:
        """Embed questions."""
        return unit_vectors(self._embedder, texts, time_budget_s=EMBED_BUDGET_S)

    def ask(self, question: Judged, vector: Floats, words: str | None = None) -> Asked:
        """Put a question, by words in other words if some are given."""
        text = question.text if words is None else words
        query = LexicalQuery([self._words], text, [None], gather_resident)
        allowed = set(question.filters.episodes)
        rows = np.array([row for row, episode in enumerate(self.episodes) if not allowed or episode in allowed])
        gains = {row: gain for name, gain in question.gains.items() for row in self.rows_of[name][:1]}
        bm25 = query.scores(np.zeros(len(rows), np.intp), rows)
        cosine = self._vectors[rows] @ vector
        peer_bm25 = self._peer.scores(text)[rows] if self._peer else bm25
        return Asked(
            question.text, gains, rows, cosine, bm25, peer_bm25, query.asked_ideal, dict(self._words.languages)
        )


class Bm25s:
    """The peer: bm25s with English stop words, stems, and pairs of characters."""

    def __init__(self, bm25s: Any, texts: Sequence[str]) -> None:
        stemmer = importlib.import_module("Stemmer")
        self._stem = stemmer.Stemmer("english").stemWords
        self._stop_words = frozenset(importlib.import_module("bm25s.stopwords").STOPWORDS_EN)
        self._index = bm25s.BM25()
        self._index.index([self._terms(text) for text in texts], show_progress=False)

    def scores(self, text: str) -> Floats:
        """BM25 of every text."""
        terms = self._terms(text)
        found: Floats = np.asarray(self._index.get_scores(terms), np.float32)
        return found

    def _terms(self, text: str) -> list[str]:
        found: list[str] = []
        for token in re.findall(rf"[{UNSPACED}]+|[^\W{UNSPACED}]+", text.lower()):
            if re.match(f"[{UNSPACED}]", token):
                found += [token[at : at + 2] for at in range(max(len(token) - 1, 1))]
            elif token not in self._stop_words:
                found.append(token)
        stems: list[str] = self._stem(found)
        return stems or [""]


@dataclass(frozen=True)
class JudgedSet:
    """A corpus and its judged questions."""

    name: str
    corpus: Corpus
    questions: Sequence[Judged]
    vectors: Floats
    """Of the questions."""

    @classmethod
    def of(cls, name: str, items: Sequence[Indexable], questions: Sequence[Judged], embedder: Embedder) -> JudgedSet:
        """Embed and index everything."""
        corpus = Corpus(items, embedder)
        return cls(name, corpus, questions, corpus.query_vectors([question.text for question in questions]))

    @cached_property
    def asked(self) -> list[Asked]:
        """The questions as they are."""
        return self.with_noise(0.0)

    def with_noise(self, share: float) -> list[Asked]:
        """With vectors of the questions that point partly anywhere."""
        noise = np.random.default_rng(0).normal(size=self.vectors.shape).astype(np.float32)
        noise /= np.linalg.norm(noise, axis=1, keepdims=True)
        vectors = (1 - share) * self.vectors + share * noise
        vectors /= np.linalg.norm(vectors, axis=1, keepdims=True)
        return [self.corpus.ask(*pair) for pair in zip(self.questions, vectors, strict=True)]

    def with_other_words(self, share: float, texts: Mapping[int, str]) -> list[Asked]:
        """With a share of the words that also stand in the passages that answer replaced by other questions' words."""
        random = np.random.default_rng(0)
        others = [token for question in self.questions for token in tokens(normalised(question.text))]
        found = []
        for question, vector in zip(self.questions, self.vectors, strict=True):
            rows = [row for name in question.gains for row in self.corpus.rows_of[name]]
            answering = {token for row in rows for token in tokens(normalised(texts[row]))}
            words = [
                str(random.choice(others)) if token in answering and random.random() < share else token
                for token in tokens(normalised(question.text))
            ]
            found.append(self.corpus.ask(question, vector, " ".join(words)))
        return found


def judged_sets(
    folders: Sequence[Path], script: Path, embedder: Embedder
) -> Iterator[tuple[JudgedSet, list[Indexable]]]:
    """The folders' sets and the sample's."""
    for folder in folders:
        items = beir_documents(folder)
        yield JudgedSet.of(folder.name, items, beir_questions(folder), embedder), items
    items = sample_passages(script)
    questions = [question for question in sample_questions(items) if question.gains]
    yield JudgedSet.of(SAMPLE, items, questions, embedder), items


def _tell(stage: str, done: int, total: int) -> None:
    if done == total:
        print(f"{stage}: {total} texts", file=sys.stderr)


# --- tables ---


def print_quality(sets: Sequence[JudgedSet], model_id: str) -> None:
    """nDCG@10 with intervals, and the differences that matter, paired."""
    systems = {
        "words": by_words,
        "meaning": by_meaning,
        "RRF": rrf,
        "hybrid": hybrid(model_id),
        "hybrid >= 0.5": hybrid(model_id, min_score=0.5),
    }
    print("\nnDCG@10; in brackets the 95 % interval")
    print(f"{'':12}" + "".join(f"{name:>23}" for name in systems) + f"{'- better part':>24}{'- RRF':>24}")
    means: dict[str, list[float]] = {name: [] for name in systems}
    for one in sets:
        found = {name: ndcgs(one.asked, system) for name, system in systems.items()}
        for name, values in found.items():
            means[name].append(float(np.mean(values)))
        better = max(("words", "meaning"), key=lambda name: means[name][-1])
        differences = [np.subtract(found["hybrid"], found[name]).tolist() for name in (better, "RRF")]
        cells = ["{:.3f} [{:.3f}, {:.3f}]".format(*mean_and_interval(values)) for values in found.values()]
        cells += ["{:+.3f} [{:+.3f}, {:+.3f}]".format(*mean_and_interval(values)) for values in differences]
        print(
            f"{one.name:12}" + "".join(f"{cell:>23}" for cell in cells[:-2]) + "".join(f"{c:>24}" for c in cells[-2:])
        )
    print(f"{'mean':12}" + "".join(f"{np.mean(values):>7.3f}{'':16}" for values in means.values()))


def print_left_out(sets: Sequence[JudgedSet], model_id: str) -> None:
    """The weight that is best on the other sets, on the one left out."""
    table = np.array([[mean_ndcg(one.asked, hybrid(model_id, weight=weight)) for weight in WEIGHTS] for one in sets])
    print(
        "\nnDCG@10 by the weight of meaning, relative to what is in use; chosen on the other sets, on the one left out"
    )
    print(f"{'':12}" + "".join(f"{weight:>8}" for weight in WEIGHTS) + f"{'chosen':>10}{'nDCG':>8}{'in use':>8}")
    for at, one in enumerate(sets):
        chosen = int(np.argmax(np.delete(table, at, axis=0).mean(axis=0)))
        row = "".join(f"{value:>8.3f}" for value in table[at])
        print(f"{one.name:12}{row}{WEIGHTS[chosen]:>10}{table[at][chosen]:>8.3f}{table[at][WEIGHTS.index(1.0)]:>8.3f}")
    print(f"{'mean':12}" + "".join(f"{value:>8.3f}" for value in table.mean(axis=0)))


def print_trusts(sets: Sequence[JudgedSet], model_id: str) -> None:
    """What another trust would give where the model does not know the language."""
    print("\nnDCG@10 by the trust in the model, on the sets that are not in a language it knows")
    print(f"{'':12}" + "".join(f"{trust:>8}" for trust in TRUSTS))
    for one in sets:
        in_use = [calibration.trust_in(model_id, asked.text, asked.languages) for asked in one.asked]
        if np.mean(in_use) > max(calibration.FOREIGN_TRUST, calibration.NEIGHBOUR_TRUST):
            continue
        row = [mean_ndcg(one.asked, hybrid(model_id, weight=trust / float(np.mean(in_use)))) for trust in TRUSTS]
        print(f"{one.name:12}" + "".join(f"{value:>8.3f}" for value in row))


def print_degraded(
    title: str, levels: Sequence[float], degraded: Mapping[str, Sequence[list[Asked]]], model: str
) -> None:
    """The parts and their fusions while one part gets worse."""
    print(f"\n{title}: nDCG@10 of words, meaning, RRF, hybrid; hybrid minus the better part")
    for name, by_level in degraded.items():
        for level, asked in zip(levels, by_level, strict=True):
            row = [mean_ndcg(asked, system) for system in (by_words, by_meaning, rrf, hybrid(model))]
            print(
                f"{name:12}{level:>6}" + "".join(f"{value:>8.3f}" for value in row) + f"{row[3] - max(row[:2]):>+9.3f}"
            )


def print_foreign(sample: JudgedSet, items: Sequence[Indexable], model_id: str) -> None:
    """The share of foreign questions for which the best of the sample scores at least 0.5."""
    questions = [Judged("", text, {}) for text in FOREIGN_QUESTIONS]
    questions += [question for question in sample_questions(items) if not question.gains]
    vectors = sample.corpus.query_vectors([question.text for question in questions])
    asked = [sample.corpus.ask(*pair) for pair in zip(questions, vectors, strict=True)]
    best = {
        "words": [keyword_score(one.bm25, one.evidence(model_id)).max() for one in asked],
        "meaning": [dense_score(one.cosine, model_id).max() for one in asked],
        "hybrid": [fuse(Candidates(one.cosine, one.bm25), one.evidence(model_id)).max() for one in asked],
    }
    print(f"\nof {len(asked)} questions that the sample does not answer, the share that finds something at 0.5")
    for name, scores in best.items():
        print(f"{name:12}{np.mean(np.array(scores) >= 0.5):>8.3f}")


def main(argv: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description="Measure hybrid search against its parts and rank fusion.")
    parser.add_argument("folders", nargs="*", type=Path, help=f"BEIR folders (default: those in {DATASETS.name})")
    model_arguments(parser)
    script_argument(parser)
    args = parser.parse_args(argv)
    folders = args.folders or sorted(path.parent for path in DATASETS.glob("*/qrels.tsv"))
    embedder = embedder_of(args.model, args.dimensions)
    pairs = list(judged_sets(folders, args.script, embedder))
    sets = [one for one, _ in pairs]
    print_quality(sets, args.model)
    print_left_out(sets, args.model)
    print_trusts(sets, args.model)
    noisy = {one.name: [one.with_noise(share) for share in NOISES] for one in sets}
    print_degraded("share of noise in the query's vector", NOISES, noisy, args.model)
    reworded = {one.name: [one.with_other_words(share, _texts(items)) for share in REPLACED] for one, items in pairs}
    print_degraded("share of the words that answer replaced", REPLACED, reworded, args.model)
    print_foreign(*pairs[-1], args.model)
    return 0


def _texts(items: Sequence[Indexable]) -> dict[int, str]:
    return {row: " ".join(part.text for part in item.parts) for row, item in enumerate(items)}


if __name__ == "__main__":
    sys.exit(main())

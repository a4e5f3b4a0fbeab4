"""What the retrieval benchmarks share: judged questions, an index in memory, and the measures.

Measures: recall@k is the share of a question's relevant passages among the first k hits; the reciprocal rank is one
over the rank of the first relevant hit, 0 beyond k; nDCG@k discounts a hit's gain by the logarithm of its rank
(Järvelin and Kekäläinen, "Cumulated gain-based evaluation of IR techniques", 2002).
"""

from __future__ import annotations

import argparse
import json
import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

import boto3
import numpy as np

from cicada.corpus.indexable import Indexable, WeightedText
from cicada.corpus.passages import Passage, ScriptLocator
from cicada.corpus.scripts import read_script, script_files
from cicada.corpus.windows import DEFAULT_WINDOW, Window, passages
from cicada.index.reader import IndexReader
from cicada.index.writer import IndexWriter
from cicada.models.bedrock import bedrock_client_config
from cicada.models.bedrock_embeddings import BedrockEmbedder
from cicada.models.embedding_models import Purpose
from cicada.models.ports import Embedder
from cicada.retrieval.ports import Filters
from cicada.retrieval.shards import ShardRetriever
from cicada_local.bedrock.minilm import CachedEmbedder
from tests.support.object_stores import InMemoryStore

ROOT = Path(__file__).parents[1]
SAMPLE = "sample"
"""Its collection."""
SAMPLE_SCRIPT = ROOT / "samples" / "script"
SAMPLE_QUESTIONS = ROOT / "samples" / "questions.jsonl"
EMBEDDINGS = ROOT / ".cicada" / "benchmark-embeddings.sqlite"
"""Vectors computed once: a second run takes seconds."""
BOOTSTRAPS = 2_000


@dataclass(frozen=True)
class Judged:
    """A question, where it looks, and the gains of the passages that answer it; none if nothing does."""

    id: str
    text: str
    gains: Mapping[str, float]
    filters: Filters = field(default_factory=Filters)


@dataclass(frozen=True)
class Measured:
    """Measures at 10 of one ranking."""

    recall: float
    reciprocal_rank: float
    ndcg: float

    @classmethod
    def of(cls, ranking: Sequence[str], gains: Mapping[str, float], k: int = 10) -> Measured:
        """Measure a ranking of ids against what is relevant."""
        top = ranking[:k]
        ranks = [rank for rank, name in enumerate(top, start=1) if gains.get(name, 0) > 0]
        ideal = _discounted(sorted(gains.values(), reverse=True)[:k])
        return cls(
            recall=len(ranks) / len(gains),
            reciprocal_rank=1 / ranks[0] if ranks else 0.0,
            ndcg=_discounted([gains.get(name, 0.0) for name in top]) / ideal,
        )


def _discounted(gains: Iterable[float]) -> float:
    return sum(gain / math.log2(rank + 1) for rank, gain in enumerate(gains, start=1))


def mean_and_interval(values: Sequence[float]) -> tuple[float, float, float]:
    """The mean, and a 95 % interval of it by the bootstrap over questions."""
    sample = np.asarray(values)
    drawn = np.random.default_rng(0).integers(0, len(sample), (BOOTSTRAPS, len(sample)))
    low, high = np.percentile(sample[drawn].mean(axis=1), (2.5, 97.5))
    return float(sample.mean()), float(low), float(high)


class MiniLmEmbedder:
    """The local cloud's embedding model behind the library's port."""

    model_id = "local.all-minilm-l6-v2"
    dimensions = 384

    def __init__(self) -> None:
        self._model = CachedEmbedder(EMBEDDINGS)

    def embed(self, texts: Sequence[str], *, time_budget_s: float) -> list[list[float]]:  # noqa: ARG002 (the port's)
        """One vector a text."""
        vectors: list[list[float]] = self._model.embed(texts).tolist()
        return vectors


def embedder_of(model_id: str, dimensions: int, purpose: Purpose = "document") -> Embedder:
    """The local cloud's model, or one on Amazon Bedrock in the caller's own account, which costs a few cents."""
    if model_id == MiniLmEmbedder.model_id:
        return MiniLmEmbedder()
    client = boto3.client("bedrock-runtime", config=bedrock_client_config())
    return BedrockEmbedder(client, model_id, dimensions, purpose=purpose)


def model_arguments(parser: argparse.ArgumentParser) -> None:
    """Let the caller choose the embedding model."""
    parser.add_argument("--model", default=MiniLmEmbedder.model_id, help="embedding model (default: %(default)s)")
    parser.add_argument("--dimensions", type=int, default=1024, help="of a Bedrock model (default: %(default)s)")


def retriever_over(
    items: Iterable[Indexable], collection: str, embedder: Embedder, queries: Embedder | None = None
) -> ShardRetriever:
    """Production's own way from passages to a retriever, over a store in memory; ``queries`` embeds questions."""
    store = InMemoryStore()
    IndexWriter(store, embedder, progress=_tell).replace(collection, items)
    reader = IndexReader(store, embedding_model_id=embedder.model_id, dimensions=embedder.dimensions)
    return ShardRetriever(reader, queries or embedder)


def script_argument(parser: argparse.ArgumentParser) -> None:
    """Let the caller choose a part of the sample."""
    parser.add_argument("--script", type=Path, default=SAMPLE_SCRIPT, help="one file of the sample (default: all)")


def sample_passages(script: Path, window: Window = DEFAULT_WINDOW) -> list[Indexable]:
    """The passages of the sample, or of one of its files."""
    return list(passages(SAMPLE, read_script(script_files([script])), window))


def sample_questions(items: Sequence[Indexable]) -> list[Judged]:
    """The sample's questions that these passages answer, and those about their episodes that nothing does."""
    known = {item.passage.id for item in items}
    locators = [item.passage.locator for item in items]
    episodes = {locator.episode_id for locator in locators if isinstance(locator, ScriptLocator)}
    found = [json.loads(line) for line in SAMPLE_QUESTIONS.read_text(encoding="utf-8").splitlines()]
    return [
        Judged(
            question["id"],
            question["question"],
            dict.fromkeys(question["answers"], 1.0),
            Filters(episodes=tuple(question["episodes"])),
        )
        for question in found
        if known.issuperset(question["answers"]) and episodes.issuperset(question["episodes"])
    ]


def beir_documents(folder: Path) -> list[Indexable]:
    """The documents of a folder in BEIR's layout, a passage each."""
    return [_document(folder.name, json.loads(line)) for line in _lines(folder / "corpus.jsonl")]


def beir_questions(folder: Path) -> list[Judged]:
    """The judged queries of a folder in BEIR's layout."""
    gains: dict[str, dict[str, float]] = {}
    for line in _lines(folder / "qrels.tsv")[1:]:
        query, document, gain = line.split("\t")
        if float(gain) > 0:
            gains.setdefault(query, {})[document] = float(gain)
    queries = [json.loads(line) for line in _lines(folder / "queries.jsonl")]
    return [Judged(query["_id"], query["text"], gains[query["_id"]]) for query in queries if query["_id"] in gains]


def _document(collection: str, found: Mapping[str, str]) -> Indexable:
    text = f"{found['title']}\n{found['text']}".strip() or "-"
    locator = ScriptLocator(
        episode_id=collection, episode_name=collection, chapter_id="-", message_id=found["_id"], speaker="-"
    )
    passage = Passage(id=found["_id"], collection=collection, text=text, context=text, locator=locator)
    return Indexable(passage, (WeightedText(text, 1.0),))


def _lines(file: Path) -> list[str]:
    return file.read_text(encoding="utf-8").splitlines()


def _tell(stage: str, done: int, total: int) -> None:
    if stage == "embedding":
        print(f"\rembedding {done} of {total}", end="\n" if done == total else "", flush=True)


Ranker = Callable[[Judged], list[str]]
"""The ids of what a system finds for a question, best first."""

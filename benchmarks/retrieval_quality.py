"""What a message's neighbours are worth to retrieval: ``python -m benchmarks.retrieval_quality``.

On the sample's questions, with the filters that they come with: what Cicada does, by meaning, words and both, where a
message's neighbours count by fading shares (``cicada.corpus.windows``); the same with each message by itself; each
message embedded together with its neighbours as one text; and lexical search by the package ``bm25s``, if it is
installed. Judged sets are measured by ``cicada eval``.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from pathlib import Path

from benchmarks.peers import peer
from benchmarks.retrieval_data import (
    SAMPLE,
    Judged,
    Measured,
    Ranker,
    embedder_of,
    mean_and_interval,
    model_arguments,
    retriever_over,
    sample_passages,
    sample_questions,
    script_argument,
)
from cicada.corpus.indexable import Indexable, WeightedText
from cicada.corpus.windows import Window
from cicada.defaults import DEFAULT_MIN_SCORE
from cicada.models.ports import Embedder
from cicada.retrieval.ports import SearchMode, SearchQuery
from cicada.retrieval.shards import ShardRetriever
from cicada.rights import EVERYTHING

TOP_K = 20


def ranker(retriever: ShardRetriever, mode: SearchMode, min_score: float = 0.0) -> Ranker:
    """Rank by a retriever."""

    def rank(question: Judged) -> list[str]:
        found = retriever.search(
            SearchQuery(question.text, question.filters, TOP_K, min_score, mode, readable=EVERYTHING)
        )
        return [hit.passage.id for hit in found.hits]

    return rank


def bm25_ranker(items: Sequence[Indexable]) -> Ranker | None:
    """Rank by BM25 over the passages' own texts, or None without the package."""
    bm25s = peer("bm25s")
    if bm25s is None:
        return None
    index = bm25s.BM25()
    index.index(bm25s.tokenize([item.parts[0].text for item in items], show_progress=False), show_progress=False)
    places = [item.passage.locator for item in items]

    def rank(question: Judged) -> list[str]:
        tokens = bm25s.tokenize([question.text], show_progress=False, return_ids=False)
        rows = index.retrieve(tokens, k=len(items), show_progress=False).documents[0]
        allowed = set(question.filters.episodes)
        found = (places[row].message_id for row in rows if not allowed or places[row].episode_id in allowed)
        return list(dict.fromkeys(found))[:TOP_K]

    return rank


def print_table(title: str, questions: Sequence[Judged], rankers: dict[str, Ranker]) -> None:
    """Measure each system on the questions that have an answer."""
    answerable = [question for question in questions if question.gains]
    print(f"\n{title}: {len(answerable)} questions; in brackets the 95 % interval")
    print(f"{'':34} {'recall@10':>22} {'MRR@10':>8} {'nDCG@10':>22} {'recall@20':>10} {'hits':>6}")
    for name, rank in rankers.items():
        rankings = [rank(question) for question in answerable]
        pairs = list(zip(rankings, answerable, strict=True))
        at_10 = [Measured.of(ranking, question.gains) for ranking, question in pairs]
        recall_20 = [Measured.of(ranking, question.gains, 20).recall for ranking, question in pairs]
        recall = "{:.3f} [{:.3f}, {:.3f}]".format(*mean_and_interval([found.recall for found in at_10]))
        ndcg = "{:.3f} [{:.3f}, {:.3f}]".format(*mean_and_interval([found.ndcg for found in at_10]))
        mrr = sum(found.reciprocal_rank for found in at_10) / len(at_10)
        hits = sum(map(len, rankings)) / len(rankings)
        recall_20_mean = sum(recall_20) / len(recall_20)
        print(f"{name:34} {recall:>22} {mrr:8.3f} {ndcg:>22} {recall_20_mean:10.3f} {hits:6.1f}")


def measure_sample(script: Path, embedder: Embedder) -> None:
    """Print how well the sample's questions are answered, and what the unanswerable ones find."""
    ours = sample_passages(script)
    as_one = [Indexable(item.passage, (WeightedText(item.passage.context, 1.0),)) for item in ours]
    retriever = retriever_over(ours, SAMPLE, embedder)
    alone = retriever_over(sample_passages(script, Window(reach=0)), SAMPLE, embedder)
    rankers = {
        "hybrid": ranker(retriever, "hybrid"),
        f"... and minScore {DEFAULT_MIN_SCORE}": ranker(retriever, "hybrid", DEFAULT_MIN_SCORE),
        "meaning": ranker(retriever, "dense"),
        "words": ranker(retriever, "keyword"),
        "hybrid, message alone": ranker(alone, "hybrid"),
        "meaning, message alone": ranker(alone, "dense"),
        "words, message alone": ranker(alone, "keyword"),
        "meaning, window as one text": ranker(retriever_over(as_one, SAMPLE, embedder), "dense"),
    }
    if bm25 := bm25_ranker(ours):
        rankers["bm25s"] = bm25
    questions = sample_questions(ours)
    print_table("sample", questions, rankers)
    filtered = ranker(retriever, "hybrid", DEFAULT_MIN_SCORE)
    print(f"\nhits of {TOP_K} at minScore {DEFAULT_MIN_SCORE} for questions that the script does not answer:")
    for question in (question for question in questions if not question.gains):
        print(f"{len(filtered(question)):4}  {question.text}")


def main(argv: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description="Measure retrieval.")
    model_arguments(parser)
    script_argument(parser)
    args = parser.parse_args(argv)
    embedder = embedder_of(args.model, args.dimensions)
    measure_sample(args.script, embedder)
    return 0


if __name__ == "__main__":
    sys.exit(main())

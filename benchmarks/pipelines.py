"""Each pipeline beside ``standard``: ``python -m benchmarks.pipelines --datasets FOLDER``.

For every judged set in BEIR's layout in the folder: nDCG@10 with its 95 % interval, the difference to ``standard``
query by query, recall@10 and @100, a query's median and 95th percentile of milliseconds, and its cost in US dollars
for a thousand. The query's own vector is at hand; sentences for captions and other wordings are embedded while the
clock runs. Captions order nothing, so they are a line of their own.

The models are the local cloud's, called over HTTP by the very adapters that call Amazon Bedrock, unless ``--aws`` says
to call Bedrock itself in the caller's account. The stand-in's re-ranker compares words and its writer rewords by rule:
what they bring says nothing of real models, only that the stages work and what they take. How much there is to be
gained is shown by *ideal re-ranking*: a re-ranker that knows the judgements, over the same candidates.
"""

from __future__ import annotations

import argparse
import logging
import statistics
import sys
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from botocore.config import Config

from benchmarks.retrieval_data import (
    ROOT,
    Judged,
    Measured,
    MiniLmEmbedder,
    beir_documents,
    beir_questions,
    embedder_of,
    mean_and_interval,
    model_arguments,
    retriever_over,
)
from cicada.models.bedrock import bedrock_client_config
from cicada.models.factory import ModelFactory
from cicada.models.ports import Embedder, ModelUse, Reranked, Reranker, StructuredModel, TokenBudget
from cicada.retrieval.pipelines.api import PipelineName
from cicada.retrieval.pipelines.pipeline import Pipelines
from cicada.retrieval.pipelines.stages import StageRunner, usd_of
from cicada.retrieval.pipelines.state import State, Wanted
from cicada.retrieval.pipelines.wiring import WRITING_MAX_TOKENS, reranker_of
from cicada.retrieval.ports import Filters, Retriever, SearchQuery
from cicada.rights import EVERYTHING
from cicada_cli.aws import Aws
from cicada_cli.deployment import LOCAL_REGION
from cicada_evaluation.confidence import paired_difference
from cicada_evaluation.standin import embedding_endpoint
from cicada_local.bedrock.minilm import MiniLM

DATASETS = ROOT.parent / "shared" / "datasets"
TOP_K = 100
TIME_BUDGET_S = 120.0


@dataclass(frozen=True)
class System:
    """A pipeline with some of its stages."""

    name: str
    pipeline: PipelineName
    semantic: bool = False
    captions: bool = False
    rerank: bool = True
    expand: bool = True
    hyde: bool = True
    ideal: bool = False
    """Re-ranked by the judgements."""


SYSTEMS = (
    System("standard", "standard"),
    System("… with captions", "standard", captions=True),
    System("semantic", "standard", semantic=True),
    System("rerank", "rerank"),
    System("advanced", "advanced"),
    System("… without re-ranking", "advanced", rerank=False),
    System("… other wordings alone", "advanced", rerank=False, hyde=False),
    System("… HyDE alone", "advanced", rerank=False, expand=False),
    System("ideal re-ranking", "rerank", ideal=True),
    System("ideal advanced", "advanced", ideal=True),
)


class Uncached(MiniLmEmbedder):
    """The local cloud's embedding model, which embeds a text each time that it is asked."""

    def __init__(self) -> None:
        self._computing = MiniLM.load()

    def embed(self, texts: Sequence[str], *, time_budget_s: float) -> list[list[float]]:  # noqa: ARG002 (the port's)
        """One vector a text."""
        vectors: list[list[float]] = self._computing.embed(texts).tolist()
        return vectors


class IdealReranker:
    """Knows the gains of the passages, by their texts, for the query that is asked at the moment."""

    model_id = "local.ideal"

    def __init__(self) -> None:
        self.gains: Mapping[str, float] = {}

    def rerank(self, query: str, texts: Sequence[str], *, time_budget_s: float, call_scope: TokenBudget) -> Reranked:  # noqa: ARG002
        """The gain of each text as a share of the best."""
        best = max(self.gains.values(), default=1.0)
        return Reranked(tuple(self.gains.get(text, 0.0) / best for text in texts), ())


@dataclass
class Answers:
    """What a system found, query by query."""

    ndcg: list[float] = field(default_factory=list)
    recall_10: list[float] = field(default_factory=list)
    recall_100: list[float] = field(default_factory=list)
    taken_ms: list[float] = field(default_factory=list)
    uses: list[ModelUse] = field(default_factory=list)
    lacked: int = 0
    """Stages that were left out."""

    def add(self, question: Judged, state: State, runner: StageRunner[State], taken_ms: float) -> None:
        """Measure one query."""
        ranking = list(dict.fromkeys(one.passage.id for one in state.candidates))
        at_10 = Measured.of(ranking, question.gains)
        self.ndcg.append(at_10.ndcg)
        self.recall_10.append(at_10.recall)
        self.recall_100.append(Measured.of(ranking, question.gains, TOP_K).recall)
        self.taken_ms.append(taken_ms)
        self.uses += [use for _, use in runner.uses]
        self.lacked += len(runner.degraded)


@contextmanager
def services(aws: bool) -> Iterator[Aws]:
    """Where the models are called: Amazon Bedrock, or the stand-in, which runs for this block."""
    if aws:
        yield Aws()
        return
    with embedding_endpoint() as url:
        yield Aws(region=LOCAL_REGION, endpoint_url=url, local=True)


def run(system: System, pipelines: Pipelines, question: Judged) -> tuple[State, StageRunner[State], float]:
    """Ask a question, and return what is found, the stages' account, and the milliseconds."""
    wanted = Wanted(
        query=question.text,
        pipeline=system.pipeline,
        filters=Filters(),
        top_k=TOP_K,
        min_score=0.0,
        mode="hybrid",
        semantic=system.semantic,
        rerank=system.rerank,
        expand=system.expand,
        hyde=system.hyde,
        captions=system.captions,
        readable=EVERYTHING,
    )
    runner: StageRunner[State] = StageRunner(TIME_BUDGET_S, time.monotonic)
    began = time.perf_counter()
    state = pipelines.find(wanted, runner)
    return state, runner, (time.perf_counter() - began) * 1000


def measure(
    questions: Sequence[Judged],
    text_of: Mapping[str, str],
    retriever: Retriever,
    sentences: Embedder,
    reranker: Reranker,
    writer: StructuredModel,
) -> dict[str, Answers]:
    """Ask every question of every system, in turn: what the machine does meanwhile is shared fairly."""
    ideal = IdealReranker()
    with_models = Pipelines(retriever, sentences, reranker=reranker, model=writer)
    knowing = Pipelines(retriever, sentences, reranker=ideal, model=writer)
    found = {system.name: Answers() for system in SYSTEMS}
    for question in questions:
        retriever.search(SearchQuery(question.text, readable=EVERYTHING))  # from here on its vector is at hand
    for system in SYSTEMS:  # the first call of each pays for connections and imports
        run(system, knowing if system.ideal else with_models, questions[0])
    for done, question in enumerate(questions, start=1):
        ideal.gains = {text_of[name]: gain for name, gain in question.gains.items() if name in text_of}
        for system in SYSTEMS:
            state, runner, taken_ms = run(system, knowing if system.ideal else with_models, question)
            found[system.name].add(question, state, runner, taken_ms)
        print(f"\r{done} of {len(questions)} queries", end="\n" if done == len(questions) else "", flush=True)
    return found


def print_table(name: str, found: Mapping[str, Answers]) -> None:
    """A line a system."""
    base = found[SYSTEMS[0].name]
    print(f"\n{name}: {len(base.ndcg)} queries; in brackets 95 % intervals")
    print(
        f"{'':24} {'nDCG@10':>22} {'beside standard':>24} {'recall@10':>9} {'@100':>6} "
        f"{'median ms':>9} {'p95 ms':>7} {'$/1,000':>8} {'left out':>8}"
    )
    for system in SYSTEMS:
        one = found[system.name]
        ndcg = "{:.3f} [{:.3f}, {:.3f}]".format(*mean_and_interval(one.ndcg))
        differences = [ours - theirs for ours, theirs in zip(one.ndcg, base.ndcg, strict=True)]
        gain = paired_difference(differences, seed=0).interval
        beside = "" if one is base else f"{gain.mean:+.3f} [{gain.low:+.3f}, {gain.high:+.3f}]"
        p95 = statistics.quantiles(one.taken_ms, n=20, method="inclusive")[-1]
        usd = [usd_of(use) for use in one.uses]
        known = [each for each in usd if each is not None]
        cost = f"{sum(known) / len(one.ndcg) * 1000:8.3f}" if len(known) == len(usd) else "       ?"
        print(
            f"{system.name:24} {ndcg:>22} {beside:>24} {statistics.mean(one.recall_10):9.3f} "
            f"{statistics.mean(one.recall_100):6.3f} {statistics.median(one.taken_ms):9.0f} {p95:7.0f} {cost} "
            f"{one.lacked:8}"
        )


def main(argv: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description="Measure the pipelines.")
    model_arguments(parser)
    parser.add_argument("--datasets", type=Path, default=DATASETS, help="a folder of sets (default: %(default)s)")
    parser.add_argument("--set", action="append", help="only this set; can be repeated (default: all)")
    parser.add_argument("--limit", type=int, default=100, help="queries a set, evenly spread (default: %(default)s)")
    parser.add_argument("--reranker", default="amazon.rerank-v1:0", help="what judges passages (default: %(default)s)")
    parser.add_argument("--expansion-model", default="local.extractive", help="what rewords (default: %(default)s)")
    parser.add_argument("--aws", action="store_true", help="call Amazon Bedrock, which costs what the table says")
    args = parser.parse_args(argv)
    folders = [folder for folder in sorted(args.datasets.glob("*")) if (folder / "corpus.jsonl").is_file()]
    folders = [folder for folder in folders if not args.set or folder.name in args.set]
    if not folders:
        print(f"pipelines: {args.datasets} holds no such set", file=sys.stderr)
        return 1
    logging.getLogger("cicada").addHandler(logging.NullHandler())  # what is left out is counted
    embedder = embedder_of(args.model, args.dimensions)
    sentences = embedder_of(args.model, args.dimensions) if args.model != MiniLmEmbedder.model_id else Uncached()
    with services(args.aws) as aws:

        def bedrock() -> Any:
            return aws.client("bedrock-runtime", bedrock_client_config())

        models = ModelFactory(bedrock=bedrock, secrets=lambda: aws.client("secretsmanager", Config()))
        reranker = reranker_of(args.reranker, models, bedrock)
        writer = models.structured(args.expansion_model, max_tokens=WRITING_MAX_TOKENS)
        for folder in folders:
            documents = beir_documents(folder)
            questions = beir_questions(folder)
            step = max(1, len(questions) // args.limit)
            retriever = retriever_over(documents, folder.name, embedder)
            text_of = {item.passage.id: item.passage.context for item in documents}
            print_table(
                folder.name, measure(questions[::step][: args.limit], text_of, retriever, sentences, reranker, writer)
            )
    return 0


if __name__ == "__main__":
    sys.exit(main())

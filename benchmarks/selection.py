"""Two calls side by side against a router a collection: ``python -m benchmarks.selection``.

Over the labelled questions of the sample campaign: model calls, tokens and the median time of finding out which
collections a question needs, with which intentions, and what it names; and the precision and recall of both.

- *selector beside extractor*: two calls at once, the library's own;
- *selector beside gazetteer*: one call, the names are looked up;
- *routers, one after the other*: a call a collection, which says whether it is needed, for which intentions, and what
  the question names: how such systems are commonly built;
- *routers, side by side*: the same calls at once.

All of them call the same model over HTTP by the library's own adapter: the local cloud's stand-in, told to take the
same time for each call, and asked beforehand so that its own computing is not on the clock. How well it chooses and
names says nothing of real models; how many calls and tokens each way takes, and how their times add up, does.
"""

from __future__ import annotations

import argparse
import statistics
import sys
import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

from pydantic import create_model

from benchmarks.campaign_data import Asked, Counts, campaign, campaign_arguments, labelled_questions
from benchmarks.retrieval_data import EMBEDDINGS
from cicada.defaults import MIN_ENTITY_CONFIDENCE, MIN_INTENTION_CONFIDENCE
from cicada.models.bedrock_structured import BedrockStructuredModel
from cicada.models.ports import ModelUse, Prompt, StructuredModel, Usage
from cicada.retrieval.knowledge.contracts import Catalogue, CollectionChoice, Extractor, NamedEntity
from cicada.retrieval.knowledge.extracting import ModelExtractor, extracting_prompt, named_of
from cicada.retrieval.knowledge.gazetteer import Gazetteer, IndexNames, NameSource
from cicada.retrieval.knowledge.selecting import ModelSelector, choices_of, selecting_system
from cicada.retrieval.knowledge.structured_calls import (
    FILLING_MAX_TOKENS,
    NameFound,
    NamesFound,
    Selection,
    fill_form,
    selection_form,
)
from cicada.retrieval.ports import SearchLimits, Unlimited
from cicada.rights import EVERYTHING
from cicada.text.names import bare_key
from cicada_local.bedrock.answerer import ExtractiveAnswerer
from cicada_local.bedrock.minilm import CachedEmbedder
from cicada_local.bedrock.tools import Tool
from tests.wire.bedrock_service import BedrockService, serving

MODEL_ID = "local.extractive"
CALL_S = 60.0
"""Seconds for one call: a busy machine makes it slow, and is no failure of what is measured."""
SPLITS = ("tuning", "held_aside")


class Noting(Unlimited):
    """Limits that remember what models were used for. Thread-safe."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self.uses: list[ModelUse] = []

    def note(self, use: ModelUse) -> None:
        """See the port."""
        with self._lock:
            self.uses.append(use)


Way = Callable[[str, SearchLimits], tuple[Sequence[CollectionChoice], Sequence[NamedEntity]]]
"""A question in, what it needs and names out."""


@dataclass
class Taken:
    """What a way found and took, question by question."""

    found: list[tuple[frozenset[str], frozenset[str]]] = field(default_factory=list)
    """Needs, and names."""
    calls: list[int] = field(default_factory=list)
    usages: list[Usage] = field(default_factory=list)
    took_ms: list[float] = field(default_factory=list)


@contextmanager
def stand_in() -> Iterator[BedrockService]:
    """The local cloud's model, which answers what it was asked before at once."""
    with serving() as service:
        embedder = CachedEmbedder(EMBEDDINGS)
        embedder.embed(["Loads the model before a call waits for it."])
        answerer = ExtractiveAnswerer(embedder)
        known: dict[tuple[str, str, str], Mapping[str, Any]] = {}

        def fill(system: str, user: str, tool: Tool) -> Mapping[str, Any]:
            key = (system, user, repr(tool.schema))
            if key not in known:
                known[key] = answerer.fill(system, user, tool)
            return known[key]

        service.fill = fill
        yield service


def beside_each_other(model: StructuredModel, extractor: Extractor, catalogue: Catalogue) -> Way:
    """The selector and an extractor at once."""
    selector = ModelSelector(model, time_budget_s=CALL_S)

    def asked(question: str, limits: SearchLimits) -> tuple[Sequence[CollectionChoice], Sequence[NamedEntity]]:
        with ThreadPoolExecutor(2) as pool:
            needs = pool.submit(selector.select, question, catalogue, limits)
            names = pool.submit(extractor.extract, question, catalogue, limits)
            return needs.result(), names.result()

    return asked


def routers(model: StructuredModel, names: NameSource, catalogue: Catalogue, *, at_once: int) -> Way:
    """A call a collection."""
    each = [Catalogue(catalogue.index_version, (one,), readable=EVERYTHING) for one in catalogue.collections]
    forms: dict[str, type[Selection]] = {
        of.collections[0].collection: create_model(
            "Route", __base__=selection_form(of), __doc__=Selection.__doc__, names=(list[NameFound], ...)
        )
        for of in each
    }

    def routed(
        question: str, of: Catalogue, limits: SearchLimits
    ) -> tuple[Sequence[CollectionChoice], Sequence[NamedEntity]]:
        naming = extracting_prompt(question, of)
        prompt = Prompt(f"{selecting_system(of)}\n\n{naming.system}", naming.user)
        route = fill_form(model, prompt, forms[of.collections[0].collection], "route", limits, time_budget_s=CALL_S)
        given = NamesFound.model_validate(route.model_dump(include={"names"}))
        found = named_of(question, given, names.names(catalogue, limits), MIN_ENTITY_CONFIDENCE)
        return choices_of(route, of, MIN_INTENTION_CONFIDENCE), found

    def asked(question: str, limits: SearchLimits) -> tuple[Sequence[CollectionChoice], Sequence[NamedEntity]]:
        with ThreadPoolExecutor(at_once) as pool:
            found = list(pool.map(lambda of: routed(question, of, limits), each))
        return [one for chosen, _ in found for one in chosen], [one for _, named in found for one in named]

    return asked


def ask(way: Way, questions: Sequence[Asked]) -> Taken:
    """Ask questions, one after the other."""
    taken = Taken()
    for question in questions:
        limits = Noting()
        began = time.perf_counter()
        needs, names = way(question.text, limits)
        taken.took_ms.append((time.perf_counter() - began) * 1000)
        taken.found.append(
            (
                frozenset(f"{one.collection}/{one.intention}" for one in needs),
                frozenset(bare_key(one.name) for one in names),
            )
        )
        taken.calls.append(sum(use.calls for use in limits.uses))
        taken.usages.append(sum((use.usage for use in limits.uses), Usage()))
    return taken


def print_work(name: str, whole: Taken, timed: Taken, base_ms: float) -> None:
    """A line of calls, tokens and time."""
    tokens_in = statistics.mean(usage.input_tokens for usage in whole.usages)
    tokens_out = statistics.mean(usage.output_tokens for usage in whole.usages)
    median_ms = statistics.median(timed.took_ms)
    print(
        f"{name:34} {statistics.mean(whole.calls):6.2f} {tokens_in:10.0f} {tokens_out:10.0f} "
        f"{median_ms:10.0f} {median_ms / base_ms:8.2f}x"
    )


def print_quality(name: str, whole: Taken, questions: Sequence[Asked], split: str) -> None:
    """A line of precision and recall over one half of the questions."""
    asked = [(one, found) for one, found in zip(questions, whole.found, strict=True) if one.split == split]
    intentions = Counts.of((needs, one.needs) for one, (needs, _) in asked)
    collections = Counts.of((_collections(needs), one.collections) for one, (needs, _) in asked)
    entities = Counts.of((names, one.entities) for one, (_, names) in asked)
    print(f"{name:34} {collections.told()}  {intentions.told()}  {entities.told()}")


def main(argv: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description="Compare two calls side by side with a router a collection.")
    parser.add_argument("--latency-ms", type=int, default=400, help="of every model call (default: %(default)s)")
    parser.add_argument("--timed", type=int, default=30, help="questions on the clock, evenly spread (%(default)s)")
    campaign_arguments(parser)
    args = parser.parse_args(argv)
    questions = labelled_questions(args.most)
    clocked = questions[:: max(1, len(questions) // args.timed)][: args.timed]
    with campaign(args.campaign) as (reader, catalogue), stand_in() as service:
        model = BedrockStructuredModel(service.client(), MODEL_ID, max_tokens=FILLING_MAX_TOKENS)
        names = IndexNames(reader)
        extractor = ModelExtractor(model, names=names, time_budget_s=CALL_S)
        ways: Mapping[str, Way] = {
            "selector beside extractor": beside_each_other(model, extractor, catalogue),
            "selector beside gazetteer": beside_each_other(model, Gazetteer(names), catalogue),
            "routers, one after the other": routers(model, names, catalogue, at_once=1),
            "routers, side by side": routers(model, names, catalogue, at_once=len(catalogue.collections)),
        }
        whole = {name: ask(way, questions) for name, way in ways.items()}
        service.faults.arm("bedrock.slow", first_ms=args.latency_ms)
        timed = {name: ask(way, clocked) for name, way in ways.items()}
    intentions = sum(len(one.intentions) for one in catalogue.collections)
    print(
        f"{len(questions)} questions to {len(catalogue.collections)} collections with {intentions} intentions; of one:"
    )
    print(f"{'':34} {'calls':>6} {'tokens in':>10} {'out':>10} {'median ms':>10} {'ratio':>9}")
    base_ms = statistics.median(next(iter(timed.values())).took_ms)
    for name in ways:
        print_work(name, whole[name], timed[name], base_ms)
    print(f"Times over {len(clocked)} questions, with a stand-in that takes {args.latency_ms} ms a call.")
    for split in SPLITS:
        count = sum(one.split == split for one in questions)
        print(f"\n{split}: {count} questions; precision and recall of the stand-in, which is no language model")
        print(f"{'':34} {'collections':>16}  {'intentions':>16}  {'entities':>16}")
        for name in ways:
            print_quality(name, whole[name], questions, split)
    return 0


def _collections(needs: frozenset[str]) -> frozenset[str]:
    return frozenset(need.partition("/")[0] for need in needs)


if __name__ == "__main__":
    sys.exit(main())

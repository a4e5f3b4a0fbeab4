"""Names by look-up against names by a model: ``python -m benchmarks.entities``.

Over the labelled questions of the sample campaign, the halves apart: the time of a question, and the precision and
recall of the entities found at the default threshold, by the gazetteer, by a model, and by both together. What a model
names is spelt as the index spells it, as in a deployment; one that names in silence is not helped.

The model is the local cloud's stand-in, called over HTTP by the library's own adapter without any delay of its own: it
names what is written large, and some of what is asked for, by rules. A real model names better, in hundreds of
milliseconds; ``--aws MODEL_ID`` calls one on Amazon Bedrock in the caller's account. The confidences were fitted to the
tuning half alone.

Then the gazetteer over made-up names in growing numbers: the time to make it, its memory, and the time of a question.
"""

from __future__ import annotations

import argparse
import random
import statistics
import sys
import time
import tracemalloc
from collections.abc import Mapping, Sequence
from contextlib import ExitStack
from typing import Any

import boto3

from benchmarks.campaign_data import Asked, Counts, campaign, campaign_arguments, labelled_questions
from benchmarks.selection import MODEL_ID, SPLITS, stand_in
from cicada.models.bedrock import bedrock_client_config
from cicada.models.bedrock_structured import BedrockStructuredModel
from cicada.retrieval.knowledge.contracts import Catalogue, Extractor, NamedEntity
from cicada.retrieval.knowledge.extracting import BothExtractors, ModelExtractor
from cicada.retrieval.knowledge.gazetteer import Gazetteer, IndexNames, known_names
from cicada.retrieval.knowledge.gazetteer_names import KnownNames
from cicada.retrieval.knowledge.gazetteer_words import Filed
from cicada.retrieval.knowledge.structured_calls import FILLING_MAX_TOKENS
from cicada.retrieval.ports import UNLIMITED
from cicada.text.names import bare_key

CALL_S = 60.0
"""Seconds for one call of a model: a busy machine makes it slow, and is no failure of what is measured."""
SIZES = (1_000, 5_000, 20_000, 100_000)
_SYLLABLES = "ka ro mi ta len dor fen wick ash mar low el is ven gar oth ul pra sed bry nor hal tu wen cor".split()


def measure(
    name: str, extractor: Extractor, catalogue: Catalogue, questions: Sequence[Asked], *, errors: bool
) -> tuple[str, float]:
    """A table's line, and the median of microseconds."""
    taken_us: list[float] = []
    pairs: list[tuple[frozenset[str], frozenset[str]]] = []
    for question in questions:
        began = time.perf_counter()
        found = extractor.extract(question.text, catalogue, UNLIMITED)
        taken_us.append((time.perf_counter() - began) * 1e6)
        pairs.append((frozenset(bare_key(one.name) for one in found), question.entities))
        if errors and pairs[-1][0] != pairs[-1][1]:
            print(_told(question, found))
    median_us, p95_us = statistics.median(taken_us), statistics.quantiles(taken_us, n=20, method="inclusive")[-1]
    return f"{name:12} {Counts.of(pairs).told()} {median_us:12.0f} {p95_us:10.0f}", median_us


def made_names(count: int) -> list[Filed]:
    """Names of one to three made-up words, each once."""
    drawn = random.Random(7)
    names: dict[str, None] = {}
    while len(names) < count:
        words = ("".join(drawn.choices(_SYLLABLES, k=drawn.randint(2, 4))).title() for _ in range(drawn.randint(1, 3)))
        names[" ".join(words)] = None
    return [Filed(name, 3) for name in names]


def print_growth(questions: Sequence[Asked], sizes: Sequence[int]) -> None:
    """A line a size."""
    print("\nThe gazetteer over made-up names; a question's first look-up, and every later one of the same words")
    print(f"{'names':>10} {'made in ms':>12} {'KB a name':>10} {'first us':>10} {'later us':>10}")
    for size in sizes:
        filed = made_names(size)
        began = time.perf_counter()
        names = KnownNames(filed)
        made_ms = (time.perf_counter() - began) * 1000
        first, later = (_median_us(names, questions) for _ in range(2))
        tracemalloc.start()
        weighed = KnownNames(filed)
        held = tracemalloc.get_traced_memory()[0]
        tracemalloc.stop()
        print(f"{len(weighed):10,} {made_ms:12.0f} {held / 1024 / size:10.2f} {first:10.0f} {later:10.0f}")


def main(argv: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description="Compare the gazetteer with a model.")
    parser.add_argument(
        "--aws", metavar="MODEL_ID", help="a model on Amazon Bedrock in place of the stand-in; it costs"
    )
    parser.add_argument("--errors", action="store_true", help="show what was missed and made up in the tuning half")
    parser.add_argument("--sizes", type=int, nargs="+", default=SIZES, help="made-up names (default: %(default)s)")
    campaign_arguments(parser)
    args = parser.parse_args(argv)
    questions = labelled_questions(args.most)
    with ExitStack() as stack:
        reader, catalogue = stack.enter_context(campaign(args.campaign))
        client: Any
        if args.aws:
            client = boto3.client("bedrock-runtime", config=bedrock_client_config())
        else:
            client = stack.enter_context(stand_in()).client()
        names = IndexNames(reader)
        gazetteer = Gazetteer(names)
        model = BedrockStructuredModel(client, args.aws or MODEL_ID, max_tokens=FILLING_MAX_TOKENS)
        by_model = ModelExtractor(model, names=names, time_budget_s=CALL_S)
        extractors: Mapping[str, Extractor] = {
            "gazetteer": gazetteer,
            "model": by_model,
            "both": BothExtractors(gazetteer, by_model),
        }
        began = time.perf_counter()
        known = known_names(reader.current(), catalogue)
        print(f"{len(known)} names of the index, read and made ready in {(time.perf_counter() - began) * 1000:.0f} ms")
        print(f"The model is {args.aws or 'the local stand-in, which names by rules: it says nothing of real models'}.")
        names.names(catalogue)
        for split in SPLITS:
            asked = [one for one in questions if one.split == split]
            labels = sum(len(one.entities) for one in asked)
            print(f"\n{split}: {labels} entities in {len(asked)} questions")
            print(f"{'':12} {'precision':>9} {'recall':>6} {'median us':>12} {'p95 us':>10}")
            medians: dict[str, float] = {}
            for name, extractor in extractors.items():
                errors = args.errors and split == "tuning"
                line, medians[name] = measure(name, extractor, catalogue, asked, errors=errors)
                print(line)
            print(f"The model's time is {medians['model'] / medians['gazetteer']:.0f} x the gazetteer's.")
    print_growth(questions, args.sizes)
    return 0


def _median_us(names: KnownNames, questions: Sequence[Asked]) -> float:
    taken_us: list[float] = []
    for question in questions:
        began = time.perf_counter()
        names.find(question.text)
        taken_us.append((time.perf_counter() - began) * 1e6)
    return statistics.median(taken_us)


def _told(question: Asked, found: Sequence[NamedEntity]) -> str:
    got = {bare_key(one.name) for one in found}
    missed, made_up = sorted(question.entities - got), sorted(got - question.entities)
    return f"  {question.text}\n    missed {missed}, made up {made_up}"


if __name__ == "__main__":
    sys.exit(main())

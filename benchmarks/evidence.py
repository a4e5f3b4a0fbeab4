"""How well a model sorts the evidence of a theory: ``python -m benchmarks.evidence [--model MODEL]``.

Labelled pairs of a statement and a passage: *for* it, *against* it, or *neither*. The judge of production sorts them, a
call for each pair; without a model named, the local cloud's stand-in answers, which compares words. The pairs are by
the hand that wrote the rules that sorted evidence before: they were fitted to the first part, and worked with the
second.
"""

from __future__ import annotations

import argparse
import json
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import boto3

from cicada.agents.tools.evidence import JUDGE_MAX_TOKENS, EvidenceJudge
from cicada.corpus.passages import ScriptLocator
from cicada.models.bedrock import bedrock_client_config
from cicada.models.factory import ModelFactory
from cicada.models.ports import StructuredModel
from cicada.protocol.events import Source
from cicada.retrieval.ports import UNLIMITED
from tests.support.agents import SidesModel

DATA = Path(__file__).resolve().parents[1] / "tests" / "data" / "evidence_labelled.jsonl"
PARTS = ("fitted", "held aside")
SIDES = ("for", "against")
NEITHER, UNSORTED = "neither", "unsorted"


@dataclass(frozen=True, slots=True)
class Pair:
    """A statement and a passage, labelled by hand."""

    part: str
    """``fitted`` or ``held aside``."""
    kind: str
    """What the pair is about."""
    label: str
    """``for``, ``against`` or ``neither``."""
    statement: str
    speaker: str
    passage: str

    @property
    def source(self) -> Source:
        """The passage as a search finds it."""
        locator = ScriptLocator(
            episode_id="ep1", episode_name="The First", chapter_id="c1", message_id="m1", speaker=self.speaker
        )
        return Source(n=1, passage_id="p1", collection="c", locator=locator, score=0.8, text=self.passage)


def read_pairs(part: str) -> tuple[Pair, ...]:
    """The labelled pairs of a part."""
    with DATA.open(encoding="utf-8") as file:
        return tuple(pair for pair in (Pair(**json.loads(line)) for line in file) if pair.part == part)


def told(judge: EvidenceJudge, pair: Pair) -> str:
    """The side on which the judge puts a pair's passage."""
    weighed = judge.sort(pair.statement, [pair.source], UNLIMITED)
    return UNSORTED if weighed is None else weighed[0].side or NEITHER


def table(pairs: Sequence[Pair], sides: Sequence[str]) -> list[str]:
    """Precision and recall of each side, and how many pairs are right."""
    out = []
    for side in SIDES:
        hits = sum(one == side == pair.label for one, pair in zip(sides, pairs, strict=True))
        out.append(f"{side}: precision {hits}/{sides.count(side)}, recall {hits}/{sum(p.label == side for p in pairs)}")
    right = sum(one == pair.label for one, pair in zip(sides, pairs, strict=True))
    return [*out, f"right: {right}/{len(pairs)}, unsorted: {sides.count(UNSORTED)}"]


def _model(model_id: str | None) -> StructuredModel:
    if model_id is None:
        return SidesModel()
    models = ModelFactory(
        bedrock=lambda: boto3.client("bedrock-runtime", config=bedrock_client_config()),
        secrets=lambda: boto3.client("secretsmanager"),
    )
    return models.structured(model_id, max_tokens=JUDGE_MAX_TOKENS)


def main() -> None:
    """Print the tables."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--model", help="a model of Amazon Bedrock (default: the local cloud's stand-in)")
    parser.add_argument("--wrong", action="store_true", help="also the pairs that the judge gets wrong")
    args = parser.parse_args()
    judge = EvidenceJudge(_model(args.model))
    for part in PARTS:
        pairs = read_pairs(part)
        sides = [told(judge, pair) for pair in pairs]
        print("\n".join([f"\n{part}: {len(pairs)} pairs", *table(pairs, sides)]))
        if args.wrong:
            for pair, side in zip(pairs, sides, strict=True):
                if side != pair.label:
                    print(f"  {side} for {pair.label}: {pair.statement} | {pair.passage}")


if __name__ == "__main__":
    main()

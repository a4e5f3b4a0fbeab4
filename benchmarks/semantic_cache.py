"""How often an earlier answer is given again to a question that asks for another one, and how often one is saved.

Labelled pairs of questions (an earlier one, and one that is asked) of hands that have not seen the code go through the
cache's own decision, with all-MiniLM-L6-v2; an earlier question that is taken for one of another language is not found.
Beside it, on the same pairs: a threshold on the cosine alone, which is how caches such as GPTCache decide by default,
set to save as much. With ``--confirm`` a model decides near pairs, as with the setting ``cache.confirm``.

    python -m benchmarks.semantic_cache
    python -m benchmarks.semantic_cache --authors dufay
    python -m benchmarks.semantic_cache --confirm us.amazon.nova-micro-v1:0
"""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import boto3

from benchmarks.classifier import wilson_interval
from cicada.models.bedrock import bedrock_client_config
from cicada.models.factory import ModelFactory
from cicada.retrieval.ports import UNLIMITED
from cicada.semantic_cache.decision import (
    CONFIRM_MAX_TOKENS,
    Confirm,
    Thresholds,
    confirming,
    decide,
    thresholds_of,
)
from cicada.semantic_cache.entries import CacheEntry
from cicada.semantic_cache.scope import language_of
from cicada_local.bedrock.minilm import CachedEmbedder
from training.models import DATA

AUTHORS = ("brahms", "corelli")
MODEL_ID = "local.all-minilm-l6-v2"
NEVER_S = 2**40
VECTORS = Path(__file__).resolve().parents[1] / ".cicada" / "bench" / "vectors.sqlite"


@dataclass(frozen=True)
class Judged:
    """A pair, and what the cache decides for a question that finds the earlier one."""

    same: bool
    language: str
    author: str
    cosine: float
    use: str
    """``answer``, ``contexts`` or ``miss``."""
    asked: bool
    """Whether a model was asked."""


def judge(
    authors: Sequence[str],
    thresholds: Thresholds,
    vectors: Path,
    most: int | None = None,
    confirm: Confirm | None = None,
) -> list[Judged]:
    """Embed the pairs of some authors, and decide each."""
    pairs = [(author, pair) for author in authors for pair in _pairs(author)[:most]]
    embedder = CachedEmbedder(vectors)
    earlier = embedder.embed([pair["earlier"] for _, pair in pairs])
    asked = embedder.embed([pair["asked"] for _, pair in pairs])
    found: list[Judged] = []
    for (author, pair), cosine in zip(pairs, (earlier * asked).sum(axis=1).tolist(), strict=True):
        calls: list[str] = []

        def confirms(earlier: str, asked: str = pair["asked"], calls: list[str] = calls) -> bool:
            calls.append(earlier)
            return confirm is not None and confirm(asked, earlier, UNLIMITED)

        in_scope = language_of(pair["earlier"]) == language_of(pair["asked"])
        entries = [(CacheEntry("0", pair["earlier"], b"", 0, NEVER_S), cosine)] if in_scope else []
        choices = decide(pair["asked"], entries, thresholds, confirms if confirm else None)
        use = choices[0].use if choices else "miss"
        found.append(Judged(pair["same"], pair["language"], author, cosine, use, bool(calls)))
    return found


def share(count: int, of: int) -> str:
    """A share in per cent with its 95 % interval (Wilson)."""
    if not of:
        return "-"
    low, high = wilson_interval(count, of)
    return f"{count:>4} of {of:<4} {count / of:6.1%} ({max(0.0, low):.1%} to {high:.1%})"


def table(judged: Sequence[Judged]) -> Iterator[str]:
    """A line for all, for each author and for each language."""
    yield f"{'':<10}{'saved, of the same':<38}{'false, of the others':<38}{'cosine alone: false':<38}"
    groups = {"all": list(judged)}
    for one in judged:
        for name in (one.author, one.language):
            groups.setdefault(name, []).append(one)
    for name, group in groups.items():
        same = [one for one in group if one.same]
        others = [one for one in group if not one.same]
        saved = sum(one.use == "answer" for one in same)
        false = sum(one.use == "answer" for one in others)
        bound = sorted((one.cosine for one in same), reverse=True)[saved - 1] if saved else 2.0
        peer = sum(one.cosine >= bound for one in others)
        yield (f"{name:<10}{share(saved, len(same)):<38}{share(false, len(others)):<38}{share(peer, len(others)):<38}")


def _confirming(model_id: str) -> Confirm:
    models = ModelFactory(
        bedrock=lambda: boto3.client("bedrock-runtime", config=bedrock_client_config()),
        secrets=lambda: boto3.client("secretsmanager"),
    )
    return confirming(models.structured(model_id, max_tokens=CONFIRM_MAX_TOKENS))


def _pairs(author: str) -> list[dict[str, Any]]:
    path = DATA / "repeats" / f"{author}.jsonl"
    return [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]


def main(argv: Sequence[str] | None = None) -> int:
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--authors", nargs="+", default=AUTHORS, help="whose pairs")
    parser.add_argument("--vectors", type=Path, default=VECTORS, help="where vectors are remembered")
    parser.add_argument("--confirm", metavar="MODEL", help="a model of Amazon Bedrock that is asked about near pairs")
    parser.add_argument("--most", type=int, help="of each author, at most so many")
    args = parser.parse_args(argv)
    confirm = _confirming(args.confirm) if args.confirm else None
    judged = judge(args.authors, thresholds_of(MODEL_ID), args.vectors, args.most, confirm)
    print("\n".join(table(judged)))
    if confirm:
        print(f"{args.confirm} was asked about {share(sum(one.asked for one in judged), len(judged))}")
    return 0


if __name__ == "__main__":
    sys.exit(main())

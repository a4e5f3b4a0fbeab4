"""AWS calls and DynamoDB units of one answer, by strategy: before the first piece of text, and in all.

The functions are warm. Calls are counted at the local cloud's front, units by :mod:`benchmarks.dynamodb_units`, after
the worker has kept what it keeps of an answer. Commits and posts grow with the length of the answer, the rest does
not. The named peer is the same answer with every token stored and posted by itself, as streaming back ends commonly do.

    .venv/bin/python -m benchmarks.aws_calls
"""

from __future__ import annotations

import argparse
import asyncio
import itertools
import statistics
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from benchmarks.dynamodb_units import CALLER, VARIABLE, UnitMeter
from benchmarks.local_cloud import plain_cloud, reworded
from cicada.protocol.events import Chunk, Complete, StrategyName
from cicada_client.client import CicadaClient
from cicada_local.places import REGION
from cicada_local.testing import LocalCloud

USD_PER_MILLION = {"write": 0.625, "read": 0.125}
"""Of on-demand units in us-east-1, 2026-11-20."""
SETTLED_S = 60.0
"""How long a workflow may take to end after its answer."""
TRIES = 5
_NUMBERS = itertools.count()


@dataclass(frozen=True)
class Case:
    """A way to answer, and the questions that are answered so."""

    told: str
    attempted: tuple[StrategyName, ...]
    questions: tuple[str, ...]
    episode: str | None = None
    prepare: Callable[[LocalCloud], None] = lambda cloud: None  # noqa: ARG005 - most need nothing
    warm: bool = True
    """Whether the questions have been asked before, in the same words or others: the answers are kept."""
    new: bool = False
    """Whether each answer is to words of its own: the question is embedded, and no earlier answer is given again."""


_WIDE = {"requestsMinute": 1_000, "requestsOpen": 100, "tokensDay": 10**12, "usdMonth": 10**6}
LIMITS: Mapping[str, dict[str, Any]] = {
    "none": {},
    "user": {"user": _WIDE},
    "all": {"user": _WIDE, "deployment": _WIDE},
}
"""Limits on use, none of which is reached."""
SIMPLE = ("What time does the causeway go under water?", "Who owns the red oilskin?", "Which room is Tamsin given?")
COMPLEX = (
    "Explain why the bell rang, and compare what Tamsin and Petra make of it.",
    "Explain what Tamsin found at the gauge tower and who read the gauge.",
    "Compare Ilse and Oswin: what does each of them hide, and why?",
)
POLICY = ("What are your terms for ringing the fog bell at night?", "What is your policy on the red oilskin?")


def _cut(cloud: LocalCloud) -> None:
    cloud.arm("bedrock.cut", times=1, after=3, mode="exception")


CASES = (
    Case("direct", ("direct",), ("Hello there!", "Thank you!", "Good evening!")),
    Case("rag", ("rag",), SIMPLE, "ep2", new=True),
    Case("hybrid", ("hybrid",), COMPLEX, new=True),
    Case("cag, an earlier answer given again", ("cag",), POLICY),
    Case(
        "rag cut in mid-stream, no earlier answer, then direct",
        ("rag", "cag", "direct"),
        ("How many strokes does the bell ring?",),
        "ep2",
        _cut,
        warm=False,
    ),
)


@dataclass(frozen=True)
class Cost:
    """What one answer took."""

    early: Counter[str]
    """Calls before the first piece of text."""
    all: Counter[str]
    units: dict[str, float]
    output_tokens: int


async def answer(cloud: LocalCloud, question: str, episode: str | None) -> tuple[float, Complete]:
    """When the first text came (epoch seconds), and how it ended."""
    first = 0.0
    async with CicadaClient(cloud.websocket_url) as client:
        async for event in client.ask(question, episodes=[episode] if episode else []):
            if isinstance(event, Chunk) and not first:
                first = time.time()
            if isinstance(event, Complete):
                return first, event
    raise RuntimeError(f"{question!r} was not answered")


def measured(cloud: LocalCloud, meter: UnitMeter, case: Case, question: str) -> Cost:
    """Ask until the answer comes by the case's way: what the workers learn, they learn beside the answers."""
    for _ in range(TRIES):
        case.prepare(cloud)
        meter.take()
        cloud.clear_calls()
        words = reworded(question, next(_NUMBERS)) if case.new else question
        first, complete = asyncio.run(answer(cloud, words, case.episode))
        settle(cloud)
        if complete.attempted == case.attempted:
            log = [call for call in cloud.call_log() if call["caller"] != CALLER]
            early = counted(call for call in log if call["at"] <= first)
            return Cost(early, counted(log), meter.take(), complete.metrics.output_tokens)
    raise RuntimeError(f"{question!r} was answered by way of {complete.attempted}")


def settle(cloud: LocalCloud) -> None:
    """Wait until the workflow has ended, and with it all that is done after an answer."""
    deadline = time.monotonic() + SETTLED_S
    while any(execution["status"] == "RUNNING" for execution in cloud.executions()):
        if time.monotonic() > deadline:
            raise TimeoutError("the workflow does not end")
        time.sleep(0.05)


def counted(calls: Iterable[dict[str, Any]]) -> Counter[str]:
    """How many of each."""
    return Counter(f"{call['service']}.{call['operation']}" for call in calls)


def report(case: Case, costs: list[Cost]) -> None:
    """Print one case."""

    def median(of: Callable[[Cost], float]) -> float:
        return statistics.median(of(cost) for cost in costs)

    print(f"\n{case.told}   (medians of {len(costs)} answers)")
    print(f"{'  call':46}{'before the first text':>24}{'in all':>10}")
    for name in sorted({name for cost in costs for name in cost.all}):
        early, total = median(lambda cost: cost.early[name]), median(lambda cost: cost.all[name])  # noqa: B023
        print(f"  {name:44}{early:>24.0f}{total:>10.0f}")
    early, total = median(lambda cost: cost.early.total()), median(lambda cost: cost.all.total())
    print(f"  {'all':44}{early:>24.0f}{total:>10.0f}")
    units = {kind: median(lambda cost: cost.units.get(kind, 0)) for kind in USD_PER_MILLION}  # noqa: B023
    usd = sum(units[kind] * price / 1e6 for kind, price in USD_PER_MILLION.items())
    print(
        f"  DynamoDB: {units['write']:.0f} write units, {units['read']:.1f} read units: "
        f"{1000 * usd:.4f} USD for 1,000 answers"
    )
    tokens = median(lambda cost: cost.output_tokens)
    gathered = median(
        lambda cost: cost.all["dynamodb.UpdateItem"] + cost.all["apigatewaymanagementapi.PostToConnection"]
    )
    if tokens:
        print(
            f"  text of {tokens:.0f} tokens: {gathered:.0f} commits and posts; one of each a token: {2 * tokens:.0f}, "
            f"{2 * tokens / gathered:.1f} times as many"
        )


def over_the_cloud(cloud: LocalCloud, meter: UnitMeter, runs: int, cases: Iterable[Case] = CASES) -> None:
    """Print each case, with so many answers a question."""
    meter.forward_to(cloud.endpoint_url, REGION)
    for case in cases:
        if case.warm:
            for question in case.questions:
                asyncio.run(answer(cloud, question, case.episode))
                settle(cloud)
        asked = case.questions * (runs if case.warm else 1)  # afterwards there is an earlier answer
        report(case, [measured(cloud, meter, case, question) for question in asked])


def main(argv: list[str] | None = None) -> int:
    """Print the counts."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument(
        "--limits", choices=LIMITS, default="none", help="limits on use that there are (default: %(default)s)"
    )
    parser.add_argument("--runs", type=int, default=3, help="answers a question (default: %(default)s)")
    args = parser.parse_args(argv)
    meter = UnitMeter()
    with (
        tempfile.TemporaryDirectory() as home,
        plain_cloud(Path(home), {VARIABLE: meter.url}, usageLimits=LIMITS[args.limits]) as cloud,
    ):
        over_the_cloud(cloud, meter, args.runs)
    meter.close()
    return 0


if __name__ == "__main__":
    sys.exit(main())

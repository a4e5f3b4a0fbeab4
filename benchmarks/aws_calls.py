"""AWS calls of one grounded answer, counted at the local cloud's front: before the first piece of text, and in all.

The functions are warm. Commits and posts grow with the length of the answer, the rest does not. The named peer is the
same answer with every token stored and posted by itself, as streaming back ends commonly do.

    .venv/bin/python benchmarks/aws_calls.py
"""

from __future__ import annotations

import argparse
import asyncio
import collections
import statistics
import sys
import tempfile
import time
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from cicada.protocol.events import Chunk, Complete
from clients.python.client import CicadaClient
from local.testing import LocalCloud

SAMPLE = Path(__file__).parents[1] / "samples" / "script"
QUESTIONS = (
    ("How many strokes of the fog bell did Ilse count?", "ep1"),
    ("What time does the causeway go under water?", "ep2"),
    ("Who owns the red oilskin?", "ep2"),
)


async def one_answer(cloud: LocalCloud, question: str, episode: str) -> tuple[float, Complete]:
    """When the first text came (epoch seconds), and how it ended."""
    first = 0.0
    async with CicadaClient(cloud.websocket_url) as client:
        async for event in client.ask(question, episodes=[episode]):
            if isinstance(event, Chunk) and not first:
                first = time.time()
            if isinstance(event, Complete):
                return first, event
    raise RuntimeError("the answer did not complete")


def counted(calls: Iterable[dict[str, Any]]) -> collections.Counter[str]:
    """How many of each."""
    return collections.Counter(f"{call['service']}.{call['operation']}" for call in calls)


def main(argv: list[str] | None = None) -> int:
    """Print the counts."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--runs", type=int, default=3, help="answers a question (default: %(default)s)")
    args = parser.parse_args(argv)
    rows = []
    with tempfile.TemporaryDirectory() as home, LocalCloud(Path(home), load=[SAMPLE]) as cloud:
        for question, episode in QUESTIONS:
            asyncio.run(one_answer(cloud, question, episode))  # warms the functions
        for question, episode in QUESTIONS * args.runs:
            cloud.clear_calls()
            first, complete = asyncio.run(one_answer(cloud, question, episode))
            log = cloud.call_log()
            before = counted(call for call in log if call["at"] <= first)
            every = counted(log)
            rows.append((before, every, complete.metrics.output_tokens))
    names = sorted({name for _, every, _ in rows for name in every})
    print(f"{'call':48}{'before the first text':>24}{'in all':>10}   (medians of {len(rows)} answers)")
    for name in names:
        early, total = (statistics.median(row[place][name] for row in rows) for place in (0, 1))
        print(f"{name:48}{early:>24.0f}{total:>10.0f}")
    early, total = (statistics.median(sum(row[place].values()) for row in rows) for place in (0, 1))
    print(f"{'all':48}{early:>24.0f}{total:>10.0f}")
    tokens = statistics.median(row[2] for row in rows)
    gathered = statistics.median(
        row[1]["dynamodb.UpdateItem"] + row[1]["apigatewaymanagementapi.PostToConnection"] for row in rows
    )
    print(
        f"text of {tokens:.0f} tokens: {gathered:.0f} commits and posts; one of each a token: {2 * tokens:.0f}, "
        f"{2 * tokens / gathered:.1f} times as many"
    )
    return 0


if __name__ == "__main__":
    sys.exit(main())

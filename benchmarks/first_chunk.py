"""Time to the first piece of text, by strategy, with a model of fixed latency; and what our own code adds to it.

Twice:

- *in one process*: the production code of an attempt over neighbours (model, search, look-up, table, sockets) that take
  a fixed time each. What is left when the times are taken off that a perfect program would wait for is our code's.
- *over the local cloud*: what an asker sees, from sending the question to the first chunk, over a warm deployment. What
  is left when the model's latency is taken off is everything else: the message processor, Step Functions' interpreter,
  the worker, two dozen HTTP requests, all on this machine. AWS's own services take other times; the first figure is the
  one that goes with the code.

    .venv/bin/python -m benchmarks.first_chunk
"""

from __future__ import annotations

import argparse
import asyncio
import statistics
import sys
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path

from benchmarks.first_chunk_parts import Latencies, Worker
from benchmarks.local_cloud import plain_cloud, reworded
from cicada.protocol.events import Chunk, Complete, StrategyName
from cicada_client.client import CicadaClient
from cicada_local.testing import LocalCloud

QUESTIONS: dict[StrategyName, str] = {
    "direct": "Hello there!",
    "rag": "What time does the causeway go under water?",
    "hybrid": "Explain what Tamsin found at the gauge tower and who read the gauge.",
    "cag": "What are your terms for ringing the fog bell at night?",
}
SAME_WORDS = ("direct", "cag")
"""Strategies that are asked the same question again: no earlier answer is kept, or that is what is measured."""
BETWEEN_PIECES_MS = 2.0
WARMING = 3
"""Answers before the first that counts."""


def quantiles(times_ms: Sequence[float]) -> tuple[float, float]:
    """The median and the 99th percentile (of fewer than 100 times, the longest)."""
    ordered = sorted(times_ms)
    return statistics.median(ordered), ordered[min(len(ordered) - 1, int(0.99 * len(ordered)))]


def line(name: str, times_ms: Sequence[float], waited_ms: float) -> str:
    """One row: the times, and what is left of them."""
    p50, p99 = quantiles(times_ms)
    return f"  {name:8}{p50:>9.1f}{p99:>9.1f}{waited_ms:>12.0f}{p50 - waited_ms:>12.1f}{p99 - waited_ms:>9.1f}"


def header(title: str, waited: str) -> str:
    """Above the rows."""
    return f"\n{title}\n  {'':8}{'p50 ms':>9}{'p99 ms':>9}{waited:>12}{'rest p50':>12}{'p99':>9}"


async def asked(url: str, strategy: StrategyName, runs: int) -> list[float]:
    """The milliseconds until the first chunk of each answer by this strategy, over one connection.

    Raises:
        RuntimeError: after the first ones, an answer came by another strategy.
    """
    times_ms: list[float] = []
    async with CicadaClient(url) as client:
        await client.answer("Hello!")  # opens the connection
        for number in range(WARMING + runs):
            question = QUESTIONS[strategy] if strategy in SAME_WORDS else reworded(QUESTIONS[strategy], number)
            started = time.perf_counter()
            first = 0.0
            async for event in client.ask(question):
                if isinstance(event, Chunk) and not first:
                    first = time.perf_counter()
                if isinstance(event, Complete) and number >= WARMING:
                    if event.answered_by != strategy:
                        raise RuntimeError(f"{question!r} was answered by {event.answered_by}")
                    times_ms.append((first - started) * 1000)
    return times_ms


def over_the_cloud(cloud: LocalCloud, runs: int, first_piece_ms: float) -> None:
    """Print what an asker sees."""
    cloud.arm("bedrock.pace", first_piece_ms=first_piece_ms, delay_ms=BETWEEN_PIECES_MS)
    print(header(f"over the local cloud, {runs} answers each", "model"))
    for strategy in QUESTIONS:
        times_ms = asyncio.run(asked(cloud.websocket_url, strategy, runs))
        print(line(strategy, times_ms, 0 if strategy == "cag" else first_piece_ms))
    print("\n`cag` gives an earlier answer again: no model is called.")


def main(argv: list[str] | None = None) -> int:
    """Print both tables."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--runs", type=int, default=100, help="answers a strategy (default: %(default)s)")
    parser.add_argument("--first-piece-ms", type=float, default=300, help="the model's latency (default: %(default)s)")
    parser.add_argument("--in-process", action="store_true", help="without the local cloud")
    args = parser.parse_args(argv)
    latencies = Latencies(first_piece=args.first_piece_ms)
    worker = Worker(latencies)
    print(header(f"in one process, {args.runs} answers each; {latencies}", "waited for"))
    for strategy in QUESTIONS:
        worker.first_chunk_ms(strategy)
        times_ms = [worker.first_chunk_ms(strategy) for _ in range(args.runs)]
        print(line(strategy, times_ms, latencies.before_first_chunk_ms(strategy)))
    if not args.in_process:
        with tempfile.TemporaryDirectory() as home, plain_cloud(Path(home)) as cloud:
            over_the_cloud(cloud, args.runs, args.first_piece_ms)
    return 0


if __name__ == "__main__":
    sys.exit(main())

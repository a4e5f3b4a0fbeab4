"""How well code alone checks citations, on the labelled sets: ``python -m benchmarks.citations``.

What it calls *verified* is quoted word by word, what it calls *unverified* lacks a quotation, a number or a name; all
else is *unchecked*, and a judge's to say: ``cicada eval --citations FILE --judge MODEL`` measures one. The blind parts
were written by two hands that had not seen the checker.
"""

from __future__ import annotations

import argparse
import statistics
import sys
import time
from collections.abc import Sequence
from pathlib import Path

from cicada_evaluation.citations import read_pairs, table, verdict_of

DATA = Path(__file__).resolve().parents[1] / "tests" / "data"
PARTS = ("tuning", "held_aside", "blind", "blind_2")


def main(argv: Sequence[str] | None = None) -> int:
    """Print a table for each part, and the time of a check by code."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--most", type=int, help="of each part, at most so many pairs")
    args = parser.parse_args(argv)
    for part in PARTS:
        pairs = read_pairs(DATA / f"citations_{part}.jsonl")[: args.most]
        took: list[float] = []
        verdicts = []
        for pair in pairs:
            started = time.perf_counter()
            verdicts.append(verdict_of(pair, None))
            took.append((time.perf_counter() - started) * 1000)
        print(f"\n{part}: {statistics.median(took):.2f} ms a sentence")
        print("\n".join(table(pairs, verdicts)))
    return 0


if __name__ == "__main__":
    sys.exit(main())

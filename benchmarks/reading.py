"""What reading in a child process costs, beside reading in this one and beside a fresh process a document.

Each row is a file of the sample's shelf, read again and again: milliseconds a document by the clock, medians. *Fresh
process* starts an interpreter for each document and reads it there: the plain way to be safe. *Sandbox* is
``read_safely``: one child with its libraries loaded, which forks once a document. The ratio is of the two.

    .venv/bin/python -m benchmarks.reading
"""

from __future__ import annotations

import argparse
import os
import statistics
import subprocess
import sys
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path

from cicada.corpus.readers.dispatch import read_document
from cicada.corpus.readers.sandbox import read_safely

ROOT = Path(__file__).parents[1]
SHELF = ROOT / "samples" / "shelf"
FRESH = """
import sys
from pathlib import Path
from cicada.corpus.readers.dispatch import read_document
path = Path(sys.argv[1])
read_document(path.name, path.read_bytes())
"""


def median_ms(work: Callable[[], object], times: int) -> float:
    """The median of so many runs, after one that is not counted."""
    work()
    taken = []
    for _ in range(times):
        begun = time.perf_counter()
        work()
        taken.append((time.perf_counter() - begun) * 1e3)
    return statistics.median(taken)


def fresh(path: Path) -> None:
    """Read in a process of its own."""
    environ = {**os.environ, "PYTHONPATH": str(ROOT / "layers/cicada/python")}
    subprocess.run([sys.executable, "-c", FRESH, str(path)], check=True, env=environ)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--times", type=int, default=15, help="documents a figure (default: %(default)s)")
    parser.add_argument(
        "files", nargs="*", type=Path, default=sorted(SHELF.iterdir()), help="default: the sample's shelf"
    )
    args = parser.parse_args()
    times: int = args.times
    print(f"{'file':24} {'here':>9} {'sandbox':>9} {'fresh process':>14} {'ratio':>7}")
    for path in args.files:
        data = path.read_bytes()
        here = median_ms(partial(read_document, path.name, data), times)
        safe = median_ms(partial(read_safely, path.name, path), times)
        alone = median_ms(partial(fresh, path), times)
        print(f"{path.name:24} {here:6.1f} ms {safe:6.1f} ms {alone:11.1f} ms {alone / safe:6.1f} x")


if __name__ == "__main__":
    main()

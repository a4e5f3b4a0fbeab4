"""How often the classifier decides rightly, beside a plain substring search on the same queries.

Reports counts only: the queries of the held-aside part stay unread, or they would not be held aside any more.
"""

from __future__ import annotations

import argparse
import json
import math
import sys
import time
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

from cicada.routing.classifier import ROUTES, Classification, classify

DATA = Path(__file__).resolve().parents[1] / "tests" / "data"
PARTS = {"tuning": DATA / "routes_tuning.jsonl", "held-aside": DATA / "routes_held_aside.jsonl"}
CONFIDENCE_BINS = ((0.0, 0.5), (0.5, 0.8), (0.8, 0.95), (0.95, 0.99), (0.99, 1.0))
LONG_MESSAGE_CHARS = 200

# The first route whose keyword occurs anywhere wins. "hi" and "hey" are left out in the search's favour: they would be
# found in "which" and in "they".
SUBSTRINGS = {
    "profile_agent": "show me|list|view profile|my profile|update profile|save profile|create profile",
    "theory_agent": "theory|hypothesis|evidence for|evidence against|refute|support",
    "direct": "hello|good morning|good evening|thanks|thank you|goodbye|bye",
    "hybrid": "explain|compare|analyze|how does",
    "cag": "policy|policies|billing|pricing",
}


@dataclass(frozen=True, slots=True)
class Labelled:
    """A query and the route that it was given by hand."""

    query: str
    route: str


def read_part(path: Path) -> tuple[Labelled, ...]:
    """The labelled queries of a JSONL file."""
    with path.open(encoding="utf-8") as file:
        return tuple(Labelled(**json.loads(line)) for line in file)


def substring_search(query: str) -> str:
    """The peer: keywords wherever they occur, in a fixed order of routes."""
    text = query.lower()
    for route, keywords in SUBSTRINGS.items():
        if any(keyword in text for keyword in keywords.split("|")):
            return route
        if route == "hybrid" and (text.count("?") > 1 or len(text) > LONG_MESSAGE_CHARS):
            return route
    return "rag"


def wilson_interval(right: int, n: int, z: float = 1.96) -> tuple[float, float]:
    """The 95% score interval of a proportion.

    Source: E. B. Wilson, Probable inference, the law of succession, and statistical inference, JASA 22 (1927).
    """
    share = right / n
    centre = share + z * z / (2 * n)
    spread = z * math.sqrt(share * (1 - share) / n + z * z / (4 * n * n))
    return (centre - spread) / (1 + z * z / n), (centre + spread) / (1 + z * z / n)


def accuracy(labelled: Sequence[Labelled], decide: Callable[[str], str]) -> float:
    """The share of queries that get their labelled route."""
    return sum(decide(item.query) == item.route for item in labelled) / len(labelled)


def microseconds_per_query(queries: Sequence[str], decide: Callable[[str], object], rounds: int) -> float:
    """CPU time, the best of several rounds over all queries."""
    best = math.inf
    for _ in range(rounds):
        start = time.process_time()
        for query in queries:
            decide(query)
        best = min(best, time.process_time() - start)
    return best / len(queries) * 1e6


def report(labelled: Sequence[Labelled], decide: Callable[[str], str]) -> list[str]:
    """Accuracy, precision and recall a route, and the confusion matrix (rows: labelled; columns: decided)."""
    pairs = Counter((item.route, decide(item.query)) for item in labelled)
    right = sum(count for (label, decided), count in pairs.items() if label == decided)
    low, high = wilson_interval(right, len(labelled))
    out = [f"accuracy {right / len(labelled):.3f} ({right} of {len(labelled)}; 95% Wilson {low:.3f} to {high:.3f})"]
    out.append(f"{'labelled':<14}{'precision':>10}{'recall':>8}   " + "".join(f"{route:>14}" for route in ROUTES))
    for route in ROUTES:
        hit = pairs[route, route]
        decided = sum(pairs[label, route] for label in ROUTES)
        labels = sum(pairs[route, other] for other in ROUTES)
        precision = f"{hit / decided:.3f}" if decided else "-"
        recall = f"{hit / labels:.3f}" if labels else "-"
        row = "".join(f"{pairs[route, other] or '·':>14}" for other in ROUTES)
        out.append(f"{route:<14}{precision:>10}{recall:>8}   {row}")
    return out


def calibration(labelled: Sequence[Labelled], results: Sequence[Classification]) -> list[str]:
    """Confidence against the share that was right, by bins of confidence."""
    out = [f"{'confidence':<16}{'queries':>8}{'mean':>8}{'right':>8}"]
    for low, high in CONFIDENCE_BINS:
        held = [
            (result.confidence, result.route == item.route)
            for item, result in zip(labelled, results, strict=True)
            if low <= result.confidence < high or (high == 1.0 == result.confidence)
        ]
        if held:
            mean, right = sum(c for c, _ in held) / len(held), sum(ok for _, ok in held) / len(held)
            out.append(f"{f'{low:.2f} to {high:.2f}':<16}{len(held):>8}{mean:>8.3f}{right:>8.3f}")
    return out


def main(argv: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(prog="classifier", description=__doc__)
    parser.add_argument("--part", choices=[*PARTS, "both"], default="both", help="which queries (default: %(default)s)")
    parser.add_argument(
        "--rounds", type=int, default=5, help="rounds of timing, the best counts (default: %(default)s)"
    )
    args = parser.parse_args(argv)
    parts = {name: path for name, path in PARTS.items() if args.part in (name, "both")}
    if missing := [str(path) for path in parts.values() if not path.exists()]:
        print(f"classifier: no such file: {', '.join(missing)}", file=sys.stderr)
        return 1
    for name, path in parts.items():
        labelled = read_part(path)
        queries = [item.query for item in labelled]
        print(f"== {name}: {len(labelled)} queries")
        print("\n".join(["classifier:", *report(labelled, lambda query: classify(query).route)]))
        print("\n".join(["", "substring search:", *report(labelled, substring_search)]))
        print("\n".join(["", "calibration:", *calibration(labelled, [classify(query) for query in queries])]))
        ours = microseconds_per_query(queries, classify, args.rounds)
        peer = microseconds_per_query(queries, substring_search, args.rounds)
        print(f"\nCPU time: {ours:.0f} µs a query, {peer:.2f} µs by substring search: ratio {ours / peer:.0f}\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())

"""How often the classifier decides as authors labelled who did not train it, beside a plain substring search.

Reports counts only: the questions of the authors held aside stay unread, or they would not be held aside any more.
Where public sets of factual questions are at hand, says how many of them would not be searched for.
"""

from __future__ import annotations

import argparse
import json
import math
import random
import sys
import time
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from itertools import groupby
from pathlib import Path
from statistics import median

from cicada.routing.classifier import ROUTES, Classification, classify
from training.models import Labelled
from training.routing import MODEL

PUBLIC = Path(__file__).resolve().parents[1].parent / "shared" / "datasets"
RESAMPLES = 500
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


def macro_f1(pairs: Sequence[tuple[str, str]]) -> float:
    """The mean F1 of the routes that are labelled; a pair is what was labelled and what was decided."""
    counts = Counter(pairs)
    labelled, decided = Counter(pair[0] for pair in pairs), Counter(pair[1] for pair in pairs)
    return sum(2 * counts[route, route] / (labelled[route] + decided[route]) for route in labelled) / len(labelled)


def resampled(pairs: Sequence[tuple[str, str]], figure: Callable[[Sequence[tuple[str, str]]], float]) -> str:
    """The 95% interval of a figure, by the percentile bootstrap. Source: Efron and Tibshirani, 1993, section 13.3."""
    chance = random.Random(1)
    figures = sorted(figure(chance.choices(pairs, k=len(pairs))) for _ in range(RESAMPLES))
    return f"{figures[RESAMPLES // 40]:.3f} to {figures[-RESAMPLES // 40]:.3f}"


def times(queries: Sequence[str], decide: Callable[[str], object], rounds: int) -> list[float]:
    """CPU time of each query in microseconds, the best of several rounds."""
    best = [math.inf] * len(queries)
    for _ in range(rounds):
        for at, query in enumerate(queries):
            start = time.process_time_ns()
            decide(query)
            best[at] = min(best[at], (time.process_time_ns() - start) / 1e3)
    return best


def line(name: str, pairs: Sequence[tuple[str, str]]) -> str:
    """Accuracy and macro-F1 of a group of questions, with their 95% intervals."""
    right = sum(label == decided for label, decided in pairs)
    low, high = wilson_interval(right, len(pairs))
    share = f"{right / len(pairs):.3f} ({low:.3f} to {high:.3f})"
    return f"{name:<20}{len(pairs):>6}   {share:<24}{macro_f1(pairs):.3f} ({resampled(pairs, macro_f1)})"


def groups(labelled: Sequence[Labelled], decided: Sequence[str]) -> Iterator[str]:
    """A line for all questions, for each author and for each language."""
    yield f"{'':<20}{'asked':>6}   {'accuracy':<24}macro-F1"
    pairs = [(one.label, route) for one, route in zip(labelled, decided, strict=True)]
    yield line("all", pairs)
    for key in ("author", "language"):
        order = sorted(range(len(labelled)), key=lambda at: str(getattr(labelled[at], key)))
        for name, places in groupby(order, key=lambda at: str(getattr(labelled[at], key))):
            yield line(name, [pairs[at] for at in places])


def confusion(labelled: Sequence[Labelled], decided: Sequence[str]) -> Iterator[str]:
    """Precision and recall of each route, and what was decided (columns) for what was labelled (rows)."""
    pairs = Counter((one.label, route) for one, route in zip(labelled, decided, strict=True))
    yield f"{'labelled':<14}{'precision':>10}{'recall':>8}   " + "".join(f"{route:>14}" for route in ROUTES)
    for route in ROUTES:
        hit = pairs[route, route]
        precision = hit / max(1, sum(pairs[label, route] for label in ROUTES))
        recall = hit / max(1, sum(pairs[route, other] for other in ROUTES))
        row = "".join(f"{pairs[route, other] or '·':>14}" for other in ROUTES)
        yield f"{route:<14}{precision:>10.3f}{recall:>8.3f}   {row}"


def calibration(labelled: Sequence[Labelled], results: Sequence[Classification]) -> Iterator[str]:
    """Confidence against the share that was right, by bins of confidence."""
    yield f"{'confidence':<16}{'queries':>8}{'mean':>8}{'right':>8}"
    for low, high in CONFIDENCE_BINS:
        held = [
            (result.confidence, result.route == one.label)
            for one, result in zip(labelled, results, strict=True)
            if low <= result.confidence < high or (high == 1.0 == result.confidence)
        ]
        if held:
            mean, right = sum(c for c, _ in held) / len(held), sum(ok for _, ok in held) / len(held)
            yield f"{f'{low:.2f} to {high:.2f}':<16}{len(held):>8}{mean:>8.3f}{right:>8.3f}"


def public() -> Iterator[str]:
    """Of public sets of factual questions: how many would not be searched for."""
    for path in sorted(PUBLIC.glob("xquad-*/queries.jsonl")):
        queries = [json.loads(row)["text"] for row in path.read_text(encoding="utf-8").splitlines()]
        left = Counter(classify(query).route for query in queries)
        away = sum(count for route, count in left.items() if route not in ("rag", "hybrid"))
        yield f"{path.parent.name}: {away} of {len(queries)} not searched for ({away / len(queries):.2%})"


def main(argv: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(prog="classifier", description=__doc__)
    parser.add_argument("--part", choices=["tuning", "held_aside"], help="which authors (default: both)")
    parser.add_argument("--rounds", type=int, default=5, help="of timing, the best counts (default: %(default)s)")
    parser.add_argument("--most", type=int, help="of each author, at most so many questions")
    args = parser.parse_args(argv)
    for part, authors in MODEL.split().items():
        if args.part not in (None, part):
            continue
        sentences = MODEL.sentences()
        labelled = [one for author in authors for one in [s for s in sentences if s.author == author][: args.most]]
        queries = [one.query for one in labelled]
        results = [classify(query) for query in queries]
        decided = [result.route for result in results]
        print(f"== {part}: {', '.join(authors)}")
        print("\n".join(groups(labelled, decided)))
        print("\n".join(["", *confusion(labelled, decided)]))
        print("\n".join(["", *calibration(labelled, results)]))
        pairs = [(one.label, substring_search(one.query)) for one in labelled]
        print("\n".join(["", line("substring search", pairs)]))
        ours, peer = times(queries, classify, args.rounds), times(queries, substring_search, args.rounds)
        print(f"CPU time of a query, p50: {median(ours):.0f} µs; by substring search {median(peer):.1f} µs\n")
    print("\n".join(public()))
    return 0


if __name__ == "__main__":
    sys.exit(main())

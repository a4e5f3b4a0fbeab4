"""How often the semantic cache gives an earlier answer to a question that asks for another one, and what it saves.

Labelled pairs of questions (an earlier one, and one that is asked) go through the cache's own decision, with
all-MiniLM-L6-v2. Beside it, on the same pairs: a threshold on the cosine alone, which is how caches such as GPTCache
decide by default. Of the held-aside part only counts are reported: its pairs stay unread, or they would not be held
aside any more.
"""

from __future__ import annotations

import argparse
import json
import statistics
import sys
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from benchmarks.classifier import wilson_interval
from cicada.answering.semantic_cache.decision import CANDIDATES, Choice, decide
from cicada.answering.semantic_cache.held import HeldScope
from cicada.answering.semantic_cache.records import Entry, pack_vector, unpack_vector
from cicada.answering.semantic_cache.scope import language_of
from cicada.answering.semantic_cache.thresholds import Thresholds, thresholds_of
from cicada.guards.compare import read
from cicada.text.tokens import normalised
from local.bedrock.minilm import CachedEmbedder

ROOT = Path(__file__).resolve().parents[1]
DATA = ROOT / "tests" / "data"
PARTS = {"tuning": DATA / "question_pairs_tuning.jsonl", "held-aside": DATA / "question_pairs_held_aside.jsonl"}
MODEL_ID = "local.all-minilm-l6-v2"
REPLAY = (0.70, 0.75, 0.80, 0.85, 0.90, 0.95)
WARM_ENTRIES = 1_000
NEVER_S = 2**40


@dataclass(frozen=True, slots=True)
class Pair:
    """Two questions, labelled by hand: ``same``, ``near`` (of one subject) or ``opposite`` (of another meaning)."""

    earlier: str
    asked: str
    label: str
    kind: str
    """What makes them differ."""
    language: str


@dataclass(frozen=True)
class Judged:
    """A pair with its cosine, and what the cache decides for a question that finds this one alone, or all of them."""

    pair: Pair
    cosine: float
    entry: Entry
    vector: NDArray[np.float32]


def read_part(path: Path) -> tuple[Pair, ...]:
    """The labelled pairs of a JSONL file."""
    with path.open(encoding="utf-8") as file:
        return tuple(Pair(**json.loads(line)) for line in file)


def judge(pairs: Sequence[Pair], embedder: CachedEmbedder) -> list[Judged]:
    """Embed both questions of every pair. Of the earlier ones 8 bits a dimension are kept, as in the cache."""
    earlier = embedder.embed([pair.earlier for pair in pairs])
    asked = embedder.embed([pair.asked for pair in pairs])
    entries = [Entry(f"{at:013d}-0", pair.earlier, pack_vector(row), 0, NEVER_S) for at, (pair, row) in
               enumerate(zip(pairs, earlier, strict=True))]  # fmt: skip
    kept = [unpack_vector(entry.vector, earlier.shape[1]) for entry in entries]
    cosines = (np.array(kept, np.float32) * asked).sum(axis=1)
    rows = zip(pairs, cosines.tolist(), entries, asked, strict=True)
    return [Judged(pair, cosine, entry, vector) for pair, cosine, entry, vector in rows]


def alone(judged: Sequence[Judged], thresholds: Thresholds) -> list[Choice | None]:
    """What each question gets from a cache that holds nothing but its pair's earlier one."""
    return [_first(one, [(one.entry, one.cosine)], thresholds) for one in judged]


def crowded(judged: Sequence[Judged], thresholds: Thresholds, dimensions: int) -> list[Choice | None]:
    """What each question gets from a cache that holds the earlier questions of all pairs, of its language."""
    scopes: dict[str, HeldScope] = {}
    seen: set[tuple[str, str]] = set()
    for one in judged:
        language = language_of(one.pair.earlier)
        if (language, one.pair.earlier) not in seen:
            seen.add((language, one.pair.earlier))
            scopes.setdefault(language, HeldScope(dimensions)).add([one.entry], keep=len(judged), now_s=0)
    decided = []
    for one in judged:
        scope = scopes.get(language_of(one.pair.asked))
        found = scope.snapshot.nearest(one.vector, at_least=-1.0, limit=CANDIDATES, now_s=0) if scope else []
        decided.append(_first(one, found, thresholds))
    return decided


def _first(one: Judged, found: Sequence[tuple[Entry, float]], thresholds: Thresholds) -> Choice | None:
    language = language_of(one.pair.asked)
    same_scope = [(entry, cosine) for entry, cosine in found if language_of(entry.question) == language]
    choices = decide(one.pair.asked, language, same_scope, thresholds).choices
    return choices[0] if choices else None


def share(count: int, of: int) -> str:
    """A share in per cent with its 95% interval (Wilson)."""
    low, high = wilson_interval(count, of)
    return f"{count:>4} of {of:<4} {count / of:6.1%} ({max(0.0, low):.1%} to {high:.1%})"


def replayed(judged: Sequence[Judged], decided: Sequence[Choice | None], *, same: bool) -> int:
    """How many of the pairs that ask the same, or that do not, get the earlier answer."""
    rows = zip(judged, decided, strict=True)
    return sum(
        (one.pair.label == "same") is same and choice is not None and choice.use == "answer" for one, choice in rows
    )


def wrongly_answered(judged: Sequence[Judged], decided: Sequence[Choice | None]) -> int:
    """How many questions get, from among all earlier answers, one to a question that no pair labels as the same."""
    same = {(one.pair.asked, one.pair.earlier) for one in judged if one.pair.label == "same"}
    return sum(
        choice is not None
        and choice.use == "answer"
        and (one.pair.asked, choice.entry.question) not in same
        and normalised(one.pair.asked) != normalised(choice.entry.question)
        for one, choice in zip(judged, decided, strict=True)
    )


def report(judged: Sequence[Judged], chosen: Thresholds, dimensions: int) -> list[str]:
    """The tables of one part."""
    same = sum(one.pair.label == "same" for one in judged)
    other = len(judged) - same
    peer_cosines = sorted((one.cosine for one in judged if one.pair.label == "same"), reverse=True)
    out = [f"{'replay':>8}  {'false hits':<34}{'saved: answered again':<34}cosine alone, at the same saved share"]
    for replay in sorted({*REPLAY, chosen.replay}):
        decided = alone(judged, Thresholds(replay, min(replay, chosen.near)))
        false, saved = (replayed(judged, decided, same=what) for what in (False, True))
        bar = peer_cosines[saved - 1] if saved else 1.0
        peer = sum(one.pair.label != "same" and one.cosine >= bar for one in judged)
        mark = "*" if replay == chosen.replay else " "
        out.append(f"{replay:>7.2f}{mark}  {share(false, other):<34}{share(saved, same):<34}{share(peer, other)}")
    decided = alone(judged, chosen)
    together = crowded(judged, chosen, dimensions)
    wrong = wrongly_answered(judged, together)
    out += [
        "",
        f"* the chosen threshold; contexts from {chosen.near:.2f} on. With it,",
        f"  false hits in a cache that holds all earlier questions: {share(wrong, len(judged))}",
        f"  saved in it: {share(replayed(judged, together, same=True), same)}",
        f"  same questions that get contexts instead: {share(_contexts(judged, decided, 'same'), same)}",
        f"  of another meaning that are offered contexts, before these are read: "
        f"{share(_contexts(judged, decided, 'opposite'), sum(one.pair.label == 'opposite' for one in judged))}",
        "",
        f"{'what differs':<16}{'pairs':>6}{'answered again':>16}{'contexts':>10}{'cosine alone':>14}",
    ]
    bar = peer_cosines[max(0, replayed(judged, decided, same=True) - 1)]
    for kind in dict.fromkeys(one.pair.kind for one in judged):
        rows = [(one, choice) for one, choice in zip(judged, decided, strict=True) if one.pair.kind == kind]
        uses = [choice.use if choice else "miss" for _, choice in rows]
        peer = sum(one.cosine >= bar for one, _ in rows)
        out.append(f"{kind:<16}{len(rows):>6}{uses.count('answer'):>16}{uses.count('contexts'):>10}{peer:>14}")
    out += ["", f"{'language':<16}{'pairs':>6}{'same':>6}{'saved':>7}{'false hits':>12}"]
    for language in dict.fromkeys(one.pair.language for one in judged):
        rows = [(one, choice) for one, choice in zip(judged, decided, strict=True) if one.pair.language == language]
        ones, choices = [one for one, _ in rows], [choice for _, choice in rows]
        counts = [replayed(ones, choices, same=what) for what in (True, False)]
        labelled = sum(one.pair.label == "same" for one in ones)
        out.append(f"{language:<16}{len(rows):>6}{labelled:>6}{counts[0]:>7}{counts[1]:>12}")
    return out


def _contexts(judged: Sequence[Judged], decided: Sequence[Choice | None], label: str) -> int:
    rows = zip(judged, decided, strict=True)
    return sum(one.pair.label == label and choice is not None and choice.use == "contexts" for one, choice in rows)


def speed(judged: Sequence[Judged], chosen: Thresholds, dimensions: int, rounds: int) -> list[str]:
    """CPU time of comparing and deciding, in a scope of :data:`WARM_ENTRIES` entries; the peer only compares."""
    held = HeldScope(dimensions)
    entries = [judged[at % len(judged)].entry for at in range(WARM_ENTRIES)]
    rounds_of_space = [" " * (at // len(judged)) for at in range(WARM_ENTRIES)]  # a scope holds a question once
    held.add([Entry(f"{at:013d}-1", one.question + space, one.vector, 0, NEVER_S)
              for at, (one, space) in enumerate(zip(entries, rounds_of_space, strict=True))],
             keep=WARM_ENTRIES, now_s=0)  # fmt: skip
    snapshot = held.snapshot

    def look_up(one: Judged) -> None:
        found = snapshot.nearest(one.vector, at_least=-1.0, limit=CANDIDATES, now_s=0)
        decide(one.pair.asked, language_of(one.pair.asked), found, chosen)

    def compare(one: Judged) -> None:
        snapshot.nearest(one.vector, at_least=chosen.replay, limit=1, now_s=0)

    def first_look_up(one: Judged) -> None:
        read.cache_clear()
        look_up(one)

    ours, peer = (_microseconds(judged, run, rounds) for run in (look_up, compare))
    first = _microseconds(judged[:100], first_look_up, 1)
    return [
        f"CPU time of a warm look-up in {WARM_ENTRIES:,} entries of {dimensions} dimensions: {ours:.0f} µs; "
        f"the cosines alone {peer:.0f} µs: ratio {ours / peer:.1f}",
        f"with every question read for the first time: {first:.0f} µs",
    ]


def _microseconds(judged: Sequence[Judged], run: Callable[[Judged], None], rounds: int) -> float:
    took = []
    for _ in range(rounds + 1):
        start = time.process_time()
        for one in judged:
            run(one)
        took.append((time.process_time() - start) / len(judged) * 1e6)
    return statistics.median(took[1:])


def main(argv: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(prog="semantic_cache", description=__doc__)
    parser.add_argument("--part", choices=[*PARTS, "both"], default="both", help="which pairs (default: %(default)s)")
    parser.add_argument("--rounds", type=int, default=5, help="rounds of timing (default: %(default)s)")
    parser.add_argument(
        "--vectors", type=Path, default=ROOT / ".cicada" / "benchmark-embeddings.sqlite", help="remembers embeddings"
    )
    args = parser.parse_args(argv)
    parts = {name: path for name, path in PARTS.items() if args.part in (name, "both")}
    if missing := [str(path) for path in parts.values() if not path.exists()]:
        print(f"semantic_cache: no such file: {', '.join(missing)}", file=sys.stderr)
        return 1
    chosen = thresholds_of(MODEL_ID)
    embedder = CachedEmbedder(args.vectors)
    for name, path in parts.items():
        judged = judge(read_part(path), embedder)
        dimensions = len(judged[0].vector)
        print(f"== {name}: {len(judged)} pairs, {MODEL_ID}")
        print("\n".join(report(judged, chosen, dimensions)))
        print("\n".join(["", *speed(judged, chosen, dimensions, args.rounds), ""]))
    embedder.close()
    return 0


if __name__ == "__main__":
    sys.exit(main())

"""``python -m tests.simulation``: a long run, a replay of one seed, or the proof by mutations."""

from __future__ import annotations

import argparse
import os
import secrets
import sys
from collections.abc import Sequence

from tests.simulation.campaign import Figures, run_until, table
from tests.simulation.mutations import BY_NAME, MAX_WORLDS, MUTATIONS, applied, worlds_until_found
from tests.simulation.one import replay
from tests.simulation.world import Verdict


def main(argv: Sequence[str] | None = None) -> int:
    """Run the command. Returns 1 if an invariant did not hold, or a mutation was not found."""
    parser = argparse.ArgumentParser(
        prog="python -m tests.simulation",
        description="Run the production code of whole requests in virtual time, under injected faults.",
    )
    parser.add_argument("--faults", type=int, default=100_000, help="inject so many (default: %(default)s)")
    parser.add_argument("--first-seed", type=int, help="of the worlds that are run (default: at random)")
    parser.add_argument("--processes", type=int, default=os.cpu_count() or 1, help="(default: %(default)s)")
    parser.add_argument("--seed", type=int, help="replay this one world, and print its history")
    parser.add_argument("--mutations", action="store_true", help="prove that faults in the code are found")
    parser.add_argument("--mutation", choices=sorted(BY_NAME), help="with --seed: replay with this one")
    args = parser.parse_args(argv)
    if args.seed is not None:
        return _replay(args.seed, args.mutation)
    if args.mutations:
        return _prove(args.first_seed or 0)
    first_seed = secrets.randbelow(2**40) if args.first_seed is None else args.first_seed
    print(f"seeds from {first_seed} on, {args.processes} processes", flush=True)
    figures = run_until(args.faults, first_seed=first_seed, processes=args.processes, progress=_tell_progress)
    print(file=sys.stderr)
    print(table(figures))
    if not figures.violations:
        print("every invariant held")
        return 0
    seed, why = figures.violations[0]
    _print_history(replay(seed))
    print(f"\nSEED {seed}: {why}\nreplay: python -m tests.simulation --seed {seed}")
    return 1


def _tell_progress(figures: Figures) -> None:
    if not sys.stderr.isatty():
        return
    rate = figures.injected / max(figures.wall_s, 1e-9)
    print(
        f"\r{figures.injected:,} faults, {figures.requests:,} requests, {rate:,.0f} faults/s", end="", file=sys.stderr
    )


def _replay(seed: int, mutation: str | None) -> int:
    if mutation is None:
        verdict = replay(seed)
    else:
        with applied(BY_NAME[mutation]):
            verdict = replay(seed)
    _print_history(verdict)
    return 1 if verdict.violations else 0


def _print_history(verdict: Verdict) -> None:
    for at, who, what in verdict.history:
        print(f"{at:10.3f} s  {who:16} {what}")
    print(f"\n{verdict.injected} faults; outcomes: {dict(verdict.outcomes)}")
    for why in verdict.violations:
        print(f"violated: {why}")


def _prove(first_seed: int) -> int:
    missed = 0
    for mutation in MUTATIONS:
        found = worlds_until_found(mutation, first_seed=first_seed)
        if found is None:
            missed += 1
            print(f"{mutation.name:24} NOT FOUND in {MAX_WORLDS:,} worlds: {mutation.what}", flush=True)
        else:
            worlds, why = found
            print(f"{mutation.name:24} found in {worlds:5,} worlds: {why[:110]}", flush=True)
    return 1 if missed else 0


if __name__ == "__main__":
    sys.exit(main())

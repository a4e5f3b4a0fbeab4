"""Many worlds, over several processes, until enough faults were injected."""

from __future__ import annotations

import multiprocessing
import os
import time
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field
from itertools import count

from tests.simulation.faults import KINDS
from tests.simulation.one import collecting_seldom, quiet, run_world

WORLDS_A_BATCH = 100


@dataclass
class Figures:
    """What a number of worlds came to."""

    worlds: int = 0
    requests: int = 0
    injected: int = 0
    switches: int = 0
    simulated_s: float = 0.0
    cpu_s: float = 0.0
    wall_s: float = 0.0
    kinds: Counter[str] = field(default_factory=Counter)
    outcomes: Counter[str] = field(default_factory=Counter)
    violations: list[tuple[int, str]] = field(default_factory=list)
    """Seeds, each with the first thing that was wrong."""

    def add(self, other: Figures) -> None:
        """Add the figures of other worlds."""
        self.worlds += other.worlds
        self.requests += other.requests
        self.injected += other.injected
        self.switches += other.switches
        self.simulated_s += other.simulated_s
        self.cpu_s += other.cpu_s
        self.kinds += other.kinds
        self.outcomes += other.outcomes
        self.violations += other.violations


def run_batch(seeds: range) -> Figures:
    """Run some worlds in this process."""
    figures = Figures()
    started = time.process_time()
    with quiet() as bugs, collecting_seldom():
        for seed in seeds:
            verdict = run_world(seed, figures.kinds, bugs)
            figures.worlds += 1
            figures.requests += verdict.requests
            figures.injected += verdict.injected
            figures.switches += verdict.switches
            figures.simulated_s += verdict.simulated_s
            figures.outcomes += verdict.outcomes
            if verdict.violations:
                figures.violations.append((seed, verdict.violations[0]))
    figures.cpu_s = time.process_time() - started
    return figures


def run_until(
    faults: int,
    *,
    first_seed: int,
    processes: int,
    progress: Callable[[Figures], None] = lambda _figures: None,
    failures_wanted: int = 1,
) -> Figures:
    """Run worlds from a seed on, until so many faults were injected or so many worlds have failed.

    Which worlds are run does not depend on the number of processes.
    """
    batches = (range(start, start + WORLDS_A_BATCH) for start in count(first_seed, WORLDS_A_BATCH))
    total = Figures()
    started = time.monotonic()
    os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")
    with multiprocessing.get_context("spawn").Pool(processes) as pool:
        for figures in pool.imap(run_batch, batches):
            total.add(figures)
            total.wall_s = time.monotonic() - started
            progress(total)
            if total.injected >= faults or len(total.violations) >= failures_wanted:
                pool.terminate()
                break
    return total


def table(figures: Figures) -> str:
    """The figures for people: the kinds of faults with the rows of the catalogue, the outcomes, the speed."""
    lines = [f"{'fault':24} {'catalogue':10} {'injected':>10}  what", ""]
    lines += [f"{kind.name:24} {kind.catalogue:10} {figures.kinds[kind.name]:>10,}  {kind.what}" for kind in KINDS]
    lines += ["", f"{'outcome':40} {'requests':>10}", ""]
    lines += [f"{name:40} {number:>10,}" for name, number in figures.outcomes.most_common()]
    wall_s, cpu_s = max(figures.wall_s, 1e-9), max(figures.cpu_s, 1e-9)
    lines += [
        "",
        f"{figures.injected:,} faults in {figures.requests:,} requests of {figures.worlds:,} worlds; "
        f"{figures.switches:,} switches; {figures.simulated_s / 3600:,.0f} h simulated",
        f"{wall_s:.1f} s: {figures.requests / wall_s:,.0f} requests/s, {figures.injected / wall_s:,.0f} faults/s; "
        f"{figures.injected / cpu_s:,.0f} faults a second of one core",
    ]
    return "\n".join(lines)

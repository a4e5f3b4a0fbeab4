"""``python -m tests.chaos``: chaos over a local cloud of its own, shown live, and the verdict."""

from __future__ import annotations

import argparse
import asyncio
import logging
import random
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path

from rich.console import Console
from rich.live import Live

from cicada_local.testing import LocalCloud
from tests.chaos.model_watch import VARIABLE, ModelWatch
from tests.chaos.place import Place
from tests.chaos.questions import SAMPLES
from tests.chaos.record import Followed, write_record
from tests.chaos.run import Extent, Outcome, Run, Show, shown
from tests.chaos.table import live, verdict_lines
from tests.chaos.tally import Tally

_PLAIN_EVERY_S = 10.0


def main(argv: Sequence[str] | None = None) -> int:
    """Run; the exit status is 0 if every promise held."""
    parser = argparse.ArgumentParser(prog="python -m tests.chaos", description=__doc__)
    parser.add_argument(
        "--kills", type=int, default=200, help="workers to kill in mid-invocation (default: %(default)s)"
    )
    parser.add_argument("--seed", type=int, help="of every random choice; real time stays random (default: a new one)")
    parser.add_argument("--at-once", type=int, default=8, help="questions in flight (default: %(default)s)")
    parser.add_argument("--no-table", action="store_true", help="a line now and then instead of the live table")
    parser.add_argument("--keep", type=Path, help="keep the cloud's logs, and what was seen of each request, here")
    args = parser.parse_args(argv)
    seed = random.SystemRandom().randrange(1_000_000) if args.seed is None else args.seed
    logging.getLogger("cicada_client").addHandler(logging.NullHandler())  # what askers complain of belongs to the run
    console = Console()
    console.print(f"seed {seed}; starting a local cloud …")
    with tempfile.TemporaryDirectory() as scratch:
        outcome = _run(args.keep or Path(scratch), Extent(args.kills, args.at_once), seed, console, args.no_table)
    if args.keep:
        write_record(args.keep / "requests.jsonl", outcome.requests)
    console.print(verdict_lines(outcome.verdict, outcome.tally, outcome.unattributed_calls))
    for trouble in dict.fromkeys(outcome.tally.trouble):
        console.print(f"the run could not do something: {trouble}", style="dim", markup=False)
    return 0 if outcome.verdict.holds else 1


def _run(home: Path, extent: Extent, seed: int, console: Console, plain: bool) -> Outcome:
    watch = ModelWatch()
    script = [SAMPLES / "script"]
    try:
        with LocalCloud(home / "cloud", load=script, environment={VARIABLE: watch.url}) as cloud:
            watch.forward_to(cloud.endpoint_url)
            run = Run(cloud, watch, Place(cloud.websocket_url), extent, seed)
            if plain or not console.is_terminal:
                return asyncio.run(shown(run, _plain(console), _PLAIN_EVERY_S))
            with Live(console=console, auto_refresh=False) as screen:

                def show(in_flight: Sequence[Followed], ended: Sequence[Followed], tally: Tally) -> None:
                    screen.update(live(in_flight, ended, tally), refresh=True)

                return asyncio.run(shown(run, show))
    finally:
        watch.close()


def _plain(console: Console) -> Show:
    def show(in_flight: Sequence[Followed], ended: Sequence[Followed], tally: Tally) -> None:
        console.print(
            f"{tally.elapsed_s():4.0f} s: {tally.kills} kills, {tally.asked} asked, {tally.ended} ended, "
            f"{sum(tally.faults.values())} faults armed, {sum(tally.drops.values())} sockets dropped"
        )

    return show


if __name__ == "__main__":
    sys.exit(main())

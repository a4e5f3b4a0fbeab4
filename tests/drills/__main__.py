"""``python -m tests.drills``: break one thing after another in a local cloud, and show how an operator mends it."""

from __future__ import annotations

import argparse
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path

from rich.console import Console

from tests.drills.report import summary, write_report
from tests.drills.runner import deployment, run_all
from tests.drills.scenes import NOT_DRILLED, SCENES


def main(argv: Sequence[str] | None = None) -> int:
    """Run; the exit status is 0 if every scene has shown what it promises."""
    parser = argparse.ArgumentParser(prog="python -m tests.drills", description=__doc__)
    parser.add_argument("names", nargs="*", metavar="NAME", help="scenes to play (default: all)")
    parser.add_argument("--list", action="store_true", help="list the scenes")
    parser.add_argument("--report", type=Path, help="write what was shown to this file (Markdown)")
    parser.add_argument("--keep", type=Path, help="keep the cloud's state and logs in this folder")
    args = parser.parse_args(argv)
    by_name = {scene.name: scene for scene in SCENES}
    if args.list:
        for scene in SCENES:
            print(f"{scene.name:<20} {scene.alarm:<18} {scene.broken}")
        return 0
    unknown = [name for name in args.names if name not in by_name]
    if unknown:
        parser.error(f"unknown scene: {', '.join(unknown)}; --list lists them")
    scenes = [by_name[name] for name in args.names] or list(SCENES)
    console = Console(highlight=False, soft_wrap=True)
    console.print("starting a local cloud …")
    with tempfile.TemporaryDirectory() as scratch, deployment(args.keep or Path(scratch) / "cloud") as deployed:
        outcomes = run_all(scenes, deployed, lambda text: console.print(text, markup=False))
    if args.report:
        write_report(args.report, outcomes, NOT_DRILLED)
    for line in summary(outcomes):
        console.print(line, markup=False)
    return 1 if any(outcome.problem for outcome in outcomes) else 0


if __name__ == "__main__":
    sys.exit(main())

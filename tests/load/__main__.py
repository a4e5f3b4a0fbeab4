"""``python -m tests.load``: hundreds of askers at a human pace over a local cloud of its own, and the verdict."""

from __future__ import annotations

import argparse
import asyncio
import contextlib
import json
import logging
import random
import sys
import tempfile
import time
from collections.abc import Callable, Sequence
from datetime import datetime
from pathlib import Path

from cicada_local.testing import LocalCloud
from tests.load import figures, report
from tests.load.run import Extent, Outcome, Run, fill, shown
from tests.support.token_issuer import AUDIENCE, ISSUER, Issuer

SHOW_EVERY_S = 10.0
WRITE_EVERY_S = 60.0
"""How often the report is written on the way."""
TOKEN_S = 3 * 3600
SETTINGS = {
    "auth": {
        "mode": "oidc",
        "issuer": ISSUER,
        "audience": AUDIENCE,
        "jwksUrl": "https://issuer.example/jwks.json",
        "allowedOrigins": [],
    },
    "page": {"signIn": False},  # the issuer has no pages
    "agents": {"adapter": "harness"},
    "knowledge": {"enabled": False},  # the plain chain: each route is answered by the strategy of its name
}


def main(argv: Sequence[str] | None = None) -> int:
    """Run; the exit status is 0 if every promise held and every question was asked."""
    parser = argparse.ArgumentParser(prog="python -m tests.load", description=__doc__)
    extent = Extent()
    parser.add_argument("--sockets", type=int, default=extent.sockets, help="people (default: %(default)s)")
    parser.add_argument("--questions", type=int, default=extent.questions, help="of all (default: %(default)s)")
    parser.add_argument("--seed", type=int, help="of every random choice (default: a new one)")
    parser.add_argument(
        "--pace", type=float, default=extent.pace, help="multiplies every pause; 1 is a human's (default: %(default)g)"
    )
    parser.add_argument(
        "--minutes-limit",
        type=float,
        default=30.0,
        help="for all of it, start and check included (default: %(default)g)",
    )
    parser.add_argument("--concurrency", type=int, help="invocations of functions at once (default: the local cloud's)")
    parser.add_argument("--report", type=Path, help="write the figures into this Markdown file, also on the way")
    parser.add_argument("--save", type=Path, help="write the dashboard's values into this JSON file")
    parser.add_argument("--keep", type=Path, help="keep the cloud's logs here")
    args = parser.parse_args(argv)
    deadline = time.monotonic() + args.minutes_limit * 60
    seed = random.SystemRandom().randrange(1_000_000) if args.seed is None else args.seed
    logging.getLogger("cicada_client").addHandler(logging.NullHandler())
    _say(f"seed {seed}; starting a local cloud …")
    issuer = Issuer()
    try:
        with tempfile.TemporaryDirectory() as scratch:
            home = (args.keep or Path(scratch)) / "cloud"
            environment = {"JWKS_URL": issuer.jwks_url}
            with LocalCloud(home, settings=SETTINGS, environment=environment, concurrency=args.concurrency) as cloud:
                began = cloud.metric_now()
                asyncio.run(fill(cloud))
                _say("loaded; people come in …")
                seconds = deadline - time.monotonic() - _STOP_S
                extent = Extent(args.sockets, args.questions, args.pace, seconds)
                run = Run(cloud, lambda subject: issuer.token(subject, lasts_s=TOKEN_S), extent, seed)
                try:
                    outcome = asyncio.run(shown(run, _show(args.report), SHOW_EVERY_S))
                finally:
                    if args.report:
                        report.write(args.report, run.outcome)
                if args.save:
                    _save(cloud, began, args.save)
    finally:
        issuer.close()
    _say(report.markdown(outcome))
    assert outcome.verdict is not None
    return 0 if outcome.verdict.holds and outcome.tally.asked >= args.questions else 1


_STOP_S = 20.0
"""What saving and stopping may take at the end."""


def _show(page: Path | None) -> Callable[[Outcome], None]:
    written = time.monotonic()

    def show(outcome: Outcome) -> None:
        nonlocal written
        tally, elapsed_s = outcome.tally, time.monotonic() - outcome.began
        latest = [one for one in outcome.requests if one.followed.asked_at > time.monotonic() - 60]
        row = figures.by_open(latest)[-1]
        last = outcome.readings[-1]
        _say(
            f"{elapsed_s:5.0f} s: asked {tally.asked}, ended {tally.ended}, open {tally.open}; first text of the last "
            f"minute p50 {row.p50:.1f} s, p95 {row.p95:.1f} s; {last.processes} processes, {last.throttles} throttles"
        )
        if page is not None and time.monotonic() - written > WRITE_EVERY_S:
            written = time.monotonic()
            report.write(page, outcome)

    return show


def _save(cloud: LocalCloud, began: datetime, path: Path) -> None:
    """Write what the dashboard shows of the run; nothing where none is deployed."""
    from botocore.exceptions import ClientError

    from benchmarks.dashboard_data import collect

    client = cloud.client("cloudwatch")
    names = [one["DashboardName"] for one in client.list_dashboards()["DashboardEntries"]]
    with contextlib.suppress(ClientError):
        for name in names[:1]:
            path.write_text(json.dumps(collect(client, name, began, cloud.metric_now(), period_s=60)), encoding="utf-8")


def _say(text: str) -> None:
    print(text, flush=True)


if __name__ == "__main__":
    sys.exit(main())

"""``python -m cicada_local``: what ``make up``, ``make down`` and ``make clean`` do."""

from __future__ import annotations

import argparse
import asyncio
import os
import shutil
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path

OLDEST_PYTHON = (3, 11)


def main(argv: Sequence[str] | None = None) -> int:
    """Parse the command line and do it."""
    if sys.version_info < OLDEST_PYTHON:
        found = ".".join(map(str, sys.version_info[:3]))
        print(f"Python {found} is too old: {'.'.join(map(str, OLDEST_PYTHON))} or newer is needed.", file=sys.stderr)
        return 1

    from cicada_local.places import DEFAULT_PORT, ONE_MATH_THREAD, PORT_VARIABLE, Places, aws_environment
    from cicada_local.running import UpFailed, down

    default = Places.default()
    parser = argparse.ArgumentParser(prog="python -m cicada_local", description="The local cloud.")
    commands = parser.add_subparsers(dest="command", required=True)
    up = commands.add_parser("up", help="deploy and serve, until Ctrl-C")
    up.add_argument(
        "--port",
        type=int,
        default=int(os.environ.get(PORT_VARIABLE) or DEFAULT_PORT),
        help=f"0 for a free one (default: {PORT_VARIABLE}, or {DEFAULT_PORT})",
    )
    up.add_argument("--settings", type=Path, help="a JSON file in place of cdk.local.json")
    up.add_argument("--load", type=Path, action="append", help="a script to load, in place of the sample")
    up.add_argument("--no-load", action="store_true", help="load nothing")
    up.add_argument("--empty", action="store_true", help="deploy nothing: an account to deploy into")
    up.add_argument(
        "--env", action="append", default=[], metavar="NAME=VALUE", help="a further variable of every function"
    )
    up.add_argument("--auth", action="store_true", help="have users sign in, to a user pool with one user")
    up.add_argument(
        "--metric-minute",
        type=_seconds,
        default=60.0,
        metavar="SECONDS",
        help="real seconds that are one of CloudWatch's minutes (default: %(default)g)",
    )
    up.add_argument(
        "--concurrency",
        type=int,
        metavar="N",
        help="invocations of functions at once, beyond which Lambda throttles (default: 16 for each processor)",
    )
    up.add_argument("--plain", action="store_true", help="plain lines, also on a terminal")
    up.add_argument("--with-parent", action="store_true", help="stop when the parent process ends")
    stop = commands.add_parser("down", help="stop the one that runs")
    clean = commands.add_parser("clean", help="stop it, and remove its state and all that was built")
    for command in (up, stop, clean):
        command.add_argument("--home", type=Path, default=default.home, help="its folder (default: %(default)s)")
        command.add_argument("--cache", type=Path, default=default.cache, help=argparse.SUPPRESS)
    args = parser.parse_args(argv)
    places = Places(home=args.home.resolve(), cache=args.cache.resolve())
    try:
        if args.command == "up":
            ours = aws_environment(os.environ, "http://localhost:0")
            os.environ.clear()
            os.environ.update(ours | ONE_MATH_THREAD)
            return _up(args, places)
        print("Stopped." if down(places) else "Nothing runs.")
        if args.command == "clean":
            shutil.rmtree(places.home, ignore_errors=True)
            shutil.rmtree(places.cache, ignore_errors=True)
    except UpFailed as error:
        print(error, file=sys.stderr)
        return 1
    except KeyboardInterrupt:  # before it has begun, or a second time
        return 130
    return 0


def _seconds(text: str) -> float:
    seconds = float(text)
    if not 0 < seconds <= 60:
        raise argparse.ArgumentTypeError("more than 0, and at most 60")
    return seconds


def _judging(environ: Mapping[str, str]) -> dict[str, str]:
    """Where a model server answers, it judges citations too; the stand-in's own answers are quotations."""
    from cicada_local.bedrock.forwarding import URL

    return {"CITATIONS_JUDGE": "model"} if environ.get(URL) else {}


def _further_port(variable: str, port: int, after: int) -> int:
    """A port that is named by a variable, or comes some ports after the front server's; a free one after a free one."""
    return int(os.environ.get(variable) or (port + after if port else 0))


def _up(args: argparse.Namespace, places: object) -> int:
    from cicada_local.loading import SAMPLE
    from cicada_local.places import HTTP_PORT_VARIABLE, ISSUER_PORT_VARIABLE, Places
    from cicada_local.progress import steps_for
    from cicada_local.up import LOCAL_SETTINGS, Options, log_to, read_settings, run, with_model_server, with_sign_in

    assert isinstance(places, Places)
    settings = with_model_server(read_settings(args.settings or LOCAL_SETTINGS), os.environ)
    options = Options(
        port=args.port,
        places=places,
        settings=with_sign_in(settings) if args.auth else settings,
        empty=args.empty,
        load=[] if args.no_load else [path.resolve() for path in args.load or [SAMPLE]],
        issuer_port=_further_port(ISSUER_PORT_VARIABLE, args.port, 1),
        http_port=_further_port(HTTP_PORT_VARIABLE, args.port, 2),
        environment=_judging(os.environ) | dict(variable.split("=", 1) for variable in args.env),
        metric_minute_s=args.metric_minute,
        concurrency=args.concurrency,
        parent=os.getppid() if args.with_parent else None,
    )
    log_to(places.logs)
    steps = steps_for(plain=args.plain)
    try:
        asyncio.run(run(options, steps))
    finally:
        steps.close()
    return 0


if __name__ == "__main__":
    sys.exit(main())

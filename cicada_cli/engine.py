"""``cicada engine``: what a managed retrieval engine holds, and loading it."""

from __future__ import annotations

import argparse
import time
from collections.abc import Callable
from dataclasses import asdict
from typing import TYPE_CHECKING

from rich.console import Console

from cicada.errors import CicadaError, PublishConflict
from cicada_cli.deployment import Deployment
from cicada_cli.exits import Exit
from cicada_cli.index import store_of
from cicada_cli.output import complain, say, say_json
from cicada_cli.progress import progress_on
from cicada_cli.text import counted

if TYPE_CHECKING:
    from cicada.retrieval.s3vectors.load import Loaded

NEEDS = ("bucket", "vector_index_arn")
"""What these commands must know of the deployment: they call no model."""
LANGUAGES = ("en", "fr", "es", "pt", "it", "de", "nl", "zh", "ja", "ko")
"""Whose analyzers Amazon S3 Vectors has."""


def add_engine(
    commands: argparse._SubParsersAction[argparse.ArgumentParser],
    run: Callable[[argparse.Namespace], Exit],
    add_aws: Callable[[argparse._ArgumentGroup], None],
) -> None:
    """Add the command to the grammar; ``run`` carries it out."""
    parser = commands.add_parser(
        "engine", help="load a managed search engine", description="Managed engines, which search in the index's place."
    )
    actions = parser.add_subparsers(dest="engine_command", required=True, metavar="COMMAND")
    loading = actions.add_parser(
        "load",
        help="copy the current version into an engine",
        description="Copy the current version of the index, passages and vectors, into a managed engine.",
    )
    loading.add_argument("engine", choices=("s3vectors",), help="Amazon S3 Vectors")
    loading.add_argument(
        "--language", choices=LANGUAGES, help="whose analyzer searches by words (default: the standard one)"
    )
    loading.add_argument("--json", action="store_true", help="report as a JSON object")
    loading.set_defaults(run=run)
    group = loading.add_argument_group("deployment")
    group.add_argument("--bucket", help="the bucket that holds the index (CICADA_INDEX_BUCKET)")
    group.add_argument("--vector-index", metavar="ARN", help="the S3 Vectors index to fill (CICADA_VECTOR_INDEX_ARN)")
    add_aws(group)


def load(deployment: Deployment, *, language: str | None, as_json: bool, err: Console) -> Exit:
    """Make the S3 Vectors index hold the current version, and report."""
    from cicada.retrieval.s3vectors.load import CurrentVersion, Loader
    from cicada.retrieval.s3vectors.setup import LOAD_CONFIG, IndexCalls

    began = time.monotonic()
    store = store_of(deployment)
    calls = IndexCalls(deployment.aws.client("s3vectors", LOAD_CONFIG), deployment.vector_index_arn)
    try:
        with progress_on(err, {"copying": "passages"}) as progress:
            source = CurrentVersion(store)
            loaded = Loader(calls, store).load(
                source, lambda done, total: progress("copying", done, total), language=language
            )
    except PublishConflict as error:
        complain(f"{error}: that one goes on")
        return Exit.FAILED
    except CicadaError as error:
        complain(f"{error.told} ({error.code}: {error})")
        return Exit.FAILED
    if as_json:
        say_json(asdict(loaded))
    else:
        say(_words(loaded, time.monotonic() - began))
    return Exit.DONE


def _words(loaded: Loaded, took_s: float) -> str:
    return (
        f"S3 Vectors now holds version {loaded.version}: {counted(loaded.passages, 'passage')}, {loaded.put:,} copied, "
        f"{loaded.kept:,} there already, {loaded.deleted:,} removed, in {took_s:.1f} s."
    )

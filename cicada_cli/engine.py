"""``cicada engine``: load a managed search engine."""

from __future__ import annotations

import argparse
import time
from dataclasses import asdict
from typing import TYPE_CHECKING

from rich.console import Console

from cicada.errors import CicadaError, PublishConflict
from cicada_cli.context import deployment_of
from cicada_cli.deployment import Deployment
from cicada_cli.exits import Exit
from cicada_cli.grammar import Commands
from cicada_cli.index import store_of
from cicada_cli.output import complain, console, say, say_json
from cicada_cli.progress import progress_on
from cicada_cli.shared_options import add_aws, add_bucket, add_json
from cicada_cli.text import counted

if TYPE_CHECKING:
    from cicada.retrieval.s3vectors.load import Loaded

NEEDS = ("bucket", "vector_index_arn")
"""Values of the deployment that the command needs."""
LANGUAGES = ("en", "fr", "es", "pt", "it", "de", "nl", "zh", "ja", "ko")
"""Languages that Amazon S3 Vectors has an analyzer for."""


def add_engine(commands: Commands) -> None:
    """Add the command's parsers."""
    parser = commands.add_parser(
        "engine",
        help="load a managed search engine",
        description="Load a managed search engine, which searches instead of the index.",
        examples=("cicada engine load s3vectors",),
    )
    actions = parser.add_subparsers(dest="engine_command", required=True, metavar="COMMAND")
    loading = actions.add_parser(
        "load",
        help="copy the current version into an engine",
        description="Copy the current version of the index into a managed engine: passages and vectors.",
        examples=("cicada engine load s3vectors", "cicada engine load s3vectors --language de"),
    )
    loading.add_argument("engine", choices=("s3vectors",), metavar="ENGINE", help="s3vectors: Amazon S3 Vectors")
    loading.add_argument(
        "--language",
        choices=LANGUAGES,
        metavar="LANGUAGE",
        help=f"language of the word search: {', '.join(LANGUAGES)} (default: the standard analyzer)",
    )
    add_json(loading)
    loading.set_defaults(run=_load)
    group = loading.add_argument_group("deployment")
    add_bucket(group)
    group.add_argument("--vector-index", metavar="ARN", help="S3 Vectors index (CICADA_VECTOR_INDEX_ARN)")
    add_aws(group)


def _load(args: argparse.Namespace) -> Exit:
    deployment = deployment_of(args, NEEDS)
    return load(deployment, language=args.language, as_json=args.json, err=console(stderr=True))


def load(deployment: Deployment, *, language: str | None, as_json: bool, err: Console) -> Exit:
    """Copy the current version into the S3 Vectors index, and report."""
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
        complain(f"another load is in progress: {error}")
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
        f"S3 Vectors has version {loaded.version}: {counted(loaded.passages, 'passage')} ({loaded.put:,} copied, "
        f"{loaded.kept:,} kept, {loaded.deleted:,} deleted) in {took_s:.1f} s."
    )

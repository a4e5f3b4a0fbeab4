"""``cicada load``: load a script or documents into the index. ``cicada unload``: delete documents."""

from __future__ import annotations

import argparse
import os
import sys
import time
from collections.abc import Sequence
from importlib.util import find_spec
from typing import TYPE_CHECKING

from rich.console import Console

from cicada.corpus.declared.declaration import DECLARATION
from cicada.errors import CicadaError, CorpusInvalid, PublishConflict
from cicada_cli import load_options
from cicada_cli.context import deployment_of
from cicada_cli.deployment import INDEX, Deployment
from cicada_cli.exits import Exit, UsageError
from cicada_cli.grammar import Commands
from cicada_cli.index import PIECES, embedder_of, enricher_of, recorded_store_of
from cicada_cli.load_options import DOCUMENT_COLLECTION, SCRIPT_COLLECTION, LoadOptions
from cicada_cli.load_view import (
    plain_estimate,
    plain_ingest,
    plain_script,
    tell_quarantined,
    words_of_estimate,
    words_of_ingest,
    words_of_script,
    words_of_undeclared,
)
from cicada_cli.output import complain, console, say, say_json
from cicada_cli.progress import progress_on
from cicada_cli.serving import wait_until_served
from cicada_cli.text import counted, one_line

if TYPE_CHECKING:
    from cicada.index.compaction import Compacted
    from cicada.index.ports import ObjectStore, Progress
    from cicada.ingest.contracts import Recipe
    from cicada.ingest.estimating import LoadEstimate
    from cicada.ingest.sources import SourceFiles

CONFIRM_ABOVE_USD = 1.0
"""On a terminal, ask before a load that may cost more."""


def add_load(commands: Commands) -> None:
    """Add the command's parser."""
    load_options.add_load(commands).set_defaults(run=_load)


def add_unload(commands: Commands) -> None:
    """Add the command's parser."""
    load_options.add_unload(commands).set_defaults(run=_unload)


def _load(args: argparse.Namespace) -> Exit:
    asked = LoadOptions.of(args)
    return load(deployment_of(args, INDEX), asked, err=console(stderr=True))


def _unload(args: argparse.Namespace) -> Exit:
    deployment = deployment_of(args, INDEX)
    return unload(deployment, args.sources, args.collection, as_json=args.json, err=console(stderr=True))


def load(deployment: Deployment, asked: LoadOptions, *, err: Console) -> Exit:
    """Load a script or documents, compact the collection if it is due, and report.

    Raises:
        UsageError: there are PDF files and the extra for them is not installed.
    """
    from cicada.corpus.readers.sandbox import ReaderUnavailable
    from cicada.ingest.declaring import declaration_of
    from cicada.ingest.loading import scripts_alone
    from cicada.ingest.sources import source_files

    try:
        found = source_files(asked.paths)
        declaration = declaration_of(found, asked.collection)
        if scripts_alone(found) and not asked.as_documents:
            return _load_script(deployment, asked, asked.collection or SCRIPT_COLLECTION, found, err)
        declared = DOCUMENT_COLLECTION if declaration is None else declaration.collection
        return _load_documents(deployment, asked, asked.collection or declared, found, err)
    except CorpusInvalid as error:
        complain(f"nothing was loaded:\n{error}")
    except CicadaError as error:
        complain(f"{error.told} ({error.code}: {error})")
    except ReaderUnavailable as error:
        if find_spec("pypdf") is not None:
            raise
        raise UsageError("PDF files need the extra pdf: pip install '.[pdf]' in Cicada's repository") from error
    except KeyboardInterrupt:
        complain("interrupted: run the same command to resume")
        sys.stdout.flush()
        os._exit(Exit.INTERRUPTED)  # calls in progress can take minutes; a load can be interrupted anywhere
    return Exit.FAILED


def unload(deployment: Deployment, sources: Sequence[str], collection: str, *, as_json: bool, err: Console) -> Exit:
    """Delete documents, compact the collection if it is due, and report."""
    from cicada.ingest.loading import unload as unload_documents

    store = recorded_store_of(deployment, command="unload")
    try:
        with progress_on(err, PIECES) as progress:
            report = unload_documents(store, embedder_of(deployment), collection, sources)
            compacted = _compacted(store, collection, progress)
    except CicadaError as error:
        complain(f"{error.told} ({error.code}: {error})")
        return Exit.FAILED
    if as_json:
        say_json(plain_ingest(report, compacted))
    else:
        if documents := [source for source in report.removed if source != DECLARATION]:
            say(
                f"Deleted {counted(len(documents), 'document')} ({counted(report.deleted, 'passage')}). "
                f"{collection} has {counted(report.passages, 'passage')}."
            )
        if report.undeclared:
            say(words_of_undeclared(collection))
    unknown = [source for source in dict.fromkeys(sources) if source not in report.removed]
    for source in unknown:
        complain(f"unknown document {one_line(source)} in {collection}")
    return Exit.FAILED if unknown else Exit.DONE


def _load_script(deployment: Deployment, asked: LoadOptions, collection: str, found: SourceFiles, err: Console) -> Exit:
    from cicada.ingest.scripts import load_script

    began = time.monotonic()
    store = recorded_store_of(deployment, command="load")
    with progress_on(err, PIECES) as progress:
        report = load_script(
            [file.path for file in found.files],
            collection,
            store,
            embedder_of(deployment),
            progress,
            start_over=asked.start_over,
            verify=asked.verify,
        )
        compacted = _compacted(store, collection, progress)
    plain, took_s = plain_script(report, compacted), time.monotonic() - began
    if asked.wait and report.written.published:
        wait_until_served(err)
    if asked.as_json:
        say_json(plain)
    else:
        say(words_of_script(report, compacted, took_s))
    return Exit.DONE


def _load_documents(
    deployment: Deployment, asked: LoadOptions, collection: str, found: SourceFiles, err: Console
) -> Exit:
    from cicada.ingest.contracts import Recipe
    from cicada.ingest.loading import load_documents

    began = time.monotonic()
    store, embedder = recorded_store_of(deployment, command="load"), embedder_of(deployment)
    recipe = Recipe(
        embedding_model_id=embedder.model_id,
        dimensions=embedder.dimensions,
        chunks=asked.chunks,
        enrichment=asked.enrichment,
    )
    if asked.estimate:
        estimate = _estimate(deployment, asked, collection, store, recipe, err)
        if asked.as_json:
            say_json(plain_estimate(estimate))
        else:
            say(words_of_estimate(estimate))
        return Exit.DONE
    if not _agreed(deployment, asked, collection, found, store, recipe, err):
        complain("nothing was loaded")
        return Exit.FAILED
    with progress_on(err, PIECES) as progress:
        report = load_documents(
            asked.paths,
            collection,
            store,
            embedder,
            recipe,
            enricher=enricher_of(deployment, recipe.enrichment, store),
            exactly=not asked.add,
            metadata=asked.metadata,
            start_over=asked.start_over,
            verify=asked.verify,
            progress=progress,
            workers=asked.workers,
        )
        compacted = _compacted(store, collection, progress)
    took_s = time.monotonic() - began
    if asked.wait and report.published:
        wait_until_served(err)
    if asked.as_json:
        say_json(plain_ingest(report, compacted))
    else:
        say(words_of_ingest(report, compacted, took_s))
        tell_quarantined(report)
    return Exit.INCOMPLETE if report.quarantined else Exit.DONE


def _estimate(
    deployment: Deployment, asked: LoadOptions, collection: str, store: ObjectStore, recipe: Recipe, err: Console
) -> LoadEstimate:
    from cicada.ingest.estimating import estimate_load

    with progress_on(err, PIECES) as progress:
        return estimate_load(
            asked.paths,
            collection,
            store,
            recipe,
            enricher=enricher_of(deployment, recipe.enrichment, store),
            exactly=not asked.add,
            metadata=asked.metadata,
            progress=progress,
            workers=asked.workers,
        )


def _agreed(
    deployment: Deployment,
    asked: LoadOptions,
    collection: str,
    found: SourceFiles,
    store: ObjectStore,
    recipe: Recipe,
    err: Console,
) -> bool:
    """Whether to continue. On a terminal, the user is asked if the load may be expensive."""
    from cicada.ingest.estimating import bound_by_size

    if asked.yes or not (err.is_terminal and sys.stdin.isatty()):
        return True
    bound = bound_by_size(found.files, recipe)
    if not recipe.enrichment.model_id and (bound is None or bound <= CONFIRM_ABOVE_USD):
        return True
    estimate = _estimate(deployment, asked, collection, store, recipe, err)
    if estimate.cost_usd is not None and estimate.cost_usd <= CONFIRM_ABOVE_USD:
        return True
    err.print(words_of_estimate(estimate), soft_wrap=True)
    err.print("Load? [y/N] ", end="")
    try:
        return input().strip().lower() in ("y", "yes")
    except EOFError:
        return False


def _compacted(store: ObjectStore, collection: str, progress: Progress) -> Compacted | None:
    """The result of a compaction, if it was due. A compaction that another writer prevented does not fail the load."""
    from cicada.errors import IndexMissing
    from cicada.index.compaction import compact

    try:
        return compact(store, collection=collection, progress=progress)
    except IndexMissing:
        return None
    except PublishConflict as error:
        complain(f"did not compact the collection: {error}")
        return None

"""The options of ``cicada load`` and ``cicada unload``."""

from __future__ import annotations

import argparse
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path

from cicada.corpus.chunking.options import (
    DEFAULT_CHUNK_SIZE,
    DEFAULT_OVERLAP,
    DEFAULT_SIMILARITY,
    MAX_CHUNK_SIZE,
    ChunkOptions,
)
from cicada.ingest.contracts import EnrichmentOptions
from cicada_cli import argument_types
from cicada_cli.exits import Exit, UsageError

SCRIPT_COLLECTION = "script"
DOCUMENT_COLLECTION = "documents"
DEFAULT_WORKERS = 4
MAX_WORKERS = 32
WORKFLOW_ID = "workflow_id"
"""The metadata key of the workflow that a document is labelled with."""


@dataclass(frozen=True)
class LoadOptions:
    """The command line."""

    paths: tuple[Path, ...]
    collection: str | None = None  # none for that of its kind
    start_over: bool = False
    verify: bool = False
    add: bool = False
    chunks: ChunkOptions = field(default_factory=ChunkOptions)
    enrichment: EnrichmentOptions = field(default_factory=EnrichmentOptions)
    metadata: Mapping[str, str] | None = None
    as_documents: bool = False  # something was given that a script loaded as a whole does not have
    workers: int = DEFAULT_WORKERS
    estimate: bool = False
    yes: bool = False
    as_json: bool = False

    @classmethod
    def of(cls, args: argparse.Namespace) -> LoadOptions:
        """Read what :func:`add_load` has parsed.

        Raises:
            UsageError: options do not go together.
        """
        if args.start_over and args.add:
            raise UsageError("--start-over and --add exclude each other")
        if args.overlap >= args.chunk_size:
            raise UsageError(f"--overlap, {args.overlap}, must be less than --chunk-size, {args.chunk_size}: give both")
        by_model = "model" in (args.entities, args.summaries)
        if by_model and not args.enrichment_model:
            raise UsageError("enrichment by a model requires --enrichment-model ID")
        metadata = dict(args.metadata)
        if args.workflow_id is not None:
            metadata[WORKFLOW_ID] = args.workflow_id
        return cls(
            paths=tuple(args.paths),
            collection=args.collection,
            start_over=args.start_over,
            verify=args.verify,
            add=args.add,
            chunks=ChunkOptions(
                chunk_size=args.chunk_size, overlap=args.overlap, boundaries=args.boundaries, similarity=args.similarity
            ),
            enrichment=EnrichmentOptions(
                entities=args.entities,
                codes=args.entities != "off",
                summaries=args.summaries,
                model_id=args.enrichment_model if by_model else "",
            ),
            metadata=metadata,
            as_documents=bool(args.add or metadata or by_model or args.estimate),
            workers=args.workers,
            estimate=args.estimate,
            yes=args.yes,
            as_json=args.json,
        )


def add_load(
    commands: argparse._SubParsersAction[argparse.ArgumentParser],
    run: Callable[[argparse.Namespace], Exit],
    add_index: Callable[[argparse.ArgumentParser], None],
) -> None:
    """Add ``load`` to the grammar; ``run`` carries it out."""
    parser = commands.add_parser(
        "load", help="load documents or a script", description="Load documents, or a script, into the index."
    )
    add = parser.add_argument
    add("paths", metavar="PATH", nargs="+", type=Path, help="a file, or a folder of files")
    add(
        "--collection",
        help="the collection that will hold it (default: the one that a folder's collection.yaml declares, else script "
        "for scripts, documents for all else)",
    )
    add("--add", action="store_true", help="keep what else the collection holds; by default it holds just these files")
    add(
        "--start-over",
        action="store_true",
        help="drop all other collections: for another embedding model, or a damaged index",
    )
    add("--verify", action="store_true", help="verify everything in the collection and rewrite what is damaged")
    add(
        "--workers",
        type=argument_types.whole(1, MAX_WORKERS),
        default=DEFAULT_WORKERS,
        metavar="N",
        help="documents at a time (default: 4)",
    )
    add("--estimate", action="store_true", help="show the cost and load nothing")
    add("--yes", action="store_true", help="do not ask before a load that costs much")
    add("--json", action="store_true", help="report as a JSON object")

    cutting = parser.add_argument_group("documents")
    add = cutting.add_argument
    add(
        "--chunk-size",
        type=argument_types.whole(50, MAX_CHUNK_SIZE),
        default=DEFAULT_CHUNK_SIZE,
        metavar="N",
        help="tokens at most (default: %(default)s)",
    )
    add(
        "--overlap",
        type=argument_types.whole(0, MAX_CHUNK_SIZE),
        default=DEFAULT_OVERLAP,
        metavar="N",
        help="tokens repeated at most; less than --chunk-size (default: %(default)s)",
    )
    add(
        "--boundaries",
        choices=("structure", "words", "embedding"),
        default="words",
        help="where chunks may end beside headings and paragraphs: nowhere, or where the subject changes, told by "
        "shared words or by the embedding model (default: %(default)s)",
    )
    add(
        "--similarity",
        type=argument_types.share,
        default=DEFAULT_SIMILARITY,
        metavar="S",
        help="of two sentences, 0 to 1, below which the subject changes (default: %(default)s)",
    )
    add(
        "--entities",
        choices=("off", "rules", "model"),
        default="rules",
        help="find who and what passages name, and codes in them (default: %(default)s)",
    )
    add(
        "--summaries",
        choices=("off", "model"),
        default="off",
        help="summarise documents and passages (default: %(default)s)",
    )
    add("--enrichment-model", metavar="ID", help="the model on Amazon Bedrock that does so")
    add("--workflow-id", metavar="ID", help="a label that retrievals can be limited to; no access control")
    add(
        "--metadata",
        type=argument_types.metadata,
        action="append",
        default=[],
        metavar="KEY=VALUE",
        help="kept with every passage, to filter by; can be repeated",
    )
    add_index(parser)
    parser.set_defaults(run=run)


def add_unload(
    commands: argparse._SubParsersAction[argparse.ArgumentParser],
    run: Callable[[argparse.Namespace], Exit],
    add_index: Callable[[argparse.ArgumentParser], None],
) -> None:
    """Add ``unload`` to the grammar; ``run`` carries it out."""
    parser = commands.add_parser(
        "unload", help="delete documents", description="Delete documents and their passages from a collection."
    )
    parser.add_argument(
        "sources",
        metavar="SOURCE",
        nargs="+",
        help="a document, as its passages name their source; collection.yaml for what the collection declares",
    )
    parser.add_argument("--collection", required=True, help="the collection that holds them")
    parser.add_argument("--json", action="store_true", help="report as a JSON object")
    add_index(parser)
    parser.set_defaults(run=run)

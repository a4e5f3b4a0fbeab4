"""The options of ``cicada load`` and ``cicada unload``."""

from __future__ import annotations

import argparse
from collections.abc import Mapping
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
from cicada_cli.exits import UsageError
from cicada_cli.grammar import Commands
from cicada_cli.shared_options import add_index, add_json

SCRIPT_COLLECTION = "script"
DOCUMENT_COLLECTION = "documents"
DEFAULT_WORKERS = 4
MAX_WORKERS = 32
WORKFLOW_ID = "workflow_id"
"""The metadata key of a document's workflow label."""


@dataclass(frozen=True)
class LoadOptions:
    """The options of ``cicada load``."""

    paths: tuple[Path, ...]
    collection: str | None = None  # None for the default of its kind
    start_over: bool = False
    verify: bool = False
    add: bool = False
    chunks: ChunkOptions = field(default_factory=ChunkOptions)
    enrichment: EnrichmentOptions = field(default_factory=EnrichmentOptions)
    metadata: Mapping[str, str] | None = None
    as_documents: bool = False  # an option was given that needs documents to be loaded one by one
    workers: int = DEFAULT_WORKERS
    estimate: bool = False
    yes: bool = False
    wait: bool = True  # until what was published is served
    as_json: bool = False

    @classmethod
    def of(cls, args: argparse.Namespace) -> LoadOptions:
        """Read what :func:`add_load` has parsed.

        Raises:
            UsageError: options conflict.
        """
        if args.start_over and args.add:
            raise UsageError("--start-over and --add cannot be combined")
        if args.overlap >= args.chunk_size:
            raise UsageError(f"--overlap ({args.overlap}) must be less than --chunk-size ({args.chunk_size})")
        by_model = "model" in (args.entities, args.summaries)
        if by_model and not args.enrichment_model:
            raise UsageError("enrichment by a model needs --enrichment-model ID")
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
            wait=not args.no_wait,
            as_json=args.json,
        )


def add_load(commands: Commands) -> argparse.ArgumentParser:
    """Add the parser of ``cicada load``."""
    parser = commands.add_parser(
        "load",
        help="load documents or a script",
        description="Load documents or a script into a collection of the index. The collection then holds exactly "
        "these files.",
        examples=(
            "cicada load samples/script",
            "cicada load manuals --collection manuals",
            "cicada load new.pdf --add --collection manuals",
        ),
    )
    add = parser.add_argument
    add("paths", metavar="PATH", nargs="+", type=Path, help="a file or a folder")
    add(
        "--collection",
        metavar="COLLECTION",
        help="the collection (default: the one that collection.yaml declares, else script for scripts, documents for "
        "other files)",
    )
    add("--add", action="store_true", help="keep the other documents of the collection")
    add(
        "--start-over",
        action="store_true",
        help="drop all other collections: to change the embedding model or replace a damaged index",
    )
    add("--verify", action="store_true", help="verify all objects of the collection and rewrite damaged ones")
    add(
        "--workers",
        type=argument_types.whole(1, MAX_WORKERS),
        default=DEFAULT_WORKERS,
        metavar="N",
        help="documents at a time (default: %(default)s)",
    )
    add("--estimate", action="store_true", help="show the cost of model calls and load nothing")
    add("--yes", action="store_true", help="do not ask before an expensive load")
    add("--no-wait", action="store_true", help="do not wait until the new version is served")
    add_json(parser, "print the report as a JSON object")

    cutting = parser.add_argument_group("documents")
    add = cutting.add_argument
    add(
        "--chunk-size",
        type=argument_types.whole(50, MAX_CHUNK_SIZE),
        default=DEFAULT_CHUNK_SIZE,
        metavar="N",
        help="maximum tokens of a chunk (default: %(default)s)",
    )
    add(
        "--overlap",
        type=argument_types.whole(0, MAX_CHUNK_SIZE),
        default=DEFAULT_OVERLAP,
        metavar="N",
        help="maximum tokens that a chunk repeats; less than --chunk-size (default: %(default)s)",
    )
    add(
        "--boundaries",
        choices=("structure", "words", "embedding"),
        default="words",
        help="where chunks may end: at headings and paragraphs, or also at a change of topic, detected by words or "
        "embedding (default: %(default)s)",
    )
    add(
        "--similarity",
        type=argument_types.share,
        default=DEFAULT_SIMILARITY,
        metavar="S",
        help="similarity of two sentences, 0 to 1, below which the topic changes (default: %(default)s)",
    )
    add(
        "--entities",
        choices=("off", "rules", "model"),
        default="rules",
        help="how to find names and codes in passages (default: %(default)s)",
    )
    add(
        "--summaries",
        choices=("off", "model"),
        default="off",
        help="summarise documents and passages (default: %(default)s)",
    )
    add("--enrichment-model", metavar="ID", help="the model for entities and summaries")
    add("--workflow-id", metavar="ID", help="a label that retrieval can filter by; no access control")
    add(
        "--metadata",
        type=argument_types.metadata,
        action="append",
        default=[],
        metavar="KEY=VALUE",
        help="metadata of every passage, to filter by; can be repeated",
    )
    add_index(parser)
    return parser


def add_unload(commands: Commands) -> argparse.ArgumentParser:
    """Add the parser of ``cicada unload``."""
    parser = commands.add_parser(
        "unload",
        help="delete documents",
        description="Delete documents and their passages from a collection.",
        examples=("cicada unload press-7.pdf --collection manuals",),
    )
    parser.add_argument(
        "sources",
        metavar="SOURCE",
        nargs="+",
        help="path of the document below the loaded folder; collection.yaml for the declaration",
    )
    parser.add_argument("--collection", metavar="COLLECTION", required=True, help="the collection")
    add_json(parser, "print the report as a JSON object")
    add_index(parser)
    return parser

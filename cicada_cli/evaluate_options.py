"""The options of ``cicada eval``."""

from __future__ import annotations

import argparse
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path

from cicada.protocol.actions import MAX_TOP_K
from cicada_cli.answers_options import AskedAnswers, add_answers_arguments, given_without_answers
from cicada_cli.argument_types import positive
from cicada_cli.aws import Aws
from cicada_cli.exits import UsageError
from cicada_cli.near_names import unknown_name
from cicada_evaluation.measures import DEFAULT_RECALL
from cicada_evaluation.modes import MODES, PIPELINES, SHARD_MODES

DEFAULT_MODES = tuple(SHARD_MODES)
DEFAULT_ANSWERS_MODES = ("hybrid",)
"""What the strategies search with."""
DEFAULT_TOLERANCE = 0.01


@dataclass(frozen=True)
class EvaluateOptions:
    """The command line."""

    datasets: tuple[Path, ...]
    modes: tuple[str, ...]  # ways to search, pipelines among them
    limit: int | None
    recall: tuple[int, ...]
    seed: int
    work: Path | None
    collection: str | None
    embedding_model_id: str | None
    dimensions: int | None
    aws: Aws
    s3_vectors_index_arn: str
    kendra_index_id: str
    reranker_model_id: str | None
    expansion_model_id: str | None
    fees: Path | None
    json: Path | None
    plot: Path | None
    compare: tuple[Path, ...]
    gate: str | None
    gate_against: Path | None
    tolerance: float
    version: str  # of Cicada
    answers: AskedAnswers | None = None  # what is to be measured of answers; None where retrieval is measured

    @classmethod
    def of(cls, args: argparse.Namespace, aws: Aws, version: str) -> EvaluateOptions:
        """Read what :func:`add_arguments` and the deployment's options have parsed.

        Raises:
            UsageError: an option has no meaning without ``--answers``.
        """
        if stray := given_without_answers(args):
            raise UsageError(f"{stray} needs --answers")
        return cls(
            datasets=tuple(args.dataset),
            modes=_chosen(args.mode, args.pipeline, DEFAULT_ANSWERS_MODES if args.answers else DEFAULT_MODES),
            limit=args.limit,
            recall=args.recall,
            seed=args.seed,
            work=args.work,
            collection=args.collection,
            embedding_model_id=args.embedding_model,
            dimensions=args.dimensions,
            aws=aws,
            s3_vectors_index_arn=args.vector_index,
            kendra_index_id=args.kendra_index,
            reranker_model_id=args.reranker,
            expansion_model_id=args.expansion_model,
            fees=args.fees,
            json=args.json,
            plot=args.plot,
            compare=tuple(args.compare),
            gate=args.gate,
            gate_against=args.gate_against,
            tolerance=args.tolerance,
            version=version,
            answers=AskedAnswers.of(args),
        )


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """The options of the command's own."""
    add = parser.add_argument
    add(
        "--dataset",
        metavar="PATH",
        type=Path,
        action="append",
        default=[],
        help="a judged set: a folder in BEIR's layout, a script or documents with questions; can be repeated",
    )
    add(
        "--mode",
        metavar="MODE,…",
        type=_modes,
        help="of hybrid, dense, keyword, s3vectors and kendra "
        f"(default: {_listed(DEFAULT_MODES)}; with --answers {_listed(DEFAULT_ANSWERS_MODES)}; none with --pipeline)",
    )
    add(
        "--pipeline",
        metavar="NAME,…",
        type=_pipelines,
        default=(),
        help=f"in addition to the modes, of {_listed(PIPELINES)}",
    )
    add(
        "--citations",
        metavar="FILE",
        type=Path,
        nargs="+",
        default=[],
        help="measure the checks of citations instead, on files of labelled pairs, with --judge by that model",
    )
    add("--limit", metavar="N", type=positive, help="ask this many queries only, chosen evenly (default: all)")
    add(
        "--recall",
        metavar="K,…",
        type=_ranks,
        default=DEFAULT_RECALL,
        help=f"ranks of recall@k (default: {_listed(DEFAULT_RECALL)})",
    )
    add(
        "--work",
        metavar="DIR",
        type=Path,
        help="keep the indexes in this folder for the next run (default: a temporary folder)",
    )
    add("--collection", metavar="COLLECTION", help="search this collection of the deployment, which holds the set")
    add("--json", metavar="FILE", type=Path, help="write the report to this file, for a later --compare")
    add("--plot", metavar="FILE.svg", type=_svg, help="write a bar chart")
    add(
        "--compare",
        metavar="FILE",
        type=Path,
        nargs="+",
        default=[],
        help="an earlier report to compare with, or two reports to compare",
    )
    add("--gate", metavar="CONDITIONS", help="fail unless these hold: ndcg@10>=0.40,hybrid:recall@100>=0.9, or @FILE")
    add("--gate-against", metavar="FILE", type=Path, help="fail if a measure is worse than in this earlier report")
    add("--tolerance", type=float, default=DEFAULT_TOLERANCE, help="by how much it may be worse (default: %(default)s)")
    add("--seed", type=int, default=0, help="seed of the bootstrap (default: %(default)s)")
    pipelines = parser.add_argument_group("pipelines")
    pipelines.add_argument("--reranker", metavar="ID", help="model that re-ranks passages")
    pipelines.add_argument("--expansion-model", metavar="ID", help="model that expands queries")
    add_answers_arguments(parser)
    engines = parser.add_argument_group("managed engines")
    engines.add_argument("--vector-index", metavar="ARN", default="", help="vector index of --mode s3vectors")
    engines.add_argument("--kendra-index", metavar="ID", default="", help="Kendra index of --mode kendra")
    engines.add_argument(
        "--fees", metavar="FILE", type=Path, help="prices of the engines, instead of the built-in table"
    )


def _chosen(modes: tuple[str, ...] | None, pipelines: tuple[str, ...], default: tuple[str, ...]) -> tuple[str, ...]:
    return (*(modes if modes is not None else () if pipelines else default), *pipelines)


def _pipelines(text: str) -> tuple[str, ...]:
    return _each_of(PIPELINES, text)


def _modes(text: str) -> tuple[str, ...]:
    return _each_of(MODES, text)


def _each_of(known: Sequence[str], text: str) -> tuple[str, ...]:
    names = tuple(dict.fromkeys(part.strip() for part in text.split(",")))
    if unknown := [name for name in names if name not in known]:
        raise argparse.ArgumentTypeError(unknown_name("value", unknown[0], known))
    return names


def _ranks(text: str) -> tuple[int, ...]:
    ranks = tuple(sorted({positive(part.strip()) for part in text.split(",")}))
    if ranks[-1] > MAX_TOP_K:
        raise argparse.ArgumentTypeError(f"must be at most {MAX_TOP_K}")
    return ranks


def _svg(text: str) -> Path:
    if not text.lower().endswith(".svg"):
        raise argparse.ArgumentTypeError("must end in .svg")
    return Path(text)


def _listed(values: Iterable[object]) -> str:
    return ",".join(map(str, values))

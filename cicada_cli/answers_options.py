"""The options of ``cicada eval --answers``."""

from __future__ import annotations

import argparse
from dataclasses import dataclass
from pathlib import Path

from cicada.defaults import DEFAULT_MIN_SCORE
from cicada_cli.argument_types import share, whole

REMOVED, LEFT_OUT, NONE = "removed", "left-out", "none"
MAX_AT_ONCE = 64
MAX_PROMPT_PASSAGES = 50


@dataclass(frozen=True)
class AskedAnswers:
    """What the command line says of answers."""

    generators: tuple[str, ...]
    judge: str | None
    unanswerable: tuple[str, ...]
    """As typed: ``removed``, ``left-out``, ``none``, or a file; empty for what suits the set."""
    endpoints: Path | None
    at_once: int
    min_score: float
    prompt_passages: int | None  # what a deployment takes when None

    @classmethod
    def of(cls, args: argparse.Namespace) -> AskedAnswers | None:
        """Read what :func:`add_answers_arguments` has parsed; None where answers are not asked for."""
        if not args.answers:
            return None
        return cls(
            generators=args.generator,
            judge=args.judge,
            unanswerable=tuple(args.unanswerable),
            endpoints=args.endpoints,
            at_once=args.at_once,
            min_score=args.min_score,
            prompt_passages=args.prompt_passages,
        )


def given_without_answers(args: argparse.Namespace) -> str | None:
    """An option that means something with ``--answers`` only, and was given without it."""
    given = {
        "--generator": args.generator,
        "--judge": args.judge,
        "--unanswerable": args.unanswerable,
        "--endpoints": args.endpoints,
    }
    return None if args.answers else next((option for option, value in given.items() if value), None)


def add_answers_arguments(parser: argparse.ArgumentParser) -> None:
    """The options that are about answers."""
    group = parser.add_argument_group("answers")
    add = group.add_argument
    add("--answers", action="store_true", help="generate answers and measure them")
    add(
        "--generator",
        metavar="ID,…",
        type=_ids,
        default=(),
        help="models that answer: of Amazon Bedrock, or <endpoint>/<model> (default: the local cloud's)",
    )
    add(
        "--judge",
        metavar="ID",
        help="a model that scores the answers, in addition to the rules",
    )
    add(
        "--unanswerable",
        metavar="WHICH",
        action="append",
        default=[],
        help=f"ask questions that nothing answers: {REMOVED} (the set's own, what is relevant taken out of what is "
        f"found), {LEFT_OUT} (those without anything relevant), a file of questions, or {NONE}; can be repeated "
        f"(default: {LEFT_OUT} for a script, {NONE} for another set)",
    )
    add(
        "--endpoints",
        metavar="FILE",
        type=Path,
        help="the endpoints of models as JSON (default: CICADA_MODEL_ENDPOINTS)",
    )
    add(
        "--at-once",
        metavar="N",
        type=whole(1, MAX_AT_ONCE),
        default=1,
        help="answers at a time; more than one raises the latencies (default: %(default)s)",
    )
    add(
        "--min-score",
        metavar="SCORE",
        type=share,
        default=DEFAULT_MIN_SCORE,
        help="minimum score of a passage in a prompt, 0 to 1 (default: %(default)s)",
    )
    add(
        "--prompt-passages",
        metavar="N",
        type=whole(1, MAX_PROMPT_PASSAGES),
        help="maximum number of passages in a prompt (default: as a deployment)",
    )


def _ids(text: str) -> tuple[str, ...]:
    ids = tuple(dict.fromkeys(part.strip() for part in text.split(",") if part.strip()))
    if not ids:
        raise argparse.ArgumentTypeError("must be the id of a model")
    return ids

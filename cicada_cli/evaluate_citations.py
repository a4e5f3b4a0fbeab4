"""``cicada eval --citations``: how well citations are checked, by code alone or with a judge."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from pathlib import Path

from rich.console import Console

from cicada_cli.aws import Aws
from cicada_cli.endpoints import models_at, read_endpoints
from cicada_cli.exits import Exit, UsageError
from cicada_evaluation.errors import EvaluationRefused


def evaluate_citations(
    files: Sequence[Path],
    judge_id: str | None,
    endpoints_file: Path | None,
    aws: Aws,
    *,
    out: Console,
    environ: Mapping[str, str] = os.environ,
) -> Exit:
    """Check every labelled pair, and show how often each verdict is right.

    Args:
        files: of labelled pairs.
        judge_id: the model that judges what code cannot tell; None for code alone.
        endpoints_file: of the endpoints that may serve it.
        aws: where models of Bedrock, and the endpoints' secrets, are.
        out: for the tables.
        environ: may hold the endpoints and their keys.

    Raises:
        UsageError: a file is none, or the model cannot be had.
    """
    from cicada.answering.judge import CitationJudge
    from cicada.citations.judging import JUDGE_MAX_TOKENS
    from cicada.errors import SettingsInvalid
    from cicada_evaluation.citations import read_pairs, table, verdict_of

    try:
        parts = [(path, read_pairs(path)) for path in files]
        judge = None
        if judge_id is not None:
            models = models_at(aws, read_endpoints(endpoints_file, environ), secrets=aws, environ=environ)
            judge = CitationJudge(models.structured(judge_id, max_tokens=JUDGE_MAX_TOKENS), time_s=30)
    except (EvaluationRefused, SettingsInvalid) as error:
        raise UsageError(str(error)) from error
    for path, pairs in parts:
        verdicts = [verdict_of(pair, judge) for pair in pairs]
        out.print(f"{path.name}: {judge_id or 'code alone'}", *table(pairs, verdicts), sep="\n", soft_wrap=True)
    return Exit.DONE

"""``cicada eval --answers``: what writes and what judges, and the run over a set."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping
from functools import lru_cache
from pathlib import Path
from typing import TYPE_CHECKING

from cicada_cli.answers_options import LEFT_OUT, NONE, REMOVED, AskedAnswers
from cicada_cli.aws import Aws
from cicada_cli.endpoints import models_at, read_endpoints
from cicada_cli.exits import UsageError
from cicada_evaluation.standin import WRITER_ID

if TYPE_CHECKING:  # numpy and boto3 are loaded by a run
    from cicada.models.endpoints import Endpoints
    from cicada.models.factory import ModelFactory
    from cicada_evaluation.answers.cases import Unanswerable
    from cicada_evaluation.answers.running import AnswersPlan
    from cicada_evaluation.judged import JudgedSet


def plan_of(
    asked: AskedAnswers,
    *,
    modes: tuple[str, ...],
    limit: int | None,
    seed: int,
    runtime: Aws,
    aws: Aws,
    environ: Mapping[str, str] = os.environ,
) -> Callable[[JudgedSet], AnswersPlan]:
    """The plan for each set. Every model is made now, so that an unknown one is told before anything is paid for.

    Args:
        asked: the command line.
        modes: ways to search.
        limit: how many of a file's unanswerable questions are asked.
        seed: of the intervals' random numbers.
        runtime: where the embedding model is called; ``local.`` models write there too.
        aws: where all other models of Bedrock, and the endpoints' secrets, are.
        environ: may hold the endpoints and their keys.

    Raises:
        UsageError: no generator is named, and none is at hand; or one cannot be had.
        SettingsInvalid: no endpoint serves such a model.
    """
    from cicada.settings import AnswerSettings
    from cicada_evaluation.answers.finding import Searching
    from cicada_evaluation.answers.judging import MAX_TOKENS, Judge
    from cicada_evaluation.answers.running import AnswersPlan

    models = _models(runtime, aws, read_endpoints(asked.endpoints, environ), environ)
    max_tokens = AnswerSettings.model_fields["max_tokens"].default
    generators = tuple(models(name).text(name, max_tokens=max_tokens) for name in _generators(asked, runtime))
    judge = Judge(models(asked.judge).structured(asked.judge, max_tokens=MAX_TOKENS)) if asked.judge else None
    usual = Searching()
    searching = Searching(usual.top_k, asked.min_score, asked.prompt_passages or usual.prompt_passages)

    def plan(judged: JudgedSet) -> AnswersPlan:
        return AnswersPlan(
            modes=modes,
            generators=generators,
            judge=judge,
            unanswerable=unanswerable_of(asked.unanswerable, judged),
            limit=limit,
            searching=searching,
            at_once=asked.at_once,
            seed=seed,
        )

    return plan


def unanswerable_of(told: tuple[str, ...], judged: JudgedSet) -> tuple[Unanswerable, ...]:
    """Where a set's unanswerable questions come from.

    Without a word on it: a script's or a document set's questions that name no answer, for the set says that its corpus
    does not tell. What another set has no judgements for may well be answered by its corpus.
    """
    if not told:
        return ("left-out",) if judged.kind in ("script", "documents") else ()
    found: list[Unanswerable] = []
    for one in dict.fromkeys(told):
        if one == REMOVED:
            found.append("removed")
        elif one == LEFT_OUT:
            found.append("left-out")
        elif one != NONE:
            found.append(Path(one))
    return tuple(found)


def _generators(asked: AskedAnswers, runtime: Aws) -> tuple[str, ...]:
    from cicada.models.model_ids import LOCAL_PREFIX

    if not asked.generators and not runtime.local:
        raise UsageError("--answers needs --generator ID")
    named = asked.generators or (WRITER_ID,)
    for name in (*named, asked.judge or ""):
        if name.startswith(LOCAL_PREFIX) and not runtime.local:
            raise UsageError(f"{name} is a model of the local cloud, which is not used here")
    if asked.judge is not None and asked.judge.startswith(LOCAL_PREFIX):
        raise UsageError(
            f"{asked.judge} cannot judge, it only quotes passages: use a model of Bedrock or of an endpoint"
        )
    return named


def _models(runtime: Aws, aws: Aws, endpoints: Endpoints, environ: Mapping[str, str]) -> Callable[[str], ModelFactory]:
    """Where a model is to be had, by its id. The endpoints' secrets are where all but the local cloud's models are."""
    from cicada.models.model_ids import LOCAL_PREFIX

    @lru_cache
    def at(place: Aws) -> ModelFactory:
        return models_at(place, endpoints, secrets=aws, environ=environ)

    return lambda model_id: at(runtime if model_id.startswith(LOCAL_PREFIX) else aws)

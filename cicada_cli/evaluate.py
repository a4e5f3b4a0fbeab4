"""``cicada eval``: measure retrieval and answers on judged sets."""

from __future__ import annotations

import argparse
import tempfile
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any

from rich.console import Console

from cicada import __version__
from cicada.errors import CicadaError, CorpusInvalid, SettingsInvalid
from cicada_cli.aws import Aws
from cicada_cli.context import aws_of, deployment_of
from cicada_cli.deployment import INDEX, LOCAL_REGION, Deployment
from cicada_cli.evaluate_citations import evaluate_citations
from cicada_cli.evaluate_options import EvaluateOptions, add_arguments
from cicada_cli.exits import Exit, UsageError
from cicada_cli.grammar import Commands
from cicada_cli.output import complain, console
from cicada_cli.progress import progress_on
from cicada_cli.shared_options import add_index
from cicada_evaluation.errors import EvaluationRefused
from cicada_evaluation.standin import DIMENSIONS, MODEL_ID, RERANKER_ID, WRITER_ID, embedding_endpoint

if TYPE_CHECKING:  # numpy, boto3 and what measures are loaded by a run
    from cicada.models.bedrock_embeddings import BedrockEmbedder
    from cicada.models.ports import Embedder
    from cicada.retrieval.ports import Retriever
    from cicada_evaluation.answers.running import AnswersPlan
    from cicada_evaluation.embedding import MeteredClient
    from cicada_evaluation.gate import GateCondition
    from cicada_evaluation.indexes import Engines
    from cicada_evaluation.judged import JudgedSet
    from cicada_evaluation.report import Report, SetResult
    from cicada_evaluation.running import EvaluationListener, EvaluationPlan

PIECES = {
    "reading": "files",
    "embedding": "passages",
    "writing": "segments",
    "publishing": "version",
    "loading": "passages",
    "queries": "embedded",
}


def add_eval(commands: Commands) -> None:
    """Add the command's parser."""
    parser = commands.add_parser(
        "eval",
        help="measure retrieval and answers",
        description="Measure retrieval or answers on judged sets, compare reports, and fail if a gate is missed.",
        examples=(
            "cicada eval --dataset samples --json before.json",
            'cicada eval --dataset samples --compare before.json --gate "hybrid:ndcg@10>=0.45"',
            'cicada eval --dataset samples --answers --gate "refusal>=0.9"',
        ),
    )
    add_arguments(parser)
    add_index(parser)
    parser.set_defaults(run=_eval)


def _eval(args: argparse.Namespace) -> Exit:
    aws = aws_of(args)
    if args.citations:
        return evaluate_citations(args.citations, args.judge, args.endpoints, aws, out=console())
    asked = EvaluateOptions.of(args, aws, __version__)
    return evaluate(asked, lambda: deployment_of(args, INDEX), out=console(), err=console(stderr=True))


def evaluate(asked: EvaluateOptions, deployment: Callable[[], Deployment], *, out: Console, err: Console) -> Exit:
    """Measure, print, write, compare and check the gates.

    Args:
        asked: the options.
        deployment: finds the deployment whose index is searched.
        out: for results.
        err: for progress and remarks.
    """
    try:
        return _evaluate(asked, deployment, out, err) if asked.datasets else _compare_only(asked, out, err)
    except CorpusInvalid as error:
        complain(f"nothing was measured:\n{error}")
        return Exit.FAILED
    except (EvaluationRefused, SettingsInvalid) as error:
        raise UsageError(str(error)) from error
    except CicadaError as error:
        complain(f"{error.told} ({error.code}: {error})")
        return Exit.FAILED


def _evaluate(asked: EvaluateOptions, deployment: Callable[[], Deployment], out: Console, err: Console) -> Exit:
    from cicada_evaluation.chart import write_chart
    from cicada_evaluation.report import write_report

    _check(asked)
    earlier = _Earlier.read(asked)  # before the work, to report a mistyped name at once
    report = _measured(asked, deployment, err)
    if asked.json is not None:
        write_report(report, asked.json)
    if asked.plot is not None:
        write_chart(report, asked.plot)
    return _told(report, earlier, asked, out, err)


@dataclass(frozen=True)
class _Earlier:
    """Reports and gates that a run is compared with."""

    conditions: tuple[GateCondition, ...]
    base: Report | None
    compared: Report | None

    @classmethod
    def read(cls, asked: EvaluateOptions) -> _Earlier:
        from cicada_evaluation.gate import parse_gate
        from cicada_evaluation.report import read_report

        return cls(
            parse_gate(asked.gate) if asked.gate is not None else (),
            read_report(asked.gate_against) if asked.gate_against else None,
            read_report(asked.compare[0]) if asked.compare else None,
        )


def _compare_only(asked: EvaluateOptions, out: Console, err: Console) -> Exit:
    from cicada_cli.evaluate_view import show_comparison
    from cicada_evaluation.compare import compare, compare_modes
    from cicada_evaluation.report import read_report

    if not asked.compare:
        raise UsageError("missing --dataset to measure, or --compare with reports")
    if asked.gate is not None or asked.gate_against is not None:
        raise UsageError("a gate needs a --dataset to measure")
    if len(asked.compare) > 2:
        raise UsageError("--compare takes one or two reports")
    reports = [read_report(path) for path in asked.compare]
    comparison = compare_modes(*reports, seed=asked.seed) if len(reports) == 1 else compare(*reports, seed=asked.seed)
    show_comparison(comparison, out)
    for note in comparison.notes:
        err.print(note, style="yellow", soft_wrap=True)
    return Exit.DONE


def _check(asked: EvaluateOptions) -> None:
    if len(asked.compare) > 1:
        raise UsageError("with a --dataset, --compare takes one earlier report")
    if "s3vectors" in asked.modes and not asked.s3_vectors_index_arn:
        raise UsageError("--mode s3vectors needs --vector-index ARN")
    if "kendra" in asked.modes and not asked.kendra_index_id:
        raise UsageError("--mode kendra needs --kendra-index ID")
    if asked.answers is not None and "semantic" in asked.modes:
        raise UsageError("--answers cannot use the pipeline semantic: use --pipeline standard, rerank or advanced")
    for name, models in (("rerank", ("reranker",)), ("advanced", ("reranker", "expansion-model"))):
        lacking = [model for model in models if getattr(asked, f"{model.removesuffix('-model')}_model_id") is None]
        if name in asked.modes and lacking and asked.embedding_model_id is not None:
            raise UsageError(f"--pipeline {name} needs {' and '.join(f'--{model} ID' for model in lacking)}")
    if (asked.embedding_model_id is None) != (asked.dimensions is None) and asked.collection is None:
        raise UsageError("--embedding-model and --dimensions must be given together")
    for path in (asked.json, asked.plot):
        if path is not None and not path.absolute().parent.is_dir():
            raise UsageError(f"cannot write {path}: folder {path.parent} does not exist")


def _told(report: Report, earlier: _Earlier, asked: EvaluateOptions, out: Console, err: Console) -> Exit:
    from cicada_cli.answers_view import answers_notes, show_answers
    from cicada_cli.evaluate_view import notes_of, show_comparison, show_report
    from cicada_evaluation.compare import compare
    from cicada_evaluation.gate import missed, missed_against

    if asked.answers is None:
        show_report(report, out)
        notes = list(notes_of(report))
    else:
        show_answers(report, out)
        notes = list(answers_notes(report))
    if earlier.compared is not None:
        comparison = compare(earlier.compared, report, seed=asked.seed)
        show_comparison(comparison, out)
        notes += comparison.notes
    for note in notes:
        err.print(note, style="yellow", soft_wrap=True)
    failures = missed(report, earlier.conditions)
    if earlier.base is not None:
        failures += missed_against(report, earlier.base, asked.tolerance)
    for failure in failures:
        complain(f"gate missed: {failure}")
    silent = [f"{found.name}/{one.name}" for found in report.sets for one in found.answers if not one.answered]
    for name in silent:
        complain(f"{name}: no question was answered")
    failures += silent
    return Exit.FAILED if failures else Exit.DONE


def _measured(asked: EvaluateOptions, deployment: Callable[[], Deployment], err: Console) -> Report:
    from cicada_evaluation.fees import read_fees
    from cicada_evaluation.measures import require_measures
    from cicada_evaluation.report import Report
    from cicada_evaluation.running import EvaluationPlan
    from cicada_evaluation.sets import read_set

    if asked.answers is None:
        require_measures()
    sets = [read_set(path).limited(asked.limit) for path in asked.datasets]
    _refuse_same_names(sets)
    plan = EvaluationPlan(asked.modes, asked.recall, asked.seed, read_fees(asked.fees))
    with _model(asked, deployment) as model, _work(asked.work) as work:
        answers = _answers_plan(asked, model)
        results = []
        for judged in sets:
            with progress_on(err, PIECES | dict.fromkeys(plan.modes, "searches")) as told:
                results.append(_result(judged, plan, answers, model, work, asked, told))
        return Report(
            created_at=datetime.now(UTC).isoformat(timespec="seconds"),
            cicada_version=asked.version,
            embedding_model_id=model.embedder.model_id,
            dimensions=model.embedder.dimensions,
            price_date=plan.fees.date,
            seed=plan.seed,
            sets=tuple(results),
        )


def _refuse_same_names(sets: Sequence[JudgedSet]) -> None:
    names = [judged.name for judged in sets]
    if len(set(names)) < len(names):
        raise UsageError(f"the folders of the sets must have different names: {', '.join(names)}")


@dataclass(frozen=True)
class _Model:
    """The embedding model, and where AWS is."""

    embedder: BedrockEmbedder  # of passages
    queries: BedrockEmbedder
    meter: MeteredClient
    runtime: Aws  # where models are called
    aws: Aws
    deployment: Deployment | None

    def reranker(self, asked: EvaluateOptions) -> str:
        """What re-ranks: what is named, else of the local cloud's models the one that stands in for it."""
        return asked.reranker_model_id or (RERANKER_ID if self.runtime.local else "")

    def writer(self, asked: EvaluateOptions) -> str:
        """What writes other wordings, likewise."""
        return asked.expansion_model_id or (WRITER_ID if self.runtime.local else "")


@contextmanager
def _model(asked: EvaluateOptions, deployment: Callable[[], Deployment]) -> Iterator[_Model]:
    """The deployment's model, the one that is named, or the local cloud's, which runs for this block."""
    if asked.collection is not None:
        found = deployment()
        yield _wired(found.aws, found.aws, found.embedding_model_id, found.embedding_dimensions, found)
    elif asked.embedding_model_id is not None and asked.dimensions is not None:
        yield _wired(asked.aws, asked.aws, asked.embedding_model_id, asked.dimensions, None)
    else:
        with embedding_endpoint() as url:
            standin = Aws(region=LOCAL_REGION, endpoint_url=url, local=True)
            yield _wired(standin, asked.aws, MODEL_ID, DIMENSIONS, None)


def _wired(runtime: Aws, aws: Aws, model_id: str, dimensions: int, deployment: Deployment | None) -> _Model:
    from cicada.models.bedrock import bedrock_client_config
    from cicada.models.bedrock_embeddings import BedrockEmbedder
    from cicada_evaluation.embedding import MeteredClient

    meter = MeteredClient(runtime.client("bedrock-runtime", bedrock_client_config()))
    documents = BedrockEmbedder(meter, model_id, dimensions)
    return _Model(
        documents, BedrockEmbedder(meter, model_id, dimensions, purpose="query"), meter, runtime, aws, deployment
    )


def _answers_plan(asked: EvaluateOptions, model: _Model) -> Callable[[JudgedSet], AnswersPlan] | None:
    """How answers are measured, if they are."""
    from cicada_cli.evaluate_answers import plan_of

    if asked.answers is None:
        return None
    return plan_of(
        asked.answers, modes=asked.modes, limit=asked.limit, seed=asked.seed, runtime=model.runtime, aws=model.aws
    )


def _result(
    judged: JudgedSet,
    plan: EvaluationPlan,
    answers: Callable[[JudgedSet], AnswersPlan] | None,
    model: _Model,
    work: Path,
    asked: EvaluateOptions,
    told: EvaluationListener,
) -> SetResult:
    from cicada_cli.index import store_of
    from cicada_evaluation.answers.running import evaluate_answers
    from cicada_evaluation.embedding import QueryEmbedder
    from cicada_evaluation.indexes import deployed_index, own_index
    from cicada_evaluation.running import evaluate_set

    queries = QueryEmbedder(model.queries)
    engines = _engines(model, asked)
    if asked.collection is not None:
        assert model.deployment is not None  # the collection is one of its
        index = deployed_index(store_of(model.deployment), asked.collection, model.embedder, queries, engines)
    else:
        index = own_index(judged, plan.modes, work, model.embedder, queries, model.meter, engines, told)
    with index as searched:
        if answers is not None:
            return evaluate_answers(judged, answers(judged), searched, queries, told)
        return evaluate_set(judged, plan, searched, queries, model.meter, told)


def _engines(model: _Model, asked: EvaluateOptions) -> Engines:
    from cicada.retrieval.pipelines.pipeline import Pipelines
    from cicada_cli.pipelines import pipelines_with
    from cicada_evaluation.indexes import Engines

    def client(service: str, *, config: Any) -> Any:
        return model.aws.client(service, config)

    def pipelines(retriever: Retriever, embedder: Embedder) -> Pipelines:
        return pipelines_with(
            model.runtime, retriever, embedder, reranker=model.reranker(asked), writer=model.writer(asked)
        )

    return Engines(
        client, asked.s3_vectors_index_arn, asked.kendra_index_id, pipelines, for_answers=asked.answers is not None
    )


@contextmanager
def _work(folder: Path | None) -> Iterator[Path]:
    if folder is not None:
        yield folder
        return
    with tempfile.TemporaryDirectory(prefix="cicada-eval-") as made:
        yield Path(made)

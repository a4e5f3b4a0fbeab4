"""From single answers to a generator's result: means with their intervals, latency, cost, failures."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from cicada.retrieval.pipelines.stages import usd_of
from cicada_evaluation.answers.finding import FoundPassages
from cicada_evaluation.answers.judging import AnswerJudgement, Judge
from cicada_evaluation.answers.scoring import JUDGED_MEASURES, MEASURES
from cicada_evaluation.confidence import mean_interval
from cicada_evaluation.report import AnswerEstimate, AnswerResult, AnswersCost, AnswersResult, JudgeUse, Latency
from cicada_evaluation.running import latency


@dataclass(frozen=True)
class MeasuredAnswer:
    """One question's answer, measured."""

    result: AnswerResult
    judgement: AnswerJudgement | None
    nothing_relevant: bool  # the question is answerable, and its prompt had no relevant passage


def summed(
    mode: str,
    generator: str,
    found: Sequence[FoundPassages],
    answers: Sequence[MeasuredAnswer],
    judge: Judge | None,
    seed: int,
) -> AnswersResult:
    """Sum up one generator's answers over one way to search, at least one.

    Args:
        mode: the way to search.
        generator: the model's id.
        found: what each question's search gave.
        answers: in the same order.
        judge: what judged them, if anything did.
        seed: of the intervals' random numbers.
    """
    results = [one.result for one in answers]
    searches = [one.result for one in found if one.result is not None]
    return AnswersResult(
        mode=mode,
        generator=generator,
        engine=searches[0].engine if searches else None,
        index_version=searches[0].index_version if searches else None,
        estimates={
            name: _estimate(values, seed)
            for name in (*MEASURES, *JUDGED_MEASURES)
            if (values := [one.values[name] for one in results if name in one.values])
        },
        search=_latency(one.search_ms for one in found),
        first_piece=_latency(one.first_piece_ms for one in results if one.failure is None),
        answer=_latency(one.answer_ms for one in results),
        cost=_cost(results),
        judge=_judge_use(judge, [one.judgement for one in answers if one.judgement]) if judge else None,
        degraded=dict(Counter(degradation.code for one in searches for degradation in one.degraded)),
        failures=dict(Counter(one.failure for one in results if one.failure is not None)),
        not_attributed=sum(one.not_attributed for one in results),
        nothing_relevant=sum(one.nothing_relevant for one in answers),
        queries=tuple(results),
    )


def _estimate(values: Sequence[float], seed: int) -> AnswerEstimate:
    interval = mean_interval(values, seed=seed)
    return AnswerEstimate(mean=interval.mean, low=interval.low, high=interval.high, answers=len(values))


def _latency(taken_ms: Iterable[float | None]) -> Latency | None:
    known = [one for one in taken_ms if one is not None]
    return latency(known) if known else None


def _cost(results: Sequence[AnswerResult]) -> AnswersCost:
    known = [one.usd for one in results if one.usd is not None]
    count = len(results)
    return AnswersCost(
        usd=sum(known) if known else None,
        usd_per_answer=sum(known) / len(known) if known else None,
        unknown=count - len(known),
        input_tokens_per_answer=sum(one.input_tokens for one in results) / count,
        output_tokens_per_answer=sum(one.output_tokens for one in results) / count,
    )


def _judge_use(judge: Judge, judgements: Sequence[AnswerJudgement]) -> JudgeUse:
    uses = [one.use for one in judgements]
    return JudgeUse(
        model_id=judge.model_id,
        calls=sum(use.calls for use in uses),
        input_tokens=sum(use.usage.input_tokens + use.usage.cache_read_tokens for use in uses),
        output_tokens=sum(use.usage.output_tokens for use in uses),
        usd=_usd(map(usd_of, uses)),
        failures=dict(Counter(one.failure for one in judgements if one.failure is not None)),
    )


def _usd(amounts: Iterable[float | None]) -> float | None:
    """The sum; None if one of the amounts is not known."""
    listed = list(amounts)
    known = [one for one in listed if one is not None]
    return sum(known) if len(known) == len(listed) else None

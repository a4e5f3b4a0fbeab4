"""The answer worker: runs one attempt of one strategy for one request."""

from __future__ import annotations

import os
import traceback
from typing import Any

from aws_lambda_powertools.metrics import MetricUnit, single_metric
from aws_lambda_powertools.utilities.typing import LambdaContext
from wiring import build

from cicada.answering.workflow import AttemptTask
from cicada.errors import AnswerBlocked, CacheMiss, CicadaError
from cicada.identity import asker_of
from cicada.settings import AnswerSettings
from cicada.telemetry import logger, metrics


def _count(name: str, **dimensions: str) -> None:
    """Count one; with dimensions of its own, and from any thread."""
    with single_metric(name=name, unit=MetricUnit.Count, value=1) as metric:
        for dimension, value in dimensions.items():
            metric.add_dimension(dimension, value)


def _count_happening(dependency: str, happening: str) -> None:
    if happening == "opened":
        _count("BreakerOpened")  # for the alarm, over all dependencies
        _count("BreakerOpened", Dependency=dependency)


def _count_look_up(use: str) -> None:
    if use == "miss":
        _count("CacheMisses")
    else:
        _count("CacheHits", Use=use)


runner = build(
    AnswerSettings.read(os.environ),
    on_happening=_count_happening,
    on_look_up=_count_look_up,
    on_unchecked=lambda: _count("GuardrailFailures"),
)


@metrics.log_metrics(capture_cold_start_metric=True)
@logger.inject_lambda_context(clear_state=True)
def handler(event: dict[str, Any], context: LambdaContext) -> dict[str, str]:
    """Run one attempt. A failed strategy fails the invocation, and the workflow tries the next."""
    task = AttemptTask.model_validate(event)
    logger.append_keys(request_id=task.request_id, asker=asker_of(task.subject), strategy=task.strategy)
    metrics.add_dimension(name="Strategy", value=task.strategy)
    try:
        ended = runner.run(
            task, worker=context.aws_request_id, remaining_s=context.get_remaining_time_in_millis() / 1000
        )
    except CacheMiss:  # expected: the workflow falls back to the search
        raise
    except CicadaError:
        metrics.add_metric(name="AttemptsFailed", unit=MetricUnit.Count, value=1)
        raise
    except Exception as bug:
        # The message may quote a passage or an answer, and what is raised here goes into the workflow's data.
        kind, places = type(bug).__name__, traceback.format_tb(bug.__traceback__)
        logger.error("attempt failed unexpectedly", extra={"kind": kind, "traceback": places})
        metrics.add_metric(name="AttemptsFailed", unit=MetricUnit.Count, value=1)
        raise CicadaError(kind) from None
    if ended.code == AnswerBlocked.code:
        _count("AnswersBlocked")
    if ended.metrics is not None:
        metrics.add_metric(name="AnswersComplete", unit=MetricUnit.Count, value=1)
        metrics.add_metric(name="AnswerLatency", unit=MetricUnit.Milliseconds, value=ended.metrics.latency_ms)
        metrics.add_metric(name="FirstChunk", unit=MetricUnit.Milliseconds, value=ended.metrics.first_chunk_ms)
    return {"outcome": ended.outcome}

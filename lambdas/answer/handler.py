"""The answer worker: runs one attempt of one strategy for one request."""

from __future__ import annotations

import os
import traceback
from typing import Any

from aws_lambda_powertools.utilities.typing import LambdaContext
from wiring import build

from cicada.answering.attempt import AttemptOutcome
from cicada.answering.attempt_complete import fell_back
from cicada.answering.workflow import AttemptTask
from cicada.errors import AnswerBlocked, CacheMiss, CicadaError
from cicada.identity import asker_of
from cicada.metrics import (
    ANSWER_LATENCY,
    ANSWERS_BLOCKED,
    ANSWERS_COMPLETE,
    ANSWERS_FELL_BACK,
    ATTEMPTS_FAILED,
    FIRST_CHUNK,
    REQUESTS_FAILED,
)
from cicada.settings import AnswerSettings
from cicada.telemetry import logger, report

runner = build(AnswerSettings.read(os.environ))


@logger.inject_lambda_context(clear_state=True)
def handler(event: dict[str, Any], context: LambdaContext) -> dict[str, str]:
    """Run one attempt. A failed strategy fails the invocation, and the workflow tries the next."""
    task = AttemptTask.model_validate(event)
    logger.append_keys(request_id=task.request_id, asker=asker_of(task.subject), strategy=task.strategy)
    try:
        ended = runner.run(
            task, worker=context.aws_request_id, remaining_s=context.get_remaining_time_in_millis() / 1000
        )
    except CacheMiss:  # expected: the workflow falls back to the search
        raise
    except CicadaError:
        report({ATTEMPTS_FAILED: 1})
        raise
    except Exception as bug:
        # The message may quote a passage or an answer, and what is raised here goes into the workflow's data.
        kind, places = type(bug).__name__, traceback.format_tb(bug.__traceback__)
        logger.error("attempt failed unexpectedly", extra={"kind": kind, "traceback": places})
        report({ATTEMPTS_FAILED: 1})
        raise CicadaError(kind) from None
    _report(ended)
    return {"outcome": ended.outcome}


def _report(ended: AttemptOutcome) -> None:
    if ended.complete is not None:
        took = ended.complete.metrics
        times = {FIRST_CHUNK: took.first_chunk_ms, ANSWER_LATENCY: took.latency_ms}
        report({ANSWERS_COMPLETE: 1, ANSWERS_FELL_BACK: int(fell_back(ended.complete)), **times})
    elif isinstance(ended.error, AnswerBlocked):
        report({ANSWERS_BLOCKED: 1})
    elif ended.error is not None and ended.error.fault:
        report({ATTEMPTS_FAILED: 1, REQUESTS_FAILED: 1})

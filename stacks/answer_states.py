"""The answer workflow's states, made of the chain of strategies: plain data, without the CDK."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from cicada.attempts.chain import FALLS_TO, ending_errors, longest_path
from cicada.protocol.events import StrategyName

EXECUTION_LIMIT_S = 300
"""An Express execution ends after five minutes (AWS)."""
CLOSING_TIMEOUT_S = 20
"""How long the function that closes an exhausted request may take."""
STATE_MARGIN_S = 5
"""How much longer a state waits than its worker may take, so that Lambda reports a killed worker first."""

TIME_BUDGETS_S: Mapping[StrategyName, int] = {
    "hybrid": 60,
    "rag": 60,
    "cag": 40,
    "direct": 24,
    "profile_agent": 60,
    "theory_agent": 60,
}
"""How long one attempt of each strategy may take, closing included: 2,048 tokens at a slow model's 45 a second take
46 s, the 512 of a direct answer 12. The longest path fits into one execution, see :func:`longest_execution_s`."""
WORKER_TIMEOUT_S = max(TIME_BUDGETS_S.values())
"""When Lambda kills a worker, whatever it runs."""

IN_DOUBT: StrategyName = "rag"
"""Where an input enters that names no strategy of the chain."""

ENTER, EXHAUSTED, ENDED, FAILED, SUPERSEDED = "Enter", "Exhausted", "Ended", "AllStrategiesFailed", "Superseded"

NO_WORKER = "Lambda.TooManyRequestsException"
"""No worker is free. Every strategy needs one, so if waiting does not help, the request ends with an error: an
ungrounded answer would hide the problem."""

ENDING = (NO_WORKER, *(kind.__name__ for kind in ending_errors()))
"""What ends the request instead of going on with another strategy. A worker ends its request itself, and fails by such
an error only where it could not store that: Lambda names an error by its class."""

RETRY_WAITS_S = (2, 4, 8)
"""The longest waits of a state for a free worker, or for the Lambda service."""
# The worker did not run or did not fail, so the same strategy is worth another go. Should the worker run all the same,
# the repetition is an attempt of its own, with calls of its own. What the worker raises is not retried: it has used its
# own time budget, and may have streamed.
_RETRY = {
    "ErrorEquals": [
        NO_WORKER,
        "Lambda.ServiceException",
        "Lambda.AWSLambdaException",
        "Lambda.SdkClientException",
    ],
    "IntervalSeconds": RETRY_WAITS_S[0],
    "BackoffRate": 2,
    "MaxAttempts": len(RETRY_WAITS_S),
    "MaxDelaySeconds": RETRY_WAITS_S[-1],
    "JitterStrategy": "FULL",
}

_CLOSING_WAITS_S = (2, 4, 8)
# What fails every strategy may fail the closing too, for a while. It may be repeated: it ends a request once.
_CLOSING_RETRY = {
    "ErrorEquals": ["States.ALL"],
    "IntervalSeconds": _CLOSING_WAITS_S[0],
    "BackoffRate": 2,
    "MaxAttempts": len(_CLOSING_WAITS_S),
    "MaxDelaySeconds": _CLOSING_WAITS_S[-1],
    "JitterStrategy": "FULL",
}


def state_of(strategy: StrategyName) -> str:
    """The name of a strategy's state: ``Rag`` for ``rag``, ``ProfileAgent`` for ``profile_agent``."""
    return "".join(word.capitalize() for word in strategy.split("_"))


def longest_execution_s() -> int:
    """How long an execution takes at most, if each strategy of its path has to wait, then fails in its last second.

    The closing is counted once. Where it fails too, and is tried again, the execution may end before it: the sweep then
    ends the request.
    """
    paths = (longest_path(strategy) for strategy in FALLS_TO)
    each_s = STATE_MARGIN_S + sum(RETRY_WAITS_S)
    attempts_s = max(sum(TIME_BUDGETS_S[strategy] + each_s for strategy in path) for path in paths)
    return attempts_s + CLOSING_TIMEOUT_S + STATE_MARGIN_S + sum(_CLOSING_WAITS_S)


def definition(*, partition: str, answer_arn: str, exhausted_arn: str) -> dict[str, Any]:
    """The workflow in the Amazon States Language (JSONPath).

    Its input is ``{"subject", "requestId", "strategy", "failures"}``, where ``failures`` holds what failed before, if
    anything. A strategy that fails leaves ``{"Error", "Cause"}`` at ``failures.<strategy>``, and the next is the first
    that it falls to and that has not failed yet, as by :func:`cicada.attempts.chain.next_strategy`; none after one of
    :data:`ENDING`.

    Args:
        partition: of the resource's ARN, ``aws`` almost everywhere.
        answer_arn: the function that runs a strategy.
        exhausted_arn: the function that tells the client that no strategy is left.
    """

    def invoke(arn: str, timeout_s: int, retry: dict[str, Any], **payload: str | int) -> dict[str, Any]:
        return {
            "Type": "Task",
            "Resource": f"arn:{partition}:states:::lambda:invoke",
            "Parameters": {
                "FunctionName": arn,
                "Payload": {
                    "subject.$": "$.subject",
                    "requestId.$": "$.requestId",
                    "execution.$": "$$.Execution.Id",
                    "entry.$": "$.strategy",
                    "failures.$": "$.failures",
                    **payload,
                },
            },
            "TimeoutSeconds": timeout_s + STATE_MARGIN_S,
            "Retry": [retry],
        }

    states: dict[str, Any] = {
        ENTER: {
            "Type": "Choice",
            "Choices": [
                {"Variable": "$.strategy", "StringEquals": strategy, "Next": state_of(strategy)}
                for strategy in FALLS_TO
            ],
            "Default": state_of(IN_DOUBT),
        }
    }
    for strategy, following in FALLS_TO.items():
        after = f"After{state_of(strategy)}"
        budget_s = TIME_BUDGETS_S[strategy]
        states[state_of(strategy)] = {
            **invoke(answer_arn, budget_s, _RETRY, strategy=strategy, timeBudgetS=budget_s),
            "Catch": [
                {
                    "ErrorEquals": list(ENDING),
                    "ResultPath": f"$.failures.{strategy}",
                    "Next": EXHAUSTED,
                },
                {
                    "ErrorEquals": ["States.ALL"],
                    "ResultPath": f"$.failures.{strategy}",
                    "Next": after if following else EXHAUSTED,
                },
            ],
            "End": True,
        }
        if following:
            states[after] = {
                "Type": "Choice",
                "Choices": [
                    {"Variable": f"$.failures.{other}", "IsPresent": False, "Next": state_of(other)}
                    for other in following
                ],
                "Default": EXHAUSTED,
            }
    return {
        "Comment": "Enters at the route's strategy and falls through to the next until one has answered",
        "StartAt": ENTER,
        "TimeoutSeconds": EXECUTION_LIMIT_S,
        "States": states
        | {
            EXHAUSTED: {**invoke(exhausted_arn, CLOSING_TIMEOUT_S, _CLOSING_RETRY), "Next": ENDED},
            ENDED: {
                "Type": "Choice",
                "Choices": [{"Variable": "$.Payload.ended", "BooleanEquals": True, "Next": FAILED}],
                "Default": SUPERSEDED,
            },
            # The request had ended already, or another execution drives it: nothing has failed.
            SUPERSEDED: {"Type": "Succeed"},
            FAILED: {
                "Type": "Fail",
                "Error": "AllStrategiesFailed",
                "Cause": "Every strategy failed; the client has been told",
            },
        },
    }

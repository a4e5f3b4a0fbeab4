"""The answer workflow: a chain of strategies, each a state that falls to the next when it fails."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from aws_cdk import Aws, Stack
from aws_cdk import aws_iam as iam
from aws_cdk import aws_kms as kms
from aws_cdk import aws_lambda as lambda_
from aws_cdk import aws_stepfunctions as sfn
from constructs import Construct

from stacks.findings import accept
from stacks.logs import log_group
from stacks.settings import Settings


@dataclass(frozen=True)
class Strategy:
    """One way to answer, and what is tried when it fails."""

    name: str
    """As the classifier and the answer worker call it; the state is named ``ProfileAgent`` for ``profile_agent``."""
    falls_to: str | None
    """The next strategy; None when only the closing of the request is left."""

    @property
    def state(self) -> str:
        """The name of its state."""
        return "".join(word.capitalize() for word in self.name.split("_"))


STRATEGIES = (
    Strategy("rag", falls_to="direct"),
    Strategy("direct", falls_to=None),
)
"""Every strategy has one entry here. A route whose strategy has none enters at the first."""

EXECUTION_LIMIT_S = 300
"""An Express execution ends after five minutes (AWS)."""
CLOSING_TIMEOUT_S = 20
"""How long the function that closes an exhausted request may take."""
LONGEST_ATTEMPT_S = 90
"""No strategy needs longer: 2,048 tokens at a slow model's 30 a second take 70 s."""
STATE_MARGIN_S = 5
"""A state waits this much longer than its function may run, so that a killed worker is reported by Lambda."""

_RETRY_WAITS_S = (1, 2, 4)
# A throttle, or a fault of the Lambda service itself: the worker did not run or did not fail, so the same strategy is
# worth another go. What the worker raises is not retried: it has used its own time budget, and may have streamed.
_RETRY = {
    "ErrorEquals": [
        "Lambda.TooManyRequestsException",
        "Lambda.ServiceException",
        "Lambda.AWSLambdaException",
        "Lambda.SdkClientException",
    ],
    "IntervalSeconds": _RETRY_WAITS_S[0],
    "BackoffRate": 2,
    "MaxAttempts": len(_RETRY_WAITS_S),
    "MaxDelaySeconds": _RETRY_WAITS_S[-1],
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


def longest_chain(strategies: Sequence[Strategy] = STRATEGIES) -> int:
    """How many strategies one execution can go through.

    Raises:
        ValueError: a strategy falls to an unknown one, or in a circle.
    """
    by_name = {strategy.name: strategy for strategy in strategies}

    def length(strategy: Strategy, seen: frozenset[str]) -> int:
        if strategy.falls_to is None:
            return 1
        if strategy.falls_to in seen or strategy.falls_to not in by_name:
            raise ValueError(f"{strategy.name} cannot fall to {strategy.falls_to}")
        return 1 + length(by_name[strategy.falls_to], seen | {strategy.falls_to})

    return max(length(strategy, frozenset({strategy.name})) for strategy in strategies)


def attempt_timeout_s(strategies: Sequence[Strategy] = STRATEGIES) -> int:
    """How long one attempt may take, so that the longest chain and its closing fit into one execution."""
    waits_s = sum(_RETRY_WAITS_S)
    for_attempts_s = EXECUTION_LIMIT_S - (CLOSING_TIMEOUT_S + STATE_MARGIN_S + sum(_CLOSING_WAITS_S))
    each_s = for_attempts_s // longest_chain(strategies) - STATE_MARGIN_S - waits_s
    return min(LONGEST_ATTEMPT_S, each_s)


def definition(
    *, partition: str, answer_arn: str, exhausted_arn: str, strategies: Sequence[Strategy] = STRATEGIES
) -> dict[str, Any]:
    """The workflow in the Amazon States Language (JSONPath).

    Its input is ``{"subject", "requestId", "strategy", "failures": {}}``. A strategy that fails leaves
    ``{"Error", "Cause"}`` at ``failures.<strategy>``.

    Args:
        partition: of the resource's ARN, ``aws`` almost everywhere.
        answer_arn: the function that runs a strategy.
        exhausted_arn: the function that tells the client that all have failed.
        strategies: the chain.
    """

    def invoke(arn: str, timeout_s: int, retry: dict[str, Any], **payload: str) -> dict[str, Any]:
        return {
            "Type": "Task",
            "Resource": f"arn:{partition}:states:::lambda:invoke",
            "Parameters": {
                "FunctionName": arn,
                "Payload": {
                    "subject.$": "$.subject",
                    "requestId.$": "$.requestId",
                    "execution.$": "$$.Execution.Id",
                    "failures.$": "$.failures",
                    **payload,
                },
            },
            "TimeoutSeconds": timeout_s + STATE_MARGIN_S,
            "Retry": [retry],
        }

    state_of = {strategy.name: strategy.state for strategy in strategies}
    attempt_s = attempt_timeout_s(strategies)
    return {
        "Comment": "Enters at the route's strategy and falls through to the next until one has answered",
        "StartAt": "Enter",
        "TimeoutSeconds": EXECUTION_LIMIT_S,
        "States": {
            "Enter": {
                "Type": "Choice",
                "Choices": [
                    {"Variable": "$.strategy", "StringEquals": strategy.name, "Next": strategy.state}
                    for strategy in strategies
                ],
                "Default": strategies[0].state,
            },
            **{
                strategy.state: {
                    **invoke(answer_arn, attempt_s, _RETRY, strategy=strategy.name),
                    "Catch": [
                        {
                            "ErrorEquals": ["States.ALL"],
                            "ResultPath": f"$.failures.{strategy.name}",
                            "Next": state_of[strategy.falls_to] if strategy.falls_to else "Exhausted",
                        }
                    ],
                    "End": True,
                }
                for strategy in strategies
            },
            "Exhausted": {
                **invoke(exhausted_arn, CLOSING_TIMEOUT_S, _CLOSING_RETRY),
                "Next": "AllStrategiesFailed",
            },
            "AllStrategiesFailed": {
                "Type": "Fail",
                "Error": "AllStrategiesFailed",
                "Cause": "Every strategy failed; the client has been told",
            },
        },
    }


class AnswerWorkflow(Construct):
    """The state machine, with a role that may invoke the two functions and write its own logs and traces."""

    def __init__(
        self,
        scope: Construct,
        id: str,
        *,
        settings: Settings,
        answer: lambda_.IFunction,
        exhausted: lambda_.IFunction,
        key: kms.IKey | None = None,
    ) -> None:
        """Make the state machine.

        Args:
            scope: the stack.
            id: the construct's id.
            settings: the deployer's.
            answer: the function that runs a strategy.
            exhausted: the function that closes a request.
            key: encrypts the logs.
        """
        super().__init__(scope, id)
        role = iam.Role(
            self,
            "Role",
            assumed_by=iam.ServicePrincipal(
                "states.amazonaws.com", conditions={"StringEquals": {"aws:SourceAccount": Aws.ACCOUNT_ID}}
            ),
            description="Answer workflow",
        )
        role.add_to_policy(
            iam.PolicyStatement(
                actions=["lambda:InvokeFunction"], resources=[answer.function_arn, exhausted.function_arn]
            )
        )
        states = definition(
            partition=Aws.PARTITION, answer_arn=answer.function_arn, exhausted_arn=exhausted.function_arn
        )
        self.machine = sfn.StateMachine(
            self,
            "Machine",
            state_machine_type=sfn.StateMachineType.EXPRESS,
            definition_body=sfn.DefinitionBody.from_string(Stack.of(self).to_json_string(states)),
            role=role,
            tracing_enabled=True,
            logs=sfn.LogOptions(
                # Groups below this prefix share one resource policy of the account, which is bounded in length.
                destination=log_group(
                    self,
                    "Logs",
                    settings=settings,
                    key=key,
                    name=f"/aws/vendedlogs/states/{settings.stack_prefix}-answer",
                ),
                level=sfn.LogLevel.ALL,
                include_execution_data=False,
            ),
        )
        accept(
            self,
            {
                "AwsSolutions-IAM5[Resource::*]": "The actions that set up log delivery and write X-Ray traces know no "
                "resources."
            },
        )

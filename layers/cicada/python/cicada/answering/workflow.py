"""The answer workflow: its start, and the input of its states' functions."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any, Protocol
from uuid import uuid4

from botocore.config import Config
from botocore.exceptions import BotoCoreError, ClientError
from pydantic import BaseModel, ConfigDict, Field
from pydantic.alias_generators import to_camel

from cicada.delivery.record import RequestKey
from cicada.errors import WorkflowUnavailable
from cicada.protocol.events import StrategyFailure, StrategyName

START_CONFIG = Config(connect_timeout=1, read_timeout=3, retries={"mode": "standard", "total_max_attempts": 1})
"""Time-outs in seconds. The starter retries itself, each time with a new execution name."""
START_TRIES = 3


class _State(BaseModel):
    model_config = ConfigDict(frozen=True, extra="ignore", alias_generator=to_camel, validate_by_name=True)

    subject: str
    request_id: str
    execution: str
    """The ARN of the execution."""
    entry: StrategyName | None = None
    """The strategy that the execution entered at; None in executions of an older release."""
    failures: Mapping[StrategyName, Mapping[str, Any]] = Field(default_factory=dict)
    """By strategy, the ``Error`` and ``Cause`` of its state's ``Catch``; after a restart also the code and reason of
    the strategies that the request's head has as failed."""

    @property
    def key(self) -> RequestKey:
        """The request's key."""
        return RequestKey(self.subject, self.request_id)


class AttemptTask(_State):
    """The input of the answer worker."""

    strategy: StrategyName
    time_budget_s: float | None = None
    """The state's time-out, which the attempt may not outlast; None leaves the worker's."""


class ExhaustedTask(_State):
    """The input of the function that closes a request after all strategies failed."""


class WorkflowStarter(Protocol):
    """Starts the answer workflow."""

    def start(self, key: RequestKey, strategy: StrategyName, failed: Sequence[StrategyFailure] = ()) -> None:
        """Start one execution that skips the strategies in ``failed``, except ``strategy`` itself.

        Raises:
            WorkflowUnavailable: it may have started all the same.
        """
        ...


class StepFunctionsStarter:
    """:class:`WorkflowStarter` over Step Functions."""

    def __init__(self, client: Any, state_machine_arn: str) -> None:
        """``client``: a stepfunctions client made with :data:`START_CONFIG`."""
        self._client = client
        self._arn = state_machine_arn

    def start(self, key: RequestKey, strategy: StrategyName, failed: Sequence[StrategyFailure] = ()) -> None:
        """See the port."""
        workflow_input = {
            "subject": key.subject,
            "requestId": key.request_id,
            "strategy": strategy,
            "failures": {
                one.strategy: {"Error": one.code, "Cause": one.reason} for one in failed if one.strategy != strategy
            },
        }
        for tries_left in reversed(range(START_TRIES)):
            try:
                # If only the acknowledgement of an earlier try was lost, two executions run: the second finds the
                # request claimed by the first.
                self._client.start_execution(
                    stateMachineArn=self._arn, name=str(uuid4()), input=json.dumps(workflow_input)
                )
            except (ClientError, BotoCoreError) as error:
                if not tries_left:
                    raise WorkflowUnavailable(str(error)) from error
            else:
                return

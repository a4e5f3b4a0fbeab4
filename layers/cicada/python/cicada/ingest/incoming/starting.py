"""Start the ingest workflow: one execution for all uploads of a window of time."""

from __future__ import annotations

import json
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

from botocore.config import Config
from botocore.exceptions import BotoCoreError, ClientError

from cicada.errors import WorkflowUnavailable
from cicada.ingest.incoming.places import execution_name

START_CONFIG = Config(connect_timeout=2, read_timeout=5, retries={"mode": "standard", "total_max_attempts": 4})
"""Of the Step Functions client: time-outs in seconds."""
DEFAULT_WINDOW_S = 30
WINDOWS_TRIED = 3  # if a window's execution was stopped before its time, the next window is used


@dataclass(frozen=True)
class RunFound:
    """The execution of a run."""

    running: bool  # it has not ended
    started_at: datetime


class IngestStarter:
    """Starts executions named after their window of time, so that a window has one execution."""

    def __init__(self, client: Any, machine_arn: str, *, window_s: int = DEFAULT_WINDOW_S) -> None:
        """``client``: of Step Functions; ``machine_arn``: of a Standard state machine."""
        self._client = client
        self._machine_arn = machine_arn
        self._window_s = window_s

    def start(self, collection: str, *, now_s: float) -> str:
        """Make sure that an execution looks at the collection after this moment (``now_s``, seconds since the epoch).

        Returns the run's id: the execution's name. Raises WorkflowUnavailable.
        """
        window = int(now_s // self._window_s)
        for number in range(window, window + WINDOWS_TRIED):
            run = execution_name(collection, number)
            starts_at = datetime.fromtimestamp((number + 1) * self._window_s, UTC)
            told = {"collection": collection, "run": run, "startAt": starts_at.strftime("%Y-%m-%dT%H:%M:%SZ")}
            try:
                # Idempotent while the execution runs; ExecutionAlreadyExists once it has ended.
                self._client.start_execution(stateMachineArn=self._machine_arn, name=run, input=json.dumps(told))
            except (BotoCoreError, ClientError) as error:
                if _code(error) != "ExecutionAlreadyExists":
                    raise WorkflowUnavailable(f"the ingest workflow could not be started: {error}") from error
            else:
                return run
        raise WorkflowUnavailable(f"the last {WINDOWS_TRIED} execution names of {collection} are already used")

    def is_running(self, run: str) -> bool:
        """Whether a run's execution has not ended. Raises WorkflowUnavailable."""
        found = self.find(run)
        return found is not None and found.running

    def find(self, run: str) -> RunFound | None:
        """A run's execution; None if there is none. Raises WorkflowUnavailable."""
        arn = f"{self._machine_arn.replace(':stateMachine:', ':execution:')}:{run}"
        try:
            found = self._client.describe_execution(executionArn=arn)
            return RunFound(found["status"] == "RUNNING", found["startDate"])
        except (BotoCoreError, ClientError) as error:
            if _code(error) == "ExecutionDoesNotExist":
                return None
            raise WorkflowUnavailable(f"the ingest workflow's status is unknown: {error}") from error


def _code(error: BotoCoreError | ClientError) -> str:
    return str(error.response.get("Error", {}).get("Code")) if isinstance(error, ClientError) else ""

"""Step Functions as AWS has it, where moto's interpreter differs.

Express executions may repeat a name, get five minutes and are kept for a look at their path; an execution without a
name gets one; ``States.ALL`` lets ``States.Runtime`` and ``States.DataLimitExceeded`` pass; a function that cannot be
reached is ``Lambda.SdkClientException``. Tasks share one client a service: making one costs more than the call, and
boto3's default session must not make them in several threads at once.
"""

from __future__ import annotations

import copy
import datetime
import json
import os
import threading
import uuid
from collections import deque
from typing import Any

import botocore.session
from botocore.config import Config
from botocore.exceptions import BotoCoreError, ClientError
from moto.stepfunctions.exceptions import InvalidExecutionInput
from moto.stepfunctions.parser import models
from moto.stepfunctions.parser.api import HistoryEventType, MapRunFailedEventDetails, StateMachineType
from moto.stepfunctions.parser.asl.component.common.error_name.error_equals_decl import ErrorEqualsDecl
from moto.stepfunctions.parser.asl.component.common.error_name.failure_event import (
    FailureEvent,
    FailureEventException,
)
from moto.stepfunctions.parser.asl.component.common.error_name.states_error_name import StatesErrorName
from moto.stepfunctions.parser.asl.component.common.error_name.states_error_name_type import StatesErrorNameType
from moto.stepfunctions.parser.asl.component.common.timeouts.timeout import TimeoutSeconds
from moto.stepfunctions.parser.asl.component.eval_component import EvalComponent
from moto.stepfunctions.parser.asl.component.state.exec.state_map.item_reader.eval import resource_eval_s3
from moto.stepfunctions.parser.asl.component.state.exec.state_map.iteration.distributed_iteration_component import (
    DistributedIterationComponent,
)
from moto.stepfunctions.parser.asl.component.state.exec.state_task import lambda_eval_utils
from moto.stepfunctions.parser.asl.eval.environment import Environment
from moto.stepfunctions.parser.backend.execution import Execution
from moto.stepfunctions.parser.backend.execution_worker import ExecutionWorker
from moto.stepfunctions.parser.utils import TMP_THREADS

from cicada_local.permissions import Principals, RoleNotAssumable
from cicada_local.permissions.enforcement import role_allows
from cicada_local.permissions.policies import Required

CALLER = "states"
"""Under which the calls of state machines are counted."""
PRINCIPAL = "states.amazonaws.com"
EXPRESS_LIMIT_S = 300
INPUT_LIMIT_BYTES = 256 * 1024

_SESSION = "states-execution"
_KEPT_EXECUTIONS = 500
_TASK_LIMIT_S = 900 + 60  # the longest that a function may run, and some more
_CONNECTIONS = 100
_NOT_CAUGHT_BY_ALL = (
    StatesErrorName(typ=StatesErrorNameType.StatesRuntime),
    StatesErrorName(typ=StatesErrorNameType.StatesStatesDataLimitExceeded),
)


class _ExpressWorker(ExecutionWorker):
    def _get_evaluation_entrypoint(self) -> EvalComponent:
        program: Any = super()._get_evaluation_entrypoint()
        declared = program.timeout_seconds.timeout_seconds if program.timeout_seconds else EXPRESS_LIMIT_S
        program.timeout_seconds = TimeoutSeconds(min(declared, EXPRESS_LIMIT_S))
        entrypoint: EvalComponent = program
        return entrypoint


class ExpressExecution(Execution):
    """One run of an Express state machine."""

    def _get_start_execution_worker(self) -> ExecutionWorker:
        worker = super()._get_start_execution_worker()
        worker.__class__ = _ExpressWorker
        return worker

    def states_entered(self) -> list[str]:
        """The states' names in the order of entering, repeats included."""
        environment = self.exec_worker.env if self.exec_worker else None
        if environment is None:
            return []
        details = (event.get("stateEnteredEventDetails") for event in environment.event_manager.get_event_history())
        return [entered["name"] for entered in details if entered]


class InterpreterBackend(models.StepFunctionsParserBackend):
    """moto's interpreter, with Express executions."""

    def __init__(self, region_name: str, account_id: str) -> None:
        super().__init__(region_name, account_id)
        self.express_executions: deque[ExpressExecution] = deque(maxlen=_KEPT_EXECUTIONS)

    def start_execution(  # type: ignore[override]  # moto's own differ from each other
        self,
        state_machine_arn: str,
        name: str | None = None,
        execution_input: str = "{}",
        trace_header: str | None = None,
    ) -> Execution:
        """Start one; without a name it gets a UUID.

        Raises:
            InvalidExecutionInput: the input is no JSON, or larger than 256 KiB.
        """
        name = name or str(uuid.uuid4())
        self._validate_name(name)
        if len(execution_input.encode()) > INPUT_LIMIT_BYTES:
            raise InvalidExecutionInput("The input is larger than 256 KiB.")
        machine = self.describe_state_machine(state_machine_arn)
        if machine.type != "EXPRESS":
            return super().start_execution(state_machine_arn, name, execution_input)
        return self._start_express(machine, name, execution_input, trace_header)

    def _start_express(
        self, machine: Any, name: str, execution_input: str, trace_header: str | None
    ) -> ExpressExecution:
        try:
            json.loads(execution_input)
        except ValueError as error:
            raise InvalidExecutionInput(f"Invalid State Machine Execution Input: '{error}'") from error
        prefix = f"arn:{self.partition}:states:{self.region_name}:{self.account_id}:express"
        execution = ExpressExecution(
            name=name,
            sm_type=StateMachineType.EXPRESS,
            role_arn=machine.roleArn,
            exec_arn=f"{prefix}:{machine.name}:{name}:{uuid.uuid4()}",
            account_id=self.account_id,
            region_name=self.region_name,
            state_machine=copy.copy(machine),  # as it is now: a later deployment does not change a run
            start_date=datetime.datetime.now(tz=datetime.UTC),
            cloud_watch_logging_session=None,
            input_data=execution_input,
            trace_header=trace_header,
            activity_store={},
        )
        self.express_executions.append(execution)
        execution.start()
        TMP_THREADS[:] = [thread for thread in TMP_THREADS if thread.is_alive()]  # moto keeps them for ever
        return execution


def executions(account_id: str, region_name: str) -> list[dict[str, Any]]:
    """The latest Express executions, oldest first, as plain data: at most 500."""
    backend: Any = models.stepfunctions_parser_backends[account_id][region_name]
    return [
        {
            "name": execution.name,
            "executionArn": execution.exec_arn,
            "stateMachineArn": execution.state_machine.arn,
            "status": execution.status,
            "states": execution.states_entered(),
            "input": execution.input_data,
            "output": execution.output,
            "error": execution.error,
            "cause": execution.cause,
            "startDate": execution.start_date.isoformat(),
            "stopDate": execution.stop_date.isoformat() if execution.stop_date else None,
        }
        for execution in list(backend.express_executions)
    ]


class _TaskClient:
    """A Lambda client for tasks; what keeps it from reaching the function is told as Step Functions tells it."""

    def __init__(self, client: Any) -> None:
        self._client = client

    def invoke(self, **parameters: Any) -> Any:
        try:
            return self._client.invoke(**parameters)
        except BotoCoreError as error:
            response = {
                "Error": {"Code": "SdkClientException", "Message": str(error)},
                "ResponseMetadata": {"HTTPStatusCode": 0, "RequestId": ""},
            }
            raise ClientError(response, "Invoke") from error
        except ClientError as error:
            if error.response["Error"]["Code"] != "AccessDeniedException":
                raise
            named = {**error.response["Error"], "Code": "AWSLambdaException"}  # what Step Functions calls it
            raise ClientError({**error.response, "Error": named}, "Invoke") from error


class _TaskClients:
    """Clients with the credentials of the executions' roles, one for each service and role."""

    def __init__(self, principals: Principals) -> None:
        self._principals = principals
        self._lock = threading.Lock()
        self._made: dict[tuple[str, str, str], Any] = {}

    def __call__(self, region: str, service: str, state_credentials: Any) -> Any:
        endpoint_url = f"http://localhost:{os.environ['MOTO_PORT']}"
        role_arn = state_credentials.role_arn
        try:
            credentials = self._principals.credentials(role_arn, _SESSION, service=PRINCIPAL, name=CALLER)
        except RoleNotAssumable as error:  # it was, when the state machine was made
            raise ClientError({"Error": {"Code": "AccessDeniedException", "Message": str(error)}}, service) from error
        made = service, endpoint_url, role_arn
        with self._lock:
            if made not in self._made:
                client = botocore.session.get_session().create_client(
                    service,
                    region_name=region,
                    endpoint_url=endpoint_url,
                    aws_access_key_id=credentials["AWS_ACCESS_KEY_ID"],
                    aws_secret_access_key=credentials["AWS_SECRET_ACCESS_KEY"],
                    aws_session_token=credentials["AWS_SESSION_TOKEN"],
                    config=Config(
                        parameter_validation=False,
                        retries={"total_max_attempts": 1},
                        read_timeout=_TASK_LIMIT_S,
                        max_pool_connections=_CONNECTIONS,
                    ),
                )
                self._made[made] = _TaskClient(client) if service == "lambda" else client
            return self._made[made]


def _error_matches(self: ErrorEqualsDecl, env: Environment) -> None:
    if env.stack[-1] in _NOT_CAUGHT_BY_ALL and self._STATE_ALL_ERROR in self.error_names:
        env.stack.pop()
        env.stack.append(False)
    else:
        _error_matches_in_moto(self, env)


_error_matches_in_moto = ErrorEqualsDecl._eval_body


def _run_map(self: DistributedIterationComponent, env: Environment) -> None:
    """Hold a Distributed Map to what it needs: each of its runs is an execution of the same state machine."""
    machine_arn = env.states.context_object.context_object_data["StateMachine"]["Id"]
    role_arn = env.aws_execution_details.role_arn
    if not role_allows(role_arn, Required("states:StartExecution", machine_arn)):
        name = StatesErrorName(typ=StatesErrorNameType.StatesPermissions)
        cause = f"{role_arn} is not authorized to perform: states:StartExecution on resource: {machine_arn}"
        failed = MapRunFailedEventDetails(error=name.error_name, cause=cause)
        details: Any = {"mapRunFailedEventDetails": failed}  # of an event that has many kinds of them
        raise FailureEventException(
            FailureEvent(
                env=env,
                error_name=name,
                event_type=HistoryEventType.MapRunFailed,
                event_details=details,
            )
        )
    _run_map_in_moto(self, env)


_run_map_in_moto = DistributedIterationComponent._eval_body


def install(principals: Principals) -> None:
    """Put this in place of moto's. Call it before the first request: what moto holds of state machines is dropped.

    Args:
        principals: issues the credentials of the state machines' roles.
    """
    backends = models.stepfunctions_parser_backends
    if backends.backend is not InterpreterBackend:
        backends.clear()
        backends.backend = InterpreterBackend
    error_equals: Any = ErrorEqualsDecl
    error_equals._eval_body = _error_matches
    distributed_map: Any = DistributedIterationComponent
    distributed_map._eval_body = _run_map
    clients = _TaskClients(principals)
    for users in (lambda_eval_utils, resource_eval_s3):
        user: Any = users
        user.boto_client_for = clients

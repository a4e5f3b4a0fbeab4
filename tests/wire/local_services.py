"""moto behind the front server on a port of its own, and boto3 clients aimed at it.

moto's tables and buckets belong to the process, so tests name theirs after themselves, and a deployed stack is deleted
by the test that deployed it.
"""

from __future__ import annotations

import asyncio
import json
import socket
import threading
import time
import urllib.error
import urllib.request
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from types import SimpleNamespace
from typing import Any

import boto3
import pytest
from aiohttp import web
from botocore.config import Config
from moto.stepfunctions.parser.asl.component.common.retry import retrier_decl

from cicada_local.calls import CallLog
from cicada_local.cloudfront.edge import Edge
from cicada_local.cloudfront.origin import BucketOrigin
from cicada_local.cloudfront.server import CloudFront
from cicada_local.faults import Faults
from cicada_local.front import Front, Service
from cicada_local.motoserver import MotoServer
from cicada_local.permissions import Principals

ACCOUNT_ID = "123456789012"


class Services:
    """The running front server."""

    def __init__(self) -> None:
        self.faults = Faults()
        self.calls = CallLog()
        self.principals = Principals()
        self.moto: MotoServer
        self.endpoint_url = ""
        self.invoke: Callable[[str, Any], Any] = _echo
        """Stands for every function: the name and the event in, the result out."""
        self.answered: Callable[..., None] = lambda *_: None
        self.now = 0.0
        """What the edge's clock shows, in seconds."""

    def client(self, service: str, *, attempts: int = 1, **config: Any) -> Any:
        return boto3.client(
            service,
            endpoint_url=self.endpoint_url,
            region_name="us-east-1",
            aws_access_key_id="tester",
            aws_secret_access_key="test",
            config=Config(retries={"total_max_attempts": attempts, "mode": "standard"}, **config),
        )

    def get(self, path: str, **headers: str) -> tuple[int, bytes]:
        """A plain GET, unsigned."""
        request = urllib.request.Request(self.endpoint_url + path, headers=headers)
        try:
            with urllib.request.urlopen(request, timeout=10) as answer:
                return answer.status, answer.read()
        except urllib.error.HTTPError as error:
            return error.code, error.read()

    def clock(self) -> float:
        return self.now

    def _tell(self, *answered: Any) -> None:
        self.answered(*answered)

    async def serve(self, ready: Callable[[asyncio.AbstractEventLoop], None], *services: Service) -> None:
        """Run until cancelled; ``ready`` is called once requests are answered."""
        site_socket = _free_socket()
        port = site_socket.getsockname()[1]
        self.endpoint_url = f"http://localhost:{port}"
        self.moto = await asyncio.to_thread(MotoServer, port, self.principals)
        from cicada_local.cloudformation import cloudfront, custom

        edge = Edge(BucketOrigin(self.moto.lock("s3")), clock=self.clock)
        front = Front(
            self.moto,
            CloudFront(lambda: cloudfront.DISTRIBUTIONS, edge),
            faults=self.faults,
            calls=self.calls,
            principals=self.principals,
            answered=self._tell,
        )
        runner = web.AppRunner(
            front.application(_Functions(self), custom.CustomResourceResponses(), *services),
            auto_decompress=False,
            shutdown_timeout=1.0,
        )
        await runner.setup()
        await web.SockSite(runner, site_socket).start()
        try:
            ready(asyncio.get_running_loop())
            await asyncio.Event().wait()
        finally:
            await runner.cleanup()
            self.moto.close()


def create_role(
    services: Services,
    name: str,
    *,
    allowed: Mapping[str, str | list[str]],
    statements: Sequence[dict[str, Any]] = (),
) -> str:
    """A role that Lambda and Step Functions may assume, with a policy; its ARN.

    Args:
        services: where.
        name: the role's.
        allowed: actions, and the resources that each is allowed on.
        statements: further ones.
    """
    iam = services.client("iam")
    trust = {
        "Effect": "Allow",
        "Principal": {"Service": ["lambda.amazonaws.com", "states.amazonaws.com"]},
        "Action": "sts:AssumeRole",
    }
    # pytest-xdist may begin a module twice in one process, where IAM keeps what it had.
    with suppress(iam.exceptions.EntityAlreadyExistsException):
        iam.create_role(RoleName=name, AssumeRolePolicyDocument=_policy([trust]))
    role_arn: str = iam.get_role(RoleName=name)["Role"]["Arn"]
    given = [{"Effect": "Allow", "Action": action, "Resource": resources} for action, resources in allowed.items()]
    if given or statements:
        iam.put_role_policy(RoleName=name, PolicyName="allowed", PolicyDocument=_policy([*given, *statements]))
    return role_arn


def _policy(statements: list[dict[str, Any]]) -> str:
    return json.dumps({"Version": "2012-10-17", "Statement": statements})


def _echo(name: str, event: Any) -> Any:
    return event


class _Functions:
    def __init__(self, services: Services) -> None:
        self._services = services

    def add_routes(self, app: web.Application) -> None:
        async def invoke(request: web.Request) -> web.Response:
            event = json.loads(await request.read())
            # In a thread: what stands for a function may call the services itself.
            result = await asyncio.to_thread(self._services.invoke, request.match_info["name"], event)
            if isinstance(result, web.Response):
                return result
            return web.json_response(result)

        app.router.add_post("/2015-03-31/functions/{name}/invocations", invoke)


def _free_socket() -> socket.socket:
    found = socket.socket()
    found.bind(("127.0.0.1", 0))
    return found


@contextmanager
def running_services(*services: Service) -> Iterator[Services]:
    """Serve in a thread for the length of a block. The retries of state machines come at once."""
    front = Services()
    started = threading.Event()
    loops: list[asyncio.AbstractEventLoop] = []
    tasks: list[asyncio.Task[None]] = []

    def ready(loop: asyncio.AbstractEventLoop) -> None:
        loops.append(loop)
        started.set()

    async def run() -> None:
        task = asyncio.current_task()
        assert task is not None
        tasks.append(task)
        await front.serve(ready, *services)

    def thread() -> None:
        try:
            asyncio.run(run())
        except asyncio.CancelledError:
            pass
        finally:
            started.set()

    worker = threading.Thread(target=thread)
    worker.start()
    started.wait()
    try:
        assert loops, "the services did not start"
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(retrier_decl, "time", SimpleNamespace(sleep=lambda _: None))
            yield front
    finally:
        if loops:
            loops[0].call_soon_threadsafe(tasks[0].cancel)
        worker.join(10)


@contextmanager
def deployed_stack(services: Services, name: str, template: Mapping[str, Any]) -> Iterator[Any]:
    """Create a stack by a change set, as the CDK does; gives its description, whatever became of it."""
    client = services.client("cloudformation")
    client.create_change_set(
        StackName=name, ChangeSetName="first", ChangeSetType="CREATE", TemplateBody=json.dumps(template)
    )
    client.execute_change_set(StackName=name, ChangeSetName="first")
    try:
        yield _settled(client, name)
    finally:
        client.delete_stack(StackName=name)


def _settled(client: Any, name: str) -> Any:
    """A stack's description once it is made, or has failed: moto makes it beside the call that asks for it."""
    for _ in range(600):
        stack = client.describe_stacks(StackName=name)["Stacks"][0]
        if not stack["StackStatus"].endswith("IN_PROGRESS"):
            return stack
        time.sleep(0.05)
    raise AssertionError(f"{name} is still {stack['StackStatus']}")


def outputs_of(stack: Mapping[str, Any]) -> dict[str, str]:
    return {output["OutputKey"]: output["OutputValue"] for output in stack.get("Outputs", [])}

"""Workers of two releases over the same table, bucket, workflow, gateway and models, each in its own process."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import threading
import uuid
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import boto3
from aiohttp import web
from moto.server import ThreadedMotoServer

from cicada import __version__
from cicada.delivery.dynamodb import OPEN_INDEX
from supply_chain.archives import unpack
from supply_chain.locks import ROOT
from tests.wire.app_server import serving_app
from tests.wire.bedrock_service import BedrockService, serving

EMBEDDING_MODEL, DIMENSIONS = "local.all-minilm-l6-v2", 384
CURRENT = __version__
KEYS = {"aws_access_key_id": "test", "aws_secret_access_key": "test", "region_name": "us-east-1"}


class WorkerFailed(Exception):
    """What a call of a worker raised."""

    def __init__(self, kind: str, code: str | None, message: str) -> None:
        super().__init__(f"{kind}: {message}")
        self.kind = kind
        self.code = code


class Worker:
    """A process of one release."""

    def __init__(self, release: str, code: Path, environment: dict[str, str]) -> None:
        """``code``: a folder with the release's library and functions."""
        self.release = release
        self.log: list[str] = []
        """What it wrote to its log, line by line."""
        self._process = subprocess.Popen(
            [sys.executable, str(Path(__file__).with_name("worker.py"))],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            env=environment
            | {"PYTHONPATH": str(code / "layers" / "cicada" / "python"), "RELEASE_LAMBDAS": str(code / "lambdas")},
        )
        self._reading = threading.Thread(target=self._read_log, daemon=True)
        self._reading.start()

    def __repr__(self) -> str:
        return self.release

    def call(self, name: str, /, **arguments: Any) -> Any:
        """The result of a call; see :mod:`tests.releases.worker`. Raises WorkerFailed."""
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._process.stdin.write(json.dumps([name, arguments]) + "\n")
        self._process.stdin.flush()
        line = self._process.stdout.readline()
        assert line, f"the worker of {self.release} has ended: {self.log[-20:]}"
        told = json.loads(line)
        if "failed" in told:
            raise WorkerFailed(told["failed"], told["code"], told["message"])
        return told["result"]

    def close(self) -> None:
        """End the process."""
        assert self._process.stdin is not None
        self._process.stdin.close()
        self._process.wait(10)
        self._reading.join(10)

    def _read_log(self) -> None:
        assert self._process.stderr is not None
        for line in self._process.stderr:
            self.log.append(line.rstrip("\n"))


@dataclass
class Doors:
    """The workflow and the gateway: they note what they are told."""

    started: list[dict[str, Any]] = field(default_factory=list)
    """The inputs of the workflow's executions."""
    posted: list[dict[str, Any]] = field(default_factory=list)
    """The frames that were posted to connections."""

    def application(self) -> web.Application:
        app = web.Application()
        app.router.add_post("/{stage}/@connections/{id}", self._post)
        app.router.add_post("/@connections/{id}", self._post)
        app.router.add_post("/", self._start)
        return app

    async def _post(self, request: web.Request) -> web.Response:
        self.posted.append(json.loads(await request.read()))
        return web.Response()

    async def _start(self, request: web.Request) -> web.Response:
        self.started.append(json.loads(json.loads(await request.read())["input"]))
        arn = f"arn:aws:states:us-east-1:123456789012:express:m:{len(self.started)}:x"
        body = json.dumps({"executionArn": arn, "startDate": 1})
        return web.Response(body=body.encode(), headers={"Content-Type": "application/x-amz-json-1.0"})


@dataclass
class Place:
    """Everything that the workers share."""

    old: Worker
    new: Worker
    doors: Doors
    bedrock: BedrockService
    dynamodb: Any
    s3: Any
    table: str
    bucket: str

    def other(self, worker: Worker) -> Worker:
        """The worker of the other release."""
        return self.new if worker is self.old else self.old

    def ask(self, worker: Worker, query: str = "Who locked the boathouse?", **more: Any) -> str:
        """Ask a question through a worker's message processor; the request's id."""
        request_id = str(uuid.uuid4())
        reply = worker.call("send", action={"action": "ask", "requestId": request_id, "query": query, **more})
        assert reply["type"] == "accepted", reply
        return request_id

    def answer(self, worker: Worker, request_id: str, execution: str = "x1", strategy: str | None = None) -> Any:
        """Run the state of the workflow that a request's last execution enters at."""
        told = next(each for each in reversed(self.doors.started) if each["requestId"] == request_id)
        entered = strategy or told["strategy"]
        event = {
            "subject": told["subject"],
            "requestId": request_id,
            "execution": execution,
            "entry": told["strategy"],
            "failures": told["failures"],
            "strategy": entered,
            "timeBudgetS": 60,
        }
        return worker.call("invoke", function="answer", event=event, invocation=f"{execution}-{entered}")

    def item(self, request_id: str, sk: str = "head", subject: str = "mara") -> dict[str, Any] | None:
        """An item of a request as it is stored."""
        key = {"pk": {"S": f"{request_id}#{subject}"}, "sk": {"S": sk}}
        found: dict[str, Any] | None = self.dynamodb.get_item(TableName=self.table, Key=key, ConsistentRead=True).get(
            "Item"
        )
        return found

    def clear_index(self) -> None:
        """Delete every object of the bucket."""
        for found in self.s3.list_objects_v2(Bucket=self.bucket).get("Contents", ()):
            self.s3.delete_object(Bucket=self.bucket, Key=found["Key"])


def make_table(client: Any, name: str) -> None:
    """The requests' table, as the stacks make it."""
    client.create_table(
        TableName=name,
        BillingMode="PAY_PER_REQUEST",
        KeySchema=[{"AttributeName": "pk", "KeyType": "HASH"}, {"AttributeName": "sk", "KeyType": "RANGE"}],
        AttributeDefinitions=[
            {"AttributeName": attribute, "AttributeType": kind}
            for attribute, kind in (("pk", "S"), ("sk", "S"), ("open_in", "N"), ("accepted_at_ms", "N"))
        ],
        GlobalSecondaryIndexes=[
            {
                "IndexName": OPEN_INDEX,
                "KeySchema": [
                    {"AttributeName": "open_in", "KeyType": "HASH"},
                    {"AttributeName": "accepted_at_ms", "KeyType": "RANGE"},
                ],
                "Projection": {"ProjectionType": "KEYS_ONLY"},
            }
        ],
    )


@contextmanager
def side_by_side(release: str, folder: Path, **settings: str) -> Iterator[Place]:
    """A worker of an older release and one of today's code. ``settings`` are further variables of their functions."""
    unpack(release, folder)
    with ExitStack() as stack:
        moto = ThreadedMotoServer(ip_address="127.0.0.1", port=0)
        moto.start()
        stack.callback(moto.stop)
        host, port = moto.get_host_and_port()
        aws, doors = f"http://{host}:{port}", Doors()
        door = stack.enter_context(serving_app(doors.application()))
        bedrock = stack.enter_context(serving())
        dynamodb, s3 = (boto3.client(name, endpoint_url=aws, **KEYS) for name in ("dynamodb", "s3"))
        table = bucket = f"releases-{uuid.uuid4()}"  # moto's belong to the process
        make_table(dynamodb, table)
        s3.create_bucket(Bucket=bucket)
        environment = {name: value for name, value in os.environ.items() if not name.startswith(("AWS_", "CICADA_"))}
        environment |= {
            "AWS_ACCESS_KEY_ID": "test",
            "AWS_SECRET_ACCESS_KEY": "test",
            "AWS_REGION": "us-east-1",
            "AWS_DEFAULT_REGION": "us-east-1",
            "AWS_ENDPOINT_URL": aws,
            "AWS_ENDPOINT_URL_BEDROCK_RUNTIME": bedrock.url,
            "AWS_ENDPOINT_URL_APIGATEWAYMANAGEMENTAPI": f"{door}/live",
            "AWS_ENDPOINT_URL_SFN": door,
            "POWERTOOLS_SERVICE_NAME": "cicada",
            "POWERTOOLS_METRICS_NAMESPACE": "Cicada",
            "REQUESTS_TABLE": table,
            "INDEX_BUCKET": bucket,
            "STATE_MACHINE_ARN": "arn:aws:states:us-east-1:123456789012:stateMachine:m",
            "GENERATION_MODEL_ID": "local.extractive",
            "DIRECT_MODEL_ID": "local.extractive",
            "EMBEDDING_MODEL_ID": EMBEDDING_MODEL,
            "EMBEDDING_DIMENSIONS": str(DIMENSIONS),
            "OPENBLAS_NUM_THREADS": "1",
            **settings,
        }
        old, new = Worker(release, folder, environment), Worker(CURRENT, ROOT, environment)
        for worker in (old, new):
            stack.callback(worker.close)
        yield Place(old, new, doors, bedrock, dynamodb, s3, table, bucket)

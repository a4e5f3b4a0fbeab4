"""What it costs a call that the local cloud holds it to the policies of a role.

The same calls are made by turns as an administrator, whose calls are let through, and in a role with as many statements
as the answer worker's. Each is a whole call by boto3: signed, sent over loopback, answered by moto.

    .venv/bin/python -m benchmarks.permissions
"""

from __future__ import annotations

import argparse
import asyncio
import json
import statistics
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import boto3
from aiohttp import web
from botocore.config import Config

from cicada_local.calls import CallLog
from cicada_local.cloudfront.edge import Edge
from cicada_local.cloudfront.origin import BucketOrigin
from cicada_local.cloudfront.server import CloudFront
from cicada_local.faults import Faults
from cicada_local.front import Front
from cicada_local.motoserver import MotoServer
from cicada_local.permissions import Principals
from cicada_local.places import ACCOUNT_ID, REGION

STATEMENTS = 30
NAME = "measured"
KEY = {"pk": {"S": "a"}}


@contextmanager
def served(principals: Principals) -> Iterator[str]:
    """The address of a front server with moto behind it."""
    loop = asyncio.new_event_loop()
    runner: list[web.AppRunner] = []

    async def start() -> str:
        placeholder = await asyncio.get_running_loop().create_server(asyncio.Protocol, "127.0.0.1", 0)
        port = int(placeholder.sockets[0].getsockname()[1])
        placeholder.close()
        moto = await asyncio.to_thread(MotoServer, port, principals)
        page = CloudFront(dict, Edge(BucketOrigin(moto.lock("s3"))))
        front = Front(moto, page, faults=Faults(), calls=CallLog(), principals=principals)
        runner.append(web.AppRunner(front.application(), auto_decompress=False, access_log=None))
        await runner[0].setup()
        await web.TCPSite(runner[0], "127.0.0.1", port).start()
        return f"http://127.0.0.1:{port}"

    thread = threading.Thread(target=loop.run_forever, daemon=True)
    thread.start()
    try:
        yield asyncio.run_coroutine_threadsafe(start(), loop).result(120)
    finally:
        asyncio.run_coroutine_threadsafe(runner[0].cleanup(), loop).result(10)
        loop.call_soon_threadsafe(loop.stop)
        thread.join(10)


def client(service: str, url: str, **credentials: str) -> Any:
    """A client that never retries."""
    known = {"aws_access_key_id": "test", "aws_secret_access_key": "test"} | credentials
    config = Config(retries={"total_max_attempts": 1})
    return boto3.client(service, endpoint_url=url, region_name=REGION, config=config, **known)


def prepare(url: str) -> str:
    """Make a table, a bucket and a role that may read both; its ARN. What it needs comes last in its policy."""
    client("dynamodb", url).create_table(
        TableName=NAME,
        KeySchema=[{"AttributeName": "pk", "KeyType": "HASH"}],
        AttributeDefinitions=[{"AttributeName": "pk", "AttributeType": "S"}],
        BillingMode="PAY_PER_REQUEST",
    )
    client("dynamodb", url).put_item(TableName=NAME, Item=KEY)
    client("s3", url).create_bucket(Bucket=NAME)
    client("s3", url).put_object(Bucket=NAME, Key="index/a", Body=b"1")
    needed = {
        "dynamodb:GetItem": f"arn:aws:dynamodb:{REGION}:{ACCOUNT_ID}:table/{NAME}",
        "s3:GetObject": f"arn:aws:s3:::{NAME}/index/*",
    }
    others = {
        f"bedrock:InvokeModel{number}": f"arn:aws:bedrock:{REGION}::foundation-model/m*{number}"
        for number in range(STATEMENTS - len(needed))
    }
    statements = [{"Effect": "Allow", "Action": action, "Resource": arn} for action, arn in (others | needed).items()]
    trust = {"Effect": "Allow", "Principal": {"Service": "lambda.amazonaws.com"}, "Action": "sts:AssumeRole"}
    iam = client("iam", url)
    role = iam.create_role(RoleName=NAME, AssumeRolePolicyDocument=json.dumps(document([trust])))["Role"]["Arn"]
    iam.put_role_policy(RoleName=NAME, PolicyName=NAME, PolicyDocument=json.dumps(document(statements)))
    return str(role)


def document(statements: list[dict[str, Any]]) -> dict[str, Any]:
    """A policy document."""
    return {"Version": "2012-10-17", "Statement": statements}


def main(arguments: list[str] | None = None) -> int:
    """Measure, and print the table."""
    parser = argparse.ArgumentParser(description="The cost of enforced permissions in the local cloud.")
    parser.add_argument("--calls", type=int, default=400, help="of each kind (default: %(default)s)")
    calls = parser.parse_args(arguments).calls
    principals = Principals()
    with served(principals) as url:
        issued = principals.credentials(prepare(url), NAME, service="lambda.amazonaws.com")
        role = {name.lower(): value for name, value in issued.items()}
        kinds: dict[str, Callable[[Any], object]] = {
            "dynamodb": lambda made: made.get_item(TableName=NAME, Key=KEY),
            "s3": lambda made: made.get_object(Bucket=NAME, Key="index/a")["Body"].read(),
        }
        print(f"medians of {calls} calls")
        print(f"{'':<10} {'not enforced':>14} {'enforced':>10} {'difference':>12} {'ratio':>7}")
        for service, call in kinds.items():
            free, held = measured(client(service, url), client(service, url, **role), call, calls)
            told = f"{1000 * free:>11.3f} ms {1000 * held:>7.3f} ms {1000 * (held - free):>9.3f} ms {held / free:>7.2f}"
            print(f"{service:<10} {told}")
    return 0


def measured(free: Any, held: Any, call: Callable[[Any], object], calls: int) -> tuple[float, float]:
    """The median seconds of a call as an administrator and in the role, by turns after a warm-up."""
    times: dict[Any, list[float]] = {free: [], held: []}
    for number in range(calls + 20):
        for made in (free, held) if number % 2 else (held, free):
            begun = time.perf_counter()
            call(made)
            if number >= 20:
                times[made].append(time.perf_counter() - begun)
    return statistics.median(times[free]), statistics.median(times[held])


if __name__ == "__main__":
    sys.exit(main())

"""The local gateway with the local Lambda service behind it."""

import asyncio
import hashlib
import io
import json
import textwrap
import zipfile
from pathlib import Path

from aiohttp import web
from websockets.sync.client import connect

from cicada_local.faults import Faults
from cicada_local.functions import FunctionConfig, FunctionService
from cicada_local.gateway import (
    ApiConfig,
    RouteConfig,
    WebSocketGateway,
)

STREAMER = """
    import json, os
    import boto3

    callback = boto3.client("apigatewaymanagementapi")

    def handler(event, context):
        connection_id = event["requestContext"]["connectionId"]
        for word in json.loads(event["body"])["words"]:
            callback.post_to_connection(ConnectionId=connection_id, Data=word.encode())
        return {"statusCode": 200, "body": "all said"}
"""


def test_a_real_function_answers_through_the_callback_api(tmp_path: Path) -> None:
    archive = io.BytesIO()
    with zipfile.ZipFile(archive, "w") as unfinished:
        unfinished.writestr("handler.py", textwrap.dedent(STREAMER))
    code = archive.getvalue()
    arn = "arn:aws:lambda:us-east-1:123456789012:function:streamer"
    function = FunctionConfig(
        "streamer", arn, "handler.handler", code, hashlib.sha256(code).hexdigest(), timeout_s=30.0, memory_mb=256
    )
    api = ApiConfig("a1b2c3", "dev", {"$default": RouteConfig(arn, two_way=True)})

    async def converse() -> list[str | bytes]:
        app = web.Application()
        runner = web.AppRunner(app)
        ports: list[int] = []
        faults = Faults()
        functions = FunctionService(
            {"streamer": function}.get,
            work_dir=tmp_path,
            endpoint_url="http://127.0.0.1:9",
            overrides=lambda config: {
                "AWS_ENDPOINT_URL_APIGATEWAYMANAGEMENTAPI": f"http://127.0.0.1:{ports[0]}/_ws/a1b2c3/dev"
            },
            faults=faults,
        )
        functions.add_routes(app)
        WebSocketGateway(lambda api_id, stage: api, functions.invoke, faults=faults).add_routes(app)
        await runner.setup()
        await web.TCPSite(runner, "127.0.0.1", 0).start()
        ports.append(runner.addresses[0][1])

        def talk() -> list[str | bytes]:
            with connect(f"ws://127.0.0.1:{ports[0]}/_ws/a1b2c3/dev", proxy=None) as client:
                client.send(json.dumps({"words": ["one", "two", "three"]}))
                return [client.recv() for _ in range(4)]

        try:
            return await asyncio.to_thread(talk)
        finally:
            await runner.cleanup()

    assert asyncio.run(converse()) == ["one", "two", "three", "all said"]

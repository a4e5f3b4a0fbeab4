"""The stand-in of AgentCore's harness over real HTTP, and boto3 clients aimed at it."""

from __future__ import annotations

import json
import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

import boto3
from aiohttp import web
from aiohttp.typedefs import Handler
from botocore.config import Config

from cicada.models.bedrock import bedrock_client_config
from cicada_local.agents.brain import next_step
from cicada_local.agents.harness import HarnessRuntime
from cicada_local.agents.harness_store import Harness, HarnessStore, HarnessVersion
from cicada_local.agents.turns import BrainTool, Decide, Step, Turn
from cicada_local.faults import Faults
from tests.wire.app_server import serving_app

REGION, ACCOUNT_ID = "eu-west-1", "123456789012"
MODEL = "local.extractive"
VERSION = HarnessVersion({"bedrockModelConfig": {"modelId": MODEL}}, ({"text": "You keep profiles."},))


@dataclass
class HarnessService:
    """A running stand-in with one harness; what its model does is the test's to set."""

    store: HarnessStore = field(default_factory=HarnessStore)
    faults: Faults = field(default_factory=Faults)
    decide: Decide = next_step
    url: str = ""
    bodies: list[dict[str, Any]] = field(default_factory=list)
    shown: list[tuple[str, Sequence[BrainTool], Sequence[Turn]]] = field(default_factory=list)
    """What the model was shown: system text, tools and turns."""
    finished: threading.Event = field(default_factory=threading.Event)
    """Set when the handler of a request has ended."""
    harness: Harness = field(init=False)

    def __post_init__(self) -> None:
        self.harness = self.store.put("agents", VERSION, region=REGION, account_id=ACCOUNT_ID)

    def client(self, config: Config | None = None) -> Any:
        """boto3's, aimed at it."""
        return boto3.client(
            "bedrock-agentcore",
            endpoint_url=self.url,
            region_name=REGION,
            aws_access_key_id="test",
            aws_secret_access_key="test",
            config=config or bedrock_client_config(read_timeout_s=5.0),
        )


@contextmanager
def serving_harness() -> Iterator[HarnessService]:
    """Run the stand-in in a thread, on a port of its own."""
    service = HarnessService()

    def decide(system: str, tools: Sequence[BrainTool], turns: Sequence[Turn]) -> Step:
        service.shown.append((system, tools, turns))
        return service.decide(system, tools, turns)

    @web.middleware
    async def record(request: web.Request, handler: Handler) -> web.StreamResponse:
        body = await request.read()
        service.bodies.append(json.loads(body) if body else {})
        try:
            return await handler(request)
        finally:
            service.finished.set()

    app = web.Application(middlewares=[record])
    HarnessRuntime(service.store, service.faults, decide=decide, pace_s=0.0).add_routes(app)
    with serving_app(app) as url:
        service.url = url
        yield service

"""The stand-ins of the managed engines over real HTTP, and boto3 clients aimed at them."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any, Protocol

import boto3
from aiohttp import web
from aiohttp.typedefs import Handler
from botocore.config import Config

from cicada_local.faults import Faults
from tests.wire.app_server import serving_app

REGION, ACCOUNT = "us-east-1", "123456789012"


class Mounted(Protocol):
    def add_routes(self, app: web.Application) -> None: ...


@dataclass
class EngineService:
    """A running stand-in."""

    url: str = ""
    faults: Faults = field(default_factory=Faults)
    calls: Counter[str] = field(default_factory=Counter)
    """Requests by operation."""

    def client(self, service: str, *, config: Config | None = None, **options: Any) -> Any:
        return boto3.client(
            service,
            endpoint_url=self.url,
            region_name=REGION,
            aws_access_key_id="test",
            aws_secret_access_key="test",
            config=config or Config(retries={"total_max_attempts": 1, "mode": "standard"}, **options),
        )


@contextmanager
def serving(service: EngineService, *mounted: Mounted) -> Iterator[EngineService]:
    """Run stand-ins in a thread, on a port of their own."""

    @web.middleware
    async def record(request: web.Request, handler: Handler) -> web.StreamResponse:
        target = request.headers.get("X-Amz-Target", "")
        service.calls[target.rpartition(".")[2] or request.path.rsplit("/", 1)[-1]] += 1
        return await handler(request)

    app = web.Application(client_max_size=0, middlewares=[record])
    for one in mounted:
        one.add_routes(app)
    with serving_app(app) as url:
        service.url = url
        yield service

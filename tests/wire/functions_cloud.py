"""A Lambda service on a port of its own, the functions that it knows, and a boto3 client to call them."""

import asyncio
import base64
import hashlib
import io
import json
import subprocess
import sys
import textwrap
import threading
import time
import zipfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import boto3
import pytest
from aiohttp import web
from botocore.config import Config

from cicada_local.faults import Faults
from cicada_local.functions import FunctionConfig, FunctionService, Layer

ROOT = Path(__file__).parents[2]
linux_only = pytest.mark.skipif(sys.platform != "linux", reason="only Linux tells a process's memory")


class Cloud:
    """A service on a port of its own, and the functions that it knows."""

    def __init__(self, work_dir: Path, **options: Any) -> None:
        self.work_dir = work_dir
        self.faults = Faults()
        self.functions: dict[str, FunctionConfig] = {}
        self.service = FunctionService(
            self.functions.get,
            work_dir=work_dir,
            endpoint_url="http://localhost:4600",
            overrides=lambda config: {"OVERRIDDEN": f"for {config.name}"},
            faults=self.faults,
            **options,
        )
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._loop.run_forever)
        self._thread.start()
        app = web.Application()
        self.service.add_routes(app)
        self._runner = web.AppRunner(app)
        self.call(self._runner.setup())
        self.call(web.TCPSite(self._runner, "127.0.0.1", 0).start())
        port = self._runner.addresses[0][1]
        self.client = boto3.client(
            "lambda",
            endpoint_url=f"http://127.0.0.1:{port}",
            region_name="eu-west-1",
            aws_access_key_id="key",
            aws_secret_access_key="secret",
            config=Config(retries={"total_max_attempts": 1}, read_timeout=60),
        )

    def call(self, work: Any) -> Any:
        return asyncio.run_coroutine_threadsafe(work, self._loop).result(60)

    def close(self) -> None:
        self.call(self._runner.cleanup())
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join()
        self._loop.close()

    def deploy(self, source: str, name: str = "f", **config: Any) -> FunctionConfig:
        archive = zipped({"handler.py": textwrap.dedent(source)})
        deployed = FunctionConfig(
            name=name,
            arn=f"arn:aws:lambda:eu-west-1:123456789012:function:{name}",
            handler="handler.handler",
            code_zip=archive,
            code_sha=base64.b64encode(hashlib.sha256(archive).digest()).decode(),
            **{"timeout_s": 30.0, "memory_mb": 256, **config},
        )
        self.functions[name] = deployed
        return deployed

    def invoke(self, event: Any = None, name: str = "f", **request: Any) -> dict[str, Any]:
        answer = self.client.invoke(FunctionName=name, Payload=json.dumps(event), **request)
        payload = answer["Payload"].read()
        return {**answer, "Payload": json.loads(payload) if payload else None}

    def kill(self, name: str, pid: int | None = None) -> list[int]:
        """Kill processes on the service's own loop, as all of its methods want it."""

        async def killed() -> list[int]:
            return self.service.kill(name, pid)

        found: list[int] = self.call(killed())
        return found

    def log(self, name: str = "f") -> str:
        return (self.work_dir / "logs" / f"{name}.log").read_text()


def zipped(files: dict[str, str | bytes]) -> bytes:
    archive = io.BytesIO()
    with zipfile.ZipFile(archive, "w") as unfinished:
        for name, content in files.items():
            unfinished.writestr(name, content)
    return archive.getvalue()


def layer(name: str, files: dict[str, str | bytes]) -> Layer:
    archive = zipped(files)
    return Layer(name, archive, hashlib.sha256(archive).hexdigest())


def eventually(condition: Callable[[], Any]) -> Any:
    """Wait for what must come; the suite's own time-out ends it otherwise."""
    while not (result := condition()):
        time.sleep(0.01)
    return result


def process_state(pid: int) -> str:
    """The first letter of ``ps``'s state: T for stopped, Z for dead and not yet collected, nothing for gone."""
    shown = subprocess.run(["ps", "-o", "state=", "-p", str(pid)], capture_output=True, text=True)
    return shown.stdout.strip()[:1]


def gone(pid: int) -> bool:
    return process_state(pid) in ("", "Z")


ECHO = "def handler(event, context): return event"
PID = """
    import os

    def handler(event, context):
        return os.getpid()
"""


@contextmanager
def clouds(root: Path) -> Iterator[Callable[..., Cloud]]:
    """Starts services that keep their files below ``root``, and closes them in the end."""
    started: list[Cloud] = []

    def start(**options: Any) -> Cloud:
        started.append(Cloud(root / f"functions-{len(started)}", **options))
        return started[-1]

    try:
        yield start
    finally:
        for cloud in started:
            cloud.close()

"""A local cloud of a test's own, in a child process: the deployed thing, spoken to over HTTP and WebSocket alone.

::

    with LocalCloud(tmp_path / "cloud", load=[SAMPLE]) as cloud:
        cloud.arm("bedrock.cut", times=1, after=3)
        …  # connect to cloud.websocket_url, call cloud.client("dynamodb")
        assert cloud.calls()["dynamodb.PutItem"] == 1

Leaving the block stops it; entering another one with the same home finds the state of the first. Syntheses and
embeddings are cached with those of ``make up``, so that only the first start with some settings takes long.
"""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
import urllib.request
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from pathlib import Path
from types import TracebackType
from typing import Any, Self

from cicada_local.places import REGION, ROOT, Places
from cicada_local.up import read_settings

_POLL_S = 0.05
_REQUEST_TIMEOUT_S = 30.0
_STOP_TIMEOUT_S = 30.0


class CloudFailed(Exception):
    """The local cloud did not start, or did not stop; the message holds what it wrote."""


class LocalCloud:
    """Starts ``python -m cicada_local up`` and waits until it is ready."""

    def __init__(
        self,
        home: Path,
        *,
        settings: Mapping[str, Any] | None = None,
        load: Sequence[Path] = (),
        empty: bool = False,
        environment: Mapping[str, str] | None = None,
        port: int = 0,
        cache: Path | None = None,
        start_timeout_s: float = 240.0,
        metric_minute_s: float = 60.0,
        concurrency: int | None = None,
    ) -> None:
        """Nothing is started before the block is entered.

        Args:
            home: its folder, which holds state and logs; is made if need be.
            settings: what differs from ``cdk.local.json``; an object in it is merged key by key.
            load: a script's files or folders to load.
            empty: deploy nothing, so that a test can.
            environment: further variables of every function, over the stacks': for addresses that are not known when
                the stacks are synthesised, such as ``JWKS_URL``.
            port: of the front server; 0 takes a free one.
            cache: where syntheses and embeddings are kept; ``make up``'s when not given.
            start_timeout_s: how long starting may take.
            metric_minute_s: real seconds that are one of CloudWatch's minutes; see :meth:`metric_now`.
            concurrency: invocations of functions at once; what this machine bears when not given.
        """
        self._home = home
        self._settings = _merged(read_settings(), settings or {})
        self._load = list(load)
        self._empty = empty
        self._environment = dict(environment or {})
        self._port = port
        self._cache = cache or Places.default().cache
        self._start_timeout_s = start_timeout_s
        self._metric_minute_s = metric_minute_s
        self._concurrency = concurrency
        self._process: subprocess.Popen[bytes] | None = None
        self._described: dict[str, Any] = {}

    def __enter__(self) -> Self:
        self.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self.stop()

    # --- what is deployed ---

    @property
    def endpoint_url(self) -> str:
        """Where every AWS service answers."""
        return str(self._described["endpointUrl"])

    @property
    def websocket_url(self) -> str:
        """Where clients connect."""
        return str(self._described["webSocketUrl"])

    @property
    def outputs(self) -> Mapping[str, str]:
        """The outputs of the stacks."""
        outputs: dict[str, str] = self._described["outputs"]
        return outputs

    @property
    def pid(self) -> int:
        """The process."""
        return int(self._described["pid"])

    def client(self, service: str, **options: Any) -> Any:
        """A boto3 client of a service of this cloud."""
        import boto3

        return boto3.client(
            service,
            region_name=REGION,
            endpoint_url=self.endpoint_url,
            aws_access_key_id="test",
            aws_secret_access_key="test",  # noqa: S106 - the local cloud asks for no secret
            **options,
        )

    # --- CloudWatch ---

    def metric_now(self) -> datetime:
        """CloudWatch's time, which runs faster than the real one where its minutes are shorter."""
        return datetime.fromtimestamp(self.control("GET", "cloudwatch")["now"], UTC)

    def notifications(self) -> list[dict[str, Any]]:
        """What alarms have told their topics: ``topic``, ``subject``, ``message`` and ``at``, oldest first."""
        told: list[dict[str, Any]] = self.control("GET", "cloudwatch")["notifications"]
        return told

    # --- control ---

    def arm(self, fault: str, **params: Any) -> None:
        """Arm a fault; ``times`` among the parameters says how often it strikes."""
        self.control("PUT", f"faults/{fault}", params)

    def disarm(self, fault: str | None = None) -> None:
        """Disarm a fault, or all."""
        self.control("DELETE", f"faults/{fault}" if fault else "faults")

    def calls(self) -> dict[str, int]:
        """AWS calls since the start or :meth:`clear_calls`, by ``service.operation``."""
        counts: dict[str, int] = self.control("GET", "calls")["counts"]
        return counts

    def call_log(self) -> list[dict[str, Any]]:
        """The calls one by one; see :mod:`cicada_local.control`."""
        log: list[dict[str, Any]] = self.control("GET", "calls?log=1")["log"]
        return log

    def clear_calls(self) -> None:
        """Count from nothing."""
        self.control("DELETE", "calls")

    def connections(self) -> list[dict[str, Any]]:
        """The open WebSocket connections."""
        connections: list[dict[str, Any]] = self.control("GET", "connections")
        return connections

    def drop(self, connection_id: str) -> None:
        """Cut a connection as a network would."""
        self.control("DELETE", f"connections/{connection_id}")

    def functions(self) -> dict[str, dict[str, Any]]:
        """Each function's figures and processes, by its name, which holds its construct's id."""
        functions: dict[str, dict[str, Any]] = self.control("GET", "functions")
        return functions

    def kill_workers(self, function: str) -> list[int]:
        """SIGKILL to a function's processes that are at work; returns their ids."""
        killed: list[int] = self.control("DELETE", f"functions/{function}/processes")["killed"]
        return killed

    def executions(self) -> list[dict[str, Any]]:
        """The workflow's latest runs, each with the ``states`` that it went through."""
        executions: list[dict[str, Any]] = self.control("GET", "executions")
        return executions

    def control(self, method: str, path: str, document: Mapping[str, Any] | None = None) -> Any:
        """Call a control endpoint; see :mod:`cicada_local.control`."""
        data = None if document is None else json.dumps(document).encode()
        request = urllib.request.Request(f"{self.endpoint_url}/_cicada/{path}", data=data, method=method)  # noqa: S310
        with urllib.request.urlopen(request, timeout=_REQUEST_TIMEOUT_S) as answer:  # noqa: S310
            return json.load(answer)

    # --- start and stop ---

    def start(self) -> None:
        """Start it, and wait until it is ready.

        Raises:
            CloudFailed: it ended or took too long.
        """
        self._home.mkdir(parents=True, exist_ok=True)
        settings = self._home / "settings.json"
        settings.write_text(json.dumps(self._settings), encoding="utf-8")
        command = [sys.executable, "-m", "cicada_local", "up", "--plain", "--with-parent", "--port", str(self._port)]
        command += ["--home", str(self._home), "--cache", str(self._cache), "--settings", str(settings)]
        command += [word for path in self._load for word in ("--load", str(path))] or ["--no-load"]
        command += ["--metric-minute", str(self._metric_minute_s)]
        command += [] if self._concurrency is None else ["--concurrency", str(self._concurrency)]
        command += ["--empty"] if self._empty else []
        command += [word for name, value in self._environment.items() for word in ("--env", f"{name}={value}")]
        with (self._home / "up.log").open("wb") as log:
            self._process = subprocess.Popen(
                command,
                cwd=ROOT,
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=subprocess.STDOUT,
                start_new_session=True,
            )
        deadline = time.monotonic() + self._start_timeout_s
        while not self._is_ready():
            if self._process.poll() is not None:
                raise CloudFailed(f"ended with status {self._process.returncode}:\n{self.log()}")
            if time.monotonic() > deadline:
                self.kill()
                raise CloudFailed(f"not ready within {self._start_timeout_s:.0f} s:\n{self.log()}")
            time.sleep(_POLL_S)

    def stop(self) -> int:
        """Stop it as Ctrl-C does; returns its exit status, 0 if it was not running.

        Raises:
            CloudFailed: it did not end.
        """
        if self._process is None:
            return 0
        process, self._process = self._process, None
        if process.poll() is None:
            process.send_signal(signal.SIGINT)
        try:
            return process.wait(_STOP_TIMEOUT_S)
        except subprocess.TimeoutExpired:
            os.killpg(process.pid, signal.SIGKILL)
            process.wait()
            raise CloudFailed(f"did not stop within {_STOP_TIMEOUT_S:.0f} s:\n{self.log()}") from None

    def kill(self) -> None:
        """Kill it on the spot, as a power cut would."""
        if self._process is not None:
            self._process.kill()
            self._process.wait()
            self._process = None

    @property
    def home(self) -> Path:
        """Its folder."""
        return self._home

    @property
    def logs(self) -> Path:
        """The folder of its logs: one a function, the deployment's and its own."""
        return self._home / "logs"

    def log(self) -> str:
        """What it has written for the person at the terminal."""
        return (self._home / "up.log").read_text(encoding="utf-8")

    def _is_ready(self) -> bool:
        assert self._process is not None
        try:
            described = json.loads((self._home / "running.json").read_text(encoding="utf-8"))
        except (OSError, ValueError):
            return False
        self._described = described
        return (described.get("pid"), described.get("status")) == (self._process.pid, "ready")


def _merged(base: Mapping[str, Any], over: Mapping[str, Any]) -> dict[str, Any]:
    merged = dict(base)
    for key, value in over.items():
        both_objects = isinstance(value, Mapping) and isinstance(merged.get(key), Mapping)
        merged[key] = _merged(merged[key], value) if both_objects else value
    return merged

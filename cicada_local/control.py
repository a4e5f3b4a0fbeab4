"""The control endpoints of the local cloud, below ``/_cicada/``: for tests, benchmarks, and people at a terminal.

======================================  =============================================================================
``GET health``                          ``{"status": "starting"|"ready", "pid", "webSocketUrl", "outputs"}``
``GET faults``                          what is armed
``PUT faults/{name}``                   arm one; the body is its parameters as JSON; among them ``times``, and ``share``
                                        with ``seed``: the probability with which it strikes
``DELETE faults``, ``faults/{name}``    disarm all, or one
``GET calls``                           ``{"counts": {"dynamodb.PutItem": 3, …}}``; with ``?log=1`` also ``log``, each
                                        call with service, operation, resource, caller, at, status and tookMs
``DELETE calls``                        begin to count anew
``GET bedrock``                         how many streams of models are open, and how the others ended
``GET connections``                     the open WebSocket connections
``DELETE connections/{id}``             cut one, as a network would: without a close frame
``GET functions``                       each function's invocations, cold starts, errors and process ids
``DELETE functions/{name}/processes``   SIGKILL to the function's processes that are at work; with ``/{pid}`` to that
                                        one; ``{"killed": [pid, …]}``
``GET cloudwatch``                      CloudWatch's time, the seconds of its minute, and what alarms told their topics
``GET executions``                      the latest runs of the workflow, each with the states that it went through
``GET schedules``                       the deployed schedules, each with the functions it invokes and when it is due
``POST schedules/{name}``               run one now, and wait: each function with its ``result``, or its ``error``
``GET issuer/keys``                     the ids of the keys that each user pool publishes
``POST issuer/keys``                    sign tokens with new keys; the old ones stay published
``DELETE issuer/keys``                  publish the signing keys only: tokens of older ones are refused
``POST save``                           write the state to disk now
``POST stop``                           stop the local cloud
======================================  =============================================================================
"""

from __future__ import annotations

import asyncio
import json
import os
from collections.abc import Awaitable, Callable
from dataclasses import asdict
from typing import Any

from aiohttp import web

from cicada_local.calls import CallLog
from cicada_local.faults import Faults
from cicada_local.functions import FunctionService
from cicada_local.gateway import GatewayControl
from cicada_local.schedules import Schedules

PREFIX = "/_cicada"

Handler = Callable[[web.Request], Awaitable[web.StreamResponse]]


class Control:
    """Serves the control endpoints."""

    def __init__(
        self,
        *,
        faults: Faults,
        calls: CallLog,
        functions: FunctionService,
        gateway: GatewayControl,
        executions: Callable[[], list[dict[str, Any]]],
        schedules: Schedules,
        health: Callable[[], dict[str, Any]],
        save: Callable[[], None],
        stop: Callable[[], None],
    ) -> None:
        """Control the parts that are given.

        Args:
            faults: armed and disarmed.
            calls: counted AWS calls.
            functions: whose processes and figures are told.
            gateway: whose connections are told and cut.
            executions: the workflow's latest runs.
            schedules: told, and run out of turn.
            health: the status, and what is deployed.
            save: writes the state to disk; may block.
            stop: begins to stop everything, and returns at once.
        """
        self._faults = faults
        self._calls = calls
        self._functions = functions
        self._gateway = gateway
        self._executions = executions
        self._schedules = schedules
        self._health = health
        self._save = save
        self._stop = stop

    def add_routes(self, app: web.Application) -> None:
        """Add the routes."""
        routes: dict[tuple[str, str], Handler] = {
            ("GET", "health"): self._get_health,
            ("GET", "faults"): self._get_faults,
            ("PUT", "faults/{name}"): self._put_fault,
            ("DELETE", "faults"): self._delete_faults,
            ("DELETE", "faults/{name}"): self._delete_faults,
            ("GET", "calls"): self._get_calls,
            ("DELETE", "calls"): self._delete_calls,
            ("GET", "connections"): self._get_connections,
            ("DELETE", "connections/{id}"): self._delete_connection,
            ("GET", "functions"): self._get_functions,
            ("DELETE", "functions/{name}/processes"): self._delete_processes,
            ("DELETE", r"functions/{name}/processes/{pid:\d+}"): self._delete_processes,
            ("GET", "executions"): self._get_executions,
            ("GET", "schedules"): self._get_schedules,
            ("POST", "schedules/{name}"): self._post_schedule,
            ("POST", "save"): self._post_save,
            ("POST", "stop"): self._post_stop,
        }
        for (method, path), handler in routes.items():
            app.router.add_route(method, f"{PREFIX}/{path}", handler)

    async def _get_health(self, request: web.Request) -> web.Response:  # noqa: ARG002
        return web.json_response({"pid": os.getpid(), **self._health()})

    async def _get_faults(self, request: web.Request) -> web.Response:  # noqa: ARG002
        return web.json_response(self._faults.armed())

    async def _put_fault(self, request: web.Request) -> web.Response:
        try:
            params = json.loads(await request.read() or b"{}")
        except ValueError:
            params = None
        if not isinstance(params, dict) or not isinstance(params.get("times"), int | None):
            raise web.HTTPBadRequest(text="The body is to be a JSON object with the fault's parameters.\n")
        share = params.get("share")
        if share is not None and not (isinstance(share, int | float) and 0 <= share <= 1):
            raise web.HTTPBadRequest(text="share is to be a probability, from 0 to 1.\n")
        self._faults.arm(request.match_info["name"], **params)
        return web.json_response(self._faults.armed())

    async def _delete_faults(self, request: web.Request) -> web.Response:
        self._faults.disarm(request.match_info.get("name"))
        return web.json_response(self._faults.armed())

    async def _get_calls(self, request: web.Request) -> web.Response:
        answer: dict[str, Any] = {"counts": self._calls.counts()}
        if request.query.get("log"):
            answer["log"] = self._calls.last()
        return web.json_response(answer)

    async def _delete_calls(self, request: web.Request) -> web.Response:  # noqa: ARG002
        self._calls.clear()
        return web.json_response({"counts": {}})

    async def _get_connections(self, request: web.Request) -> web.Response:  # noqa: ARG002
        return web.json_response([asdict(connection) for connection in self._gateway.connections()])

    async def _delete_connection(self, request: web.Request) -> web.Response:
        if not self._gateway.drop(request.match_info["id"]):
            raise web.HTTPNotFound(text="There is no such connection.\n")
        return web.json_response({})

    async def _get_functions(self, request: web.Request) -> web.Response:  # noqa: ARG002
        processes = self._functions.processes()
        stats = self._functions.stats()
        return web.json_response(
            {name: {**asdict(figures), "processes": processes.get(name, [])} for name, figures in stats.items()}
        )

    async def _delete_processes(self, request: web.Request) -> web.Response:
        pid = request.match_info.get("pid")
        killed = self._functions.kill(request.match_info["name"], None if pid is None else int(pid))
        return web.json_response({"killed": killed})

    async def _get_executions(self, request: web.Request) -> web.Response:  # noqa: ARG002
        return web.json_response(self._executions())

    async def _get_schedules(self, request: web.Request) -> web.Response:  # noqa: ARG002
        return web.json_response(self._schedules.describe())

    async def _post_schedule(self, request: web.Request) -> web.Response:
        outcomes = await self._schedules.fire(request.match_info["name"])
        if outcomes is None:
            raise web.HTTPNotFound(text="There is no such schedule.\n")
        return web.json_response(outcomes)

    async def _post_save(self, request: web.Request) -> web.Response:  # noqa: ARG002
        await asyncio.to_thread(self._save)
        return web.json_response({})

    async def _post_stop(self, request: web.Request) -> web.Response:  # noqa: ARG002
        self._stop()
        return web.json_response({}, status=202)

"""The stand-in of the agents' runtime over real HTTP, with a scripted model, and boto3 clients aimed at it."""

from __future__ import annotations

import asyncio
import json
import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

import boto3
from aiohttp import web
from aiohttp.typedefs import Handler

from cicada.agents.classic.invocation import agent_client_config
from cicada_local.agents.classic import ClassicAgents
from cicada_local.agents.classic_store import AgentStore
from cicada_local.agents.turns import BrainTool, Step, Turn
from cicada_local.faults import Faults
from cicada_local.functions.config import InvokeResult
from cicada_local.functions.errors import ResourceNotFound
from tests.wire.app_server import serving_app

AGENT_ID, ALIAS_ID = "AGENTAGENT", "ALIASALIAS"
READING_AGENT_ID = "AGENTREADS"
MODEL = "amazon.nova-lite-v1:0"
FUNCTION_ARN = "arn:aws:lambda:us-east-1:123456789012:function:reading"
INSTRUCTION = "You keep profiles. Answer from what the tools return, and from nothing else."


def function(name: str, /, **parameters: str) -> dict[str, Any]:
    """A function whose parameters are given as ``name="type"``, with an exclamation mark if it is required."""
    return {
        "Name": name,
        "Description": f"Does {name}.",
        "Parameters": {
            key: {"Type": kind.rstrip("!"), "Description": key, "Required": kind.endswith("!")}
            for key, kind in parameters.items()
        },
    }


def properties(*, reading: Sequence[Any] = (), writing: Sequence[Any] = (), **changed: Any) -> dict[str, Any]:
    """An agent as a template declares it."""
    groups = [
        {
            "ActionGroupName": name,
            "ActionGroupExecutor": executor,
            "FunctionSchema": {"Functions": list(functions)},
        }
        for name, executor, functions in (
            ("reading", {"Lambda": FUNCTION_ARN}, reading),
            ("writing", {"CustomControl": "RETURN_CONTROL"}, writing),
        )
        if functions
    ]
    return {
        "AgentName": "profile",
        "AgentResourceRoleArn": "arn:aws:iam::123456789012:role/agent",
        "FoundationModel": MODEL,
        "Instruction": INSTRUCTION,
        "AutoPrepare": True,
        "IdleSessionTTLInSeconds": 600,
        "ActionGroups": groups,
        **changed,
    }


Function = Callable[[Mapping[str, Any]], Any]


@dataclass
class AgentsService:
    """A running stand-in; what the model says and what the function does are the test's to set."""

    url: str = ""
    store: AgentStore = field(default_factory=AgentStore)
    faults: Faults = field(default_factory=Faults)
    decide: Callable[[str, Sequence[BrainTool], Sequence[Turn]], Step] = lambda *_: Step("Nothing.")
    reckon: Callable[[str, Step], tuple[int, int]] = lambda prompt, step: (100, 20)
    function: Function = lambda event: {}
    events: list[dict[str, Any]] = field(default_factory=list)
    """What the function was called with."""
    before: Callable[[], None] = lambda: None
    """Called when a request arrives."""
    bodies: list[dict[str, Any]] = field(default_factory=list)
    """What was sent, in order."""
    sessions: list[str] = field(default_factory=list)
    handled: threading.Event = field(default_factory=threading.Event)
    """Set when the handler of a request has ended."""

    def client(self, *, read_timeout_s: float = 5.0) -> Any:
        return boto3.client(
            "bedrock-agent-runtime",
            endpoint_url=self.url,
            region_name="us-east-1",
            aws_access_key_id="test",
            aws_secret_access_key="test",
            config=agent_client_config(read_timeout_s=read_timeout_s),
        )

    def deploy(self, agent_id: str = AGENT_ID, **declared: Any) -> None:
        """Make the agent and its alias."""
        self.store.put_agent(agent_id, properties(**declared))
        self.store.put_alias(agent_id, ALIAS_ID, {})

    def decided(self, system: str, tools: Sequence[BrainTool], turns: Sequence[Turn]) -> Step:
        return self.decide(system, tools, turns)

    def reckoned(self, prompt: str, step: Step) -> tuple[int, int]:
        return self.reckon(prompt, step)

    async def invoke(self, name_or_arn: str, payload: bytes) -> InvokeResult:
        if name_or_arn != FUNCTION_ARN:
            raise ResourceNotFound(f"Function not found: {name_or_arn}")
        event = json.loads(payload)
        self.events.append(event)
        try:
            answer = await asyncio.to_thread(self.function, event)
        except Exception as error:
            failed = {"errorType": type(error).__name__, "errorMessage": str(error)}
            return InvokeResult(200, json.dumps(failed).encode(), function_error="Unhandled")
        return InvokeResult(200, json.dumps(answer).encode())


@contextmanager
def serving_agents() -> Iterator[AgentsService]:
    """Run the stand-in in a thread, on a port of its own."""
    service = AgentsService()

    @web.middleware
    async def record(request: web.Request, handler: Handler) -> web.StreamResponse:
        service.handled.clear()
        service.bodies.append(json.loads(await request.read() or b"{}"))
        service.sessions.append(request.path.split("/")[-2])
        service.before()
        try:
            return await handler(request)
        finally:
            service.handled.set()

    app = web.Application(client_max_size=0, middlewares=[record])
    ClassicAgents(
        service.store,
        service.decided,
        service.invoke,
        service.faults,
        reckon=service.reckoned,
        pace_s=0.0,
    ).add_routes(app)
    with serving_app(app) as url:
        service.url = url
        yield service

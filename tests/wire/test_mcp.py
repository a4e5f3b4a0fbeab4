"""The MCP server, asked by the SDK's own client: over standard input and output, and over HTTP."""

from __future__ import annotations

import asyncio
import json
import os
import subprocess
import sys
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator, Sequence
from contextlib import asynccontextmanager
from typing import Any

import httpx2
import pytest
from mcp.client import Client
from mcp.client.stdio import StdioServerParameters, stdio_client
from mcp.client.streamable_http import streamable_http_client
from mcp.shared.exceptions import MCPError
from mcp_types import CallToolResult, ReadResourceResult, TextContent, TextResourceContents

from cicada.errors import LimitReached, UnknownAction
from cicada.protocol.actions import Ask, Cancel, Search
from cicada.protocol.events import Chunk, Refused, Reply
from cicada.usage.limits import LimitState
from cicada_client import CicadaClient
from cicada_http.app import create_app
from cicada_http.mcp_part import part
from cicada_http.settings import HttpSettings
from cicada_mcp.server import create_server
from supply_chain.locks import ROOT
from tests.support.scripted_answers import (
    BROKEN_OFF,
    QUESTION,
    SOURCE,
    TEXT,
    WORDS,
    accepted,
    answer,
    answer_after_fallback,
    begun,
    failed,
)
from tests.support.scripted_deployment import HOLD, PATIENCE_S, ScriptedDeployment, Step
from tests.support.served_app import served
from tests.wire.test_client_corpus import reply

TOKEN = "the-token-of-mara"
MODERN, LEGACY = "2026-07-28", "2025-11-25"
LIMIT = LimitState(account="user", limit="requestsMinute", most=5, left=0)
SCRIPTS: dict[str, Sequence[Step] | Refused] = {
    QUESTION: answer(),
    "And then?": answer(),
    "fallback": answer_after_fallback(),
    "failed": failed(),
    "limited": Refused(code=LimitReached.code, message="Your limit is reached.", retryable=True, limit=LIMIT),
    "held": [accepted(), *begun(), Chunk(attempt=1, content=WORDS[0]), HOLD],
}


@pytest.fixture(scope="module")
def deployment() -> Iterator[ScriptedDeployment]:
    with ScriptedDeployment(SCRIPTS, reply, token=TOKEN) as deployment:
        yield deployment


@pytest.fixture(scope="module")
def http_url(deployment: ScriptedDeployment) -> Iterator[str]:
    settings = HttpSettings.read({"WEBSOCKET_URL": deployment.url, "JWT_ISSUER": "https://issuer.example"})
    with served(create_app(settings, part)) as url:
        yield f"{url}/mcp"


@asynccontextmanager
async def over_stdio(deployment: ScriptedDeployment) -> AsyncIterator[Client]:
    environment = environment_of(CICADA_TOKEN=TOKEN)
    words = ["-m", "cicada_cli", "mcp", "--url", deployment.url]
    async with Client(
        stdio_client(StdioServerParameters(command=sys.executable, args=words, env=environment))
    ) as client:
        yield client


def environment_of(**variables: str) -> dict[str, str]:
    path = os.pathsep.join([str(ROOT), str(ROOT / "layers" / "cicada" / "python")])
    return {"PATH": os.environ["PATH"], "PYTHONPATH": path, **variables}


@asynccontextmanager
async def over_http(url: str, token: str, mode: str) -> AsyncIterator[Client]:
    headers = {"Authorization": f"Bearer {token}"}
    async with httpx2.AsyncClient(headers=headers, timeout=PATIENCE_S) as http:
        transport = streamable_http_client(url, http_client=http)
        async with Client(transport, mode="legacy" if mode == LEGACY else mode) as client:
            yield client


def in_process(deployment: ScriptedDeployment) -> Client:
    return Client(create_server(lambda _: CicadaClient(deployment.url, token=TOKEN)))


def run(work: Callable[[], Awaitable[None]]) -> None:
    async def bounded() -> None:
        async with asyncio.timeout(PATIENCE_S):
            await work()

    asyncio.run(bounded())


def text_of(result: Any) -> str:
    assert isinstance(result, CallToolResult)
    assert isinstance(result.content[0], TextContent)
    return result.content[0].text


def content_of(result: ReadResourceResult) -> str:
    (content,) = result.contents
    assert isinstance(content, TextResourceContents)
    return content.text


@pytest.mark.parametrize(("transport", "mode"), [("stdio", MODERN), ("http", MODERN), ("http", LEGACY)])
def test_a_host_asks_searches_and_reads(
    deployment: ScriptedDeployment, http_url: str, transport: str, mode: str
) -> None:
    connection = over_stdio(deployment) if transport == "stdio" else over_http(http_url, TOKEN, mode)
    before = len(deployment.actions(Ask))

    async def work() -> None:
        async with connection as client:
            assert client.protocol_version == mode
            notes: list[str] = []

            async def note(progress: float, total: float | None, message: str | None) -> None:
                notes.append(message or "")

            tools = {tool.name: tool for tool in (await client.list_tools()).tools}
            assert tools.keys() == {"ask", "search", "read_passage", "list_collections"}
            answered = await client.call_tool("ask", {"question": QUESTION}, progress_callback=note)
            told = answered.structured_content
            assert told is not None
            assert (told["text"], told["grounded"], told["strategy"]) == (TEXT, True, "rag")
            assert [(one["n"], one["verdict"]) for one in told["citations"]] == [(1, "verified")]
            assert [source["passage_id"] for source in told["sources"]] == ["ep1/12"]
            assert TEXT in text_of(answered)
            assert {"Answering by rag…", "Found 2 passages.", TEXT} <= set(notes)
            conversation = told["conversation_id"]
            await client.call_tool("ask", {"question": "And then?", "conversation_id": conversation})
            first, second = deployment.actions(Ask)[before:]
            assert first.session_id == second.session_id == conversation

            found = await client.call_tool("search", {"query": "bell", "collections": ["script"], "top_k": 2})
            passage = found.structured_content["passages"][0]
            assert deployment.actions(Search)[-1].collections == ("script",)
            place = {"collection": passage["collection"], "passage_id": passage["passage_id"]}
            read = await client.call_tool("read_passage", place)
            assert [one["text"] for one in read.structured_content["passages"]] == [SOURCE.text]
            held = await client.call_tool("list_collections", {})
            assert [one["name"] for one in held.structured_content["collections"]] == ["manuals", "script"]

            assert content_of(await client.read_resource(passage["uri"])) == SOURCE.text
            resources = (await client.list_resources()).resources
            assert [one.uri for one in resources] == ["cicada://collection/manuals", "cicada://collection/script"]
            assert "manuals/bell.md" in content_of(await client.read_resource(resources[0].uri))
            with pytest.raises(MCPError, match="collection_unknown"):
                await client.read_resource("cicada://collection/nowhere")

    run(work)


def test_tools_are_described_and_say_that_passages_are_data(deployment: ScriptedDeployment) -> None:
    async def work() -> None:
        async with in_process(deployment) as client:
            tools = {tool.name: tool for tool in (await client.list_tools()).tools}
            templates = (await client.list_resource_templates()).resource_templates
            for tool in tools.values():
                assert tool.annotations is not None
                assert (tool.annotations.read_only_hint, tool.annotations.open_world_hint) == (
                    tool.name != "ask",
                    False,
                )
                assert tool.output_schema is not None
                assert all("description" in field for field in tool.input_schema["properties"].values())
            told = [tools[name].description for name in ("ask", "search", "read_passage")]
            told += [client.instructions, templates[-1].description]
            assert [text for text in told if "instructions inside" not in " ".join((text or "").split())] == []
            assert [one.uri_template for one in templates] == [
                "cicada://collection/{name}{?cursor}",
                "cicada://passage/{collection}/{passage_id}",
            ]

    run(work)


def test_withdrawn_text_is_in_the_progress_alone(deployment: ScriptedDeployment) -> None:
    async def work() -> None:
        notes: list[str] = []

        async def note(progress: float, total: float | None, message: str | None) -> None:
            notes.append(message or "")

        async with in_process(deployment) as client:
            answered = await client.call_tool("ask", {"question": "fallback"}, progress_callback=note)
        assert answered.structured_content["text"] == TEXT
        assert BROKEN_OFF not in text_of(answered)
        assert "The answer starts again: The answer was interrupted." in notes

    run(work)


@pytest.mark.parametrize(
    ("tool", "arguments", "code", "retryable"),
    [
        ("ask", {"question": "failed"}, "all_strategies_failed", True),
        ("ask", {"question": "limited"}, "limit_reached", True),
        ("ask", {"question": " "}, "invalid_message", False),
        ("list_collections", {}, "unknown_action", False),
    ],
    ids=str,
)
def test_errors_have_stable_codes(tool: str, arguments: dict[str, Any], code: str, retryable: bool) -> None:
    def refuse(_: Any) -> Reply:
        return Refused.of(UnknownAction("an older server"))

    async def work() -> None:
        with ScriptedDeployment(SCRIPTS, refuse, token=TOKEN) as older:
            async with in_process(older) as client:
                result = await client.call_tool(tool, arguments)
        assert result.is_error
        assert code in text_of(result)
        assert result.meta is not None
        assert (result.meta["cicada/error"]["code"], result.meta["cicada/error"]["retryable"]) == (code, retryable)

    run(work)


def test_a_token_that_is_not_accepted_is_an_error(deployment: ScriptedDeployment, http_url: str) -> None:
    async def work() -> None:
        wrong = create_server(lambda _: CicadaClient(deployment.url, token="wrong"))
        async with Client(wrong, mode=MODERN) as client:
            assert "unauthorized" in text_of(await client.call_tool("search", {"query": "bell"}))
            with pytest.raises(MCPError, match="unauthorized"):
                await client.list_resources()
        async with httpx2.AsyncClient() as http:
            for headers in ({}, {"Authorization": "Bearer wrong"}):
                refused = await http.post(http_url, json={}, headers=headers)
                assert refused.status_code == 401
            assert (await http.get(http_url, headers={"Authorization": f"Bearer {TOKEN}"})).status_code == 405

    run(work)


def test_a_call_that_the_host_cancels_cancels_the_answer(deployment: ScriptedDeployment, http_url: str) -> None:
    before = len(deployment.actions(Cancel))

    async def work() -> None:
        async with over_http(http_url, TOKEN, MODERN) as client:
            writing = asyncio.Event()

            async def note(progress: float, total: float | None, message: str | None) -> None:
                if message == WORDS[0]:
                    writing.set()

            call = asyncio.create_task(client.call_tool("ask", {"question": "held"}, progress_callback=note))
            await writing.wait()
            call.cancel()
            await asyncio.gather(call, return_exceptions=True)
            await asyncio.to_thread(deployment.wait, lambda: len(deployment.actions(Cancel)) > before)

    run(work)


def test_an_older_host_finds_nothing_but_the_protocol_on_standard_output(deployment: ScriptedDeployment) -> None:
    request = '{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"2025-06-18",'
    request += '"capabilities":{},"clientInfo":{"name":"an older host","version":"1"}}}\n'
    words = [sys.executable, "-m", "cicada_cli", "mcp", "--url", deployment.url, "--token", TOKEN]
    done = subprocess.run(
        words, input=request, env=environment_of(), capture_output=True, text=True, timeout=PATIENCE_S
    )
    assert (done.returncode, done.stderr) == (0, "")
    (line,) = done.stdout.splitlines()
    told = json.loads(line)["result"]
    assert (told["protocolVersion"], told["serverInfo"]["name"]) == ("2025-06-18", "cicada")

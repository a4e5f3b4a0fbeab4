"""The clients of this repository against the deployed thing."""

from __future__ import annotations

import asyncio
import itertools
import json
import os
import re
import urllib.request

import httpx2
from mcp.client import Client
from mcp.client.streamable_http import streamable_http_client

from cicada.protocol.events import Chunk, Complete, Sources
from cicada_client import CicadaClient
from examples.discord_bot import bot
from examples.renpy.cicada_game import Oracle
from tests.e2e import command

QUESTION = "How many strokes of the fog bell did Ilse count?"


def cicada(cloud, token, *words):
    """Run the command line as a user does."""
    where = ["--url", cloud.websocket_url, "--token", token] if words[0] == "ask" else []
    environment = os.environ | {"AWS_ACCESS_KEY_ID": "test", "AWS_SECRET_ACCESS_KEY": "test"}
    return command.cicada([*words, *where], environment)


def test_the_python_client_streams_an_answer(cloud, issuer, user):
    async def ask():
        async with CicadaClient(cloud.websocket_url, token=issuer.token(user)) as client:
            return [event async for event in client.ask(QUESTION, episodes=["ep1"])]

    events = asyncio.run(ask())
    assert any(isinstance(event, Sources) for event in events)
    assert "thirteen" in "".join(event.content for event in events if isinstance(event, Chunk))
    assert isinstance(events[-1], Complete)


def test_the_python_client_survives_a_network_that_cuts_its_connection(cloud, issuer, user):
    cloud.arm("bedrock.slow", delay_ms=80)

    async def ask():
        async with CicadaClient(cloud.websocket_url, token=issuer.token(user)) as client:
            stream = client.ask(QUESTION, episodes=["ep1"])
            texts = []
            async for event in stream:
                if isinstance(event, Chunk):
                    texts.append(event.content)
                    if len(texts) == 2:
                        for connection in await asyncio.to_thread(cloud.connections):
                            await asyncio.to_thread(cloud.drop, connection["connection_id"])
            return texts, stream.answer

    texts, answer = asyncio.run(ask())
    assert "".join(texts) == answer.text
    assert "thirteen" in answer.text


def test_the_python_client_renews_its_token_in_the_middle_of_an_answer(cloud, issuer, user):
    cloud.arm("bedrock.slow", delay_ms=120)
    tokens: list[str] = []

    async def token():
        tokens.append(issuer.token(user, lasts_s=600 if tokens else 4))
        return tokens[-1]

    async def ask():
        async with CicadaClient(cloud.websocket_url, token=token) as client:
            stream = client.ask(QUESTION, episodes=["ep1"])
            return [event async for event in stream], stream.answer

    events, answer = asyncio.run(ask())
    assert len(tokens) == 2
    assert isinstance(events[-1], Complete)
    assert "".join(event.content for event in events if isinstance(event, Chunk)) == answer.text
    assert "thirteen" in answer.text


def test_an_answer_streams_over_http(cloud, issuer, user):
    """Model, worker, WebSocket, the HTTP function's process and its URL: each hands the text on as it comes."""
    cloud.arm("bedrock.slow", delay_ms=150)
    body = {"model": "cicada", "stream": True, "messages": [{"role": "user", "content": QUESTION}]}
    request = urllib.request.Request(
        f"{cloud.outputs['HttpUrl']}v1/chat/completions",
        json.dumps(body).encode(),
        {"Authorization": f"Bearer {issuer.token(user)}", "Content-Type": "application/json"},
    )
    with urllib.request.urlopen(request, timeout=60) as response:
        assert response.headers["Content-Type"].startswith("text/event-stream")
        assert response.headers["Transfer-Encoding"] == "chunked"
        lines = [line.decode().strip() for line in response]
    events = [line.removeprefix("data: ") for line in lines if line.startswith("data: ")]
    assert events[-1] == "[DONE]"
    chunks = [json.loads(event) for event in events[:-1]]
    texts = [choice["delta"].get("content") or "" for chunk in chunks for choice in chunk["choices"]]
    assert len(list(filter(None, texts))) > 2
    assert "thirteen" in "".join(texts)


def test_an_mcp_host_searches_reads_and_asks_over_http(cloud, issuer, user):
    headers = {"Authorization": f"Bearer {issuer.token(user)}"}

    async def use():
        async with httpx2.AsyncClient(headers=headers, timeout=60) as http:
            transport = streamable_http_client(f"{cloud.outputs['HttpUrl']}mcp", http_client=http)
            async with Client(transport) as host:
                held = await host.call_tool("list_collections", {})
                found = await host.call_tool("search", {"query": "the fog bell", "episodes": ["ep1"], "top_k": 3})
                first = found.structured_content["passages"][0]
                place = {"collection": first["collection"], "passage_id": first["passage_id"]}
                read = await host.call_tool("read_passage", place)
                resource = await host.read_resource(first["uri"])
                answer = await host.call_tool("ask", {"question": QUESTION, "episodes": ["ep1"]})
                return held, found, read, resource, answer

    held, found, read, resource, answer = asyncio.run(use())
    assert "script" in [one["name"] for one in held.structured_content["collections"]]
    passages = found.structured_content["passages"]
    assert len(passages) == 3
    (asked,) = [one for one in read.structured_content["passages"] if one["asked"]]
    assert asked["text"] == resource.contents[0].text == passages[0]["text"]
    assert "thirteen" in answer.structured_content["text"]
    assert answer.structured_content["grounded"]
    assert answer.structured_content["sources"]


def test_the_command_line_prints_an_answer_with_its_sources(cloud, issuer, user):
    done = cicada(cloud, issuer.token(user), "ask", QUESTION, "--episode", "ep1")
    assert done.returncode == 0, done.stderr
    assert "thirteen" in done.stdout
    assert "[1]" in done.stdout or "1." in done.stdout


def test_the_command_line_speaks_json_lines_to_machines(cloud, issuer, user):
    done = cicada(cloud, issuer.token(user), "ask", QUESTION, "--episode", "ep1", "--json")
    assert done.returncode == 0, done.stderr
    events = [json.loads(line) for line in done.stdout.splitlines()]
    assert events[0]["type"] == "accepted"
    assert events[-1]["type"] == "complete"
    assert [event["seq"] for event in events] == list(range(1, len(events) + 1))


def test_the_command_line_fails_with_a_status_of_its_own(cloud, issuer, user):
    cloud.arm("bedrock.error", exception="AccessDeniedException", status=403)
    done = cicada(cloud, issuer.token(user), "ask", QUESTION)
    assert done.returncode == 1


def test_the_command_line_searches_the_deployments_index(cloud, issuer, user):
    outputs = cloud.outputs
    done = cicada(
        cloud,
        issuer.token(user),
        *("search", "who rang the fog bell", "--episode", "ep1", "--json"),
        "--bucket",
        outputs["IndexBucket"],
        "--embedding-model",
        outputs["EmbeddingModelId"],
        "--dimensions",
        outputs["EmbeddingDimensions"],
        "--endpoint-url",
        cloud.endpoint_url,
        "--region",
        "us-east-1",
    )
    assert done.returncode == 0, done.stderr
    assert "ep1-" in done.stdout
    assert "ep2-" not in done.stdout


def test_an_administrator_limits_a_user_at_once(cloud, issuer, user):
    token = issuer.token(user)

    def administer(*words):
        where = ("--endpoint-url", cloud.endpoint_url, "--region", "us-east-1", "--json")
        done = cicada(cloud, token, *words, *where)
        assert done.returncode == 0, done.stderr
        return json.loads(done.stdout)

    administer("limits", "set", "--user", user, "--requests-minute", "0")
    refused = cicada(cloud, token, "ask", QUESTION)
    assert (refused.returncode, refused.stdout) == (5, "")
    assert refused.stderr == "cicada: You have reached your limit of 0 questions a minute. (limit_reached)\n"
    assert administer("usage", "--user", user)["questions"] == 0

    assert administer("limits", "unset", "--user", user)["before"] == {"requestsMinute": 0}
    assert cicada(cloud, token, "ask", QUESTION).returncode == 0
    used = administer("usage", "--user", user)
    assert (used["questions"], used["open"]) == (1, 0)
    assert used["tokens"] > 0


class Channel:
    """A chat channel with one message, and when it was edited."""

    def __init__(self):
        self.texts = []

    async def send(self, text):
        self.texts.append(text)
        return self

    async def edit(self, text):
        self.texts.append(text)


def test_the_discord_bot_edits_one_message_and_ends_with_footnotes(cloud, issuer, user):
    channel, slept = Channel(), []

    async def sleep(seconds):
        slept.append(seconds)

    async def ask():
        async with CicadaClient(cloud.websocket_url, token=issuer.token(user)) as client:
            ticks = itertools.count()
            await bot.reply(channel, client, QUESTION, conversation="c1", clock=lambda: next(ticks) * 0.5, sleep=sleep)

    asyncio.run(ask())
    thinking, *_, last = channel.texts
    assert thinking == bot.THINKING
    assert "thirteen" in last
    assert re.search(r"\n-# \[\d+\] .*ep1", last)
    assert len(slept) == 1


def test_the_game_shows_an_answer_while_its_loop_goes_on(cloud, issuer, user):
    oracle = Oracle(cloud.websocket_url, issuer.token(user))
    line = oracle.ask(QUESTION, episodes=["ep1"], conversation="the-keeper")
    assert line.wait(60)
    oracle.close()
    assert (line.shown.state, "thirteen" in line.shown.text) == ("done", True)
    assert any("ep1" in note for note in line.shown.footnotes)

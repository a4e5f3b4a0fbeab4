"""The examples' logic over a scripted deployment; tests/e2e/test_clients.py runs them against the local cloud."""

from __future__ import annotations

import asyncio
import itertools
from collections.abc import Sequence

from cicada.protocol.events import Chunk
from cicada_client import CicadaClient
from examples.discord_bot import bot
from examples.renpy.cicada_game import Oracle
from tests.support.scripted_answers import (
    BROKEN_OFF,
    QUESTION,
    TEXT,
    WORDS,
    accepted,
    answer,
    answer_after_fallback,
    begun,
    failed,
)
from tests.support.scripted_deployment import HOLD, PATIENCE_S, ScriptedDeployment, Step

SCRIPTS: dict[str, Sequence[Step]] = {
    QUESTION: answer(),
    "fallback": answer_after_fallback(),
    "failed": failed(),
    "long": answer("x" * 3_000),
    "held": [accepted(), *begun(), Chunk(attempt=1, content=WORDS[0]), HOLD, Chunk(attempt=1, content=WORDS[1])],
}


class Channel:
    def __init__(self) -> None:
        self.texts: list[str] = []

    async def send(self, text: str) -> Channel:
        self.texts.append(text)
        return self

    async def edit(self, text: str) -> None:
        self.texts.append(text)


def replied(question: str, *, seconds_a_look: float) -> tuple[list[str], list[float]]:
    channel, slept = Channel(), list[float]()
    ticks = itertools.count()

    async def sleep(seconds: float) -> None:
        slept.append(seconds)

    async def ask(url: str) -> None:
        async with CicadaClient(url) as client:
            await bot.reply(
                channel, client, question, conversation="c1", clock=lambda: next(ticks) * seconds_a_look, sleep=sleep
            )

    with ScriptedDeployment(SCRIPTS) as deployment:
        asyncio.run(ask(deployment.url))
    return channel.texts, slept


def test_the_bot_edits_its_message_when_a_second_has_passed() -> None:
    footnote = "\n-# [1] The Fog Bell · 1 · ep1-12 · Ilse Vane"
    texts, _ = replied(QUESTION, seconds_a_look=1.0)
    assert (texts[0], texts[-1]) == (bot.THINKING, TEXT + footnote)
    assert len(texts) == 4
    texts, slept = replied(QUESTION, seconds_a_look=0.001)
    assert texts == [bot.THINKING, TEXT + footnote]
    assert 0.9 < slept[0] < 1


def test_the_bots_last_edit_has_nothing_that_was_withdrawn_and_fits_a_message() -> None:
    texts, _ = replied("fallback", seconds_a_look=1.0)
    assert BROKEN_OFF not in texts[-1]
    texts, _ = replied("long", seconds_a_look=1.0)
    assert max(map(len, texts)) == bot.MAX_CHARS
    assert "-# [1]" in texts[-1]
    texts, _ = replied("failed", seconds_a_look=1.0)
    assert texts[-1].startswith("Sorry, no answer: ")


def test_the_game_is_shown_whole_answers_failures_and_can_stop() -> None:
    with ScriptedDeployment(SCRIPTS) as deployment:
        oracle = Oracle(deployment.url)
        lines = {question: oracle.ask(question) for question in (QUESTION, "fallback", "failed")}
        assert all(line.wait(PATIENCE_S) for line in lines.values())
        held = oracle.ask("held")
        deployment.wait(lambda: held.shown.text == WORDS[0])
        held.cancel()
        deployment.release()
        assert held.wait(PATIENCE_S)
        oracle.close()
    assert [line.shown.state for line in lines.values()] == ["done", "done", "failed"]
    assert lines["fallback"].shown.text == TEXT
    assert lines[QUESTION].shown.footnotes == ("[1] The Fog Bell · 1 · ep1-12 · Ilse Vane",)
    assert held.shown.state != "done"

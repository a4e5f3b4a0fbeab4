"""Answers questions in a chat channel: one message a question, edited while the answer is written.

This is the bot's logic. It needs only :class:`Channel` and :class:`Message`; ``main.py`` makes them from Discord's.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Awaitable, Callable
from typing import Protocol

from cicada.protocol.events import Chunk, Fallback
from cicada_client import Answer, CicadaClient, ClientError

EDIT_EVERY_S = 1.0
"""Discord limits edits: at most one a second."""
MAX_CHARS = 2_000
"""Of a message at Discord."""
THINKING = "…"


class Message(Protocol):
    """A message that the bot has sent."""

    async def edit(self, text: str) -> None:
        """Replace its text."""


class Channel(Protocol):
    """Where the question was asked."""

    async def send(self, text: str) -> Message:
        """Send a message."""


async def reply(
    channel: Channel,
    client: CicadaClient,
    question: str,
    *,
    conversation: str,
    clock: Callable[[], float] = time.monotonic,
    sleep: Callable[[float], Awaitable[None]] = asyncio.sleep,
) -> None:
    """Answer a question in a channel.

    Args:
        channel: where the question was asked.
        client: of the deployment.
        question: as the user wrote it.
        conversation: names the conversation, so that a follow-up question finds the turns before it.
        clock: seconds that never run backwards.
        sleep: waits for seconds of that clock.
    """
    message = await channel.send(THINKING)
    edited_at = clock()
    try:
        stream = client.ask(question, session_id=conversation)
        async for event in stream:
            # A fallback withdraws the text so far: the next edit shows what is left, which is nothing.
            if isinstance(event, Chunk | Fallback) and clock() - edited_at >= EDIT_EVERY_S:
                await message.edit(clipped(stream.answer.text or THINKING, MAX_CHARS))
                edited_at = clock()
        failure: ClientError | None = stream.failure
    except ClientError as error:
        failure = error
    await sleep(max(0.0, edited_at + EDIT_EVERY_S - clock()))
    await message.edit(sorry(failure) if failure else finished(stream.answer))


def finished(answer: Answer) -> str:
    """The answer with its cited sources as footnotes."""
    notes = footnotes(answer)
    return clipped(answer.text, MAX_CHARS - len(notes)) + notes


def footnotes(answer: Answer) -> str:
    """A small line for each cited source, and for each citation that is not verified."""
    cited = {citation.n: citation for citation in answer.citations}
    places = {source.n: source.locator.label() for source in answer.sources}
    lines = []
    for n in sorted(cited.keys() & places.keys()):
        doubt = "" if cited[n].verdict == "verified" else f" ({cited[n].verdict})"
        lines.append(f"-# [{n}] {places[n]}{doubt}")
    if answer.grounded is False:
        lines.append("-# This answer does not rest on the corpus.")
    return clipped("\n".join(["", *lines]), MAX_CHARS // 2) if lines else ""


def sorry(failure: ClientError) -> str:
    """Why there is no answer."""
    return clipped(f"Sorry, no answer: {failure}", MAX_CHARS)


def clipped(text: str, most: int) -> str:
    """The text, shortened to a number of characters."""
    return text if len(text) <= most else text[: most - 1] + "…"

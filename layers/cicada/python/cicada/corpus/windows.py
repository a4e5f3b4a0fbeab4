"""From messages to passages: each with enough of its neighbours to be understood."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import groupby

from cicada.corpus.messages import LANGUAGE_KEY, MAIN_LANGUAGE, Message
from cicada.corpus.passages import Passage, ScriptLocator


@dataclass(frozen=True)
class Window:
    """How much of a message's surroundings is embedded with it."""

    before: int = 2
    """Messages before it, of its own chapter."""
    after: int = 1
    """Messages after it, of its own chapter."""
    max_chars: int = 700
    """Characters in all: nearer neighbours first, and the message itself always whole."""


DEFAULT_WINDOW = Window()


def passages(collection: str, messages: Sequence[Message], window: Window = DEFAULT_WINDOW) -> Iterator[Passage]:
    """Make a passage of each message in each of its languages, in order.

    A passage in another language than English is named after its message and language (``m12#jpn``), and cites the
    same message.
    """
    for _, chapter in groupby(messages, key=lambda message: (message.episode_id, message.chapter_id)):
        run = list(chapter)
        languages = dict.fromkeys(language for message in run for language in message.texts)
        for language in languages:
            spoken = [message for message in run if language in message.texts]
            for position in range(len(spoken)):
                yield _passage(collection, spoken, position, language, window)


def _passage(collection: str, spoken: Sequence[Message], position: int, language: str, window: Window) -> Passage:
    message = spoken[position]
    main = language == MAIN_LANGUAGE
    return Passage(
        id=message.message_id if main else f"{message.message_id}#{language.lower()}",
        collection=collection,
        text=message.texts[language],
        context=_context(spoken, position, language, window),
        locator=ScriptLocator(
            episode_id=message.episode_id,
            episode_name=message.episode_name,
            chapter_id=message.chapter_id,
            message_id=message.message_id,
            speaker=message.speaker,
        ),
        metadata=dict(message.metadata) if main else {**message.metadata, LANGUAGE_KEY: language},
    )


def _context(spoken: Sequence[Message], position: int, language: str, window: Window) -> str:
    """The message between its neighbours, a line each, with who speaks."""
    lines = {position: _line(spoken[position], language)}
    left = window.max_chars - len(lines[position])
    for neighbour in _neighbours(position, len(spoken), window):
        line = _line(spoken[neighbour], language)
        if (left := left - len(line) - 1) < 0:
            break
        lines[neighbour] = line
    return "\n".join(lines[at] for at in sorted(lines))


def _neighbours(position: int, count: int, window: Window) -> Iterator[int]:
    """The neighbours' positions, nearest first, the one before ahead of the one after."""
    for distance in range(1, max(window.before, window.after) + 1):
        if distance <= window.before and position - distance >= 0:
            yield position - distance
        if distance <= window.after and position + distance < count:
            yield position + distance


def _line(message: Message, language: str) -> str:
    return f"{message.speaker}: {message.texts[language]}"

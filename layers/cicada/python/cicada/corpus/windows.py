"""Make passages of messages, each with a share of its neighbours, so that short replies are found and understood.

A message alone is often only "Me." or "Not before four.". Embedded as one text with its neighbours it is found, but all
messages of a scene look alike. So each message is embedded alone, and a fading share of its neighbours' vectors is
added, which beats both on the sample's questions (``benchmarks/retrieval_quality.py``).
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import groupby

from cicada.corpus.indexable import Indexable, WeightedText
from cicada.corpus.messages import LANGUAGE_KEY, MAIN_LANGUAGE, Message
from cicada.corpus.passages import Passage, ScriptLocator


@dataclass(frozen=True)
class Window:
    """How much of its chapter a message is combined with."""

    reach: int = 2  # neighbours on either side
    fade: float = 0.5  # weight of the nearest neighbours' vectors, squared for the next ones, and so on
    max_context_chars: int = 700  # nearer neighbours come first; the message itself is never cut


DEFAULT_WINDOW = Window()


def passages(collection: str, messages: Sequence[Message], window: Window = DEFAULT_WINDOW) -> Iterator[Indexable]:
    """A passage of each message in each of its languages, in order; the id of one in another language than English
    names it (``m12#jpn``)."""
    for _, chapter in groupby(messages, key=lambda message: (message.episode_id, message.chapter_id)):
        run = list(chapter)
        for language in dict.fromkeys(language for message in run for language in message.texts):
            spoken = [message for message in run if language in message.texts]
            lines = [f"{message.speaker}: {message.texts[language]}" for message in spoken]
            for at, message in enumerate(spoken):
                passage = _passage(collection, message, language, _context(lines, at, window))
                near = _neighbours(at, len(lines), window.reach)
                fading = (WeightedText(lines[one], window.fade ** abs(one - at)) for one in near)
                yield Indexable(passage, (WeightedText(lines[at], 1.0), *fading))


def _passage(collection: str, message: Message, language: str, context: str) -> Passage:
    main = language == MAIN_LANGUAGE
    return Passage(
        id=message.message_id if main else f"{message.message_id}#{language.lower()}",
        collection=collection,
        text=message.texts[language],
        context=context,
        locator=ScriptLocator(
            episode_id=message.episode_id,
            episode_name=message.episode_name,
            chapter_id=message.chapter_id,
            message_id=message.message_id,
            speaker=message.speaker,
        ),
        metadata=dict(message.metadata) if main else {**message.metadata, LANGUAGE_KEY: language},
    )


def _context(lines: Sequence[str], at: int, window: Window) -> str:
    """The message's line between its neighbours' lines, in order."""
    chosen = [at]
    left = window.max_context_chars - len(lines[at])
    for near in _neighbours(at, len(lines), window.reach):
        if (left := left - len(lines[near]) - 1) < 0:
            break
        chosen.append(near)
    return "\n".join(lines[chosen_at] for chosen_at in sorted(chosen))


def _neighbours(at: int, count: int, reach: int) -> Iterator[int]:
    """The neighbours' positions, nearest first, the one before ahead of the one after."""
    for distance in range(1, reach + 1):
        yield from (near for near in (at - distance, at + distance) if 0 <= near < count)

"""Questions from a game: asked in a thread, so that the game's own loop never waits.

A screen looks at a :class:`Line` as often as it is drawn; nothing here calls the game.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Literal

from cicada.protocol.events import Chunk, Fallback
from cicada_client import Answer, ClientError, SyncAnswerStream, SyncCicadaClient


@dataclass(frozen=True)
class Shown:
    """What a screen shows of an answer: replaced as a whole, so that a screen never sees half a change."""

    state: Literal["thinking", "writing", "done", "failed"] = "thinking"
    text: str = ""
    footnotes: tuple[str, ...] = ()


class Line:
    """An answer that arrives."""

    def __init__(self) -> None:
        self.shown = Shown()
        """What is known now."""
        self._stream: SyncAnswerStream | None = None
        self._cancelled = threading.Event()
        self._ended = threading.Event()

    @property
    def ended(self) -> bool:
        """Whether nothing more comes."""
        return self._ended.is_set()

    def wait(self, timeout_s: float | None = None) -> bool:
        """Wait for the end; for programs without a loop of their own."""
        return self._ended.wait(timeout_s)

    def cancel(self) -> None:
        """Stop: the player has gone on."""
        self._cancelled.set()

    def follow(self, ask: Callable[[], SyncAnswerStream]) -> None:
        """Ask, and show what comes, to its end. For the line's thread."""
        try:
            stream = ask()
            for event in stream:
                if self._cancelled.is_set():
                    stream.cancel()
                    break
                if isinstance(event, Chunk | Fallback):  # a fallback withdraws the text so far
                    self.shown = replace(self.shown, state="writing", text=stream.answer.text)
            failure: ClientError | None = stream.failure
            answer = stream.answer
            if failure is None and answer.complete:
                self.shown = Shown("done", answer.text, footnotes(answer))
        except ClientError as error:
            failure = error
        if failure is not None:
            self.shown = Shown("failed", f"The line is dead. {failure}")
        self._ended.set()


class Oracle:
    """Knows the corpus. One for the whole game."""

    def __init__(self, url: str, token: str | None = None) -> None:
        """``url``: the deployment's WebSocket URL."""
        self._client = SyncCicadaClient(url, token=token)
        self._client.open()

    def ask(self, question: str, *, episodes: Sequence[str] = (), conversation: str | None = None) -> Line:
        """Ask, and return at once. ``episodes``: those that the player has reached, so that nothing is given away."""
        line = Line()
        thread = threading.Thread(
            target=line.follow,
            args=(lambda: self._client.ask(question, episodes=episodes, session_id=conversation),),
            daemon=True,
        )
        thread.start()
        return line

    def close(self) -> None:
        """Leave the deployment."""
        self._client.close()


def footnotes(answer: Answer) -> tuple[str, ...]:
    """The places of the cited sources."""
    cited = {citation.n for citation in answer.citations}
    return tuple(f"[{source.n}] {source.locator.label()}" for source in answer.sources if source.n in cited)

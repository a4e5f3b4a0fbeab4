"""How a long load tells how far it has come."""

from __future__ import annotations

from typing import Literal, Protocol

Stage = Literal["reading", "embedding", "writing", "publishing"]


class Progress(Protocol):
    """Is told each step of a load, from the thread that loads."""

    def __call__(self, stage: Stage, done: int, total: int) -> None:
        """``done`` of ``total`` pieces of the stage: files, passages, segments or versions."""
        ...


def silent(stage: Stage, done: int, total: int) -> None:
    """Progress that nobody watches."""

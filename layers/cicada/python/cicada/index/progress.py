"""How a load, or another long piece of work on the index, tells how far it has come."""

from __future__ import annotations

from typing import Literal, Protocol

Stage = Literal["preparing", "reading", "embedding", "writing", "publishing", "compacting", "collecting", "checking"]


class Progress(Protocol):
    """Is told each step, from the thread that works."""

    def __call__(self, stage: Stage, done: int, total: int) -> None:
        """``done`` of ``total`` pieces of the stage: documents, files, passages, segments, objects or versions."""
        ...


def silent(stage: Stage, done: int, total: int) -> None:
    """Progress that nobody watches."""

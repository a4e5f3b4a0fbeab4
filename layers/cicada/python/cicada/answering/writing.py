"""A model's answer, gathered while it is passed on."""

from __future__ import annotations

from collections.abc import Generator
from contextlib import closing
from dataclasses import dataclass

from cicada.errors import AnswerIncomplete, StreamBroken
from cicada.models.ports import Finished, Prompt, TextDelta, TextModel


@dataclass(frozen=True)
class Written:
    """A whole answer."""

    text: str
    finished: Finished


def write(model: TextModel, prompt: Prompt, *, time_budget_s: float) -> Generator[TextDelta, None, Written]:
    """Yield the pieces of a model's answer and return the whole.

    Raises:
        AnswerIncomplete: the model wrote nothing.
        ModelError: as the model does.
    """
    pieces: list[str] = []
    with closing(model.stream(prompt, time_budget_s=time_budget_s)) as stream:
        for step in stream:
            if isinstance(step, TextDelta):
                # A lone surrogate is no character: it can be neither stored nor sent.
                piece = TextDelta(step.text.encode("utf-8", "replace").decode())
                pieces.append(piece.text)
                yield piece
            elif not "".join(pieces).strip():
                raise AnswerIncomplete("the model wrote nothing")
            else:
                return Written("".join(pieces), step)
    raise StreamBroken("the model's stream ended without a finish")

"""A conversation with a model that has tools, in no service's words, and the model's next step in it."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal


@dataclass(frozen=True)
class BrainTool:
    """A tool that is offered."""

    name: str
    description: str
    schema: Mapping[str, Any]
    """Of its input, an object."""


@dataclass(frozen=True)
class Use:
    """A call of a tool that the model made."""

    id: str
    name: str
    given: Mapping[str, Any]


@dataclass(frozen=True)
class Result:
    """What came of a call."""

    id: str
    """The use's."""
    text: str
    failed: bool = False

    @property
    def value(self) -> Any:
        """The text as JSON; None if it is none."""
        try:
            return json.loads(self.text)
        except (ValueError, RecursionError):
            return None


@dataclass(frozen=True)
class Turn:
    """One turn: of the user, with words and results, or of the model, with words and uses."""

    role: Literal["user", "assistant"]
    texts: tuple[str, ...] = ()
    uses: tuple[Use, ...] = ()
    results: tuple[Result, ...] = ()


@dataclass(frozen=True)
class BrainCall:
    """A call of a tool that the model makes next."""

    name: str
    given: Mapping[str, Any]


@dataclass(frozen=True)
class Step:
    """The model's next turn: with calls it goes on, without them its text is the answer."""

    text: str = ""
    calls: tuple[BrainCall, ...] = field(default=())


Decide = Callable[[str, Sequence[BrainTool], Sequence[Turn]], Step]
"""The system text, the tools offered and the turns so far in, the next step out. May block: it runs in a thread."""


def read_turns(messages: Sequence[Mapping[str, Any]]) -> tuple[Turn, ...]:
    """The turns of a request's messages, which have been found to be valid; Converse's and a harness's are alike."""
    return tuple(_turn(message) for message in messages)


def _turn(message: Mapping[str, Any]) -> Turn:
    blocks = message["content"]
    return Turn(
        message["role"],
        texts=_texts(blocks),
        uses=tuple(
            Use(use["toolUseId"], use["name"], use.get("input") or {})
            for use in (block["toolUse"] for block in blocks if "toolUse" in block)
        ),
        results=tuple(
            Result(
                result["toolUseId"],
                "\n".join(_text(part) for part in result.get("content") or ()),
                result.get("status") == "error",
            )
            for result in (block["toolResult"] for block in blocks if "toolResult" in block)
        ),
    )


def _texts(blocks: Sequence[Mapping[str, Any]]) -> tuple[str, ...]:
    """The texts; those among which some are marked for a guardrail are parts of one."""
    texts = tuple(_text(block) for block in blocks if "text" in block or "guardContent" in block)
    return ("".join(texts),) if any("guardContent" in block for block in blocks) else texts


def _text(block: Mapping[str, Any]) -> str:
    if "json" in block:
        return json.dumps(block["json"], ensure_ascii=False)
    if "guardContent" in block:
        return str(block["guardContent"]["text"]["text"])
    return str(block.get("text", ""))

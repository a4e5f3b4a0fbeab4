"""Reads an agent's input text as a model would: the question, and the calls that were made for it before.

The service hands the text on as it is; that it holds calls and their results, only a reader notices. So does what a
function's answer carries for programs beside its result (:mod:`cicada.agents.classic.session`): a model skips it.
"""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from dataclasses import replace
from typing import Any
from xml.sax.saxutils import unescape

from cicada.agents.classic.session import CARRIED, VERSION
from cicada_local.agents.classic_outline import as_read
from cicada_local.agents.turns import BrainTool, Decide, Result, Step, Turn, Use

_CALL = re.compile(
    r"<call name=(?P<name>\"[^\"]*\"|'[^']*')(?P<failed> failed=\"true\")?>\s*"
    r"<given>(?P<given>.*?)</given>\s*<returned>(?P<returned>.*?)</returned>\s*</call>",
    re.DOTALL,
)
_CALLS = re.compile(r"<calls>.*</calls>", re.DOTALL)


def reading(decide: Decide) -> Decide:
    """A decider that understands the user's words and the tools' descriptions as a model does."""

    def read(system: str, tools: Sequence[BrainTool], turns: Sequence[Turn]) -> Step:
        return decide(
            system,
            [as_read(tool) for tool in tools],
            [part for turn in turns for part in _parts(_without_carried(turn))],
        )

    return read


def _without_carried(turn: Turn) -> Turn:
    results = []
    for result in turn.results:
        value = result.value
        if isinstance(value, dict) and CARRIED in value:
            shown = {name: part for name, part in value.items() if name not in (CARRIED, VERSION)}
            result = replace(result, text=json.dumps(shown, ensure_ascii=False))
        results.append(result)
    return replace(turn, results=tuple(results))


def _parts(turn: Turn) -> list[Turn]:
    text = "\n".join(turn.texts)
    block = _CALLS.search(text) if turn.role == "user" else None
    if block is None:
        return [turn]
    uses, results = [], []
    for i, found in enumerate(_CALL.finditer(block[0]), 1):
        id = f"before_{i}"
        uses.append(Use(id, unescape(found["name"][1:-1]), _read(unescape(found["given"]))))
        results.append(Result(id, unescape(found["returned"]), found["failed"] is not None))
    return [
        Turn("user", texts=(text.replace(block[0], ""),)),
        Turn("assistant", uses=tuple(uses)),
        Turn("user", results=(*results, *turn.results)),
    ]


def _read(given: str) -> dict[str, Any]:
    try:
        value = json.loads(given)
    except ValueError:
        return {}
    return value if isinstance(value, dict) else {}

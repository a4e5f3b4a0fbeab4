"""What the action-group function found, on its way through the service's trace to the worker.

The function's answer is read by the model and, in the trace, by the worker. It is the tool's result and, under a name
of its own, the sources that the tool put onto the shelf, so that they can be shown and cited. A text that stands in the
result is not written twice: the source says where it stands, as a JSON pointer (RFC 6901).
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from typing import Any

from cicada.agents.classic.session import source_key
from cicada.agents.shelf import MAX_SOURCES
from cicada.errors import AgentError, ToolInvalid
from cicada.protocol.events import Source

CARRIED = "_sources"
MAX_BODY_BYTES = 24_000
"""Of the function's answer, in UTF-8: below the 25 KB at which the service is said to refuse one."""
_SHORT_CHARS = 400
"""To which passages are cut that do not stand in the result, where the whole would not fit."""
_TEXTS = ("text", "context")
CUT = "…"
"""Ends what :func:`cicada.agents.output.bounded` has cut."""


class CarriedShelf:
    """:class:`cicada.agents.ports.Shelf` of one call: it knows which passages the run has, and holds what is new."""

    def __init__(self, known: Sequence[str]) -> None:
        """``known``: the keys of the sources so far, in the order of their numbers."""
        self._numbers = {key: n for n, key in enumerate(known, 1)}
        self._shown: dict[int, Source] = {}

    def put(self, source: Source) -> int:
        """See the port. Raises ToolInvalid if a run can have no more sources."""
        key = source_key(source)
        n = self._numbers.get(key)
        if n is None:
            n = len(self._numbers) + 1
            if n > MAX_SOURCES:
                raise ToolInvalid(f"{MAX_SOURCES} passages are here already, and no more can be: answer from these")
            self._numbers[key] = n
        before = self._shown.get(n)
        why = source.why if before is None else (*before.why, *(one for one in source.why if one not in before.why))
        self._shown[n] = (before or source).model_copy(update={"n": n, "why": why})
        return n

    @property
    def sources(self) -> tuple[Source, ...]:
        """Those of this call, by number."""
        return tuple(self._shown[n] for n in sorted(self._shown))

    @property
    def keys(self) -> tuple[str, ...]:
        """Of all sources of the run, in the order of their numbers."""
        return tuple(self._numbers)


def pack(result: str, sources: Sequence[Source]) -> str:
    """A tool's result and the sources that it shows, as one text.

    Args:
        result: JSON, an object.
        sources: numbered.

    Raises:
        ToolInvalid: it is more than one answer can hold.
    """
    tree = json.loads(result)
    places = {text: place for place, text in _texts(tree)}
    for dropped, most in (((), None), (("context",), None), (("context",), _SHORT_CHARS)):
        carried = [_written(source, places, dropped=dropped, most=most) for source in sources]
        body = _dump({**tree, CARRIED: carried} if carried else tree)
        if len(body.encode()) <= MAX_BODY_BYTES:
            return body
    raise ToolInvalid("that is more than one answer can hold: ask for less, or more narrowly")


def unpack(body: str) -> tuple[str, tuple[Source, ...]]:
    """The result and its sources. Raises AgentError if the text is none of :func:`pack`'s."""
    try:
        result = json.loads(body)
        sources = tuple(_read(source, result) for source in result.pop(CARRIED, ()))
    except (ValueError, TypeError, LookupError, AttributeError, RecursionError):
        raise AgentError("what the action group returned cannot be read") from None
    return _dump(result), sources


def _written(source: Source, places: dict[str, str], *, dropped: Sequence[str], most: int | None) -> dict[str, Any]:
    if most is not None and len(source.text) > most and source.text not in places and source.locator.kind != "note":
        text = _as_shown(source.text, places) or source.text[:most]
        source = source.model_copy(update={"text": text, "clipped": True})
    written = source.model_dump(mode="json", by_alias=True, exclude_none=True, exclude=set(dropped))
    for name in _TEXTS:
        if written.get(name) in places:
            written[name] = {"at": places[written[name]]}
    return written


def _as_shown(text: str, places: dict[str, str]) -> str | None:
    """A text as the result has it, where it was cut there."""
    return next(
        (shown for shown in places if len(shown) > 1 and shown[-1] == CUT and text.startswith(shown[:-1])), None
    )


def _read(written: dict[str, Any], result: Any) -> Source:
    whole = dict(written)
    for name in _TEXTS:
        if isinstance(whole.get(name), dict):
            whole[name] = _at(result, whole[name]["at"])
    return Source.model_validate(whole)


def _texts(tree: Any, place: str = "") -> Iterator[tuple[str, str]]:
    """Every text of some JSON with its place."""
    match tree:
        case str():
            yield place, tree
        case dict():
            for name, part in tree.items():
                yield from _texts(part, f"{place}/{name.replace('~', '~0').replace('/', '~1')}")
        case list():
            for i, part in enumerate(tree):
                yield from _texts(part, f"{place}/{i}")


def _at(tree: Any, place: str) -> Any:
    for step in place.split("/")[1:]:
        name = step.replace("~1", "/").replace("~0", "~")
        tree = tree[int(name)] if isinstance(tree, list) else tree[name]
    return tree


def _dump(value: Any) -> str:
    return json.dumps(value, ensure_ascii=False, separators=(",", ":"))

"""What a run carries from call to call: its session attributes, and the action-group function's sources in the trace.

The worker and the function set the session attributes. They are in no prompt, so no model reads or writes them.

The model, and in the trace the worker, read the function's answer: the tool's result, the sources that the tool found,
and their index version. A source that the run has already carries its new reasons alone. A text that the result
contains is replaced by a JSON pointer to it (RFC 6901), and by the rest where the result cuts it.
"""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Self

from pydantic import TypeAdapter

from cicada.agents.ports import Actor
from cicada.agents.source_registry import MAX_SOURCES, NumberedSources, source_key
from cicada.errors import AgentError, ToolInvalid
from cicada.protocol.events import Reason, Source

_KEY = re.compile(r"[0-9a-f]{16}")
_MS = re.compile(r"[0-9]{1,15}")
_MAX_CHARS = 1_024


def session_id(actor: Actor, conversation: str, run: str) -> str:
    """The session of one run, unique to user, conversation, request and run: 68 characters, as the service allows."""
    parts = (actor.tenant, actor.subject, conversation, actor.request_id, run)
    return f"run-{hashlib.sha256(json.dumps(parts).encode()).hexdigest()}"


@dataclass(frozen=True)
class RunAttributes:
    """The session attributes of a run."""

    subject: str
    request_id: str
    until_ms: int
    """The run's deadline in epoch milliseconds: the function refuses later calls."""
    registry: tuple[str, ...] = ()
    """The keys of the sources so far, in the order of their numbers, from 1."""
    index_version: str = ""
    """Of the index that the run searches; empty before its first search."""

    def with_registry(self, keys: Iterable[str], index_version: str) -> Self:
        """The same with another registry, of a version of the index."""
        return replace(self, registry=tuple(keys), index_version=index_version)

    def write(self) -> dict[str, str]:
        """As the service takes them."""
        return {
            "subject": self.subject,
            "requestId": self.request_id,
            "untilMs": str(self.until_ms),
            "shelf": ",".join(self.registry),
            "indexVersion": self.index_version,
        }

    @classmethod
    def read(cls, given: Mapping[str, str]) -> Self:
        """Read them. Raises ToolInvalid if they are not what the worker sets."""
        subject, request_id = given.get("subject", ""), given.get("requestId", "")
        until_ms, registry = given.get("untilMs", ""), given.get("shelf", "")
        if not (0 < len(subject) <= _MAX_CHARS and 0 < len(request_id) <= _MAX_CHARS):
            raise ToolInvalid("the session attributes have no user")
        if not _MS.fullmatch(until_ms):
            raise ToolInvalid("the session attributes have no deadline")
        keys = tuple(registry.split(",")) if registry else ()
        if len(keys) > MAX_SOURCES or len(set(keys)) != len(keys) or not all(_KEY.fullmatch(key) for key in keys):
            raise ToolInvalid("cannot parse the session's passages")
        return cls(subject, request_id, int(until_ms), keys, given.get("indexVersion", "")[:_MAX_CHARS])


CARRIED = "_sources"
VERSION = "_index"
MAX_BODY_BYTES = 24_000
"""Of the function's answer, in UTF-8: the service refuses one of 25 KB."""
_SHORT_CHARS = 400
"""Profiles' passages are cut to this where the whole would not fit, as proofs never use them. Search results are never
cut."""
_TEXTS = ("text", "context")
CUT = "…"
"""Ends a text that :func:`cicada.agents.tool_runner.bounded` has cut."""
_REASONS: TypeAdapter[tuple[Reason, ...]] = TypeAdapter(tuple[Reason, ...])


@dataclass(frozen=True)
class Again:
    """A source that the run has already, found once more."""

    n: int
    key: str
    """See :func:`cicada.agents.source_registry.source_key`."""
    why: tuple[Reason, ...]


@dataclass(frozen=True)
class Load:
    """What one call carries."""

    found: tuple[Source, ...] = ()
    """Sources that are new, in the order of their numbers."""
    again: tuple[Again, ...] = ()
    versions: Mapping[int, str] = field(default_factory=dict)
    """By number: the index version in which a search found the source."""


class CarriedSources(NumberedSources):
    """The sources of one call: those that the run has are known by their keys alone."""

    @property
    def load(self) -> Load:
        """What this call is to carry."""
        found = tuple(source for source in self.sources if source.n > len(self._known))
        again = (source for source in self.sources if source.n <= len(self._known))
        return Load(found, tuple(Again(one.n, self._known[one.n - 1], one.why) for one in again), dict(self._versions))

    def keys_with(self, carried: Sequence[Source]) -> tuple[str, ...]:
        """The keys of all sources of the run by number, the carried ones included."""
        return (*self._known, *map(source_key, carried))


def pack(result: str, load: Load) -> tuple[str, tuple[Source, ...]]:
    """A tool's result with what it carries as one text, and the new sources as they will be read from it.

    Raises ToolInvalid if that exceeds one answer.
    """
    tree = json.loads(result)
    places = {text: place for place, text in _texts(tree)}
    whole = load.found
    bare = tuple(source.model_copy(update={"context": None}) for source in whole)
    again = [
        {"n": one.n, "key": one.key, "why": _REASONS.dump_python(one.why, mode="json", exclude_none=True)}
        for one in load.again
    ]
    searched: dict[str, list[int]] = {}
    for n, version in load.versions.items():
        searched.setdefault(version, []).append(n)
    for found in (whole, bare, tuple(map(_shortened, bare))):
        carried = [*again, *(_written(source, places) for source in found)]
        body = _dump({**tree, **({CARRIED: carried} if carried else {}), **({VERSION: searched} if searched else {})})
        if len(body.encode()) <= MAX_BODY_BYTES:
            return body, found
    raise ToolInvalid("the result is too large: request fewer results or narrow the query")


def unpack(body: str) -> tuple[str, Load]:
    """The inverse of :func:`pack`. Raises AgentError if the text cannot be read."""
    try:
        result = json.loads(body)
        carried, searched = result.pop(CARRIED, ()), result.pop(VERSION, {})
        versions = {int(n): str(version) for version, numbers in searched.items() for n in numbers}
        again = tuple(
            Again(int(one["n"]), str(one["key"]), _REASONS.validate_python(one["why"]))
            for one in carried
            if "key" in one
        )
        found = tuple(_read(one, result) for one in carried if "key" not in one)
        return _dump(result), Load(found, again, versions)
    except (ValueError, TypeError, LookupError, AttributeError, RecursionError):
        raise AgentError("cannot parse the action group's result") from None


def _shortened(source: Source) -> Source:
    if source.origin != "profile" or source.locator.kind == "note" or len(source.text) <= _SHORT_CHARS:
        return source
    return source.model_copy(update={"text": source.text[: _SHORT_CHARS - 1] + CUT, "clipped": True})


def _written(source: Source, places: Mapping[str, str]) -> dict[str, Any]:
    written = source.model_dump(mode="json", by_alias=True, exclude_none=True)
    for name in _TEXTS:
        if name in written:
            written[name] = _placed(written[name], places)
    return written


def _placed(text: str, places: Mapping[str, str]) -> str | dict[str, str]:
    """A text, or its pointer; with the rest where the result cuts it."""
    if text in places:
        return {"at": places[text]}
    cut = (shown for shown in places if len(shown) > 1 and shown[-1] == CUT and text.startswith(shown[:-1]))
    shown = max(cut, key=len, default=None)
    return text if shown is None else {"at": places[shown], "rest": text[len(shown) - 1 :]}


def _read(written: dict[str, Any], result: Any) -> Source:
    whole = dict(written)
    for name in _TEXTS:
        if isinstance(whole.get(name), dict):
            text, rest = _at(result, whole[name]["at"]), whole[name].get("rest")
            whole[name] = text if rest is None else text[:-1] + rest
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

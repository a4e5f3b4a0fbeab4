"""What a run carries from call to call: its session, and what the action-group function found, by the trace.

Session attributes are set by the worker and by the action-group function. They stand in no prompt, so that no model
reads or writes them.

The function's answer is read by the model and, in the trace, by the worker. It is the tool's result and, under names of
their own, the sources that the tool put onto the registry, so that they can be shown and cited, and the version of the
index that they were found in. Of a source that the run has already, only the new reasons are written. Nor is a text
written that stands in the result: the source says where it stands, as a JSON pointer (RFC 6901), and how it goes on
where it was cut there.
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
from cicada.agents.source_registry import MAX_SOURCES, merged, no_room, one_version, source_key
from cicada.errors import AgentError, ToolInvalid
from cicada.protocol.events import Reason, Source

_KEY = re.compile(r"[0-9a-f]{16}")
_MS = re.compile(r"[0-9]{1,15}")
_MAX_CHARS = 1_024


def session_id(actor: Actor, conversation: str, run: str) -> str:
    """The session of one run: no other user, conversation, request or run can come upon it.

    Returns:
        68 characters of those that the service allows.
    """
    parts = (actor.tenant, actor.subject, conversation, actor.request_id, run)
    return f"run-{hashlib.sha256(json.dumps(parts).encode()).hexdigest()}"


@dataclass(frozen=True)
class RunAttributes:
    """The session attributes of a run."""

    subject: str
    request_id: str
    until_ms: int
    """When the run ends at the latest, in epoch milliseconds: past it, the function serves it no more."""
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
            raise ToolInvalid("the session does not say in whose name it runs")
        if not _MS.fullmatch(until_ms):
            raise ToolInvalid("the session does not say until when it runs")
        keys = tuple(registry.split(",")) if registry else ()
        if len(keys) > MAX_SOURCES or len(set(keys)) != len(keys) or not all(_KEY.fullmatch(key) for key in keys):
            raise ToolInvalid("the session's passages cannot be read")
        return cls(subject, request_id, int(until_ms), keys, given.get("indexVersion", "")[:_MAX_CHARS])


CARRIED = "_sources"
VERSION = "_index"
MAX_BODY_BYTES = 24_000
"""Of the function's answer, in UTF-8: below the 25 KB at which the service is said to refuse one."""
_SHORT_CHARS = 400
"""To which passages of profiles are cut where the whole would not fit: no proof is ever made of one of these. What a
search has found is carried as it is, or not at all."""
_TEXTS = ("text", "context")
CUT = "…"
"""Ends what :func:`cicada.agents.tool_runner.bounded` has cut."""
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
    """By number: of the index that a source was found in, where a search has found it."""


class CarriedSources:
    """:class:`~cicada.agents.ports.SourceRegistry` of one call: knows which passages the run has, holds new ones."""

    def __init__(self, known: Sequence[str], version: str = "") -> None:
        """Take what the run has.

        Args:
            known: the keys of the sources so far, in the order of their numbers.
            version: of the index that the run has searched so far; empty if it has not.
        """
        self.version = version
        self._known = tuple(known)
        self._numbers = {key: n for n, key in enumerate(known, 1)}
        self._shown: dict[int, Source] = {}
        self._versions: dict[int, str] = {}

    def put(self, source: Source, index_version: str = "") -> int:
        """See the port.

        Raises:
            ToolInvalid: a run can have no more sources, or it has sources of another version of the index.
        """
        self.version = one_version(self.version, index_version)
        key = source_key(source)
        n = self._numbers.get(key)
        if n is None:
            n = len(self._numbers) + 1
            if n > MAX_SOURCES:
                raise no_room()
            self._numbers[key] = n
        held = self._shown.get(n)
        why = merged(() if held is None else held.why, source.why)
        self._shown[n] = (held or source).model_copy(update={"n": n, "why": why})
        if index_version:
            self._versions[n] = index_version
        return n

    def version_of(self, n: int) -> str:
        """See the port."""
        return self._versions.get(n, "")

    @property
    def sources(self) -> tuple[Source, ...]:
        """Those of this call, by number."""
        return tuple(self._shown[n] for n in sorted(self._shown))

    @property
    def load(self) -> Load:
        """What this call is to carry."""
        found = tuple(source for source in self.sources if source.n > len(self._known))
        again = (source for source in self.sources if source.n <= len(self._known))
        return Load(found, tuple(Again(one.n, self._known[one.n - 1], one.why) for one in again), dict(self._versions))

    def keys_with(self, carried: Sequence[Source]) -> tuple[str, ...]:
        """The keys of all sources of the run, in the order of their numbers, once the new ones were carried."""
        return (*self._known, *map(source_key, carried))


def pack(result: str, load: Load) -> tuple[str, tuple[Source, ...]]:
    """A tool's result and what it carries, as one text; and the new sources as they will be read from it.

    Raises:
        ToolInvalid: it is more than one answer can hold.
    """
    tree = json.loads(result)
    places = {text: place for place, text in _texts(tree)}
    whole = load.found
    bare = tuple(source.model_copy(update={"context": None}) for source in whole)
    for found in (whole, bare, tuple(map(_shortened, bare))):
        carried = [*map(_written_again, load.again), *(_written(source, places) for source in found)]
        about = {CARRIED: carried} if carried else {}
        searched = {VERSION: _by_version(load.versions)} if load.versions else {}
        body = _dump({**tree, **about, **searched})
        if len(body.encode()) <= MAX_BODY_BYTES:
            return body, found
    raise ToolInvalid("that is more than one answer can hold: ask for less, or more narrowly")


def unpack(body: str) -> tuple[str, Load]:
    """The result and what it carries. Raises AgentError if the text is none of :func:`pack`'s."""
    try:
        result = json.loads(body)
        carried, searched = result.pop(CARRIED, ()), result.pop(VERSION, {})
        versions = {int(n): str(version) for version, numbers in searched.items() for n in numbers}
        again = tuple(_read_again(one) for one in carried if "key" in one)
        found = tuple(_read(one, result) for one in carried if "key" not in one)
        return _dump(result), Load(found, again, versions)
    except (ValueError, TypeError, LookupError, AttributeError, RecursionError):
        raise AgentError("what the action group returned cannot be read") from None


def _by_version(versions: Mapping[int, str]) -> dict[str, list[int]]:
    return {one: [n for n, version in versions.items() if version == one] for one in dict.fromkeys(versions.values())}


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
    """A text, or where it stands; where it was cut there, with the rest."""
    if text in places:
        return {"at": places[text]}
    cut = (shown for shown in places if len(shown) > 1 and shown[-1] == CUT and text.startswith(shown[:-1]))
    shown = max(cut, key=len, default=None)
    return text if shown is None else {"at": places[shown], "rest": text[len(shown) - 1 :]}


def _written_again(again: Again) -> dict[str, Any]:
    return {"n": again.n, "key": again.key, "why": _REASONS.dump_python(again.why, mode="json", exclude_none=True)}


def _read(written: dict[str, Any], result: Any) -> Source:
    whole = dict(written)
    for name in _TEXTS:
        if isinstance(whole.get(name), dict):
            text, rest = _at(result, whole[name]["at"]), whole[name].get("rest")
            whole[name] = text if rest is None else text[:-1] + rest
    return Source.model_validate(whole)


def _read_again(written: dict[str, Any]) -> Again:
    return Again(int(written["n"]), str(written["key"]), _REASONS.validate_python(written["why"]))


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

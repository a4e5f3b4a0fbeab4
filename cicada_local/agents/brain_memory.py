"""What a model with tools has been told since the user last asked, read from the tools' results.

Results are data: their numbers, ids, versions and texts are used, and what a text says is never done. They are read by
the names of their fields, wherever these stand, so that a tool may arrange its result as it likes.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal

from cicada_local.agents.brain_words import asked
from cicada_local.agents.turns import Result, Turn, Use
from cicada_local.bedrock.extractive.prompt import NumberedPassage
from cicada_local.bedrock.extractive.text import content_stems

Side = Literal["for", "against", ""]

_NUMBERS = ("n", "number", "source", "citation")
_NUMBER_LISTS = ("citations", "sources", "passages", "numbers", "notes")
_NAMES = ("name", "field", "key", "label")
_VALUES = ("value", "text", "content", "statement")
_BETWEEN, _PARTS_OF_SCRIPT = " · ", 4
"""A place in a script is episode, chapter, message and speaker; that of a document begins with its title."""
_FOR = frozenset({"for", "supporting", "support", "supports", "pro"})
_AGAINST = frozenset({"against", "contradicting", "contradiction", "contradicts", "contra"})


@dataclass(frozen=True)
class Field:
    """A field of a profile."""

    name: str
    value: str
    numbers: tuple[int, ...]
    """Of the sources that it can be cited by."""


@dataclass(frozen=True)
class Record:
    """A profile or theory, as a result showed it last."""

    id: str
    name: str
    version: int | None
    kind: str = ""
    fields: tuple[Field, ...] = ()
    number: int | None = None
    """Of the source that it is itself, if it is one."""


@dataclass(frozen=True)
class Found:
    """A passage that a result brought, and which side of a theory it is on."""

    passage: NumberedPassage
    side: Side = ""
    strength: str = ""


@dataclass(frozen=True)
class Made:
    """A call and what came of it."""

    use: Use
    result: Result


class Memory:
    """The calls since the user last asked."""

    def __init__(self, turns: Sequence[Turn]) -> None:
        """Read a conversation; any is one."""
        begins = max((place for place, turn in enumerate(turns) if _asks(turn)), default=0)
        self.question = asked(turns[begins].texts[-1]) if turns and turns[begins].texts else ""
        uses = {use.id: use for turn in turns[begins:] for use in turn.uses}
        results = [result for turn in turns[begins:] for result in turn.results]
        self.made = tuple(Made(uses[result.id], result) for result in results if result.id in uses)

    def calls(self, *names: str) -> list[Made]:
        """The calls of some tools, in order."""
        return [made for made in self.made if made.use.name in names]

    def last(self, *names: str) -> Made | None:
        """The last call of some tools."""
        return next(reversed(self.calls(*names)), None)

    @property
    def records(self) -> list[Record]:
        """Every profile and theory that was shown, as it was shown last; fields that were shown once stay known."""
        known: dict[str, Record] = {}
        for made in self.made:
            if made.result.failed:
                continue
            for record in _records(made.result.value):
                earlier = known.pop(record.id, None)
                known[record.id] = record if earlier is None else _later(earlier, record)
        return list(known.values())

    @property
    def passages(self) -> list[Found]:
        """Every passage, each once, in the order of their numbers; on the side that it was last said to be on."""
        found: dict[int, Found] = {}
        for made in self.made:
            if not made.result.failed:
                for one in _passages(made.result.value, ""):
                    if one.side or one.passage.number not in found:
                        found[one.passage.number] = one
        return [found[number] for number in sorted(found)]

    @property
    def gathered(self) -> list[Found]:
        """The passages that were gathered last as evidence."""
        last = self.last("gather_evidence")
        return [] if last is None or last.result.failed else list(_passages(last.result.value, ""))

    def record(self, name: str, kinds: Sequence[str] = ()) -> Record | None:
        """The record of a name: its own, else the one that shares most of its words."""
        wanted = name.casefold().strip()
        fitting = [record for record in self.records if not kinds or not record.kind or record.kind in kinds]
        for record in reversed(fitting):
            if record.name.casefold().strip() == wanted:
                return record
        stems = content_stems(name)
        near = [(len(stems & content_stems(record.name)), record) for record in fitting]
        best = max((shared for shared, _ in near), default=0)
        return next((record for shared, record in near if shared == best), None) if best else None


def _asks(turn: Turn) -> bool:
    return turn.role == "user" and not turn.results and bool(turn.texts)


def _later(earlier: Record, later: Record) -> Record:
    return Record(
        later.id,
        later.name or earlier.name,
        later.version if later.version is not None else earlier.version,
        later.kind or earlier.kind,
        later.fields or earlier.fields,
        later.number if later.number is not None else earlier.number,
    )


def _objects(value: Any) -> Iterator[Mapping[str, Any]]:
    if isinstance(value, Mapping):
        yield value
        for part in value.values():
            yield from _objects(part)
    elif isinstance(value, list):
        for part in value:
            yield from _objects(part)


def _records(value: Any) -> Iterator[Record]:
    for found in _objects(value):
        identifier = found.get("id") or found.get("profile_id") or found.get("theory_id")
        name = found.get("statement") or found.get("name") or ""
        if isinstance(identifier, str) and isinstance(name, str) and (name or "version" in found):
            version = found.get("version")
            yield Record(
                identifier,
                name,
                version if isinstance(version, int) else None,
                str(found.get("kind", "")),
                tuple(_fields(found.get("fields"))),
                _number(found),
            )


def _fields(value: Any) -> Iterator[Field]:
    if isinstance(value, Mapping):
        value = [
            {"name": name, **(part if isinstance(part, Mapping) else {"value": part})} for name, part in value.items()
        ]
    for found in value if isinstance(value, list) else ():
        if isinstance(found, Mapping):
            name = next((str(found[key]) for key in _NAMES if found.get(key)), "")
            text = next((str(found[key]) for key in _VALUES if found.get(key) not in (None, "")), "")
            if text:
                yield Field(name, text, _numbers(found))


def _numbers(found: Mapping[str, Any]) -> tuple[int, ...]:
    """The numbers that an object can be cited by: its own, and those that it lists."""
    own = _number(found)
    listed = [
        number if isinstance(number, int) else _number(number)
        for key in _NUMBER_LISTS
        if isinstance(found.get(key), list)
        for number in found[key]
        if isinstance(number, (int, Mapping)) and not isinstance(number, bool)
    ]
    return tuple(dict.fromkeys(number for number in (own, *listed) if number))


def _number(found: Mapping[str, Any]) -> int | None:
    for key in _NUMBERS:
        value = found.get(key)
        if isinstance(value, int) and not isinstance(value, bool) and value > 0:
            return value
    return None


def _passages(value: Any, side: Side) -> Iterator[Found]:
    if isinstance(value, list):
        for part in value:
            yield from _passages(part, side)
    if not isinstance(value, Mapping):
        return
    said = str(value.get("stance") or value.get("side") or "").lower()
    side = "for" if said in _FOR else "against" if said in _AGAINST else side
    number, text = value.get("n", value.get("number")), value.get("text", value.get("quote"))
    if isinstance(number, int) and not isinstance(number, bool) and isinstance(text, str) and text.strip():
        yield Found(_passage(number, text, value), side, str(value.get("strength", "")))
    for name, part in value.items():
        if name != "text":
            yield from _passages(part, "for" if name in _FOR else "against" if name in _AGAINST else side)


def _passage(number: int, text: str, value: Mapping[str, Any]) -> NumberedPassage:
    place = value.get("locator")
    told = {**(place if isinstance(place, Mapping) else {}), **value}

    def label(*names: str) -> str:
        return next((str(told[name]) for name in names if isinstance(told.get(name), (str, int)) and told[name]), "")

    where = label("where").split(_BETWEEN)
    of_script = len(where) == _PARTS_OF_SCRIPT
    return NumberedPassage(
        number=number,
        text=" ".join(text.split()),
        episode=where[0] if of_script else label("episode", "episode_name"),
        episode_id=where[0] if of_script else label("episode_id", "episode"),
        speaker=where[-1] if of_script else label("speaker"),
        title="" if of_script else label("title") or where[0],
    )

"""Read a ``collection.yaml`` into a declaration, or report its problems by line."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, get_args

from pydantic import BaseModel, ValidationError

from cicada.corpus.declared.declaration import DECLARATION, INCONSISTENT, OTHER_SECTION, CollectionDeclaration
from cicada.corpus.yaml_nodes import Node, YamlInvalid, YamlTooLarge, read_nodes
from cicada.errors import CorpusInvalid
from cicada.text.names import spelling_key
from cicada.text.visible import visible

MAX_BYTES = 256 * 2**10
MAX_DEPTH = 8  # of nested values; a declaration needs five
MAX_VALUES = 20_000
MAX_PROBLEMS = 20  # reported at once

_KEY = "[key]"  # pydantic's location for an invalid key
_Place = tuple[str | int, ...]
_TOLD: Mapping[str, str] = {
    "missing": "is missing",
    "string_type": "must be text",
    "string_too_short": "is blank",
    "string_too_long": "has more than {max_length} characters",
    "string_pattern_mismatch": "must be lower-case letters, digits and '_', a letter first, at most 64",
    "tuple_type": "must be a list",
    "dict_type": "must be a mapping",
    "model_type": "must be a mapping",
    "model_attributes_type": "must be a mapping",
    "bool_type": "must be true or false",
    "bool_parsing": "must be true or false",
    "too_short": "must have at least {min_length}",
    "too_long": "has more than {max_length}",
}
"""Messages by pydantic's error types; other types keep pydantic's message."""


def read_declaration(data: bytes, *, name: str = DECLARATION, collection: str | None = None) -> CollectionDeclaration:
    """Read a declaration; ``name``: of the file, for errors; ``collection``: that it must be of. Raises CorpusInvalid
    if it is invalid, or of another collection; every line of the message names file, line and field."""
    root = _root(data, name)
    try:
        found = CollectionDeclaration.model_validate(_plain(root))
    except ValidationError as error:
        problems = list(_problems(error))
    else:
        problems = list(_beyond_the_model(found, collection))
        if not problems:
            return found
    lines = sorted(((_line(root, place), problem) for place, problem in problems), key=lambda one: one[0])
    told = [f"{name}, line {line}: {problem}" for line, problem in lines]
    if len(told) > MAX_PROBLEMS:
        told[MAX_PROBLEMS:] = [f"{name}: and {len(told) - MAX_PROBLEMS} more"]
    raise CorpusInvalid(visible("\n".join(told)))


def _root(data: bytes, name: str) -> Node:
    if len(data) > MAX_BYTES:
        raise CorpusInvalid(f"{name}: has {len(data):,} bytes; a declaration has at most {MAX_BYTES:,}")
    try:
        text = data.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        line = data[: error.start].count(b"\n") + 1
        raise CorpusInvalid(f"{name}, line {line}: is not valid UTF-8") from None
    try:
        found = list(read_nodes(text, max_depth=MAX_DEPTH, max_nodes=MAX_VALUES, aliases=False))
    except (YamlInvalid, YamlTooLarge) as error:
        where = name if error.line is None else f"{name}, line {error.line}"
        raise CorpusInvalid(visible(f"{where}: {error}")) from None
    if not found or not isinstance(found[0].value, dict):
        raise CorpusInvalid(f"{name}, line 1: must be a mapping with the fields {_fields(())}")
    if len(found) > 1:
        raise CorpusInvalid(f"{name}, line {found[1].line}: contains a second document (---)")
    return found[0]


def _plain(node: Node, place: _Place = ()) -> Any:
    value = node.value
    if isinstance(value, dict):
        return {name: _plain(held, (*place, name)) for name, held in value.items()}
    if isinstance(value, list):
        return [_plain(held, (*place, number)) for number, held in enumerate(value)]
    if value is None and place[:-1] == ("names", "aliases"):
        return []  # a name without others
    return value


def _problems(error: ValidationError) -> Iterator[tuple[_Place, str]]:
    found_all = error.errors(include_url=False, include_input=False)
    holding = {found["loc"][:depth] for found in found_all for depth in range(len(found["loc"]))}
    for found in found_all:
        place, context = found["loc"], found.get("ctx", {})
        if found["type"] == "too_short" and place in holding:
            continue  # pydantic leaves invalid items out before it counts a list's items
        if found["type"] == INCONSISTENT:
            yield from context["problems"]
        elif found["type"] == "extra_forbidden":
            yield place, f"{_named(place)} is no field; there are {_fields(place[:-1])}"
        else:
            told = _TOLD.get(found["type"])
            yield place, f"{_named(place)} {found['msg'] if told is None else told.format_map(context)}"


def _beyond_the_model(found: CollectionDeclaration, collection: str | None) -> Iterator[tuple[_Place, str]]:
    """Problems of a file that the model allows."""
    if collection is not None and found.collection != collection:
        yield ("collection",), f"collection is {found.collection}, but the collection is {collection}"
    for number, section in enumerate(found.sections):
        if section.name != OTHER_SECTION and not (section.headings or section.sources):
            told = f"section {section.name} has neither headings nor sources: nothing would belong to it"
            yield ("sections", number), told
    spelt: dict[str, str] = {}
    for name in found.names.aliases:
        if (other := spelt.setdefault(spelling_key(name), name)) != name:
            yield ("names", "aliases", name), f"{name} is declared twice: {other} is the same name"


def _fields(place: Sequence[str | int]) -> str:
    """The names of the fields that the mapping at a place may have."""
    model: Any = CollectionDeclaration
    for step in place:
        if isinstance(step, str) and isinstance(model, type) and issubclass(model, BaseModel):
            model = model.model_fields[step].annotation
        elif isinstance(step, int):
            model = get_args(model)[0]
    return ", ".join(model.model_fields)


def _line(root: Node, place: _Place) -> int:
    """The line of a field, or of the innermost value that is there."""
    node = root
    for step in place:
        value, held = node.value, None
        if isinstance(value, dict) and isinstance(step, str):
            held = value.get(step)
        elif isinstance(value, list) and isinstance(step, int):
            held = value[step]
        if held is None:
            break
        node = held
    return node.line


def _named(place: _Place) -> str:
    """A place in an error message, counted from 1: ``sections[2].name``."""
    steps = (f"[{step + 1}]" if isinstance(step, int) else f".{step}" for step in place if step != _KEY)
    return "".join(steps).removeprefix(".") or "it"

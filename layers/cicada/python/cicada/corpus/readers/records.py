"""Read JSON and YAML files: mappings, lists and values as records, each value by its path."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, NoReturn

from cicada.corpus.declared.sectioning import record_name
from cicada.corpus.messages import is_of_a_script
from cicada.corpus.readers.blocks import MAX_LEVELS, Blocks, Content, one_line
from cicada.corpus.readers.decoding import decoded
from cicada.corpus.readers.limits import ReadLimits
from cicada.corpus.yaml_nodes import Node, YamlInvalid, YamlTooLarge, read_nodes
from cicada.errors import DocumentBroken, DocumentTooLarge

_TITLE_NAMES = ("title", "name")


def add_values(blocks: Blocks, values: Sequence[Any]) -> str | None:
    """Add a file's values: the parts of a single object, else a record for each. Returns the title of a single object.
    Raises DocumentTooLarge."""
    if len(values) == 1 and isinstance(values[0], dict):
        add_object(blocks, values[0])
        titles = (values[0].get(name) for name in _TITLE_NAMES)
        return next((title for title in titles if isinstance(title, str) and title.strip()), None)
    for value in values[0] if len(values) == 1 and isinstance(values[0], list) else values:
        _add_element(blocks, value, ())
    return None


def add_object(blocks: Blocks, value: Mapping[str, Any], path: tuple[str, ...] = ()) -> None:
    """Add an object: a record of its own values, then, below their names, its objects and lists of objects.

    An object in a list is one record with all its nested values; its section is the list's path and its name, if any.
    So is an object too deep for a path of its own. Raises DocumentTooLarge.
    """
    deepest = len(path) == MAX_LEVELS
    within = {name: held for name, held in value.items() if held and not deepest and _has_objects(held)}
    own = {name: held for name, held in value.items() if name not in within}
    named = one_line(record_name(value) or "") if path else ""
    _add_record(blocks, own, (*path, named) if named and path[-1] != named else path)
    for name, held in within.items():
        heading = one_line(name)
        below = (*path, heading) if heading else path
        if isinstance(held, dict):
            add_object(blocks, held, below)
        else:
            for element in held:
                _add_element(blocks, element, below)


def _add_element(blocks: Blocks, value: Any, path: tuple[str, ...]) -> None:
    named = one_line(record_name(value) or "") if isinstance(value, dict) else ""
    _add_record(blocks, value, (*path, named) if named else path)


def _add_record(blocks: Blocks, value: Any, path: tuple[str, ...]) -> None:
    blocks.place(path)
    blocks.fields("record", _flat(value, "", len(path) + 1, blocks.limits.max_depth))


def _has_objects(value: Any) -> bool:
    """Whether it is an object, or a list of nothing else."""
    elements = value if isinstance(value, list) else [value]
    return all(isinstance(element, dict) for element in elements)


def _flat(value: Any, name: str, depth: int, max_depth: int) -> Iterator[tuple[str, str]]:
    """The values in a value by their paths, joined by dots; a list of plain values is one, joined by commas."""
    if depth > max_depth:
        raise DocumentTooLarge(f"is nested more than {max_depth} deep (max_depth)")
    parts: Iterable[tuple[object, Any]] = ()
    if isinstance(value, dict):
        parts = value.items()
    elif isinstance(value, list) and any(isinstance(element, dict | list) for element in value):
        parts = enumerate(value, start=1)
    elif isinstance(value, list):
        yield name or "values", ", ".join(text for element in value if (text := _text(element)))
    else:
        yield name or "value", _text(value)
    for key, held in parts:
        yield from _flat(held, f"{name}.{key}" if name else str(key), depth + 1, max_depth)


def _text(value: Any) -> str:
    if value is None:
        return ""
    return str(value).lower() if isinstance(value, bool) else str(value)


def read_json(data: bytes, limits: ReadLimits) -> Content:
    """A block a record. Raises DocumentBroken, whose message names the line, and DocumentTooLarge.

    Records are the elements of an array, the lines of JSON Lines, and, of an object, its objects and the elements of
    its arrays of objects, below their names; its other values are one record. A file with a message's fields in any
    record is a script. No object may repeat a field.
    """
    text, notes = decoded(data)
    found = list(_values(text))
    values = found[0] if len(found) == 1 and isinstance(found[0], list) else found
    if any(isinstance(value, dict) and is_of_a_script(value) for value in values):
        return Content("script", (), notes=notes)
    blocks = Blocks(limits)
    title = add_values(blocks, found)
    return Content("json", blocks.all(), title=title, notes=notes)


def _values(text: str) -> Iterator[Any]:
    """The file's one value, or a value a line."""
    try:
        yield _decode(text)
    except json.JSONDecodeError as error:
        whole = error
    else:
        return
    lines = [(number, line) for number, line in enumerate(text.split("\n"), start=1) if line.strip()]
    if len(lines) < 2 or not lines[0][1].lstrip().startswith(("{", "[")) or whole.msg != "Extra data":
        raise _broken(whole.lineno, whole)
    for number, line in lines:
        try:
            yield _decode(line)
        except json.JSONDecodeError as error:
            raise _broken(number, error) from None


def _broken(line: int, error: json.JSONDecodeError) -> DocumentBroken:
    return DocumentBroken(f"line {line}: is not JSON: {error.msg}")


def _decode(text: str) -> Any:
    try:
        return json.loads(
            text, object_pairs_hook=_object, parse_int=str, parse_float=str, parse_constant=_refuse_constant
        )
    except RecursionError:
        raise DocumentTooLarge("is nested too deeply (max_depth)") from None


def _object(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found = dict(pairs)
    if len(found) < len(pairs):
        raise DocumentBroken("is not valid JSON: an object has a duplicate field")
    return found


def _refuse_constant(name: str) -> NoReturn:
    raise DocumentBroken(f"is not valid JSON: {name}")


def read_yaml(data: bytes, limits: ReadLimits) -> Content:
    """A block a record, as :func:`read_json`. Raises DocumentBroken or DocumentTooLarge, with the line.

    Several documents in a file are read one by one, below their names, if any. Values stay as written; aliases count as
    their targets; tags and comments are ignored. No mapping may repeat a field.
    """
    text, notes = decoded(data)
    try:
        nodes = list(read_nodes(text, max_depth=limits.max_depth, max_nodes=limits.max_elements))
    except YamlInvalid as error:
        raise DocumentBroken(str(error) if error.line is None else f"line {error.line}: {error}") from None
    except YamlTooLarge as error:
        raise DocumentTooLarge(f"line {error.line}: {error}") from None
    found = [_plain(node) for node in nodes]
    blocks, title = Blocks(limits), None
    if len(found) > 1 and all(isinstance(value, dict) for value in found):
        for value in found:
            name = one_line(record_name(value) or "")
            add_object(blocks, value, (name,) if name else ())
    else:
        title = add_values(blocks, found)
    return Content("yaml", blocks.all(), title=title, notes=notes)


def _plain(node: Node) -> Any:
    value = node.value
    if isinstance(value, dict):
        return {name: _plain(held) for name, held in value.items()}
    return [_plain(held) for held in value] if isinstance(value, list) else value

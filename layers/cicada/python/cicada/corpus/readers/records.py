"""JSON and YAML files: mappings, lists and values as records, each value by its path."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
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
    """Add a file's values, and return its title, if an object is all that it holds.

    Of such an object the parts are added; of a list, or of several values, a record each, below its name where it has
    one. Raises DocumentTooLarge if a limit is reached.
    """
    if len(values) == 1 and isinstance(values[0], dict):
        add_object(blocks, values[0])
        return _title_in(values[0])
    for value in values[0] if len(values) == 1 and isinstance(values[0], list) else values:
        _add_element(blocks, value, ())
    return None


def add_object(blocks: Blocks, value: Mapping[str, Any], path: tuple[str, ...] = ()) -> None:
    """Add an object: a record of its own values, and then, below their names, the objects and lists of objects in it.

    An object in a list is one record, with all that lies in it; its section is the list's path and, where it has one,
    its name. So is an object that lies too deep for a path of its own. Raises DocumentTooLarge if a limit is reached.
    """
    within = {name: held for name, held in value.items() if held and (isinstance(held, dict) or _holds_objects(held))}
    if len(path) == MAX_LEVELS:
        within = {}
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


def _title_in(value: Mapping[str, Any]) -> str | None:
    """What an object gives as its title."""
    return next(
        (value[name] for name in _TITLE_NAMES if isinstance(value.get(name), str) and value[name].strip()), None
    )


def _add_element(blocks: Blocks, value: Any, path: tuple[str, ...]) -> None:
    named = one_line(record_name(value) or "") if isinstance(value, dict) else ""
    _add_record(blocks, value, (*path, named) if named else path)


def _add_record(blocks: Blocks, value: Any, path: tuple[str, ...]) -> None:
    blocks.place(path)
    blocks.fields("record", _flat(value, "", len(path) + 1, blocks.limits.max_depth))


def _holds_objects(value: Any) -> bool:
    return isinstance(value, list) and all(isinstance(element, dict) for element in value)


def _flat(value: Any, name: str, depth: int, max_depth: int) -> Iterator[tuple[str, str]]:
    """What lies in a value by its path's name, joined by dots; the elements of a list of values by commas."""
    if depth > max_depth:
        raise DocumentTooLarge(f"is nested more than {max_depth} deep (max_depth)")
    if isinstance(value, dict):
        for key, held in value.items():
            yield from _flat(held, f"{name}.{key}" if name else key, depth + 1, max_depth)
    elif isinstance(value, list) and any(isinstance(element, dict | list) for element in value):
        for number, held in enumerate(value, start=1):
            yield from _flat(held, f"{name}.{number}" if name else str(number), depth + 1, max_depth)
    elif isinstance(value, list):
        yield name or "values", ", ".join(text for element in value if (text := _text(element)))
    else:
        yield name or "value", _text(value)


def _text(value: Any) -> str:
    if value is None:
        return ""
    return str(value).lower() if isinstance(value, bool) else str(value)


def read_json(data: bytes, limits: ReadLimits) -> Content:
    """A block a record. Raises DocumentBroken, whose message names the line, and DocumentTooLarge.

    Records are the elements of an array, the lines of JSON Lines, and, of an object, each object in it and the
    elements of each array of objects, below the names that lead there; what else an object holds is a record of its
    own. A file of which any record names a message's fields is a script: it is refused if others do not. No object may
    name a field twice.
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
    """The file as one value, or each of its lines as one."""
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
        raise DocumentBroken("is not JSON that can be read: an object names a field twice")
    return found


def _refuse_constant(name: str) -> NoReturn:
    raise DocumentBroken(f"is not JSON: {name}")


def read_yaml(data: bytes, limits: ReadLimits) -> Content:
    """A block a record, as :func:`read_json` divides objects. Raises DocumentBroken or DocumentTooLarge, with the line.

    Of several documents in the file each is divided by itself, below its name where it has one. Values stay as they are
    written; aliases stand for what they name, and count as that; tags and comments are not read. No mapping may name a
    field twice.
    """
    text, notes = decoded(data)
    try:
        nodes = list(read_nodes(text, max_depth=limits.max_depth, max_nodes=limits.max_elements))
    except YamlInvalid as error:
        raise DocumentBroken(str(error) if error.line is None else f"line {error.line}: {error}") from None
    except YamlTooLarge as error:
        raise DocumentTooLarge(f"line {error.line}: {error}") from None
    found = [_plain(node) for node in nodes]
    blocks = Blocks(limits)
    title = None
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

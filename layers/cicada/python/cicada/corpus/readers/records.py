"""What JSON and YAML hold: mappings, lists and values, as records below the paths that lead to them."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from cicada.corpus.declared.sectioning import record_name
from cicada.corpus.readers.blocks import MAX_LEVELS, Blocks
from cicada.corpus.readers.cleaning import one_line
from cicada.errors import DocumentTooLarge

_TITLE_NAMES = ("title", "name")


def add_values(blocks: Blocks, values: Sequence[Any]) -> str | None:
    """Add a file's values, and return its title, if an object is all that it holds.

    Of such an object the parts are added; of a list, or of several values, a record each, below its name where it has
    one.

    Raises:
        DocumentTooLarge: a limit is reached.
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
    its name. So is an object that lies too deep for a path of its own.

    Raises:
        DocumentTooLarge: a limit is reached.
    """
    within = {name: held for name, held in value.items() if _is_object(held) or _holds_objects(held)}
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


def _is_object(value: Any) -> bool:
    return isinstance(value, dict) and bool(value)


def _holds_objects(value: Any) -> bool:
    return isinstance(value, list) and bool(value) and all(isinstance(element, dict) for element in value)


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

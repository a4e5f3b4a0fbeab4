"""JSON and JSON Lines: an object a record, and what lies in it by its path's name."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any, NoReturn

from cicada.corpus.readers.blocks import Blocks
from cicada.corpus.readers.cleaning import one_line
from cicada.corpus.readers.content import Content
from cicada.corpus.readers.decoding import decoded, guess_note
from cicada.corpus.readers.limits import ReadLimits
from cicada.errors import DocumentBroken, DocumentTooLarge

_MESSAGE_NAMES = frozenset({"episodeId", "messageId"})
_TITLE_NAMES = ("title", "name")


def read_records(data: bytes, limits: ReadLimits) -> Content:
    """A block a record.

    Records are the elements of an array, the lines of JSON Lines, and, of an object, the elements of each array of
    objects in it, below that array's name; what else the object holds is a record of its own. Nested names are joined
    by dots, elements of arrays of values by commas. A file whose first record names a message's fields is a script.

    Raises:
        DocumentBroken: it is not JSON, or an object names a field twice; the message names the line.
        DocumentTooLarge: a limit is reached.
    """
    text, guessed = decoded(data)
    found = list(_values(text))
    values = found[0] if len(found) == 1 and isinstance(found[0], list) else found
    if values and isinstance(values[0], dict) and values[0].keys() >= _MESSAGE_NAMES:
        return Content("script", (), notes=guess_note(guessed))
    blocks = Blocks(limits)
    title = None
    if len(values) == 1 and isinstance(values[0], dict):
        title = _title(values[0])
        _add_object(blocks, values[0])
    else:
        for value in values:
            _add_record(blocks, value)
    return Content("json", blocks.all(), title=title, notes=guess_note(guessed))


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


def _title(value: dict[str, Any]) -> str | None:
    return next(
        (value[name] for name in _TITLE_NAMES if isinstance(value.get(name), str) and value[name].strip()), None
    )


def _add_object(blocks: Blocks, value: dict[str, Any]) -> None:
    lists = {name: held for name, held in value.items() if _holds_objects(held)}
    _add_record(blocks, {name: held for name, held in value.items() if name not in lists})
    for name, records in lists.items():
        if heading := one_line(name):
            blocks.enter(heading, 1)
        for record in records:
            _add_record(blocks, record)


def _holds_objects(value: Any) -> bool:
    return isinstance(value, list) and bool(value) and all(isinstance(element, dict) for element in value)


def _add_record(blocks: Blocks, value: Any) -> None:
    blocks.fields("record", _flat(value, "", 1, blocks.limits.max_depth))


def _flat(value: Any, name: str, depth: int, max_depth: int) -> Iterator[tuple[str, str]]:
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

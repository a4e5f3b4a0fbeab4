"""JSON and JSON Lines: an object a record, and what lies in it by its path."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any, NoReturn

from cicada.corpus.messages import is_of_a_script
from cicada.corpus.readers.blocks import Blocks
from cicada.corpus.readers.content import Content
from cicada.corpus.readers.decoding import decoded
from cicada.corpus.readers.limits import ReadLimits
from cicada.corpus.readers.records import add_values
from cicada.errors import DocumentBroken, DocumentTooLarge


def read_json(data: bytes, limits: ReadLimits) -> Content:
    """A block a record.

    Records are the elements of an array, the lines of JSON Lines, and, of an object, each object in it and the
    elements of each array of objects, below the names that lead there; what else an object holds is a record of its
    own. A file whose first record names a message's fields is a script.

    Raises:
        DocumentBroken: it is not JSON, or an object names a field twice; the message names the line.
        DocumentTooLarge: a limit is reached.
    """
    text, notes = decoded(data)
    found = list(_values(text))
    values = found[0] if len(found) == 1 and isinstance(found[0], list) else found
    if values and isinstance(values[0], dict) and is_of_a_script(values[0]):
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

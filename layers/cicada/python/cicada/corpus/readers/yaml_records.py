"""YAML: a mapping a record, and what lies in it by its path."""

from __future__ import annotations

from typing import Any

from cicada.corpus.declared.sectioning import record_name
from cicada.corpus.readers.blocks import Blocks
from cicada.corpus.readers.cleaning import one_line
from cicada.corpus.readers.content import Content
from cicada.corpus.readers.decoding import decoded
from cicada.corpus.readers.limits import ReadLimits
from cicada.corpus.readers.records import add_object, add_values
from cicada.corpus.yaml_nodes import Node, YamlInvalid, YamlTooLarge, read_nodes
from cicada.errors import DocumentBroken, DocumentTooLarge


def read_yaml(data: bytes, limits: ReadLimits) -> Content:
    """A block a record, as :func:`~cicada.corpus.readers.json_records.read_json` divides objects.

    Of several documents in the file each is divided by itself, below its name where it has one. Values stay as they are
    written; aliases stand for what they name, and count as that; tags and comments are not read.

    Raises:
        DocumentBroken: it is not YAML, or a mapping names a field twice; the message names the line.
        DocumentTooLarge: a limit is reached; the message names the line.
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

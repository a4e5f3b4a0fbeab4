"""Read YAML into plain nodes with lines: only text, lists and mappings.

Scalars stay text as written, such as ``yes``, ``1_000`` or ``2026-11-21``. Tags are ignored. An alias counts as much as
its target, so that a small file cannot expand into a large one.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

_NULLS = frozenset({"", "~", "null", "Null", "NULL"})
_MERGE = "<<"
_LINE_ENDS = re.compile("\r\n|[\n\r\x85\u2028\u2029]")


class _YamlError(Exception):
    def __init__(self, line: int | None, told: str) -> None:
        super().__init__(told)
        self.line = line


class YamlInvalid(_YamlError):
    """The text is not valid YAML here; the message says why, without the line."""


class YamlTooLarge(_YamlError):
    """The text is nested too deeply, or too large; the message names the limit, without the line."""


@dataclass(frozen=True, slots=True)
class Node:
    """A value."""

    value: str | list[Node] | dict[str, Node] | None  # a scalar's text; None if blank or ``null``
    line: int  # of the value, or of the name that it belongs to, from 1
    size: int  # nodes in it, itself included


def read_nodes(text: str, *, max_depth: int, max_nodes: int, aliases: bool = True) -> Iterator[Node]:
    """The documents of a text, one by one.

    ``max_depth``: of nested values; ``max_nodes``: of all documents, aliases expanded; ``aliases``: whether aliases and
    merges (``<<``) are allowed. Raises YamlInvalid if it is not YAML, a mapping has a repeated or a non-text key, an
    alias is recursive, or one is not allowed; and YamlTooLarge.
    """
    import yaml

    left = max_nodes
    try:
        events = iter(yaml.parse(text, Loader=getattr(yaml, "CSafeLoader", yaml.SafeLoader)))
        for event in events:
            if isinstance(event, yaml.DocumentStartEvent):
                node = _Builder(events, max_depth, left, aliases).build()
                left -= node.size
                yield node
    except yaml.MarkedYAMLError as error:
        mark = error.problem_mark or error.context_mark
        raise YamlInvalid(
            mark.line + 1 if mark else None, f"is not valid YAML: {error.problem or error.context}"
        ) from None
    except yaml.YAMLError as error:
        told = str(error).partition("\n")[0]
        raise YamlInvalid(_line_of_unprintable(text), f"is not valid YAML: {told}") from None


def _line_of_unprintable(text: str) -> int | None:
    """The line of the first character that YAML forbids: the parsers report its place in different units."""
    import yaml

    found = yaml.reader.Reader.NON_PRINTABLE.search(text)
    return None if found is None else len(_LINE_ENDS.findall(text, 0, found.start())) + 1


class _Builder:
    """Builds one document's value from the parser's events, with a stack instead of recursion."""

    def __init__(self, events: Iterator[Any], max_depth: int, max_nodes: int, aliases: bool) -> None:
        self._events = events
        self._max_depth = max_depth
        self._max_nodes = max_nodes
        self._aliases = aliases
        self._anchored: dict[str, Node] = {}
        self._open: list[_Collection] = []

    def build(self) -> Node:
        import yaml

        while True:
            event = next(self._events)
            line = event.start_mark.line + 1
            if isinstance(event, yaml.MappingStartEvent | yaml.SequenceStartEvent):
                self._refuse_anchor(event.anchor, line)
                if len(self._open) == self._max_depth:
                    raise YamlTooLarge(line, f"is nested more than {self._max_depth} deep (max_depth)")
                mapping = isinstance(event, yaml.MappingStartEvent)
                self._open.append(_Collection(mapping, event.anchor, line, merges=self._aliases))
                continue
            if isinstance(event, yaml.ScalarEvent):
                self._refuse_anchor(event.anchor, line)
                plain = event.implicit[0] and not event.style
                node = Node(None if plain and event.value in _NULLS else event.value, line, 1)
                anchor = event.anchor
            elif isinstance(event, yaml.AliasEvent):
                self._refuse_anchor(event.anchor, line)
                node, anchor = self._aliased(event.anchor or "", line), None
            else:  # the end of a mapping or a sequence
                closed = self._open.pop()
                node, anchor = closed.node(), closed.anchor
            if anchor is not None:
                self._anchored[anchor] = node
            if not self._open:
                self._count(node.size, line)
                return node
            self._open[-1].take(node)
            self._count(sum(one.size for one in self._open), line)

    def _refuse_anchor(self, anchor: str | None, line: int) -> None:
        if anchor is not None and not self._aliases:
            raise YamlInvalid(line, "anchors and aliases (& and *) are not supported here: write out the value")

    def _aliased(self, anchor: str, line: int) -> Node:
        found = self._anchored.get(anchor)
        if found is None:
            raise YamlInvalid(line, f"the alias *{anchor[:80]} refers to an unknown anchor or to itself")
        return Node(found.value, line, found.size)

    def _count(self, nodes: int, line: int) -> None:
        if nodes > self._max_nodes:
            told = f"holds more than {self._max_nodes:,} values, those that aliases stand for among them"
            raise YamlTooLarge(line, told)


class _Collection:
    """An open mapping or sequence."""

    def __init__(self, mapping: bool, anchor: str | None, line: int, *, merges: bool) -> None:
        self.anchor = anchor
        self.size = 1
        self._merges = merges
        self._line = line
        self._items: list[Node] = []
        self._entries: dict[str, Node] = {}
        self._merged: list[Node] = []
        self._mapping = mapping
        self._key: tuple[str, int] | None = None

    def take(self, node: Node) -> None:
        self.size += node.size
        if not self._mapping:
            self._items.append(node)
        elif self._key is None:
            if isinstance(node.value, list | dict):
                raise YamlInvalid(node.line, "a mapping's key must be text")
            self._key = (node.value or "", node.line)
        else:
            (name, line), self._key = self._key, None
            if name == _MERGE and isinstance(node.value, list | dict):
                if not self._merges:
                    raise YamlInvalid(line, "merge keys (<<) are not supported here: write out the mapping")
                self._merge(node)
            elif name in self._entries:
                raise YamlInvalid(line, f"duplicate name {name[:80]}")
            else:
                self._entries[name] = Node(node.value, line, node.size)

    def node(self) -> Node:
        if not self._mapping:
            return Node(self._items, self._line, self.size)
        # A mapping's own entries take precedence over merged ones, and earlier merges over later ones.
        for merged in self._merged:
            if isinstance(merged.value, dict):
                for name, node in merged.value.items():
                    self._entries.setdefault(name, node)
        return Node(self._entries, self._line, self.size)

    def _merge(self, node: Node) -> None:
        sources = node.value if isinstance(node.value, list) else [node]
        if not all(isinstance(source.value, dict) for source in sources):
            raise YamlInvalid(node.line, "only mappings can be merged (<<)")
        self._merged += sources

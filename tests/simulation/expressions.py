"""DynamoDB's condition, key-condition, filter and update expressions, over items in its typed JSON.

Each expression is parsed once and kept: a parsed one is a function of an item, the names and the values.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from functools import cache
from typing import Any

Item = dict[str, Any]
Names = Mapping[str, str]
Values = Mapping[str, Any]
Condition = Callable[[Item, Names, Values], bool]
_Operand = Callable[[Item, Names, Values], Any]
_Path = tuple[str, ...]

_TOKEN = re.compile(r"\s*(<>|<=|>=|[=<>(),+\-]|[:#]?\w+(?:\.[#]?\w+)*)")


class InvalidExpression(Exception):
    """What DynamoDB answers with a ValidationException."""


def plain(value: Mapping[str, Any]) -> Any:
    """A typed value as one that can be compared."""
    ((kind, raw),) = value.items()
    if kind == "N":
        number = float(raw)
        return int(number) if number.is_integer() and "." not in str(raw) else number
    if kind == "L":
        return [plain(one) for one in raw]
    if kind == "M":
        return {name: plain(one) for name, one in raw.items()}
    if kind in ("SS", "NS", "BS"):
        return frozenset(raw)
    return None if kind == "NULL" else raw


def at(item: Item, path: _Path, names: Names) -> Any:
    """The typed value at a path, None where there is none."""
    found: Any = {"M": item}
    for part in path:
        found = found.get("M", {}).get(names.get(part, part)) if found is not None else None
    return found


class _Parser:
    def __init__(self, text: str) -> None:
        self.tokens = _TOKEN.findall(text)
        if "".join(self.tokens) != re.sub(r"\s", "", text):
            raise InvalidExpression(text)
        self.place = 0

    def peek(self) -> str:
        return self.tokens[self.place] if self.place < len(self.tokens) else ""

    def take(self, expected: str | None = None) -> str:
        token = self.peek()
        if expected is not None and token.upper() != expected:
            raise InvalidExpression(f"{token!r} stands where {expected!r} should")
        self.place += 1
        return token

    def accept(self, expected: str) -> bool:
        if self.peek().upper() == expected:
            self.place += 1
            return True
        return False

    # --- conditions ---

    def either(self) -> Condition:
        parts = [self.all()]
        while self.accept("OR"):
            parts.append(self.all())
        return parts[0] if len(parts) == 1 else lambda i, n, v: any(part(i, n, v) for part in parts)

    def all(self) -> Condition:
        parts = [self.term()]
        while self.accept("AND"):
            parts.append(self.term())
        return parts[0] if len(parts) == 1 else lambda i, n, v: all(part(i, n, v) for part in parts)

    def term(self) -> Condition:
        if self.accept("NOT"):
            inner = self.term()
            return lambda i, n, v: not inner(i, n, v)
        if self.accept("("):
            inner = self.either()
            self.take(")")
            return inner
        if self.peek() in ("attribute_exists", "attribute_not_exists", "begins_with", "contains"):
            return self.test()
        left = self.operand()
        if self.accept("BETWEEN"):
            low = self.operand()
            self.take("AND")
            high = self.operand()
            return lambda i, n, v: (
                _ordered(left(i, n, v), low(i, n, v), ">=") and _ordered(left(i, n, v), high(i, n, v), "<=")
            )
        if self.accept("IN"):
            choices = self.arguments()
            return lambda i, n, v: any(_equal(left(i, n, v), choice(i, n, v)) for choice in choices)
        sign = self.take()
        right = self.operand()
        if sign == "=":
            return lambda i, n, v: _equal(left(i, n, v), right(i, n, v))
        if sign == "<>":
            return lambda i, n, v: not _equal(left(i, n, v), right(i, n, v))
        if sign not in ("<", "<=", ">", ">="):
            raise InvalidExpression(sign)
        return lambda i, n, v: _ordered(left(i, n, v), right(i, n, v), sign)

    def test(self) -> Condition:
        function = self.take()
        first, *rest = self.arguments()
        if function == "attribute_exists":
            return lambda i, n, v: first(i, n, v) is not None
        if function == "attribute_not_exists":
            return lambda i, n, v: first(i, n, v) is None
        second = rest[0]
        if function == "begins_with":
            return lambda i, n, v: (
                first(i, n, v) is not None and plain(first(i, n, v)).startswith(plain(second(i, n, v)))
            )
        return lambda i, n, v: first(i, n, v) is not None and plain(second(i, n, v)) in plain(first(i, n, v))

    def arguments(self) -> list[_Operand]:
        self.take("(")
        found = [self.operand()]
        while self.accept(","):
            found.append(self.operand())
        self.take(")")
        return found

    def operand(self) -> _Operand:
        token = self.take()
        if token in ("size", "if_not_exists", "list_append"):
            return _function(token, self.arguments())
        if token.startswith(":"):
            return lambda _i, _n, v: v[token]
        if not token or token in "=<>(),":
            raise InvalidExpression(token)
        path = tuple(token.split("."))
        return lambda i, n, _v: at(i, path, n)

    # --- updates ---

    def update(self) -> list[tuple[str, _Path, _Operand | None]]:
        actions: list[tuple[str, _Path, _Operand | None]] = []
        while self.peek():
            verb = self.take().upper()
            if verb not in ("SET", "REMOVE", "ADD"):
                raise InvalidExpression(verb)
            while True:
                path = tuple(self.take().split("."))
                value: _Operand | None = None
                if verb == "SET":
                    self.take("=")
                    value = self.sum()
                elif verb == "ADD":
                    value = self.operand()
                actions.append((verb, path, value))
                if not self.accept(","):
                    break
        return actions

    def sum(self) -> _Operand:
        left = self.operand()
        sign = self.peek()
        if sign not in ("+", "-"):
            return left
        self.take()
        right = self.operand()
        return lambda i, n, v: _number(left(i, n, v), right(i, n, v), 1 if sign == "+" else -1)


def _function(name: str, arguments: list[_Operand]) -> _Operand:
    first = arguments[0]
    if name == "size":
        return lambda i, n, v: {"N": str(len(plain(first(i, n, v))))}
    second = arguments[1]
    if name == "if_not_exists":

        def present(i: Item, n: Names, v: Values) -> Any:
            found = first(i, n, v)
            return second(i, n, v) if found is None else found

        return present
    return lambda i, n, v: {"L": [*first(i, n, v)["L"], *second(i, n, v)["L"]]}


def _equal(left: Any, right: Any) -> bool:
    if left is None or right is None:
        return False
    return bool(left == right or (left.keys() == right.keys() and plain(left) == plain(right)))


def _ordered(left: Any, right: Any, sign: str) -> bool:
    if left is None or right is None or left.keys() != right.keys():
        return False
    a, b = plain(left), plain(right)
    if sign == "<":
        return bool(a < b)
    if sign == "<=":
        return bool(a <= b)
    above: bool = a > b if sign == ">" else a >= b
    return above


def _number(left: Any, right: Any, factor: int) -> Any:
    if left is None or right is None:
        raise InvalidExpression("an operand of an addition does not exist")
    return {"N": str(plain(left) + factor * plain(right))}


@cache
def condition(text: str) -> Condition:
    """The predicate of a condition expression. Raises InvalidExpression."""
    parser = _Parser(text)
    parsed = parser.either()
    if parser.peek():
        raise InvalidExpression(text)
    return parsed


@cache
def _update(text: str) -> list[tuple[str, _Path, _Operand | None]]:
    return _Parser(text).update()


def updated(item: Item, text: str, names: Names, values: Values) -> Item:
    """The item after an update, whose right sides all see it as it was. The item itself is not changed.

    Raises:
        InvalidExpression: it cannot be parsed, or sets a path within something that does not exist.
    """
    after = dict(item)
    copied: dict[_Path, dict[str, Any]] = {(): after}
    for verb, path, operand in _update(text):
        resolved = tuple(names.get(part, part) for part in path)
        holder = after
        for depth in range(1, len(resolved)):
            prefix = resolved[:depth]
            if prefix not in copied:
                inner = holder.get(prefix[-1])
                if inner is None or "M" not in inner:
                    raise InvalidExpression(f"{'.'.join(prefix)} is no map")
                copied[prefix] = dict(inner["M"])
                holder[prefix[-1]] = {"M": copied[prefix]}
            holder = copied[prefix]
        name = resolved[-1]
        if operand is None:
            holder.pop(name, None)
            continue
        value = operand(item, names, values)
        if verb == "ADD":
            value = _added(item.get(name), value)
        if value is None:
            raise InvalidExpression(f"{name} is set to something that does not exist")
        holder[name] = value
    return after


def _added(before: Any, value: Any) -> Any:
    if "N" in value:
        return _number(before or {"N": "0"}, value, 1)
    ((kind, members),) = value.items()
    return {kind: sorted({*(before or {kind: []})[kind], *members})}

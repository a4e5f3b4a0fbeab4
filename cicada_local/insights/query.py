"""The query language, as far as it is served: fields, display, filter, stats, sort and limit."""

from __future__ import annotations

import operator
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field

from cicada_local.insights.errors import Malformed
from cicada_local.insights.stats import FUNCTIONS, Aggregate, Group, Stats, bin_ms

DEFAULT_LIMIT = MAX_LIMIT = 10_000

Fields = Mapping[str, str]
Condition = Callable[[Fields], bool]

_TOKEN = re.compile(
    r"""\s*(?:
      (?P<comment>\#[^\n]*)
    | (?P<text>"(?:[^"\\]|\\.)*"|'(?:[^'\\]|\\.)*')
    | (?P<regex>/(?:[^/\\\n]|\\.)+/)
    | (?P<period>\d+[A-Za-z]+(?![\w.]))
    | (?P<number>-?\d+(?:\.\d+)?(?![\w.]))
    | (?P<quoted>`[^`]+`)
    | (?P<name>@?[A-Za-z_][\w.]*)
    | (?P<sign><=|>=|!=|[=<>(),|*\[\]])
    )""",
    re.VERBOSE,
)
_COMPARISONS: dict[str, Callable[[float, float], bool]] = {
    "<": operator.lt,
    "<=": operator.le,
    ">": operator.gt,
    ">=": operator.ge,
}


@dataclass
class Query:
    """A query that has been read."""

    fields: tuple[str, ...] = ("@timestamp", "@message")
    conditions: list[Condition] = field(default_factory=list)
    needles: list[str] = field(default_factory=list)
    """Texts that stand in every event that passes."""
    sort: tuple[tuple[str, bool], ...] = (("@timestamp", True),)
    """Fields, each with whether it is sorted in descending order."""
    limit: int = DEFAULT_LIMIT
    stats: Stats | None = None

    def passes(self, fields: Fields) -> bool:
        """Whether an event is among the results."""
        return all(condition(fields) for condition in self.conditions)

    def results(self, found: Sequence[Fields]) -> list[dict[str, str]]:
        """The rows: sorted, limited, with the columns that were asked for where the event has them."""
        rows = list(found) if self.stats is None else self.stats.rows(found)
        for name, descending in reversed(self.sort):
            rows.sort(key=lambda row, name=name: _sort_key(row.get(name)), reverse=descending)  # type: ignore[misc]
        return [{name: row[name] for name in self.fields if name in row} for row in rows[: self.limit]]


def parse(text: str) -> Query:
    """Read a query.

    Raises:
        Malformed: it is none, or has something that is not served here.
    """
    query, reader = Query(), _Reader(list(_tokens(text)))
    named: list[str] = []
    while True:
        _read_command(reader, query, named)
        if reader.done():
            break
        reader.expect("|")
    if query.stats is not None:
        query.fields = query.stats.columns
    elif named:
        query.fields = tuple(dict.fromkeys(named))
    return query


def _read_command(reader: _Reader, query: Query, named: list[str]) -> None:
    """Read a command into a query, and the columns that it names. Raises Malformed."""
    command = reader.name().lower()
    if query.stats is not None and command not in ("sort", "limit"):
        raise Malformed(f"the command {command} is not served after stats")
    match command:
        case "fields":
            named += reader.names()
        case "display":
            named[:] = reader.names()
        case "filter":
            condition, needles = reader.either()
            query.conditions.append(condition)
            query.needles += needles
        case "stats":
            query.stats = reader.stats()
            query.sort = ()
        case "sort":
            query.sort = _checked(reader.order(), query.stats)
        case "limit":
            query.limit = reader.limit()
        case _:
            raise Malformed(f"the command {command} is not served here")


def _checked(order: tuple[tuple[str, bool], ...], stats: Stats | None) -> tuple[tuple[str, bool], ...]:
    """An order, whose fields there are. Raises Malformed."""
    if stats is not None and (unknown := [name for name, _ in order if name not in stats.columns]):
        raise Malformed(f"after stats there is no field {unknown[0]}")
    return order


@dataclass(frozen=True)
class _Token:
    kind: str
    text: str


def _tokens(text: str) -> Iterator[_Token]:
    at = 0
    while text[at:].strip():
        match = _TOKEN.match(text, at)
        if match is None or match.lastgroup is None:
            raise Malformed(f"unexpected symbol found at {text[at:].strip()[:20]!r}")
        at = match.end()
        kind, found = match.lastgroup, match[match.lastgroup]
        if kind == "quoted":
            yield _Token("name", found[1:-1])
        elif kind in ("text", "regex"):
            yield _Token(kind, re.sub(r"\\(.)", r"\1", found[1:-1]) if kind == "text" else found[1:-1])
        elif kind != "comment":
            yield _Token(kind, found)


class _Reader:
    """Reads tokens from the left. Every method raises Malformed on what it did not expect."""

    def __init__(self, tokens: list[_Token]) -> None:
        self._tokens = tokens
        self._at = 0

    def done(self) -> bool:
        return self._at >= len(self._tokens)

    def expect(self, text: str) -> None:
        if not self._takes(text):
            raise Malformed(f"expected {text} at {self._rest()!r}")

    def name(self) -> str:
        return self._take("name").text

    def names(self) -> list[str]:
        found = [self.name()]
        while self._takes(","):
            found.append(self.name())
        return found

    def order(self) -> tuple[tuple[str, bool], ...]:
        found: list[tuple[str, bool]] = []
        while True:
            name = self.name()
            descending = self._takes("desc") or not self._takes("asc")
            found.append((name, descending))
            if not self._takes(","):
                return tuple(found)

    def limit(self) -> int:
        text = self._take("number").text
        if not text.isdigit() or not 1 <= int(text) <= MAX_LIMIT:
            raise Malformed(f"the limit must be from 1 to {MAX_LIMIT}")
        return int(text)

    # --- stats ---

    def stats(self) -> Stats:
        aggregates = [self._aggregate()]
        while self._takes(","):
            aggregates.append(self._aggregate())
        groups: list[Group] = []
        if self._takes("by"):
            groups.append(self._group())
            while self._takes(","):
                groups.append(self._group())
        stats = Stats(tuple(aggregates), tuple(groups))
        if len(set(stats.columns)) != len(stats.columns):
            raise Malformed("two columns have one name")
        return stats

    def _aggregate(self) -> Aggregate:
        function = self.name().lower()
        if function not in FUNCTIONS:
            raise Malformed(f"{function} is no function of stats that is served here")
        self.expect("(")
        field = None if function == "count" and self._takes("*") else self.name()
        percent: float | None = None
        if function == "pct":
            self.expect(",")
            percent = _number(self._take("number").text)
            if not 0 <= percent <= 100:
                raise Malformed("a percentile is from 0 to 100")
        self.expect(")")
        given = f"{function}({field or '*'}{'' if percent is None else f',{percent:g}'})"
        return Aggregate(self._alias() or given, function, field, percent)

    def _group(self) -> Group:
        name = self.name()
        if name.lower() != "bin" or not self._takes("("):
            if self._takes("as"):
                raise Malformed("a field of by has no other name here")
            return Group(name)
        period = self._take("period").text
        length_ms = bin_ms(period)
        if length_ms is None:
            raise Malformed(f"{period} is no period")
        self.expect(")")
        return Group(self._alias() or f"bin({period})", length_ms)

    def _alias(self) -> str | None:
        return self.name() if self._takes("as") else None

    # --- conditions: each with the texts that stand in whatever passes it ---

    def either(self) -> tuple[Condition, list[str]]:
        left, needles = self._both()
        while self._takes("or"):
            right, _ = self._both()
            left, needles = _or(left, right), []
        return left, needles

    def _both(self) -> tuple[Condition, list[str]]:
        left, needles = self._one()
        while self._takes("and"):
            right, more = self._one()
            left, needles = _and(left, right), [*needles, *more]
        return left, needles

    def _one(self) -> tuple[Condition, list[str]]:
        if self._takes("not"):
            inner, _ = self._one()
            return lambda fields: not inner(fields), []
        if self._takes("("):
            found = self.either()
            self.expect(")")
            return found
        name = self.name()
        if name == "ispresent" and self._takes("("):
            present = self.name()
            self.expect(")")
            return lambda fields: present in fields, []
        if self._takes("not"):
            matches = self._match(name)
            if matches is None:
                raise Malformed(f"expected like or in at {self._rest()!r}")
            return lambda fields: not matches(fields), []
        if (matches := self._match(name)) is not None:
            return matches, []
        sign = self._take("sign").text
        value = self._take("text", "number").text
        if sign in ("=", "!="):
            equal = sign == "="
            # JSON writes letters, digits and dashes as they are; other characters may stand in a message in two ways.
            plain = equal and re.fullmatch(r"[\w-]+", value, re.ASCII) is not None
            return lambda fields: (fields.get(name) == value) is equal, [value] if plain else []
        if sign not in _COMPARISONS:
            raise Malformed(f"unexpected {sign} after {name}")
        return _compared(name, _COMPARISONS[sign], _number(value)), []

    def _match(self, name: str) -> Condition | None:
        """A condition by ``like`` or ``in``, if one follows."""
        if self._takes("like"):
            return _like(name, self._take("text", "regex"))
        if self._takes("in"):
            values = self._values()
            return lambda fields: fields.get(name) in values
        return None

    def _values(self) -> frozenset[str]:
        self.expect("[")
        found = [self._take("text", "number").text]
        while self._takes(","):
            found.append(self._take("text", "number").text)
        self.expect("]")
        return frozenset(found)

    def _take(self, *kinds: str) -> _Token:
        if self.done() or self._tokens[self._at].kind not in kinds:
            raise Malformed(f"expected a {' or a '.join(kinds)} at {self._rest()!r}")
        self._at += 1
        return self._tokens[self._at - 1]

    def _takes(self, text: str) -> bool:
        token = None if self.done() else self._tokens[self._at]
        if token is None or token.kind not in ("name", "sign") or token.text.lower() != text:
            return False
        self._at += 1
        return True

    def _rest(self) -> str:
        return " ".join(token.text for token in self._tokens[self._at :])[:40]


def _and(left: Condition, right: Condition) -> Condition:
    return lambda fields: left(fields) and right(fields)


def _or(left: Condition, right: Condition) -> Condition:
    return lambda fields: left(fields) or right(fields)


def _like(name: str, pattern: _Token) -> Condition:
    try:
        compiled = re.compile(pattern.text if pattern.kind == "regex" else re.escape(pattern.text))
    except re.error as error:
        raise Malformed(f"{pattern.text!r} is no regular expression: {error}") from error
    return lambda fields: compiled.search(fields.get(name, "")) is not None


def _compared(name: str, holds: Callable[[float, float], bool], bound: float) -> Condition:
    def compared(fields: Fields) -> bool:
        try:
            return holds(float(fields[name]), bound)
        except (KeyError, ValueError):
            return False

    return compared


def _number(text: str) -> float:
    try:
        return float(text)
    except ValueError:
        raise Malformed(f"{text!r} is no number") from None


def _sort_key(value: str | None) -> tuple[int, float, str]:
    """Numbers by size, before text; what is missing first."""
    if value is None:
        return 0, 0.0, ""
    try:
        return 1, float(value), ""
    except ValueError:
        return 2, 0.0, value

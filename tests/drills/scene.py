"""A scene: one thing that breaks, how its operator learns of it, and how it is mended."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime

from tests.drills.deployment import AlarmChange, Asked, Deployment

Row = Mapping[str, str]
Act = Callable[[Deployment], None]


class NotShown(Exception):
    """A scene does not show what it promises; the message says what was seen instead."""


@dataclass(frozen=True)
class Scene:
    """One drill. The acts raise :class:`NotShown` where the deployment does not do what they expect."""

    name: str
    broken: str
    """What breaks, as an operator would say it."""
    how: str
    """How it is broken in the local cloud."""
    alarm: str
    """The alarm that must fire, without the deployment's prefix."""
    query: str
    """The saved query that shows the fault, without the prefix."""
    expected: str
    """What its rows must show, in words."""
    shows: Callable[[Sequence[Row]], bool]
    """Whether the rows show it."""
    mend: str
    """The runbook's mend."""
    over: str
    """How it is known to be over, beside the alarm."""
    breaks: Act
    traffic: Act
    """What askers do meanwhile."""
    mends: Act
    is_over: Act
    also: tuple[str, ...] = ()
    """Further alarms that must fire."""


@dataclass
class Outcome:
    """What a scene has shown."""

    scene: Scene
    asked: list[Asked] = field(default_factory=list)
    commands: list[str] = field(default_factory=list)
    since: datetime = datetime.min
    """When it was broken, in CloudWatch's time."""
    changes: list[AlarmChange] = field(default_factory=list)
    """Of the expected alarm."""
    others: list[str] = field(default_factory=list)
    """Further alarms that fired."""
    rows: list[Row] = field(default_factory=list)
    took_s: float = 0.0
    problem: str | None = None
    """Why the scene failed; None if it showed all that it promises."""


def some(**wanted: str) -> Callable[[Sequence[Row]], bool]:
    """Rows of which one has, in each of these columns, a value that holds this text. ``__`` stands for a dot."""
    columns = {name.replace("__", "."): text for name, text in wanted.items()}

    def shown(rows: Sequence[Row]) -> bool:
        return any(all(text in row.get(name, "") for name, text in columns.items()) for row in rows)

    return shown


def expect(holds: bool, what: str) -> None:
    """Raises NotShown, with what was expected, unless it holds."""
    if not holds:
        raise NotShown(f"expected: {what}")

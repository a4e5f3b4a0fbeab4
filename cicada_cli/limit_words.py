"""Messages about limits on use."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator
from datetime import datetime, timedelta

from cicada_cli.text import one_line
from cicada_client import LimitState

UNITS = {
    "requestsMinute": "questions a minute",
    "requestsOpen": "questions at a time",
    "tokensDay": "tokens a day",
    "tokensMonth": "tokens a month",
    "usdDay": "a day",
    "usdMonth": "a month",
}
"""The unit of each limit."""
NEARLY = 0.2
"""The answer shows what is left of a limit below this share."""


def limit_words(limit: LimitState, now: datetime | None = None) -> str:
    """Which limit is reached, what is left of it, and when the user can ask again, in local time."""
    if limit.limit == "stopped":
        return "Questions are stopped: an administrator has switched off answers."
    what = _bound_words(limit)
    match limit.account:
        case "user":
            reached = f"You have reached your limit of {what}."
        case "group":
            reached = f"Group {one_line(limit.group or '')} has reached its limit of {what}."
        case "deployment":
            reached = f"All users together have reached the limit of {what}."
    if limit.most == 0:
        return reached
    if limit.limit == "requestsOpen":
        return f"{reached} Ask again when an answer is complete."
    if limit.left:
        reached += f" {quantity(limit.limit, limit.left)} left, which is too little for a question."
    if limit.resets_at_ms is None:
        return reached
    return f"{reached} You can ask again {moment(limit.resets_at_ms, now)}."


def _bound_words(limit: LimitState) -> str:
    unit = UNITS[limit.limit]
    if limit.most is None:
        return f"cost {unit}" if is_money(limit.limit) else unit
    units = unit.replace("questions", "question") if limit.most == 1 else unit
    return f"{quantity(limit.limit, limit.most)} {units}"


def left_lines(limits: Iterable[LimitState], now: datetime | None = None) -> Iterator[str]:
    """What is left of each limit that is almost reached."""
    now = now or datetime.now()
    for limit in limits:
        if limit.limit == "stopped" or not limit.most or limit.left is None or limit.resets_at_ms is None:
            continue
        if limit.left >= limit.most * NEARLY or limit.resets_at_ms <= now.timestamp() * 1000:
            continue
        left, most = (quantity(limit.limit, amount) for amount in (limit.left, limit.most))
        whose = f" for group {one_line(limit.group or '')}" if limit.account == "group" else ""
        until = moment(limit.resets_at_ms, now, at="")
        yield f"{left} of {most} {UNITS[limit.limit]} left{whose} until {until}."


def is_money(limit: str) -> bool:
    """Whether a limit is in US dollars."""
    return limit.startswith("usd")


def quantity(limit: str, amount: float) -> str:
    """An amount with its unit, rounded down."""
    return f"${math.floor(round(amount * 100, 6)) / 100:,.2f}" if is_money(limit) else f"{math.floor(amount):,}"


def moment(epoch_ms: int, now: datetime | None = None, *, at: str = "at ") -> str:
    """A local time, rounded up to the minute: *at 14:05*, *tomorrow at 01:00*."""
    when = datetime.fromtimestamp(math.ceil(epoch_ms / 60_000) * 60)
    today = (now or datetime.now()).date()
    if when.date() == today:
        return f"{at}{when:%H:%M}"
    if when.date() == today + timedelta(days=1):
        return f"tomorrow at {when:%H:%M}"
    return f"{'on ' if at else ''}{when.day} {when:%B} at {when:%H:%M}"

"""Dashboards: their bodies are checked as CloudWatch checks them, and kept.

Source: Amazon CloudWatch API Reference, "Dashboard body structure and syntax"; service quotas of CloudWatch.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from cicada_local.cloudwatch.errors import DashboardInvalid, DashboardNotFound
from cicada_local.places import ACCOUNT_ID

MAX_WIDGETS = 500
MAX_METRICS, MAX_WIDGET_METRICS = 2500, 500
"""Metrics of a dashboard, and of one widget."""
BODY_CHARS = 1024 * 1024
GRID_COLUMNS, WIDGET_ROWS = 24, 1000
_NAME = re.compile(r"[A-Za-z0-9_-]{1,255}")
_TYPES = ("metric", "text", "log", "alarm")
_VIEWS = ("timeSeries", "singleValue", "gauge", "bar", "pie", "table")
_LOG_VIEWS = ("timeSeries", "table", "bar", "pie")
_PERIOD_OVERRIDES = ("auto", "inherit")
_AGO = re.compile(r"-P(?=.)(\d+M)?(\d+W)?(\d+D)?(T(?=.)(\d+H)?(\d+M)?)?")
"""A time before now, such as ``-PT3H`` or ``-P14D``."""
_REQUIRED = {"text": ("markdown",), "log": ("query", "region"), "alarm": ("alarms",), "metric": ("region",)}


@dataclass(frozen=True)
class Dashboard:
    """A dashboard as it is kept."""

    name: str
    body: str
    modified_at: float

    @property
    def arn(self) -> str:
        """Dashboards belong to no Region."""
        return f"arn:aws:cloudwatch::{ACCOUNT_ID}:dashboard/{self.name}"


class Dashboards:
    """The dashboards of an account."""

    def __init__(self) -> None:
        """There is none yet."""
        self._kept: dict[str, Dashboard] = {}

    def put(self, name: str, body: str, now: float) -> Dashboard:
        """Create or replace one.

        Raises:
            DashboardInvalid: CloudWatch would refuse it.
        """
        problems = list(check(name, body))
        if problems:
            raise DashboardInvalid(
                f"The dashboard body is invalid, there are {len(problems)} validation errors: {problems}"
            )
        dashboard = self._kept[name] = Dashboard(name, body, now)
        return dashboard

    def get(self, name: str) -> Dashboard:
        """One by its name.

        Raises:
            DashboardNotFound: there is none.
        """
        if name not in self._kept:
            raise DashboardNotFound(f"Dashboard {name} does not exist")
        return self._kept[name]

    def delete(self, *names: str) -> None:
        """Delete all of them, or none.

        Raises:
            DashboardNotFound: one is not there.
        """
        for name in names:
            self.get(name)
        for name in names:
            del self._kept[name]

    def forget(self, name: str) -> None:
        """Delete one, if it is there."""
        self._kept.pop(name, None)

    def named(self, prefix: str) -> list[Dashboard]:
        """Those whose name begins so, by name."""
        return [self._kept[name] for name in sorted(self._kept) if name.startswith(prefix)]


def check(name: str, body: str) -> Iterator[str]:
    """What is wrong with a dashboard."""
    if not _NAME.fullmatch(name):
        yield "The name may have letters, digits, - and _, at most 255 of them"
    if len(body) > BODY_CHARS:
        yield f"The body is longer than {BODY_CHARS} characters"
    try:
        read = json.loads(body)
    except ValueError as error:
        yield f"The field DashboardBody must be a valid JSON object: {error}"
        return
    widgets = read.get("widgets") if isinstance(read, dict) else None
    if not isinstance(widgets, list):
        yield 'The body must have "widgets", an array'
        return
    yield from _shown(read)
    if read.get("periodOverride", "auto") not in _PERIOD_OVERRIDES:
        yield f"/periodOverride must be one of {', '.join(_PERIOD_OVERRIDES)}"
    if len(widgets) > MAX_WIDGETS:
        yield f"More than {MAX_WIDGETS} widgets"
    for place, widget in enumerate(widgets):
        yield from (f"/widgets/{place}{problem}" for problem in _widget(widget))
    if sum(_metrics(widget) for widget in widgets) > MAX_METRICS:
        yield f"More than {MAX_METRICS} metrics"


def _shown(given: Mapping[str, Any]) -> Iterator[str]:
    """What is wrong with the time that a dashboard or a widget shows."""
    start, end = given.get("start"), given.get("end")
    if end is not None and start is None:
        yield "/end needs /start"
    if start is not None and not (_AGO.fullmatch(str(start)) or _is_time(start)):
        yield "/start must be a time, or a duration that begins with -P"
    if end is not None and not _is_time(end):
        yield "/end must be a time"


def _is_time(text: Any) -> bool:
    try:
        datetime.fromisoformat(text)
    except (TypeError, ValueError):
        return False
    return True


def _metrics(widget: Any) -> int:
    """How many metrics and expressions a widget has."""
    properties = widget.get("properties", {}) if isinstance(widget, dict) else {}
    metrics = properties.get("metrics", ()) if isinstance(properties, dict) else ()
    return len(metrics) if isinstance(metrics, list) else 0


def _widget(widget: Any) -> Iterator[str]:
    if not isinstance(widget, dict):
        yield " must be an object"
        return
    if widget.get("type") not in _TYPES:
        yield f"/type must be one of {', '.join(_TYPES)}, which are served here"
        return
    yield from _placed(widget)
    properties = widget.get("properties")
    if not isinstance(properties, dict):
        yield "/properties must be an object"
        return
    kind = str(widget["type"])
    yield from (f"/properties/{name} is required" for name in _REQUIRED[kind] if not properties.get(name))
    views = _LOG_VIEWS if kind == "log" else _VIEWS
    if properties.get("view", views[0]) not in views:
        yield f"/properties/view must be one of {', '.join(views)}"
    if kind == "metric":
        yield from _metric_widget(properties)


def _placed(widget: Mapping[str, Any]) -> Iterator[str]:
    for name, least, most in (("x", 0, GRID_COLUMNS - 1), ("y", 0, None), ("width", 1, 24), ("height", 1, WIDGET_ROWS)):
        value = widget.get(name)
        if value is None:
            continue
        if not isinstance(value, int) or value < least or (most is not None and value > most):
            yield f"/{name} must be a whole number from {least}" + (f" to {most}" if most is not None else "")


def _metric_widget(properties: Mapping[str, Any]) -> Iterator[str]:
    yield from (f"/properties{problem}" for problem in _shown(properties))
    metrics, annotations = properties.get("metrics"), properties.get("annotations", {})
    if not metrics and not annotations.get("alarms"):
        yield "/properties/metrics is required, unless an alarm is annotated"
        return
    if not isinstance(metrics or [], list):
        yield "/properties/metrics must be an array"
        return
    if len(metrics or ()) > MAX_WIDGET_METRICS:
        yield f"/properties/metrics has more than {MAX_WIDGET_METRICS} members"
    for place, metric in enumerate(metrics or ()):
        yield from (f"/properties/metrics/{place}{problem}" for problem in _metric(metric))
    period = properties.get("period", 60)
    if not isinstance(period, int) or period <= 0 or (period > 30 and period % 60):
        yield "/properties/period must be a multiple of 60"


def _metric(metric: Any) -> Iterator[str]:
    if not isinstance(metric, list) or not metric:
        yield " must be an array"
        return
    options = metric[-1] if isinstance(metric[-1], dict) else {}
    named = metric[:-1] if options else metric
    if "expression" in options:
        if named:
            yield " must be an expression alone"
        return
    if len(named) < 2 or len(named) % 2 or not all(isinstance(part, str) and part for part in named):
        yield " must name a namespace, a metric, and dimensions in pairs"

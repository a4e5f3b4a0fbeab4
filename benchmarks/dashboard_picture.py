"""Draws a CloudWatch dashboard as an SVG, from a file that ``benchmarks.dashboard_data`` describes.

``python -m benchmarks.dashboard_picture FILE.json OUT.svg``
"""

from __future__ import annotations

import argparse
import itertools
import json
import math
import re
import textwrap
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any
from xml.sax.saxutils import escape

from benchmarks.dashboard_data import collect, shown_from, widget_metrics

__all__ = ["collect", "main", "render"]

COLUMNS = 24
UNIT_WIDTH, UNIT_HEIGHT, GAP = 52, 46, 8
"""A cell of the grid, and what is left free between widgets, in pixels."""
HEADER = 44
DEFAULT_WIDTH, DEFAULT_HEIGHT = 6, 6
"""Of a widget, in cells, as the console has them."""
COLOURS = ("#1f77b4", "#ff7f0e", "#2ca02c", "#d62728", "#9467bd", "#8c564b", "#e377c2", "#7f7f7f", "#bcbd22", "#17becf")
"""The console's, in its order."""
STATES = {"OK": "#1d8102", "ALARM": "#d13212", "INSUFFICIENT_DATA": "#879596"}
"""An alarm's colour by its state."""
ALARM_WIDTH, ALARM_HEIGHT = 180, 24
"""What an alarm takes at least, in pixels."""
CHAR_WIDTH = 6.1
"""Of the small text, about."""
BOLD = 1.15
"""How much wider bold text is."""
LEGEND_GAP = 34
"""What a name in a legend takes beside its text, in pixels."""
COLUMN_GAP = 1.5
"""Characters between columns of a table."""
_STYLE = (
    "text{font:11px 'Amazon Ember',system-ui,sans-serif;fill:#414d5c}.page{fill:#f4f4f5}.card{fill:#fff;stroke:#d5dbdb}"
    ".title{font-size:13px;font-weight:600;fill:#16191f}.head{font-size:18px;font-weight:600;fill:#16191f}"
    ".grid{stroke:#eaeded}.limit{stroke:#d13212;stroke-dasharray:5 4}.line{fill:none;stroke-width:1.6}"
    ".state{fill:#fff;stroke:#d5dbdb}.number{font-size:26px;font-weight:300;fill:#16191f}.strong{font-weight:600;fill:#16191f}.row{fill:#fafafa}"
)


@dataclass(frozen=True)
class Line:
    """A metric's values in a widget."""

    label: str
    colour: str
    points: tuple[tuple[float, float], ...]
    right: bool = False
    """Whether its scale is the one on the right."""


@dataclass(frozen=True)
class Box:
    """A widget's place, in pixels."""

    x: float
    y: float
    width: float
    height: float


def render(data: Mapping[str, Any]) -> str:
    """A dashboard as an SVG document; the same for the same data."""
    widgets = data["body"]["widgets"]
    boxes = list(_placed(widgets))
    width = COLUMNS * UNIT_WIDTH + GAP
    height = HEADER + GAP + max((box.y + box.height for box in boxes), default=0)
    shown = f"{_clock(data['start'], '%Y-%m-%d %H:%M')} – {_clock(data['end'], '%H:%M')} UTC"
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" role="img" width="{width}" height="{height:g}" '
        f'viewBox="0 0 {width} {height:g}">',
        f"<title>{escape(data['title'])}</title><style>{_STYLE}</style>",
        f'<rect class="page" width="{width}" height="{height:g}"/>',
        f'<text class="head" x="{GAP + 4}" y="28">{escape(data["title"])}</text>',
        f'<text x="{width - GAP - 4}" y="28" text-anchor="end">{shown}</text>',
    ]
    for place, (widget, box) in enumerate(zip(widgets, boxes, strict=True)):
        parts.append(f'<g transform="translate({box.x:g} {box.y + HEADER:g})">')
        parts += _widget(widget, box, data, str(place))
        parts.append("</g>")
    return "\n".join([*parts, "</svg>"]) + "\n"


def _placed(widgets: Sequence[Mapping[str, Any]]) -> Iterator[Box]:
    for widget in widgets:
        width, height = widget.get("width", DEFAULT_WIDTH), widget.get("height", DEFAULT_HEIGHT)
        yield Box(
            widget.get("x", 0) * UNIT_WIDTH + GAP,
            widget.get("y", 0) * UNIT_HEIGHT,
            width * UNIT_WIDTH - GAP,
            height * UNIT_HEIGHT - GAP,
        )


def _widget(widget: Mapping[str, Any], box: Box, data: Mapping[str, Any], place: str) -> Iterator[str]:
    properties = widget["properties"]
    if widget["type"] == "text":
        yield from _text(properties["markdown"], box)
        return
    yield f'<rect class="card" width="{box.width:g}" height="{box.height:g}" rx="6"/>'
    room = int(box.width / 7.5)
    yield f'<text class="title" x="12" y="20">{escape(_short(properties.get("title", ""), room))}</text>'
    if widget["type"] == "log":
        yield from _table(data.get("logs", {}).get(place, ()), box)
    elif widget["type"] == "alarm":
        yield from _states(data.get("alarms", {}).get(place, ()), box)
    elif properties.get("view") == "singleValue":
        yield from _numbers(_lines(widget, data["results"].get(place, ())), box)
    else:
        first = shown_from(widget, data["start"], data["end"])
        yield from _graph(widget, _lines(widget, data["results"].get(place, ())), box, first, data["end"])


def _lines(widget: Mapping[str, Any], results: Sequence[Mapping[str, Any]]) -> list[Line]:
    options = {given.get("id", f"q{place}"): (place, given) for place, (_, given) in enumerate(widget_metrics(widget))}
    found = []
    for number, result in enumerate(results):
        _, given = options.get(result["Id"], (number, {}))
        points = tuple(sorted(zip(result["Timestamps"], result["Values"], strict=True)))
        colour = given.get("color", COLOURS[number % len(COLOURS)])
        found.append(Line(result["Label"], colour, points, given.get("yAxis") == "right"))
    return found


# --- text, alarms, numbers and tables ---


def _text(markdown: str, box: Box) -> Iterator[str]:
    y = 4
    for line in re.sub(r"\[([^\]]*)\]\([^)]*\)|`", r"\1", markdown).splitlines():
        heading = line.startswith("#")
        for part in textwrap.wrap(line.lstrip("# "), int(box.width / (8 if heading else CHAR_WIDTH))) or [""]:
            y += 16
            if y < box.height + GAP:
                yield f'<text class="{"title" if heading else "plain"}" x="4" y="{y}">{escape(part)}</text>'


def _states(alarms: Sequence[Mapping[str, str]], box: Box) -> Iterator[str]:
    across = max(1, int((box.width - 24) // ALARM_WIDTH))
    width = (box.width - 24 + GAP) / across
    for number, alarm in enumerate(alarms):
        row, column = divmod(number, across)
        x, y = 12 + column * width, 32 + row * (ALARM_HEIGHT + GAP)
        name = _short(alarm["name"], int((width - GAP - 16) / CHAR_WIDTH))
        yield f'<rect class="state" x="{x:.1f}" y="{y}" width="{width - GAP:.1f}" height="{ALARM_HEIGHT}" rx="3"/>'
        yield f'<rect fill="{STATES[alarm["state"]]}" x="{x:.1f}" y="{y}" width="5" height="{ALARM_HEIGHT}" rx="2"/>'
        yield f'<text x="{x + 13:.1f}" y="{y + 16}">{escape(name)}</text>'


def _numbers(lines: Sequence[Line], box: Box) -> Iterator[str]:
    across = max(1, min(len(lines), int(box.width // 120)))
    rows = -(-len(lines) // across)
    for number, line in enumerate(lines):
        row, column = divmod(number, across)
        x = 12 + column * (box.width - 24) / across
        y = 30 + (row + 0.55) * (box.height - 36) / max(rows, 1)
        told = _figure(line.points[-1][1]) if line.points else "–"
        yield f'<text class="number" x="{x:.1f}" y="{y:.1f}">{told}</text>'
        label = _short(line.label, int((box.width - 24) / across / CHAR_WIDTH))
        yield f'<text x="{x:.1f}" y="{y + 16:.1f}">{escape(label)}</text>'


def _table(rows: Sequence[Mapping[str, str]], box: Box) -> Iterator[str]:
    if not rows:
        yield '<text x="12" y="44">No results</text>'
        return
    names = [name for name in dict.fromkeys(name for row in rows for name in row) if name != "@ptr"]
    lines = [dict(zip(names, names, strict=True)), *rows]
    rooms = _rooms([max(BOLD * len(name), *(len(str(row.get(name, ""))) for row in rows)) for name in names], box)
    for number, row in enumerate(lines):
        y = 42 + 17 * number
        if y > box.height - 6:
            return
        if number % 2:
            yield f'<rect class="row" x="8" y="{y - 12}" width="{box.width - 16:g}" height="17"/>'
        x = 12.0
        for name, room in zip(names, rooms, strict=True):
            style = "plain" if number else "strong"
            value = escape(_short(str(row.get(name, "")), int(room)))
            yield f'<text class="{style}" x="{x:.1f}" y="{y}">{value}</text>'
            x += (room + COLUMN_GAP) * CHAR_WIDTH


def _rooms(needed: Sequence[float], box: Box) -> list[float]:
    """The characters that each column has: what it needs, but for the widest where that is too much for all."""
    left, rooms = (box.width - 24) / CHAR_WIDTH - COLUMN_GAP * len(needed), dict[int, float]()
    for number, column in enumerate(sorted(range(len(needed)), key=needed.__getitem__)):
        rooms[column] = min(needed[column], left / (len(needed) - number))
        left -= rooms[column]
    return [rooms[column] for column in range(len(needed))]


# --- graphs ---


@dataclass(frozen=True)
class _Scale:
    least: float
    most: float
    start: float
    end: float

    def at(self, value: float) -> float:
        share = (value - self.least) / (self.most - self.least)
        return self.start + share * (self.end - self.start)

    def ticks(self) -> list[float]:
        step = _step((self.most - self.least) / 4)
        first = math.ceil(self.least / step - 1e-9)
        return [number * step for number in range(first, math.floor(self.most / step + 1e-9) + 1)]


def _step(rough: float) -> float:
    """The next 1, 2 or 5 times a power of ten."""
    power = 10.0 ** math.floor(math.log10(rough))
    return next(factor * power for factor in (1, 2, 5, 10) if factor * power >= rough - 1e-12)


def _graph(widget: Mapping[str, Any], lines: Sequence[Line], box: Box, start: float, end: float) -> Iterator[str]:
    properties = widget["properties"]
    if properties.get("stacked"):
        lines = _stacked(lines)
    limits = properties.get("annotations", {}).get("horizontal", ())
    legend = list(_legend(lines, box))
    right = any(line.right for line in lines)
    gap = 1.5 * min(_steps(lines), default=math.inf)
    across = _Scale(start, max(end, start + 1), 48.0, box.width - (48.0 if right else 14.0))
    bottom = box.height - 22 - 15 * (1 + max((row for row, _ in legend), default=0))
    for side in (False, True) if right else (False,):
        values = [value for line in lines if line.right is side for _, value in line.points]
        own = [one for one in limits if (one.get("yAxis") == "right") is side]
        axis = properties.get("yAxis", {}).get("right" if side else "left", {})
        up = _up([*values, *(float(one["value"]) for one in own)], axis, bottom)
        yield from _axis(up, across, right=side)
        for one in own:
            yield from _limit(one, up, across)
        for line in lines:
            if line.right is side:
                yield from _drawn(line, across, up, gap)
    yield from _times(across, bottom)
    yield from (text for _, text in legend)


def _up(values: Sequence[float], axis: Mapping[str, Any], bottom: float) -> _Scale:
    least = float(axis.get("min", min([0.0, *values])))
    most = float(axis.get("max", max(values, default=1.0)))
    if most <= least:
        most = least + 1
    step = _step((most - least) / 4)
    return _Scale(least, most if "max" in axis else math.ceil(most / step - 1e-9) * step, bottom, 34.0)


def _axis(up: _Scale, across: _Scale, *, right: bool) -> Iterator[str]:
    x, anchor = (across.end + 6, "start") if right else (across.start - 6, "end")
    for value in up.ticks():
        y = up.at(value)
        if not right:
            yield f'<line class="grid" x1="{across.start:g}" x2="{across.end:g}" y1="{y:.1f}" y2="{y:.1f}"/>'
        yield f'<text x="{x:g}" y="{y + 4:.1f}" text-anchor="{anchor}">{_figure(value)}</text>'


def _limit(annotation: Mapping[str, Any], up: _Scale, across: _Scale) -> Iterator[str]:
    y = up.at(float(annotation["value"]))
    if up.end <= y <= up.start:
        yield f'<line class="limit" x1="{across.start:g}" x2="{across.end:g}" y1="{y:.1f}" y2="{y:.1f}"/>'
        label = escape(annotation.get("label", ""))
        beside = y + 13 if y < up.end + 12 else y - 4
        yield f'<text x="{across.end - 4:g}" y="{beside:.1f}" text-anchor="end">{label}</text>'


def _steps(lines: Sequence[Line]) -> Iterator[float]:
    """The times between values that follow each other."""
    for line in lines:
        yield from (later[0] - earlier[0] for earlier, later in itertools.pairwise(line.points))


def _drawn(line: Line, across: _Scale, up: _Scale, gap: float) -> Iterator[str]:
    """A line, broken where values are missing for longer than a gap; a value alone is a dot."""
    times = [at for at, _ in line.points]
    parts: list[list[tuple[float, float]]] = []
    for place, point in enumerate(line.points):
        if place == 0 or point[0] - times[place - 1] > gap:
            parts.append([])
        parts[-1].append(point)
    for part in parts:
        places = [(across.at(at), min(max(up.at(value), up.end), up.start)) for at, value in part]
        if len(places) == 1:
            yield f'<circle fill="{line.colour}" cx="{places[0][0]:.1f}" cy="{places[0][1]:.1f}" r="2.5"/>'
        else:
            path = " ".join(f"{x:.1f},{y:.1f}" for x, y in places)
            yield f'<polyline class="line" stroke="{line.colour}" points="{path}"/>'


def _stacked(lines: Sequence[Line]) -> list[Line]:
    """Each line on top of those before it."""
    heights: dict[float, float] = {}
    found = []
    for line in lines:
        points = []
        for at, value in line.points:
            heights[at] = heights.get(at, 0.0) + value
            points.append((at, heights[at]))
        found.append(Line(line.label, line.colour, tuple(points), line.right))
    return found


def _times(across: _Scale, bottom: float) -> Iterator[str]:
    span = across.most - across.least
    steps = (60, 300, 600, 900, 1800, 3600, 10_800, 21_600, 43_200, 86_400, 604_800)
    step = next((step for step in steps if span / step <= max(2, (across.end - across.start) / 70)), steps[-1])
    form = "%H:%M" if step < 86_400 else "%m-%d"
    for at in range(math.ceil(across.least / step) * step, math.floor(across.most) + 1, step):
        x, anchor = across.at(at), "middle"
        if x > across.end - 6:
            x, anchor = across.end + 8, "end"
        yield f'<text x="{x:.1f}" y="{bottom + 15:.1f}" text-anchor="{anchor}">{_clock(at, form)}</text>'


def _legend(lines: Sequence[Line], box: Box) -> Iterator[tuple[int, str]]:
    """Names with their colours below a graph, from the bottom row up; each with its row."""
    rows: list[list[Line]] = [[]]
    x = 14.0
    for line in lines:
        width = LEGEND_GAP + CHAR_WIDTH * len(_short(line.label, 60))
        if rows[-1] and x + width > box.width:
            rows.append([])
            x = 14.0
        rows[-1].append(line)
        x += width
    for row, named in enumerate(rows):
        x, y = 14.0, box.height - 9 - 15 * (len(rows) - 1 - row)
        for line in named:
            label = _short(line.label, 60)
            square = f'<rect fill="{line.colour}" x="{x:.1f}" y="{y - 8:.1f}" width="9" height="9" rx="2"/>'
            yield row, f'{square}<text x="{x + 13:.1f}" y="{y:.1f}">{escape(label)}</text>'
            x += LEGEND_GAP + CHAR_WIDTH * len(label)


def _figure(value: float) -> str:
    """A number as the console writes it: 12.3k, 0.45."""
    for factor, sign in ((1e9, "G"), (1e6, "M"), (1e3, "k")):
        if abs(value) >= factor:
            return f"{value / factor:.3g}{sign}"
    return f"{value:.3g}"


def _clock(at: float, form: str) -> str:
    return datetime.fromtimestamp(at, UTC).strftime(form)


def _short(text: str, room: int) -> str:
    return text if len(text) <= room else f"{text[: max(room - 1, 1)]}…"


def main(argv: Sequence[str] | None = None) -> int:
    """Draw a file."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.dashboard_picture", description=__doc__)
    parser.add_argument("data", type=Path, help="a dashboard with its values, as JSON")
    parser.add_argument("picture", type=Path, help="the SVG to write")
    args = parser.parse_args(argv)
    data = json.loads(args.data.read_text(encoding="utf-8"))
    args.picture.write_text(render(data), encoding="utf-8")
    return 0


if __name__ == "__main__":
    raise SystemExit(main())

"""Lines over the number of passages as an SVG: panels side by side, both axes logarithmic, names at the lines' ends."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from xml.sax.saxutils import escape

COLOURS = (("#0072b2", "#56b4e9"), ("#d55e00", "#e69f00"), ("#009e73", "#2fc79b"), ("#a8588a", "#e0a3c6"))
"""On light, and on dark; told apart with any kind of colour vision. After Okabe and Ito, "Color Universal Design",
2008, lighter or darker where the ground asks for it."""
COLUMNS = 2
PANEL_WIDTH, PANEL_HEIGHT = 480, 300
LEFT, RIGHT, TOP, BOTTOM = 58, 158, 48, 44
LABEL_HEIGHT = 15
"""Between two names at least, in pixels."""

_STYLE = (
    "text{font:12px system-ui,sans-serif;fill:#222}.title{font-weight:600;font-size:14px}.small{font-size:11px}"
    ".back{fill:#fff}.grid{stroke:#ddd}.line{fill:none;stroke-width:2}"
    ".dashed{stroke-dasharray:5 4}.name{font-weight:600}"
)
_DARK_STYLE = "text{fill:#ddd}.back{fill:#0d1117}.grid{stroke:#333a44}"


def _style() -> str:
    def coloured(shade: int) -> str:
        return "".join(
            f".line.c{place}{{stroke:{pair[shade]}}}circle.c{place},text.c{place}{{fill:{pair[shade]}}}"
            for place, pair in enumerate(COLOURS)
        )

    return f"{_STYLE}{coloured(0)}@media(prefers-color-scheme:dark){{{_DARK_STYLE}{coloured(1)}}}"


@dataclass(frozen=True)
class Line:
    """One quantity at some sizes: ``(passages, value)``, both above 0."""

    name: str
    points: Sequence[tuple[int, float]]
    dashed: bool = False
    """Of somebody else; it has the colour of the line before it."""


@dataclass(frozen=True)
class Panel:
    """Quantities of one unit."""

    title: str
    lines: Sequence[Line]


def chart(panels: Sequence[Panel]) -> str:
    """The panels as an SVG document, light or dark as its reader prefers."""
    width = PANEL_WIDTH * min(COLUMNS, len(panels))
    height = PANEL_HEIGHT * -(-len(panels) // COLUMNS)
    told = "; ".join(panel.title for panel in panels)
    lines = [
        f'<svg xmlns="http://www.w3.org/2000/svg" role="img" width="{width}" height="{height}" '
        f'viewBox="0 0 {width} {height}">',
        f"<title>{escape(told)}</title>",
        f"<style>{_style()}</style>",
        f'<rect class="back" width="{width}" height="{height}"/>',
    ]
    for number, panel in enumerate(panels):
        row, column = divmod(number, COLUMNS)
        lines += [f'<g transform="translate({column * PANEL_WIDTH} {row * PANEL_HEIGHT})">', *_drawn(panel), "</g>"]
    return "\n".join([*lines, "</svg>"]) + "\n"


@dataclass(frozen=True)
class _Axis:
    """A logarithmic scale: from the decade at or below the least value to the one at or above the greatest."""

    low: int
    high: int
    start: float
    end: float

    @classmethod
    def over(cls, values: Sequence[float], start: float, end: float) -> _Axis:
        low, high = math.floor(math.log10(min(values)) + 1e-9), math.ceil(math.log10(max(values)) - 1e-9)
        return cls(low, max(high, low + 1), start, end)

    def at(self, value: float) -> float:
        share = (math.log10(value) - self.low) / (self.high - self.low)
        return self.start + share * (self.end - self.start)

    def decades(self) -> list[float]:
        return [10.0**power for power in range(self.low, self.high + 1)]


def _drawn(panel: Panel) -> Iterator[str]:
    points = [point for line in panel.lines for point in line.points]
    right, bottom = PANEL_WIDTH - RIGHT, PANEL_HEIGHT - BOTTOM
    across = _Axis.over([passages for passages, _ in points], LEFT, right)
    up = _Axis.over([value for _, value in points], bottom, TOP)
    yield f'<text class="title" x="{LEFT - 44}" y="24">{escape(panel.title)}</text>'
    for value in up.decades():
        y = up.at(value)
        yield f'<line class="grid" x1="{LEFT}" x2="{right}" y1="{y:.1f}" y2="{y:.1f}"/>'
        yield f'<text class="small" x="{LEFT - 6}" y="{y + 4:.1f}" text-anchor="end">{value:,.6g}</text>'
    for value in across.decades():
        x = across.at(value)
        yield f'<line class="grid" x1="{x:.1f}" x2="{x:.1f}" y1="{TOP}" y2="{bottom}"/>'
        yield f'<text class="small" x="{x:.1f}" y="{bottom + 16}" text-anchor="middle">{int(value):,}</text>'
    yield f'<text class="small" x="{(LEFT + right) / 2:.1f}" y="{bottom + 33}" text-anchor="middle">passages</text>'
    colours = _colours(panel.lines)
    for line in panel.lines:
        yield from _line(line, colours[line.name], across, up)
    yield from _names(panel.lines, colours, up, right)


def _colours(lines: Sequence[Line]) -> dict[str, int]:
    """By a line's name the place of its colour."""
    found: dict[str, int] = {}
    place = -1
    for line in lines:
        place += 0 if line.dashed else 1
        found[line.name] = max(place, 0)
    return found


def _line(line: Line, colour: int, across: _Axis, up: _Axis) -> Iterator[str]:
    places = [(across.at(passages), up.at(value)) for passages, value in line.points]
    path = " ".join(f"{x:.1f},{y:.1f}" for x, y in places)
    dashed = " dashed" if line.dashed else ""
    yield f'<polyline class="line c{colour}{dashed}" points="{path}"/>'
    for (x, y), (passages, value) in zip(places, line.points, strict=True):
        told = escape(f"{line.name}, {passages:,} passages: {value:,.4g}")
        yield f'<circle class="c{colour}" cx="{x:.1f}" cy="{y:.1f}" r="3.5"><title>{told}</title></circle>'


def _names(lines: Sequence[Line], colours: dict[str, int], up: _Axis, right: float) -> Iterator[str]:
    """Beside each line's last point, and far enough from each other to be read."""
    y = -math.inf
    for line in sorted(lines, key=lambda line: line.points[-1][1], reverse=True):
        _, value = line.points[-1]
        y = max(up.at(value), y + LABEL_HEIGHT)
        told = f"{line.name} {value:,.0f}" if value >= 100 else f"{line.name} {value:,.2g}"
        yield f'<text class="small name c{colours[line.name]}" x="{right + 10}" y="{y + 4:.1f}">{escape(told)}</text>'

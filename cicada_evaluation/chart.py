"""A bar chart of an evaluation as SVG: a panel a set, a group a measure, a bar a mode, whiskers its 95 % interval."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path
from xml.sax.saxutils import escape

from cicada_evaluation.errors import EvaluationRefused
from cicada_evaluation.report import MeanEstimate, Report, SetResult

COLOURS = ("#0072b2", "#e69f00", "#009e73", "#cc79a7", "#56b4e9")
"""Told apart with any kind of colour vision. Source: Okabe and Ito, "Color Universal Design", 2008."""
BAR, GAP = 26, 28
"""Pixels of a bar's width, and between two groups."""
PLOT_HEIGHT = 200
LEFT, TOP, BOTTOM = 48, 40, 44
LEGEND_HEIGHT = 34
CHARACTER = 7.2
"""Pixels of a letter's width, about."""
TICKS = (0.0, 0.2, 0.4, 0.6, 0.8, 1.0)

_STYLE = "text{font:12px system-ui,sans-serif;fill:#222}.title{font-weight:600;font-size:14px}.small{font-size:10px}"


def chart(report: Report) -> str:
    """The chart of a report's measures, as an SVG document."""
    modes = list(dict.fromkeys(mode.name for found in report.sets for mode in found.measured()))
    colours = {mode: COLOURS[place % len(COLOURS)] for place, mode in enumerate(modes)}
    width = max(_legend_width(modes), *(_panel_width(found) for found in report.sets))
    panel_height = TOP + PLOT_HEIGHT + BOTTOM
    height = LEGEND_HEIGHT + panel_height * len(report.sets)
    lines = [
        f'<svg xmlns="http://www.w3.org/2000/svg" role="img" width="{width}" height="{height}" '
        f'viewBox="0 0 {width} {height}">',
        f"<title>{escape(_title(report, modes))}</title>",
        f"<style>{_STYLE}</style>",
        f'<rect width="{width}" height="{height}" fill="#fff"/>',
        *_legend(colours),
    ]
    for place, found in enumerate(report.sets):
        lines += [
            f'<g transform="translate(0 {LEGEND_HEIGHT + place * panel_height})">',
            *_panel(found, colours),
            "</g>",
        ]
    return "\n".join([*lines, "</svg>"]) + "\n"


def write_chart(report: Report, path: Path) -> None:
    """Write the chart.

    Raises:
        EvaluationRefused: it cannot be written there.
    """
    try:
        path.write_text(chart(report), encoding="utf-8")
    except OSError as error:
        raise EvaluationRefused(f"{path}: cannot be written: {error.strerror}") from error


def _title(report: Report, modes: Sequence[str]) -> str:
    what = "Answers" if any(found.answers for found in report.sets) else "Retrieval"
    return f"{what} by {', '.join(modes)} on {', '.join(found.name for found in report.sets)}"


def _measures(found: SetResult) -> list[str]:
    return list(dict.fromkeys(measure for mode in found.measured() for measure in mode.estimates))


def _panel_width(found: SetResult) -> int:
    title = LEFT + round(CHARACTER * 1.2 * len(_heading(found))) + GAP
    return max(title, LEFT + GAP + sum(_group_width(found, measure) + GAP for measure in _measures(found)))


def _group_width(found: SetResult, measure: str) -> int:
    """Of the bars, or of the name below them."""
    return max(len(found.measured()) * BAR, round(CHARACTER * len(measure)))


def _heading(found: SetResult) -> str:
    return f"{found.name} ({len(found.measured()[0].values):,} queries)"


def _legend_width(modes: Sequence[str]) -> int:
    return LEFT + sum(_entry_width(mode) for mode in modes)


def _entry_width(mode: str) -> int:
    return 18 + round(CHARACTER * len(mode)) + 20


def _legend(colours: dict[str, str]) -> Iterator[str]:
    x = LEFT
    for mode, colour in colours.items():
        yield f'<rect x="{x}" y="12" width="12" height="12" fill="{colour}"/>'
        yield f'<text x="{x + 18}" y="22">{escape(mode)}</text>'
        x += _entry_width(mode)


def _panel(found: SetResult, colours: dict[str, str]) -> Iterator[str]:
    right = _panel_width(found)
    yield f'<text class="title" x="{LEFT}" y="20">{escape(_heading(found))}</text>'
    for tick in TICKS:
        y = _y(tick)
        yield f'<line x1="{LEFT}" x2="{right}" y1="{y:.1f}" y2="{y:.1f}" stroke="#ddd"/>'
        yield f'<text class="small" x="{LEFT - 6}" y="{y + 3.5:.1f}" text-anchor="end">{tick:.1f}</text>'
    x = LEFT + GAP
    for measure in _measures(found):
        group = _group_width(found, measure)
        middle = x + group / 2
        yield f'<text x="{middle:.1f}" y="{TOP + PLOT_HEIGHT + 18}" text-anchor="middle">{escape(measure)}</text>'
        for place, mode in enumerate(found.measured()):
            at = x + (group - len(found.measured()) * BAR) / 2 + place * BAR
            if (estimate := mode.estimates.get(measure)) is not None:
                yield from _bar(at, estimate, colours[mode.name], f"{found.name}, {mode.name}: {measure}")
        x += group + GAP


def _bar(x: float, estimate: MeanEstimate, colour: str, what: str) -> Iterator[str]:
    top, middle = _y(estimate.mean), x + BAR / 2
    low, high = _y(estimate.low), _y(estimate.high)
    told = f"{what} {estimate.mean:.3f} [{estimate.low:.3f}, {estimate.high:.3f}]"
    yield f"<g><title>{escape(told)}</title>"
    yield f'<rect x="{x + 1:.1f}" y="{top:.1f}" width="{BAR - 2}" height="{_y(0) - top:.1f}" fill="{colour}"/>'
    yield (
        f'<path d="M{middle:.1f} {low:.1f}V{high:.1f}M{middle - 4:.1f} {low:.1f}h8M{middle - 4:.1f} {high:.1f}h8" '
        'stroke="#222" fill="none"/>'
    )
    yield f'<text class="small" x="{middle:.1f}" y="{high - 4:.1f}" text-anchor="middle">{_short(estimate.mean)}</text>'
    yield "</g>"


def _short(value: float) -> str:
    """``.407`` or ``1.0``: there is room for no more above a bar."""
    told = f"{value:.3f}"
    return told[1:] if told.startswith("0") else told[:3]


def _y(value: float) -> float:
    return TOP + PLOT_HEIGHT * (1 - value)

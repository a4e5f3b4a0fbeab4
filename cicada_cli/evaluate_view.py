"""An evaluation as the terminal shows it."""

from __future__ import annotations

from collections.abc import Iterator

from rich.console import Console
from rich.table import Table
from rich.text import Text

from cicada_cli.output import say
from cicada_cli.text import counted, printable
from cicada_evaluation.compare import Compared, Comparison
from cicada_evaluation.report import MeanEstimate, ModeResult, Report, SetResult

SIGNIFICANT = 0.05
"""A p-value below this is shown as such."""


def show_report(report: Report, out: Console) -> None:
    """Show the measures: on a terminal as a table, else a line a set and mode, separated by tabs."""
    measures = list(dict.fromkeys(name for found in report.sets for mode in found.modes for name in mode.estimates))
    if not out.is_terminal:
        _print_lines(_report_lines(report, measures))
        return
    out.print(_report_table(report, measures))
    for found in report.sets:
        out.print(Text(_summary(found), style="dim"))


def show_comparison(comparison: Comparison, out: Console) -> None:
    """Show differences: on a terminal as a table, else a line each, separated by tabs."""
    if out.is_terminal:
        out.print(_comparison_table(comparison))
    else:
        _print_lines(_comparison_lines(comparison))


def notes_of(report: Report) -> Iterator[str]:
    """What a reader of the numbers should know."""
    for found in report.sets:
        if found.left_out:
            yield f"{found.name}: {counted(found.left_out, 'query', 'queries')} without judgements left out"
        yield from (f"{found.name}: {note}" for note in found.notes)
        for mode in found.modes:
            for code, count in mode.degraded.items():
                yield f"{found.name}/{mode.mode}: {counted(count, 'search', 'searches')} with {code}"


def _report_table(report: Report, measures: list[str]) -> Table:
    table = Table(box=None, pad_edge=False, header_style="bold")
    table.add_column("set")
    table.add_column("mode", style="cyan")
    for name in measures:
        table.add_column(name, justify="right")
    for name in ("median ms", "p95 ms", "$/1,000"):
        table.add_column(name, justify="right")
    for found in report.sets:
        for mode in found.modes:
            cells = [_cell(mode.estimates.get(name)) for name in measures]
            table.add_row(Text(printable(found.name)), mode.mode, *cells, *_latency_and_cost(mode))
    if len(report.sets) > 1:
        for name, means in _means(report, measures).items():
            table.add_row(Text("mean", style="bold"), name, *(f"{mean:.3f}" for mean in means), "", "", "")
    return table


def _cell(estimate: MeanEstimate | None) -> Text:
    if estimate is None:
        return Text("")
    return Text.assemble(f"{estimate.mean:.3f}\n", (f"{estimate.low:.3f}–{estimate.high:.3f}", "dim"))


def _latency_and_cost(mode: ModeResult) -> tuple[str, str, str]:
    usd = mode.cost.usd_per_1000_queries
    return f"{mode.search.median_ms:.1f}", f"{mode.search.p95_ms:.1f}", "?" if usd is None else f"{usd:.4f}"


def _means(report: Report, measures: list[str]) -> dict[str, list[float]]:
    """The mean over sets, by mode: of those that every set was searched in."""
    every = [mode.mode for mode in report.sets[0].modes if all(found.mode(mode.mode) for found in report.sets)]
    results = {name: [mode for found in report.sets for mode in found.modes if mode.mode == name] for name in every}
    return {
        name: [sum(mode.estimates[measure].mean for mode in modes) / len(modes) for measure in measures]
        for name, modes in results.items()
    }


def _summary(found: SetResult) -> str:
    parts = [f"{printable(found.name)}: {counted(len(found.modes[0].queries), 'query', 'queries')}"]
    if found.indexing is not None:
        parts.append(f"{counted(found.indexing.passages, 'passage')}, {found.indexing.embedded:,} newly embedded")
        if found.indexing.usd:
            parts.append(f"${found.indexing.usd:.4f} to embed them")
    if found.embedding is not None:
        parts.append(f"embedding a query {found.embedding.median_ms:.1f} ms (p95 {found.embedding.p95_ms:.1f})")
    return " · ".join(parts) + " · below each mean its 95 % interval"


def _report_lines(report: Report, measures: list[str]) -> Iterator[list[str]]:
    yield ["set", "mode", *(part for name in measures for part in (name, "low", "high")), "median_ms", "p95_ms", "usd"]
    for found in report.sets:
        for mode in found.modes:
            cells = [
                f"{value:.4f}"
                for name in measures
                for value in (mode.estimates[name].mean, mode.estimates[name].low, mode.estimates[name].high)
            ]
            yield [printable(found.name), mode.mode, *cells, *_latency_and_cost(mode)]


def _comparison_table(comparison: Comparison) -> Table:
    table = Table(box=None, pad_edge=False, header_style="bold")
    for name in ("set", "mode", "measure"):
        table.add_column(name)
    for name in ("first", "second", "difference", "95 % interval", "p", "better / worse / of"):
        table.add_column(name, justify="right")
    for row in comparison.rows:
        style = "bold" if row.difference.p_value < SIGNIFICANT else ""
        table.add_row(*(Text(cell) for cell in _cells(row)), style=style)
    return table


def _comparison_lines(comparison: Comparison) -> Iterator[list[str]]:
    yield ["set", "mode", "measure", "first", "second", "difference", "interval", "p", "wins/losses/queries"]
    yield from map(_cells, comparison.rows)


def _cells(row: Compared) -> list[str]:
    interval = row.difference.interval
    return [
        printable(row.set_name),
        row.second if row.first == row.second else f"{row.first} → {row.second}",
        row.measure,
        f"{row.first_mean:.4f}",
        f"{row.second_mean:.4f}",
        f"{interval.mean:+.4f}",
        f"[{interval.low:+.4f}, {interval.high:+.4f}]",
        f"{row.difference.p_value:.4f}",
        f"{row.wins} / {row.losses} / {row.queries}",
    ]


def _print_lines(lines: Iterator[list[str]]) -> None:
    for line in lines:
        say("\t".join(line))

"""Measured answers as the terminal shows them."""

from __future__ import annotations

from collections.abc import Iterator

from rich.console import Console
from rich.table import Table
from rich.text import Text

from cicada_cli.output import say
from cicada_cli.text import counted, one_line, printable
from cicada_evaluation.report import AnswersResult, Latency, Report, SetResult

_BELOW = ("median ms", "p95 ms", "first piece ms", "$/1,000", "tokens in", "tokens out", "failures")


def show_answers(report: Report, out: Console) -> None:
    """Show the measures: on a terminal a table a set with a column a generator, else a line each, between tabs."""
    if not out.is_terminal:
        for line in _lines(report):
            say("\t".join(line))
        return
    for found in report.sets:
        out.print(_table(found))
        out.print(Text(_summary(found), style="dim"))


def answers_notes(report: Report) -> Iterator[str]:
    """What a reader of the numbers should know."""
    for found in report.sets:
        yield from (f"{found.name}: {note}" for note in found.notes)
        for one in found.answers:
            yield from (f"{found.name}/{one.name}: {note}" for note in _notes(one))


def _notes(one: AnswersResult) -> Iterator[str]:
    for code, count in one.failures.items():
        reason = next((query.reason for query in one.queries if query.failure == code), None)
        yield f"{counted(count, 'question')} without an answer: {code}" + (f" ({one_line(reason)})" if reason else "")
    if one.nothing_relevant:
        yield f"{counted(one.nothing_relevant, 'prompt')} had nothing in it that is judged relevant"
    if one.not_attributed:
        yield f"{counted(one.not_attributed, 'answer')} without a marker (not attributed)"
    for code, count in one.degraded.items():
        yield f"{counted(count, 'search', 'searches')} with {code}"
    if one.cost.unknown and one.cost.usd is not None:
        yield f"the cost of {counted(one.cost.unknown, 'question')} is not known, and not in the mean"
    if one.judge is not None:
        usd = "unknown" if one.judge.usd is None else f"${one.judge.usd:.4f}"
        yield f"{one.judge.model_id} judged with {counted(one.judge.calls, 'call')}, cost {usd}"
        for code, count in one.judge.failures.items():
            yield f"{counted(count, 'answer')} not judged: {code}"
        if one.judge.model_id == one.generator:
            yield "the judge wrote these answers itself, and judges prefer their own"


def _measures(found: SetResult) -> list[str]:
    return list(dict.fromkeys(name for one in found.answers for name in one.estimates))


def _table(found: SetResult) -> Table:
    table = Table(box=None, pad_edge=False, header_style="bold", title=None)
    table.add_column(Text(printable(found.name)))
    for one in found.answers:
        table.add_column(Text(f"{one.mode}\n{one.generator}"), justify="right")
    for measure in _measures(found):
        table.add_row(measure, *(_cell(one, measure) for one in found.answers))
    for name, cells in zip(_BELOW, zip(*map(_figures, found.answers), strict=True), strict=True):
        table.add_row(name, *cells)
    return table


def _cell(one: AnswersResult, measure: str) -> Text:
    estimate = one.estimates.get(measure)
    if estimate is None:
        return Text("")
    told = f"{estimate.low:.3f}–{estimate.high:.3f} of {estimate.answers:,}"
    return Text.assemble(f"{estimate.mean:.3f}\n", (told, "dim"))


def _figures(one: AnswersResult) -> tuple[str, ...]:
    usd = one.cost.usd_per_answer
    return (
        _ms(one.answer, "median_ms"),
        _ms(one.answer, "p95_ms"),
        _ms(one.first_piece, "median_ms"),
        "?" if usd is None else f"{usd * 1000:.4f}",
        f"{one.cost.input_tokens_per_answer:.0f}",
        f"{one.cost.output_tokens_per_answer:.0f}",
        str(sum(one.failures.values())),
    )


def _ms(latency: Latency | None, which: str) -> str:
    return "" if latency is None else f"{getattr(latency, which):.0f}"


def _summary(found: SetResult) -> str:
    kinds = [query.kind for query in found.answers[0].queries]
    answerable = kinds.count("answerable")
    parts = [f"{printable(found.name)}: {counted(answerable, 'question')}"]
    if answerable < len(kinds):
        parts.append(f"{len(kinds) - answerable:,} that nothing answers")
    if found.indexing is not None:
        parts.append(f"{counted(found.indexing.passages, 'passage')}, {found.indexing.embedded:,} newly embedded")
    return " · ".join(parts) + " · below each mean its 95 % interval, and of how many answers it is the mean"


def _lines(report: Report) -> Iterator[list[str]]:
    measures = list(dict.fromkeys(name for found in report.sets for name in _measures(found)))
    figures = ["median_ms", "p95_ms", "first_piece_ms", "usd_per_1000", "tokens_in", "tokens_out", "failures"]
    heading = ["set", "mode", "generator", *(part for name in measures for part in (name, "low", "high", "answers"))]
    yield [*heading, *figures]
    for found in report.sets:
        for one in found.answers:
            cells: list[str] = []
            for name in measures:
                estimate = one.estimates.get(name)
                cells += (
                    ["", "", "", "0"]
                    if estimate is None
                    else [f"{estimate.mean:.4f}", f"{estimate.low:.4f}", f"{estimate.high:.4f}", str(estimate.answers)]
                )
            yield [printable(found.name), one.mode, one.generator, *cells, *_figures(one)]

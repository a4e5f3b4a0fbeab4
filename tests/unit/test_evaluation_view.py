"""What the terminal shows of an evaluation, and what a pipe gets."""

from __future__ import annotations

import io

import pytest
from rich.console import Console

from cicada_cli.evaluate_view import notes_of, show_comparison, show_report
from cicada_evaluation.compare import compare
from cicada_evaluation.report import Report
from tests.support.judged_sets import make_report


def on_a_terminal() -> Console:
    return Console(file=io.StringIO(), force_terminal=True, width=140, color_system=None)


def shown(console: Console) -> str:
    assert isinstance(console.file, io.StringIO)
    return console.file.getvalue()


def changed(report: Report, **fields: object) -> Report:
    """The report with other fields in its first set."""
    first, *others = report.sets
    return report.model_copy(update={"sets": (first.model_copy(update=fields), *others)})


def test_a_terminal_gets_a_table_with_intervals_and_the_mean_over_sets() -> None:
    out = on_a_terminal()
    show_report(make_report({"fog": {"hybrid": [0.5], "dense": [0.3]}, "rain": {"hybrid": [0.7]}}), out)
    lines = shown(out).splitlines()
    assert "ndcg@10" in lines[0]
    assert lines[1].split()[:3] == ["fog", "hybrid", "0.500"]
    assert lines[2].split()[0] == "0.450–0.550"
    (mean,) = (line.split() for line in lines if line.startswith("mean"))
    assert mean == ["mean", "hybrid", "0.600"]  # dense was not tried on every set


def test_one_set_has_no_mean_over_sets() -> None:
    out = on_a_terminal()
    show_report(make_report({"fog": {"hybrid": [0.5]}}), out)
    assert "mean" not in shown(out).split("\n", 1)[0]
    assert not any(line.startswith("mean") for line in shown(out).splitlines())


def test_a_pipe_gets_a_line_a_mode(capsys: pytest.CaptureFixture[str]) -> None:
    show_report(make_report({"fog": {"hybrid": [0.5], "dense": [0.3]}}), Console(file=io.StringIO()))
    rows = [line.split("\t") for line in capsys.readouterr().out.splitlines()]
    assert rows[0] == ["set", "mode", "ndcg@10", "low", "high", "median_ms", "p95_ms", "usd"]
    assert rows[1] == ["fog", "hybrid", "0.5000", "0.4500", "0.5500", "2.0", "5.0", "0.0000"]
    assert len(rows) == 3


def test_names_from_files_can_do_nothing_to_a_terminal(capsys: pytest.CaptureFixture[str]) -> None:
    report = make_report({"\x1b[31mfog": {"hybrid": [0.5]}})
    out = on_a_terminal()
    show_report(report, out)
    show_report(report, Console(file=io.StringIO()))
    assert "\x1b[31m" not in shown(out) + capsys.readouterr().out


def test_a_comparison_shows_where_it_goes_and_how_sure_that_is() -> None:
    comparison = compare(make_report({"fog": {"hybrid": [0.2] * 12}}), make_report({"fog": {"kendra": [0.4] * 12}}))
    out = on_a_terminal()
    show_comparison(comparison, out)
    (row,) = shown(out).splitlines()[1:]
    assert "hybrid → kendra" in row
    assert "+0.2000" in row
    assert "12 / 0 / 12" in row


def test_what_a_reader_should_know_is_told() -> None:
    report = changed(make_report({"fog": {"hybrid": [0.5]}}), left_out=2, notes=("3 empty documents",))
    (mode,) = report.sets[0].modes
    report = changed(report, modes=(mode.model_copy(update={"degraded": {"partial_index": 1}}),))
    assert list(notes_of(report)) == [
        "fog: 2 queries without judgements left out",
        "fog: 3 empty documents",
        "fog/hybrid: 1 search with partial_index",
    ]

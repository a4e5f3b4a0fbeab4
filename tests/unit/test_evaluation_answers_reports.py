"""Reports of answers are compared question by question, held against gates, shown and drawn."""

from __future__ import annotations

import io
from collections.abc import Mapping, Sequence
from pathlib import Path

import pytest
from rich.console import Console

from cicada_cli.answers_view import answers_notes, show_answers
from cicada_evaluation.answers.scoring import JUDGED_MEASURES, MEASURES
from cicada_evaluation.chart import chart
from cicada_evaluation.compare import compare, compare_modes
from cicada_evaluation.gate import GateCondition, missed, missed_against, parse_gate
from cicada_evaluation.report import (
    AnswerEstimate,
    AnswerResult,
    AnswersCost,
    AnswersResult,
    JudgeUse,
    Latency,
    Report,
    read_report,
    write_report,
)
from tests.support.judged_sets import make_report

NOVA, GROQ = "amazon.nova-lite-v1:0", "groq/openai/gpt-oss-20b"
Values = Sequence[Mapping[str, float]]


def make_answers(answers: Mapping[str, Values], **changes: object) -> Report:
    """A report of one set's answers, a mapping of values a question: by generator."""
    (found,) = make_report({"fog": {"hybrid": [0.5]}}).sets
    results = tuple(answers_of(generator, values, **changes) for generator, values in answers.items())
    report = make_report({"fog": {"hybrid": [0.5]}})
    return report.model_copy(update={"sets": (found.model_copy(update={"modes": (), "answers": results}),)})


def answers_of(generator: str, values: Values, **changes: object) -> AnswersResult:
    names = list(dict.fromkeys(name for of_question in values for name in of_question))
    estimates = {}
    for name in names:
        told = [of_question[name] for of_question in values if name in of_question]
        mean = sum(told) / len(told)
        estimates[name] = AnswerEstimate(mean=mean, low=mean, high=mean, answers=len(told))
    result = AnswersResult(
        mode="hybrid",
        generator=generator,
        engine="shards",
        index_version="v1",
        estimates=estimates,
        search=Latency(median_ms=2, p95_ms=5),
        first_piece=Latency(median_ms=300, p95_ms=500),
        answer=Latency(median_ms=900, p95_ms=2000),
        cost=AnswersCost(
            usd=0.01, usd_per_answer=0.005, unknown=0, input_tokens_per_answer=900, output_tokens_per_answer=80
        ),
        judge=None,
        degraded={},
        failures={},
        not_attributed=0,
        nothing_relevant=0,
        queries=tuple(
            AnswerResult(
                id=f"q{number}",
                kind="answerable",
                question="Where?",
                answer="There [1].",
                values=dict(of_question),
                usd=0.005,
                input_tokens=900,
                output_tokens=80,
            )
            for number, of_question in enumerate(values)
        ),
    )
    return result.model_copy(update=changes)


def precision(*values: float) -> Values:
    return [{"citation_precision": value} for value in values]


def test_a_report_of_answers_reads_back_as_it_was_written(tmp_path: Path) -> None:
    report = make_answers({NOVA: precision(1, 0.5)})
    write_report(report, tmp_path / "run.json")
    assert read_report(tmp_path / "run.json") == report


def test_two_generators_of_one_run_are_compared_by_the_answers_that_both_have_a_value_of() -> None:
    report = make_answers({NOVA: precision(1, 0.5, 0.5), GROQ: [*precision(1, 1), {"attributed": 0}]})
    (row,) = compare_modes(report).rows
    assert (row.first, row.second) == (f"hybrid+{NOVA}", f"hybrid+{GROQ}")
    assert (row.measure, row.queries, row.wins, row.losses) == ("citation_precision", 2, 1, 0)
    assert (row.first_mean, row.second_mean) == (0.75, 1.0)


def test_two_runs_are_compared_generator_by_generator() -> None:
    before = make_answers({NOVA: precision(0.5, 0.5), GROQ: precision(1, 1)})
    after = make_answers({NOVA: precision(1, 0.5), GROQ: precision(1, 1)})
    rows = {row.second: row for row in compare(before, after).rows}
    assert rows[f"hybrid+{NOVA}"].difference.interval.mean == 0.25
    assert rows[f"hybrid+{GROQ}"].difference.interval.mean == 0


def test_a_question_that_was_worded_otherwise_is_another_one() -> None:
    before, after = make_answers({NOVA: precision(1, 1)}), make_answers({NOVA: precision(1, 1)})
    (found,) = after.sets
    (answers,) = found.answers
    queries = (answers.queries[0].model_copy(update={"question": "When?"}), answers.queries[1])
    changed = found.model_copy(update={"answers": (answers.model_copy(update={"queries": queries}),)})
    (row,) = compare(before, after.model_copy(update={"sets": (changed,)})).rows
    assert row.queries == 1


@pytest.mark.parametrize(
    ("text", "mode", "set_name"),
    [
        ("refusal>=0.9", None, None),
        ("hybrid:refusal>=0.9", "hybrid", None),
        (f"hybrid+{NOVA}:refusal>=0.9", f"hybrid+{NOVA}", None),
        (f"hybrid+{GROQ}:refusal>=0.9", f"hybrid+{GROQ}", None),
        (f"fog/hybrid+{GROQ}:refusal>=0.9", f"hybrid+{GROQ}", "fog"),
    ],
)
def test_a_condition_can_name_a_generator(text: str, mode: str | None, set_name: str | None) -> None:
    assert parse_gate(text) == (GateCondition("refusal", ">=", 0.9, mode, set_name),)
    assert str(parse_gate(text)[0]) == text


def test_a_gate_holds_for_every_generator_unless_it_names_one() -> None:
    report = make_answers({NOVA: precision(1.0), GROQ: precision(0.9)})
    assert missed(report, parse_gate("citation_precision>=0.95")) == [
        f"fog/hybrid+{GROQ}: citation_precision is 0.9000 (citation_precision>=0.95)"
    ]
    assert missed(report, parse_gate("hybrid:citation_precision>=0.95")) != []
    assert missed(report, parse_gate(f"hybrid+{NOVA}:citation_precision>=0.95")) == []
    assert len(missed(report, parse_gate("rerank:citation_precision>=0.1"))) == 1


def test_a_gate_bounds_latency_cost_and_failures() -> None:
    report = make_answers({NOVA: precision(1.0)}, failures={"model_busy": 2}, not_attributed=3)
    held = "answer_p95_ms<=2000,first_piece_median_ms<=300,usd_per_answer<=0.005,failures<=2,not_attributed<=3"
    assert missed(report, parse_gate(held)) == []
    assert len(missed(report, parse_gate("answer_p95_ms<=1999,usd_per_answer<=0.004,failures<=1"))) == 3


def test_a_measure_that_says_nothing_of_any_answer_misses_its_gate() -> None:
    report = make_answers({NOVA: [{"attributed": 0}]}, answer=None)
    assert missed(report, parse_gate("citation_precision>=0.1,answer_p95_ms<=9")) == [
        f"fog/hybrid+{NOVA}: citation_precision was not measured (citation_precision>=0.1)",
        f"fog/hybrid+{NOVA}: answer_p95_ms was not measured (answer_p95_ms<=9)",
    ]


def test_a_run_that_cites_nothing_any_more_is_worse_than_an_earlier_one() -> None:
    before = make_answers({NOVA: [{"citation_precision": 1.0, "attributed": 1.0}]})
    after = make_answers({NOVA: [{"attributed": 1.0}]})
    (line,) = missed_against(after, before, 0.01)
    assert line == f"fog/hybrid+{NOVA}: citation_precision was not measured, and the earlier report has it"
    assert missed_against(before, before, 0.0) == []
    worse = make_answers({NOVA: [{"citation_precision": 0.9, "attributed": 1.0}]})
    assert len(missed_against(worse, before, 0.01)) == 1


def shown(report: Report) -> str:
    out = Console(file=io.StringIO(), force_terminal=True, width=140, color_system=None)
    show_answers(report, out)
    assert isinstance(out.file, io.StringIO)
    return out.file.getvalue()


def test_a_terminal_gets_a_column_a_generator() -> None:
    lines = shown(make_answers({NOVA: precision(1, 0.5), GROQ: [{"attributed": 1.0}]})).splitlines()
    assert lines[0].split() == ["hybrid", "hybrid"]
    assert lines[1].split() == ["fog", NOVA, GROQ]
    assert lines[2].split() == ["citation_precision", "0.750"]
    assert lines[3].strip() == "0.750–0.750 of 2"
    (dollars,) = (line.split() for line in lines if line.startswith("$/1,000"))
    assert dollars == ["$/1,000", "5.0000", "5.0000"]


def test_a_pipe_gets_a_line_a_generator(capsys: pytest.CaptureFixture[str]) -> None:
    show_answers(make_answers({NOVA: precision(1, 0.5), GROQ: [{"attributed": 1.0}]}), Console(file=io.StringIO()))
    heading, *rows = (line.split("\t") for line in capsys.readouterr().out.splitlines())
    told = [dict(zip(heading, row, strict=True)) for row in rows]
    assert [one["generator"] for one in told] == [NOVA, GROQ]
    assert [one["citation_precision"] for one in told] == ["0.7500", ""]
    assert [one["usd_per_1000"] for one in told] == ["5.0000", "5.0000"]


def test_what_a_reader_should_know_is_told() -> None:
    judge = JudgeUse(model_id=NOVA, calls=2, input_tokens=9, output_tokens=9, usd=None, failures={"model_busy": 1})
    notes = "\n".join(
        answers_notes(
            make_answers(
                {NOVA: precision(1)},
                failures={"model_refused": 2},
                degraded={"words_only": 1},
                nothing_relevant=4,
                not_attributed=5,
                judge=judge,
            )
        )
    )
    for told in (
        "2 questions without an answer: model_refused",
        "1 search with words_only",
        "4 prompts had nothing in it",
        "5 answers without a marker",
        "judged with 2 calls, cost unknown",
        "1 answer not judged: model_busy",
        "the judge wrote these answers itself",
    ):
        assert told in notes


def test_answers_are_drawn_as_modes_are() -> None:
    drawn = chart(make_answers({NOVA: precision(1, 0.5), GROQ: precision(1)}))
    assert "<title>Answers by " in drawn
    assert f"fog, hybrid+{GROQ}: citation_precision 1.000" in drawn


def test_every_measure_is_on_the_page() -> None:
    page = (Path(__file__).resolve().parents[2] / "docs" / "evaluation.md").read_text(encoding="utf-8")
    for measure in MEASURES:
        assert f"| `{measure}` |" in page
    for measure in JUDGED_MEASURES:
        assert measure.removeprefix("judge_") in page

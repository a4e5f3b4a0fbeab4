"""Reports are written and read back, compared query by query, and held against gates."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from cicada_evaluation.compare import compare, compare_modes
from cicada_evaluation.errors import EvaluationRefused
from cicada_evaluation.gate import GateCondition, missed, missed_against, parse_gate
from cicada_evaluation.report import read_report, write_report
from tests.support.judged_sets import make_report

# --- the document ---


def test_a_report_reads_back_as_it_was_written(tmp_path: Path) -> None:
    report = make_report({"fog": {"hybrid": [0.5, 1 / 3], "dense": [0.1, 0.2]}})
    write_report(report, tmp_path / "run.json")
    assert read_report(tmp_path / "run.json") == report


def test_a_report_is_camel_case_and_names_its_format(tmp_path: Path) -> None:
    write_report(make_report({"fog": {"hybrid": [0.5]}}), tmp_path / "run.json")
    written = json.loads((tmp_path / "run.json").read_text())
    assert written["format"] == "cicada-eval/1"
    assert written["sets"][0]["modes"][0]["queries"][0] == {
        "id": "q0",
        "values": {"ndcg@10": 0.5},
        "searchMs": 2.0,
        "top": ["d1"],
    }


def test_another_document_is_refused_by_name(tmp_path: Path) -> None:
    other = tmp_path / "other.json"
    other.write_text('{"format": "something else"}')
    with pytest.raises(EvaluationRefused, match=r"other\.json: is no report of `cicada eval --json`: format"):
        read_report(other)
    with pytest.raises(EvaluationRefused, match="cannot be read"):
        read_report(tmp_path / "nowhere.json")
    with pytest.raises(EvaluationRefused, match="cannot be written"):
        write_report(make_report({"fog": {"hybrid": [0.5]}}), tmp_path / "no" / "folder.json")


# --- comparing ---


def test_two_runs_are_compared_query_by_query() -> None:
    first = make_report({"fog": {"hybrid": [0.2, 0.5, 0.9, 0.4]}})
    second = make_report({"fog": {"hybrid": [0.4, 0.5, 0.8, 0.9]}})
    (row,) = compare(first, second).rows
    assert (row.set_name, row.first, row.second, row.measure) == ("fog", "hybrid", "hybrid", "ndcg@10")
    assert (row.first_mean, row.second_mean) == pytest.approx((0.5, 0.65))
    assert row.difference.interval.mean == pytest.approx(0.15)
    assert (row.wins, row.losses, row.queries) == (2, 1, 4)
    assert row.difference.interval.low < 0.15 < row.difference.interval.high


def test_each_mode_is_compared_with_itself() -> None:
    first = make_report({"fog": {"hybrid": [0.2], "dense": [0.1]}})
    second = make_report({"fog": {"dense": [0.3], "hybrid": [0.4], "kendra": [0.5]}})
    assert [(row.first, row.second) for row in compare(first, second).rows] == [
        ("dense", "dense"),
        ("hybrid", "hybrid"),
    ]


def test_single_modes_are_compared_whatever_they_are() -> None:
    (row,) = compare(make_report({"fog": {"hybrid": [0.2]}}), make_report({"fog": {"kendra": [0.4]}})).rows
    assert (row.first, row.second) == ("hybrid", "kendra")


def test_modes_of_one_report_are_compared_with_the_first() -> None:
    rows = compare_modes(make_report({"fog": {"hybrid": [0.2], "dense": [0.1], "keyword": [0.3]}})).rows
    assert [(row.first, row.second) for row in rows] == [("hybrid", "dense"), ("hybrid", "keyword")]


def test_only_common_queries_count_and_the_reader_is_told() -> None:
    first = make_report({"fog": {"hybrid": [0.2, 0.4]}}, digest="one")
    second = make_report({"fog": {"hybrid": [0.3, 0.5, 1.0]}}, digest="other")
    found = compare(first, second)
    assert found.rows[0].queries == 2
    assert found.rows[0].second_mean == pytest.approx(0.4)
    assert "queries or judgements are not the same" in found.notes[0]


def test_nothing_in_common_is_told() -> None:
    with pytest.raises(EvaluationRefused, match="in common"):
        compare(make_report({"fog": {"hybrid": [0.2]}}), make_report({"rain": {"hybrid": [0.2]}}))
    with pytest.raises(EvaluationRefused, match="one mode only"):
        compare_modes(make_report({"fog": {"hybrid": [0.2]}}))


# --- gates ---


def test_conditions_are_read_from_text_and_from_files(tmp_path: Path) -> None:
    expected = (
        GateCondition("ndcg@10", ">=", 0.4),
        GateCondition("recall@100", ">=", 0.9, mode="hybrid"),
        GateCondition("search_p95_ms", "<=", 20, mode="hybrid", set_name="fog"),
    )
    text = "ndcg@10>=0.40, hybrid:recall@100 >= .9,fog/hybrid:search_p95_ms<=20"
    assert parse_gate(text) == expected
    file = tmp_path / "gate.txt"
    file.write_text("# what must hold\n" + text.replace(",", "\n") + "  # fast\n")
    assert parse_gate(f"@{file}") == expected
    assert parse_gate(",".join(map(str, expected))) == expected


@pytest.mark.parametrize("text", ["ndcg@10", "ndcg@10>0.4", "ndcg@10>=high", ">=0.4", "a/b/c:x>=1"])
def test_a_condition_that_means_nothing_is_refused(text: str) -> None:
    with pytest.raises(EvaluationRefused, match="is no condition"):
        parse_gate(text)


def test_an_empty_gate_is_refused(tmp_path: Path) -> None:
    file = tmp_path / "gate.txt"
    file.write_text("# nothing\n")
    with pytest.raises(EvaluationRefused, match="holds no condition"):
        parse_gate(f"@{file}")
    with pytest.raises(EvaluationRefused, match="cannot be read"):
        parse_gate(f"@{tmp_path / 'nowhere.txt'}")


def test_a_condition_holds_for_every_mode_unless_it_names_one() -> None:
    report = make_report({"fog": {"hybrid": [0.5], "dense": [0.3]}})
    assert missed(report, parse_gate("ndcg@10>=0.4")) == ["fog/dense: ndcg@10 is 0.3000 (ndcg@10>=0.4)"]
    assert missed(report, parse_gate("hybrid:ndcg@10>=0.4")) == []
    assert missed(report, parse_gate("ndcg@10>=0.3")) == []


def test_latency_and_cost_can_be_bounded() -> None:
    report = make_report({"fog": {"hybrid": [0.5]}})
    assert missed(report, parse_gate("search_p95_ms<=5,search_median_ms<=2,usd_per_1000_queries<=0")) == []
    assert missed(report, parse_gate("search_p95_ms<=4"))


def test_a_condition_on_what_was_not_measured_is_missed() -> None:
    report = make_report({"fog": {"hybrid": [0.5]}})
    assert "was not measured" in missed(report, parse_gate("recall@7>=0"))[0]
    assert "nothing was measured" in missed(report, parse_gate("kendra:ndcg@10>=0"))[0]
    assert "nothing was measured" in missed(report, parse_gate("rain/hybrid:ndcg@10>=0"))[0]


def test_a_run_may_be_worse_than_its_base_by_the_tolerance_only() -> None:
    base = make_report({"fog": {"hybrid": [0.5]}})
    assert missed_against(make_report({"fog": {"hybrid": [0.495]}}), base, 0.01) == []
    (line,) = missed_against(make_report({"fog": {"hybrid": [0.48]}}), base, 0.01)
    assert line == "fog/hybrid: ndcg@10 is 0.4800, more than 0.01 below the earlier 0.5000"


def test_a_base_that_cannot_be_compared_with_is_no_pass() -> None:
    run = make_report({"fog": {"hybrid": [0.5]}})
    assert "does not have this set" in missed_against(run, make_report({"rain": {"hybrid": [0.1]}}), 0.01)[0]
    assert "does not have this mode" in missed_against(run, make_report({"fog": {"dense": [0.1]}}), 0.01)[0]
    other = make_report({"fog": {"hybrid": [0.1]}}, digest="other")
    assert "other queries or judgements" in missed_against(run, other, 0.01)[0]

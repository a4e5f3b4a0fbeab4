"""The chart is well-formed, and its bars are as high as the measures."""

from __future__ import annotations

from pathlib import Path
from xml.etree import ElementTree

import pytest

from cicada_evaluation.chart import PLOT_HEIGHT, chart, write_chart
from cicada_evaluation.errors import EvaluationRefused
from tests.support.judged_sets import make_report

SVG = "{http://www.w3.org/2000/svg}"


def bars(root: ElementTree.Element) -> dict[str, ElementTree.Element]:
    """The bars, by what they say of themselves."""
    found = {}
    for group in root.iter(f"{SVG}g"):
        title, bar = group.find(f"{SVG}title"), group.find(f"{SVG}rect")
        if title is not None and bar is not None:
            found[title.text or ""] = bar
    return found


def test_every_mode_of_every_set_has_a_bar_of_its_height() -> None:
    report = make_report({"fog": {"hybrid": [0.5], "dense": [0.25]}, "rain": {"hybrid": [1.0]}})
    found = bars(ElementTree.fromstring(chart(report)))
    assert {told: float(bar.attrib["height"]) for told, bar in found.items()} == pytest.approx(
        {
            "fog, hybrid: ndcg@10 0.500 [0.450, 0.550]": PLOT_HEIGHT * 0.5,
            "fog, dense: ndcg@10 0.250 [0.200, 0.300]": PLOT_HEIGHT * 0.25,
            "rain, hybrid: ndcg@10 1.000 [0.950, 1.000]": PLOT_HEIGHT,
        }
    )


def test_a_mode_has_one_colour_and_modes_have_different_ones() -> None:
    report = make_report({"fog": {"hybrid": [0.5], "dense": [0.25]}, "rain": {"hybrid": [1.0]}})
    colours = {told: bar.attrib["fill"] for told, bar in bars(ElementTree.fromstring(chart(report))).items()}
    assert len({colour for told, colour in colours.items() if "hybrid" in told}) == 1
    assert len(set(colours.values())) == 2


def test_everything_is_within_the_drawing() -> None:
    root = ElementTree.fromstring(chart(make_report({"a set with quite a long name": {"hybrid": [0.5]}})))
    width = float(root.attrib["width"])
    assert all(float(bar.attrib["x"]) + float(bar.attrib["width"]) <= width for bar in bars(root).values())


def test_names_cannot_break_the_drawing() -> None:
    root = ElementTree.fromstring(chart(make_report({"<script>&": {"hybrid": [0.5]}})))
    assert not list(root.iter(f"{SVG}script"))


def test_a_chart_that_cannot_be_written_is_told(tmp_path: Path) -> None:
    report = make_report({"fog": {"hybrid": [0.5]}})
    write_chart(report, tmp_path / "chart.svg")
    assert (tmp_path / "chart.svg").read_text() == chart(report)
    with pytest.raises(EvaluationRefused, match="cannot be written"):
        write_chart(report, tmp_path / "no" / "chart.svg")

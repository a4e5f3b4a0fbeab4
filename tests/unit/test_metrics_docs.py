"""The catalogue of metrics: what functions report of it, and how the documentation tells it."""

from __future__ import annotations

import re
from pathlib import Path

from cicada import metrics
from cicada.metrics import CATALOGUE, Metric

ROOT = Path(__file__).resolve().parents[2]
OPERATIONS = ROOT / "docs" / "operations.md"
MOST_EVERYDAY = 10
"""Metrics of one's own that CloudWatch does not bill."""


def test_every_metric_is_documented_as_the_catalogue_has_it_and_no_other() -> None:
    section = OPERATIONS.read_text(encoding="utf-8").partition("\n## Metrics\n")[2]
    rows = re.findall(r"^\| `(\w+)` \| (\w+) \| (.+) \| (.+) \|$", section.partition("\n## ")[0], re.MULTILINE)
    assert rows == [
        (one.name, one.unit, one.tells, "always" if one.everyday else "when it happens") for one in CATALOGUE
    ]


def test_the_catalogue_holds_every_metric_once() -> None:
    defined = {name: one for name, one in vars(metrics).items() if isinstance(one, Metric)}
    assert sorted(one.name for one in CATALOGUE) == sorted({one.name for one in defined.values()})
    assert len({one.name for one in CATALOGUE}) == len(CATALOGUE)


def test_every_metric_is_reported_by_a_function() -> None:
    sources = "\n".join(path.read_text(encoding="utf-8") for path in (ROOT / "lambdas").rglob("*.py"))
    defined = {name for name, one in vars(metrics).items() if isinstance(one, Metric)}
    assert {name for name in defined if re.search(rf"\b{name}: ", sources)} == defined


def test_ordinary_running_costs_no_metric() -> None:
    assert sum(one.everyday for one in CATALOGUE) <= MOST_EVERYDAY

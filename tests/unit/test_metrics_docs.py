"""The table of metrics in the documentation names all that the functions report, with their dimensions."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
SECTION = (ROOT / "docs" / "troubleshooting.md").read_text(encoding="utf-8").partition("\n## Metrics\n")[2]
Metric = tuple[str, str]
"""Its name, and the dimension beside the service's; blank where it has none."""


def documented() -> Iterator[Metric]:
    table = SECTION.partition("\n## ")[0]
    for names, dimension in re.findall(r"^\| (`.+?) \| .+ \|(.*)\|$", table, re.MULTILINE):
        for name in re.findall(r"`(\w+)`", names):
            yield name, dimension.strip().strip("`")


def reported() -> Iterator[Metric]:
    for path in sorted((ROOT / "lambdas").rglob("*.py")):
        calls = [node for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))) if isinstance(node, ast.Call)]
        of_all = next((text for call in calls_of(calls, "add_dimension") for text in texts(call)), "")
        for call in calls_of(calls, "log_metrics"):
            if any(word.arg == "capture_cold_start_metric" for word in call.keywords):
                yield "ColdStart", "function_name"
        for call in calls_of(calls, "add_metric"):
            assert texts(call), f"{path}:{call.lineno} reports a metric whose name is not told there"
            for name in texts(call):
                yield name, of_all
        for call in (*calls_of(calls, "_count"), *calls_of(calls, "single_metric")):
            for name in texts(call):
                yield name, next((word.arg for word in call.keywords if word.arg and word.arg[0].isupper()), "")


def calls_of(calls: list[ast.Call], name: str) -> list[ast.Call]:
    return [call for call in calls if getattr(call.func, "attr", getattr(call.func, "id", "")) == name]


def texts(call: ast.Call) -> list[str]:
    """The names that a call gives; of a choice between two, both."""
    named = next((word.value for word in call.keywords if word.arg == "name"), None) or next(iter(call.args))
    given = [named.body, named.orelse] if isinstance(named, ast.IfExp) else [named]
    return [str(one.value) for one in given if isinstance(one, ast.Constant)]


def test_every_metric_is_documented_and_no_other() -> None:
    told = list(documented())
    assert len(told) == len(set(told))
    assert set(told) == set(reported())

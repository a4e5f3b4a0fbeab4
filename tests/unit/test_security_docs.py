"""docs/security-controls.md names tests that exist, and leaves no threat without a word."""

from __future__ import annotations

import ast
import re
from functools import cache
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
PAGE = (ROOT / "docs" / "security-controls.md").read_text(encoding="utf-8")
NAMED = sorted(set(re.findall(r"`(tests/[\w/]+\.py)::(\w+)`", PAGE)))
PLACES = sorted(set(re.findall(r"`((?:layers|lambdas|packages|stacks|web|cicada_\w+|supply_chain)/[\w./-]+)`", PAGE)))
ROWS = [line for line in PAGE.splitlines() if line.startswith("| ") and not re.match(r"\| (threat|risk|---)", line)]


@cache
def names_in(path: str) -> frozenset[str]:
    tree = ast.parse((ROOT / path).read_text(encoding="utf-8"))
    return frozenset(node.name for node in ast.walk(tree) if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef))


@pytest.mark.parametrize(("path", "name"), NAMED)
def test_every_named_test_exists(path: str, name: str) -> None:
    assert name in names_in(path)


@pytest.mark.parametrize("place", PLACES)
def test_every_named_place_exists(place: str) -> None:
    assert (ROOT / place).exists()


def test_every_threat_has_a_test_or_says_that_there_is_no_control() -> None:
    assert len(NAMED) > 50
    for row in ROWS:
        *_, last = (cell.strip() for cell in row.strip("| ").split(" | "))
        assert "tests/" in row or last == "none", row
        if last == "none":
            assert "no control" in row.lower(), row

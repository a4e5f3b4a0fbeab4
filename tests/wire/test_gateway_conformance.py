"""The conformance lists of the gateway, of the Lambda service and of CloudWatch: each line is kept by a test."""

import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]


@pytest.mark.parametrize(
    ("part", "files"), [("gateway", "gateway"), ("functions", "functions"), ("cloudwatch", "[cfg]")]
)
def test_every_line_of_a_conformance_list_names_its_tests(part: str, files: str) -> None:
    promised = (ROOT / "cicada_local" / part / "CONFORMANCE.md").read_text().split("## Known deviations")[0]
    lines = [line for line in promised.splitlines() if line.startswith("| ")]
    rows = [line for line in lines if not line.startswith(("| ---", "| what "))]
    tests = {name for file in (ROOT / "tests").glob(f"*/test_{files}*.py") for name in _tests_of(file)}
    assert len(rows) > 20
    assert [row for row in rows if not re.search(r"`test_\w+`", row)] == []
    assert [name for name in re.findall(r"`(test_\w+)`", promised) if name not in tests] == []


def _tests_of(file: Path) -> list[str]:
    return re.findall(r"^def (test_\w+)", file.read_text(), re.MULTILINE)

"""Decision records are numbered without a gap, each by its own number."""

from __future__ import annotations

import re
from pathlib import Path

RECORDS = sorted((Path(__file__).resolve().parents[2] / "docs" / "decisions").glob("*.md"))


def test_each_record_has_a_number_of_its_own_and_none_is_left_out():
    assert [int(path.name[:4]) for path in RECORDS] == list(range(1, len(RECORDS) + 1))


def test_a_number_in_a_heading_is_the_files():
    headings = {path.name: path.read_text(encoding="utf-8").partition("\n")[0] for path in RECORDS}
    told = {name: re.match(r"# (\d{4}): ", heading) for name, heading in headings.items()}
    assert not [name for name, number in told.items() if number is not None and number[1] != name[:4]]

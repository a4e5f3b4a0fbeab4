"""No page suggests that a label of documents separates anybody from anybody."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
PAGES = [*sorted((ROOT / "docs").glob("*.md")), *sorted((ROOT / "docs" / "functions").glob("*.json"))]
SEPARATING = re.compile(r"tenant|belongs? to nobody else|protect|secret|private", re.IGNORECASE)


@pytest.mark.parametrize("page", PAGES, ids=lambda path: path.name)
def test_a_workflow_id_is_called_a_label_and_never_a_tenant(page):
    for line in page.read_text(encoding="utf-8").splitlines():
        if re.search("workflow.id", line, re.IGNORECASE):
            assert not SEPARATING.search(line), line

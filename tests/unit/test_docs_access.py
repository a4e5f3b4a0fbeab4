"""No page suggests that a label of documents separates anybody from anybody."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
PAGES = [
    *sorted((ROOT / "docs").glob("**/*.md")),
    *sorted((ROOT / "docs" / "functions").glob("*.json")),
    *(ROOT / name for name in ("README.md", "cicada_client/README.md", "web/README.md")),
]
SEPARATING = re.compile(
    r"tenant|belongs? to (nobody|none|another|it)|(of|for) another workflow|another workflow's|whose a document is"
    r"|protects (?!no)|secret|private|nothing is told",
    re.IGNORECASE,
)
LABELS = re.compile("workflow.id|metadata.workflow|another workflow", re.IGNORECASE)


@pytest.mark.parametrize("page", PAGES, ids=lambda path: path.relative_to(ROOT).as_posix())
def test_a_workflow_id_is_called_a_label_and_never_a_tenant(page):
    for paragraph in re.split(r"\n\s*\n", page.read_text(encoding="utf-8")):
        if LABELS.search(paragraph):
            assert not SEPARATING.search(paragraph), paragraph


@pytest.mark.parametrize("name", ["uploads.md", "functions.md", "retrieval.md", "cli.md"])
def test_the_pages_that_explain_it_say_that_it_is_no_access_control(name):
    page = (ROOT / "docs" / name).read_text(encoding="utf-8")
    assert any("no access control" in part for part in page.split("\n\n") if LABELS.search(part.replace("-", "_")))


def test_no_message_or_docstring_says_that_a_workflow_owns_a_document():
    library = ROOT / "layers" / "cicada" / "python" / "cicada"
    told = re.compile("(of|for) another workflow|another workflow's|tenant or workflow", re.IGNORECASE)
    assert [path for path in library.rglob("*.py") if told.search(path.read_text(encoding="utf-8"))] == []

"""Links between the project's pages lead to files, and to headings that are there."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
FOLDERS = ("docs", "cicada_client", "cicada_local", "packages", "web", "samples", "benchmarks")
PAGES = [ROOT / "README.md", ROOT / "CHANGELOG.md", *sorted(p for name in FOLDERS for p in (ROOT / name).rglob("*.md"))]
_FENCED = re.compile(r"^```.*?^```", re.MULTILINE | re.DOTALL)


def anchor(heading: str) -> str:
    """The anchor that GitHub gives a heading."""
    words = re.sub(r"\[([^\]]*)\]\([^)]*\)", r"\1", heading.strip().lower())
    return re.sub(r"[^\w\- ]", "", words).replace(" ", "-")


def anchors(page: Path) -> set[str]:
    """The anchors of a page."""
    text = _FENCED.sub("", page.read_text(encoding="utf-8"))
    return {anchor(heading) for heading in re.findall(r"^#+ (.*)$", text, re.MULTILINE)}


def broken(page: Path) -> Iterator[str]:
    """The links of a page that lead nowhere."""
    for link in re.findall(r"\]\(([^)\s]+)\)", _FENCED.sub("", page.read_text(encoding="utf-8"))):
        path, _, heading = link.partition("#")
        target = page.parent / path if path else page
        if "://" in link or link.startswith("mailto:"):
            continue
        if not target.exists() or (heading and target.suffix == ".md" and heading not in anchors(target)):
            yield f"{page.relative_to(ROOT)}: {link}"


def test_every_link_leads_somewhere() -> None:
    assert [link for page in PAGES for link in broken(page)] == []
    assert len(PAGES) > 90

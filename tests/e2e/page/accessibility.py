"""The accessibility checker axe, run on the page as it is shown.

axe-core: https://github.com/dequelabs/axe-core. Its rules for WCAG 2.2 A and AA, and its best practices.
"""

from __future__ import annotations

import json
from functools import cache
from pathlib import Path

from tests.e2e.page.browser import Page

_AXE = Path(__file__).resolve().parents[3] / "node_modules" / "axe-core" / "axe.min.js"
_TAGS = ("wcag2a", "wcag2aa", "wcag21a", "wcag21aa", "wcag22aa", "best-practice")
_RUN = f"""axe.run(document, {{runOnly: {json.dumps(_TAGS)}, resultTypes: ['violations']}}).then(({{violations}}) =>
  violations.flatMap(({{id, help, nodes}}) => nodes.map(({{html, target, any}}) =>
    `${{id}}: ${{help}}: ${{target.join(' ')}}: ${{html.slice(0, 120)}} ${{any.map((one) => one.message)}}`)))"""


@cache
def _axe() -> str:
    return _AXE.read_text(encoding="utf-8")


def findings(page: Page) -> list[str]:
    """What axe finds, a line for each element."""
    if not page.run("'axe' in window"):
        page.run(f"(() => {{ {_axe()} }})()")
    found: list[str] = page.run(_RUN)
    return found


def assert_accessible(page: Page) -> None:
    """Check the page as it is shown now. Raises AssertionError with axe's findings."""
    found = findings(page)
    assert found == [], "\n".join(found)

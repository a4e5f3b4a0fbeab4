"""The site's navigation holds every page of the documentation once, and links that leave it become text."""

from __future__ import annotations

import json
import re
import shlex
from pathlib import Path
from types import SimpleNamespace

from cicada_local.places import DEFAULT_PORT
from docs_site.hooks import on_page_markdown
from tests.template.test_runbooks import can_be_typed

ROOT = Path(__file__).resolve().parents[2]
DOCS = ROOT / "docs"
FAULTS = f"http://localhost:{DEFAULT_PORT}/_cicada/faults"


def test_every_page_is_in_the_navigation_once() -> None:
    navigation = (
        (ROOT / "mkdocs.yml").read_text(encoding="utf-8").partition("\nnav:\n")[2].partition("\nnot_in_nav:")[0]
    )
    named = re.findall(r"([\w/-]+\.md)$", navigation, re.MULTILINE)
    pages = [path.relative_to(DOCS).as_posix() for path in DOCS.rglob("*.md") if path.parent.name != "decisions"]
    assert sorted(named) == sorted(pages)


def test_links_that_leave_the_documentation_become_text() -> None:
    def shown(source: str, text: str) -> str:
        return on_page_markdown(text, page=SimpleNamespace(file=SimpleNamespace(src_uri=source)))

    assert shown("a.md", "see [the page](../web/README.md), [b](b.md)") == "see the page, [b](b.md)"
    assert shown("runbooks/a.md", "[b](../b.md) [c](../../c.py)") == "[b](../b.md) c"
    assert shown("a.md", "```\n[x](../y)\n```") == "```\n[x](../y)\n```"


def test_the_tutorial_has_only_commands_that_can_be_typed() -> None:
    text = (DOCS / "tutorial.md").read_text(encoding="utf-8")
    commands = [line.replace(".venv/bin/", "") for line in re.findall(r"^\$ (.+)$", text, re.MULTILINE)]
    assert len(commands) > 12
    requests = [line for line in commands if line.startswith("curl ")]
    assert [line for line in commands if line not in requests and not can_be_typed(line)] == []
    assert [line for line in requests if not arms_a_fault(line)] == []


def arms_a_fault(line: str) -> bool:
    """Whether a command arms or disarms a fault switch that a stand-in asks for."""
    match shlex.split(line):
        case ["curl", "-X", "PUT", address, "-d", body]:
            path, _, name = address.rpartition("/")
            asked = (source.read_text(encoding="utf-8") for source in (ROOT / "cicada_local").rglob("*.py"))
            return path == FAULTS and json.loads(body)["times"] > 0 and any(f'"{name}"' in text for text in asked)
        case ["curl", "-X", "DELETE", address]:
            return address == FAULTS
        case _:
            return False

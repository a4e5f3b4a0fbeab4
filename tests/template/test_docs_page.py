"""What docs/page.md and the page's own examples show is what there is."""

from __future__ import annotations

import json
import re

from cicada.page.files import IMMUTABLE
from stacks import page
from stacks.context import parse
from stacks.page_headers import WEB
from tests.template.templates import ROOT

PAGE = (ROOT / "docs" / "page.md").read_text(encoding="utf-8")
SCRIPTS = [*WEB.glob("*.js"), *(ROOT / "packages").glob("*/src/*.js"), ROOT / "packages/chat/strings/en.json"]


def test_the_domain_of_the_example_can_be_deployed() -> None:
    (example,) = (json.loads(block) for block in re.findall(r"```json\n(.+?)```", PAGE, re.DOTALL))
    assert parse({"page": example}, source="the page").page.domain_name == example["domainName"]
    assert f"https://{example['domainName']}/" in PAGE


def test_what_the_page_says_is_what_is_explained() -> None:
    told = re.findall(r"^\| \*(?:… )?(.+?)\* \|", PAGE, re.MULTILINE)
    assert len(told) == 11
    scripts = "".join(path.read_text(encoding="utf-8") for path in SCRIPTS)
    for words in told:
        if not re.search(r"[0-9“]", words):  # with an example's figure or name, which the page fills in
            assert words.rstrip(".") in scripts, words


def test_the_figures_are_the_codes() -> None:
    assert "max-age=31536000" in IMMUTABLE
    assert "for a year" in PAGE
    assert "const AHEAD_MS = 300_000;" in (ROOT / "packages/client/src/session.js").read_text(encoding="utf-8")
    assert "five minutes before a token's end" in PAGE
    assert "The price class is 100" in PAGE
    assert page.ERROR_TTL_S == 10


def test_the_example_of_a_configuration_names_what_the_stacks_name() -> None:
    example = json.loads((WEB / "config.example.json").read_text(encoding="utf-8"))
    assert example.keys() == {"webSocketUrl", "signIn", "examples", "episodes"}
    assert example["signIn"].keys() == {"issuer", "clientId", "scopes"}

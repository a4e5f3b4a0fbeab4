"""What docs/sign-in.md shows can be deployed, and its figures are the code's."""

from __future__ import annotations

import json
import re
from typing import Any

import pytest

from cicada import authorization, issuer_keys, revocation
from cicada.subprotocols import BEARER, PROTOCOL
from stacks import sign_in
from stacks.context import parse
from tests.template.templates import ROOT

PAGE = (ROOT / "docs" / "sign-in.md").read_text(encoding="utf-8")
EXAMPLES: list[dict[str, Any]] = [json.loads(block) for block in re.findall(r"```json\n(.+?)```", PAGE, re.DOTALL)]


def test_every_kind_of_issuer_has_an_example() -> None:
    assert len(EXAMPLES) == 5
    assert {example["mode"] for example in EXAMPLES} == {"oidc", "cognito"}


@pytest.mark.parametrize("auth", EXAMPLES, ids=lambda auth: auth.get("issuer", "cognito"))
def test_each_example_can_be_deployed(auth: dict[str, Any]) -> None:
    assert parse({"auth": auth}, source="the page").auth.mode == auth["mode"]


def test_an_issuer_without_a_mode_is_told_what_to_write() -> None:
    with pytest.raises(Exception, match='is for mode "oidc": set auth'):
        parse({"auth": {"issuer": "https://issuer.example.org/", "audience": "cicada"}}, source="old")


def test_the_figures_are_the_codes() -> None:
    assert (issuer_keys.FRESH_S, issuer_keys.STALE_S, issuer_keys.REFETCH_S) == (600, 3600, 10)
    assert "ten minutes" in PAGE
    assert "for up to an hour" in PAGE
    assert "every ten seconds" in PAGE
    assert f"may have {authorization.MAX_TOKEN_CHARS:,} characters" in PAGE
    assert f"{authorization.MAX_GROUPS_BYTES // 1024} KB" in PAGE
    assert f"kept for {revocation.KEPT_S // 86_400} days" in PAGE
    assert f"lasts {sign_in.SIGN_IN_DAYS} days" in PAGE
    assert f"at least {sign_in.PASSWORD_CHARS} characters" in PAGE
    assert f'["{PROTOCOL}", "{BEARER}" + token]' in PAGE
    assert sign_in.CLI_CALLBACKS[0] in PAGE

"""The deployed function behind its URL: who is let in is decided by the deployment's own sign-in."""

from __future__ import annotations

import json
import urllib.error
import urllib.request
from email.message import Message
from typing import Any

from cicada_local.testing import LocalCloud
from tests.wire.announced_issuer import Issuer


def get(cloud: LocalCloud, path: str, token: str | None = None) -> tuple[int, Message, Any]:
    headers = {} if token is None else {"Authorization": f"Bearer {token}"}
    request = urllib.request.Request(f"{cloud.outputs['HttpUrl']}{path}", headers=headers)
    try:
        with urllib.request.urlopen(request) as answer:
            return answer.status, answer.headers, json.load(answer)
    except urllib.error.HTTPError as refused:
        with refused:
            return refused.code, refused.headers, json.load(refused)


def test_the_deployments_sign_in_decides_who_comes_in(deployed: LocalCloud, issuer: Issuer) -> None:
    tokens = {
        "none": None,
        "forged": f"{issuer.token()[:-8]}AAAAAAAA",
        "expired": issuer.token(exp=1),
        "foreign": issuer.token(groups=["others"]),
        "good": issuer.token(),
    }
    answers = {name: get(deployed, "no/such/path", token) for name, token in tokens.items()}
    told = {name: (status, body["error"]["code"]) for name, (status, _, body) in answers.items()}
    assert told == {
        "none": (401, "unauthorized"),
        "forged": (401, "unauthorized"),
        "expired": (401, "unauthorized"),
        "foreign": (403, "forbidden"),
        "good": (404, "not_found"),
    }
    assert "WWW-Authenticate" not in answers["none"][1]  # a function URL renames it
    challenge = answers["forged"][1]["x-amzn-Remapped-www-authenticate"]
    assert 'error="invalid_token"' in challenge
    assert f'resource_metadata="{deployed.outputs["HttpUrl"]}.well-known/oauth-protected-resource/mcp"' in challenge


def test_clients_find_the_issuer_by_the_well_known_address(deployed: LocalCloud, issuer: Issuer) -> None:
    status, _, metadata = get(deployed, ".well-known/oauth-protected-resource/mcp")
    assert status == 200
    assert metadata["resource"] == f"{deployed.outputs['HttpUrl']}mcp"
    assert metadata["authorization_servers"] == [issuer.url]

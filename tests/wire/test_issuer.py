"""The stand-in issuer does what Amazon Cognito does: each line of its conformance list, over HTTP."""

from __future__ import annotations

import json
import urllib.error
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from urllib.parse import parse_qs, urlsplit

import jwt
import pytest
from jwt import PyJWKClient

from cicada_local.issuer import Issuer
from tests.support.sign_in import CALLBACK, EMAIL, PAGE, PASSWORD, Browser, Pkce
from tests.wire.issuer_service import SignInService, sign_in_service


@pytest.fixture(scope="module")
def running() -> Iterator[SignInService]:
    with sign_in_service("issuer") as service:
        yield service


@pytest.fixture
def service(running: SignInService) -> Iterator[SignInService]:
    yield running
    running.offset_s = 0.0
    running.faults.disarm()


def verified(service: SignInService, token: str, **options: Any) -> dict[str, Any]:
    url = f"{service.issuer_url}/.well-known/jwks.json"
    key = PyJWKClient(url, cache_keys=False).get_signing_key_from_jwt(token)
    return dict(jwt.decode(token, key, algorithms=["RS256"], issuer=service.issuer_url, **options))


# --- discovery and keys ---


def test_discovery_names_the_endpoints(service: SignInService) -> None:
    found = service.json(f"/{service.pool_id}/.well-known/openid-configuration")
    assert found["issuer"] == service.issuer_url
    assert found["token_endpoint"] == f"{service.issuer.url}/oauth2/token"
    assert found["authorization_endpoint"] == f"{service.issuer.url}/oauth2/authorize"
    assert found["revocation_endpoint"] == f"{service.issuer.url}/oauth2/revoke"
    assert found["end_session_endpoint"] == f"{service.issuer.url}/logout"
    assert found["jwks_uri"] == f"{service.issuer_url}/.well-known/jwks.json"
    assert "code_challenge_methods_supported" not in found


def test_an_unknown_pool_is_not_found(service: SignInService) -> None:
    with pytest.raises(urllib.error.HTTPError) as caught:
        service.json("/us-east-1_nothing00/.well-known/openid-configuration")
    assert caught.value.code == 404


def test_ids_stay_the_same_and_look_like_cognitos(service: SignInService) -> None:
    assert service.pool_id == "us-east-1_" + service.pool_id.removeprefix("us-east-1_")
    assert len(service.client_id) == 26
    assert service.outputs["Issuer"] == f"https://cognito-idp.us-east-1.amazonaws.com/{service.pool_id}"
    assert service.issuer.stands_for(service.outputs["Issuer"]) == service.issuer_url
    assert service.outputs["Branding"]


def test_a_pool_has_a_key_for_each_kind_of_token(service: SignInService) -> None:
    tokens = service.tokens()
    kids = [jwt.get_unverified_header(tokens[name])["kid"] for name in ("id_token", "access_token")]
    assert kids == [key["kid"] for key in service.published_keys()][-2:]
    assert all(key["alg"] == "RS256" and key["use"] == "sig" and "d" not in key for key in service.published_keys())


def test_keys_rotate_and_old_tokens_hold_until_their_key_is_retired(service: SignInService) -> None:
    old = service.tokens()["access_token"]
    control = f"{service.services.endpoint_url}/_cicada/issuer/keys"
    assert Browser().post(control, {}).status == 200
    fresh = service.tokens()["access_token"]
    assert jwt.get_unverified_header(old)["kid"] != jwt.get_unverified_header(fresh)["kid"]
    verified(service, old)
    service.issuer._ring(service.pool_id).retire()
    verified(service, fresh)
    with pytest.raises(jwt.PyJWKClientError):
        verified(service, old)


# --- tokens ---


def test_the_access_token_has_cognitos_claims(service: SignInService) -> None:
    claims = verified(service, service.tokens()["access_token"])
    assert "aud" not in claims
    assert claims["client_id"] == service.client_id
    assert claims["token_use"] == "access"
    assert claims["cognito:groups"] == ["users"]
    assert claims["scope"] == "openid email"
    assert claims["version"] == 2
    assert claims["exp"] - claims["iat"] == 3600
    assert {"sub", "username", "origin_jti", "event_id", "jti", "auth_time"} <= set(claims)
    assert "email" not in claims


def test_the_id_token_has_cognitos_claims(service: SignInService) -> None:
    claims = verified(service, service.tokens(nonce="n-1")["id_token"], audience=service.client_id)
    assert claims["token_use"] == "id"
    assert claims["nonce"] == "n-1"
    assert claims["email"] == EMAIL
    assert claims["cognito:groups"] == ["users"]
    assert claims["cognito:username"] == claims["sub"]
    assert "client_id" not in claims
    assert {"origin_jti", "auth_time", "at_hash", "jti"} <= set(claims)


def test_scopes_decide_on_attributes_and_the_id_token(service: SignInService) -> None:
    assert "email" not in verified(service, service.tokens(scope="openid")["id_token"], audience=service.client_id)
    assert verified(service, service.tokens(scope=None)["access_token"])["scope"] == "openid email"


def test_a_user_without_a_group_has_no_group_claim(service: SignInService) -> None:
    service.add_user("nobody@example.com", PASSWORD, group=None)
    pkce = Pkce()
    code = Browser().sign_in(service.authorize_url(pkce), "nobody@example.com").sent_back["code"]
    token = json.loads(service.redeem(code, pkce).text)["access_token"]
    assert "cognito:groups" not in verified(service, token)


# --- authorize ---


@pytest.mark.parametrize(
    ("fields", "error"),
    [
        ({"redirect_uri": CALLBACK + "/"}, "redirect_mismatch"),
        ({"redirect_uri": CALLBACK + "?a=1"}, "redirect_mismatch"),
        ({"redirect_uri": "http://127.0.0.1:8741/callback"}, "redirect_mismatch"),
        ({"redirect_uri": None}, "redirect_mismatch"),
        ({"client_id": "unknown"}, "invalid_request"),
        ({"client_id": None}, "invalid_request"),
    ],
)
def test_a_wrong_client_or_address_is_not_sent_back(
    service: SignInService, fields: dict[str, str | None], error: str
) -> None:
    reply = Browser().get(service.authorize_url(Pkce(), **fields))
    assert reply.status == 302
    assert urlsplit(reply.location).path == "/error"
    assert reply.sent_back["error"] == error
    assert Browser().get(reply.location).status == 400


@pytest.mark.parametrize(
    ("fields", "error"),
    [
        ({"response_type": None}, "invalid_request"),
        ({"response_type": "token"}, "unauthorized_client"),
        ({"scope": "openid everything"}, "invalid_scope"),
        ({"scope": "email"}, "invalid_scope"),
        ({"scope": "openid profile"}, "invalid_scope"),
        ({"code_challenge_method": "plain"}, "invalid_request"),
        ({"code_challenge_method": None}, "invalid_request"),
        ({"code_challenge": None}, "invalid_request"),
        ({"code_challenge": "short"}, "invalid_request"),
        ({"code_challenge": None, "code_challenge_method": None}, "invalid_request"),
        ({"prompt": "none"}, "login_required"),
    ],
)
def test_a_wrong_request_is_told_to_the_application(
    service: SignInService, fields: dict[str, str | None], error: str
) -> None:
    reply = Browser().get(service.authorize_url(Pkce(), **fields))
    assert reply.status == 302
    assert reply.location.startswith(CALLBACK + "?")
    assert reply.sent_back == {"error": error, "state": "s-1"}


def test_sign_in_returns_code_and_state_to_the_registered_address(service: SignInService) -> None:
    reply = Browser().sign_in(service.authorize_url(Pkce(), redirect_uri=PAGE, state="a b&c=d"))
    assert reply.status == 302
    assert reply.location.startswith(PAGE + "?code=")
    assert parse_qs(urlsplit(reply.location).query)["state"] == ["a b&c=d"]


@pytest.mark.parametrize(("name", "password"), [(EMAIL, "wrong"), ("nobody-at-all@example.com", PASSWORD), ("", "")])
def test_wrong_names_and_passwords_are_told_alike(service: SignInService, name: str, password: str) -> None:
    reply = Browser().sign_in(service.authorize_url(Pkce()), name, password)
    assert reply.status == 200
    assert "Incorrect username or password." in reply.text


def test_names_are_found_in_upper_and_lower_case(service: SignInService) -> None:
    assert "code" in Browser().sign_in(service.authorize_url(Pkce()), EMAIL.upper()).sent_back


def test_a_disabled_user_cannot_sign_in(service: SignInService) -> None:
    name = service.add_user("gone@example.com", PASSWORD)
    service.cognito.admin_disable_user(UserPoolId=service.pool_id, Username=name)
    assert Browser().sign_in(service.authorize_url(Pkce()), "gone@example.com").status == 200


def test_a_form_of_another_page_is_refused(service: SignInService) -> None:
    browser = Browser()
    url = browser.get(service.authorize_url(Pkce())).location
    browser.get(url)
    reply = browser.post(url, {"username": EMAIL, "password": PASSWORD, "_csrf": "guessed"})
    assert reply.status == 200
    assert "expired" in reply.text


def test_a_temporary_password_is_changed_at_the_first_sign_in(service: SignInService) -> None:
    service.add_user("new@example.com", "Temporary-1", permanent=False)
    url = service.authorize_url(Pkce())
    refused = Browser().sign_in(url, "new@example.com", "Temporary-1", new_password="short")
    assert "password policy" in refused.text
    assert "code" in Browser().sign_in(url, "new@example.com", "Temporary-1", new_password=PASSWORD).sent_back
    assert "code" in Browser().sign_in(url, "new@example.com", PASSWORD).sent_back


def test_a_browser_in_session_goes_on_without_a_password(service: SignInService) -> None:
    browser = Browser()
    browser.sign_in(service.authorize_url(Pkce()))
    page = browser.get(browser.get(service.authorize_url(Pkce())).location)
    assert f"Sign in as {EMAIL}" in page.text
    assert "code" in browser.submit(page, **{"continue": "1"}).sent_back
    assert "code" in browser.get(service.authorize_url(Pkce(), prompt="none")).sent_back
    assert "Sign in as" not in browser.get(browser.get(service.authorize_url(Pkce(), prompt="login")).location).text
    service.offset_s = 3601
    assert browser.get(service.authorize_url(Pkce(), prompt="none")).sent_back["error"] == "login_required"


def test_logout_ends_the_session_and_goes_to_registered_addresses_only(service: SignInService) -> None:
    browser = Browser()
    browser.sign_in(service.authorize_url(Pkce()))
    out = f"{service.issuer.url}/logout?client_id={service.client_id}"
    assert browser.get(f"{out}&logout_uri={PAGE}").location == PAGE
    assert browser.get(service.authorize_url(Pkce(), prompt="none")).sent_back["error"] == "login_required"
    assert browser.get(f"{out}&logout_uri=http://evil.example/").sent_back["error"] == "redirect_mismatch"
    assert browser.get(f"{service.issuer.url}/logout").sent_back["error"] == "invalid_request"
    again = browser.get(f"{out}&redirect_uri={CALLBACK}&response_type=code")
    assert urlsplit(again.location).path == "/login"


# --- token ---


def test_a_code_is_good_once(service: SignInService) -> None:
    pkce = Pkce()
    code = service.code(pkce)
    assert service.redeem(code, pkce).status == 200
    again = service.redeem(code, pkce)
    assert (again.status, json.loads(again.text)) == (400, {"error": "invalid_grant"})


def test_a_code_is_good_for_five_minutes(service: SignInService) -> None:
    pkce = Pkce()
    code = service.code(pkce)
    service.offset_s = 299
    late = service.code(pkce)
    assert service.redeem(code, pkce).status == 200
    service.offset_s += 300
    assert json.loads(service.redeem(late, pkce).text) == {"error": "invalid_grant"}


@pytest.mark.parametrize(
    "change",
    [
        {"code_verifier": "x" * 43},
        {"code_verifier": "short"},
        {"code_verifier": ""},
        {"redirect_uri": PAGE},
    ],
)
def test_a_code_is_bound_to_verifier_and_address(service: SignInService, change: dict[str, str]) -> None:
    pkce = Pkce()
    reply = service.redeem(service.code(pkce), pkce, **change)
    assert (reply.status, json.loads(reply.text)) == (400, {"error": "invalid_grant"})


def test_a_code_is_bound_to_its_client(service: SignInService) -> None:
    pkce = Pkce()
    reply = service.redeem(service.code(pkce), pkce, client_id=service.outputs["OtherId"])
    assert json.loads(reply.text) == {"error": "invalid_grant"}


@pytest.mark.parametrize(
    ("form", "error"),
    [
        ({"grant_type": "refresh_token"}, "invalid_request"),
        ({"grant_type": "authorization_code"}, "invalid_request"),
        ({}, "invalid_request"),
        ({"grant_type": "password"}, "unsupported_grant_type"),
        ({"grant_type": "client_credentials"}, "unauthorized_client"),
        ({"grant_type": "refresh_token", "refresh_token": "unknown"}, "invalid_grant"),
        ({"grant_type": "authorization_code", "code": "unknown", "redirect_uri": CALLBACK}, "invalid_grant"),
        ({"grant_type": "refresh_token", "refresh_token": "x", "client_id": "unknown"}, "invalid_client"),
        ({"grant_type": "refresh_token", "refresh_token": "x", "client_secret": "guess"}, "invalid_client"),
    ],
)
def test_wrong_token_requests(service: SignInService, form: dict[str, str], error: str) -> None:
    reply = service.token(**form)
    assert (reply.status, json.loads(reply.text)) == (400, {"error": error})


def test_token_requests_are_posted_forms(service: SignInService) -> None:
    url = f"{service.issuer.url}/oauth2/token"
    assert Browser().get(url).status == 405
    reply = Browser().post(url, {"grant_type": "refresh_token"}, **{"Content-Type": "application/json"})
    assert json.loads(reply.text) == {"error": "invalid_request"}


def test_refresh_tokens_rotate_with_a_grace_period(service: SignInService) -> None:
    first = service.tokens()
    reply = service.refresh(first["refresh_token"])
    second = json.loads(reply.text)
    assert reply.headers["Cache-Control"] == "no-store"
    assert second["refresh_token"] != first["refresh_token"]
    before, after = (jwt.decode(one["access_token"], options={"verify_signature": False}) for one in (first, second))
    assert (before["origin_jti"], before["auth_time"]) == (after["origin_jti"], after["auth_time"])
    assert before["jti"] != after["jti"]
    assert service.refresh(first["refresh_token"]).status == 200
    service.offset_s = 11
    assert json.loads(service.refresh(first["refresh_token"]).text) == {"error": "invalid_grant"}
    assert service.refresh(second["refresh_token"]).status == 200


def test_a_rotated_refresh_token_lasts_no_longer_than_the_first(service: SignInService) -> None:
    first = service.tokens()["refresh_token"]
    service.offset_s = 29 * 86400
    second = json.loads(service.refresh(first).text)["refresh_token"]
    service.offset_s = 30 * 86400 + 60
    assert json.loads(service.refresh(second).text) == {"error": "invalid_grant"}


def test_without_rotation_the_refresh_token_stays(service: SignInService) -> None:
    other = service.outputs["OtherId"]
    pkce = Pkce()
    tokens = json.loads(service.redeem(service.code(pkce, client_id=other), pkce, client_id=other).text)
    for _ in range(2):
        reply = service.refresh(tokens["refresh_token"], client_id=other)
        assert "refresh_token" not in json.loads(reply.text)
    assert json.loads(service.refresh(tokens["refresh_token"]).text) == {"error": "invalid_grant"}


def test_a_changed_group_is_in_the_next_token(service: SignInService) -> None:
    name = service.add_user("mover@example.com", PASSWORD)
    pkce = Pkce()
    code = Browser().sign_in(service.authorize_url(pkce), "mover@example.com").sent_back["code"]
    token = json.loads(service.redeem(code, pkce).text)["refresh_token"]
    pool = {"UserPoolId": service.pool_id, "Username": name, "GroupName": "users"}
    service.cognito.admin_remove_user_from_group(**pool)
    assert "cognito:groups" not in verified(service, json.loads(service.refresh(token).text)["access_token"])


@pytest.mark.parametrize("by", ["name", "email"])
def test_a_global_sign_out_ends_refresh_tokens(service: SignInService, by: str) -> None:
    email = f"out-{by}@example.com"
    name = service.add_user(email, PASSWORD)
    pkce = Pkce()
    code = Browser().sign_in(service.authorize_url(pkce), email).sent_back["code"]
    token = json.loads(service.redeem(code, pkce).text)["refresh_token"]
    service.cognito.admin_user_global_sign_out(UserPoolId=service.pool_id, Username=name if by == "name" else email)
    assert json.loads(service.refresh(token).text) == {"error": "invalid_grant"}


def test_a_deleted_user_gets_no_more_tokens(service: SignInService) -> None:
    name = service.add_user("deleted@example.com", PASSWORD)
    pkce = Pkce()
    code = Browser().sign_in(service.authorize_url(pkce), "deleted@example.com").sent_back["code"]
    token = json.loads(service.redeem(code, pkce).text)["refresh_token"]
    service.cognito.admin_delete_user(UserPoolId=service.pool_id, Username=name)
    assert json.loads(service.refresh(token).text) == {"error": "invalid_grant"}


# --- revoke and userInfo ---


def test_revoking_ends_the_refresh_token_and_what_came_of_it(service: SignInService) -> None:
    tokens = service.tokens()
    info = f"{service.issuer.url}/oauth2/userInfo"
    bearer = {"Authorization": f"Bearer {tokens['access_token']}"}
    told = json.loads(Browser().get(info, **bearer).text)
    assert (told["email"], told["sub"]) == (EMAIL, told["username"])
    reply = service.revoke(tokens["refresh_token"])
    assert (reply.status, reply.text) == (200, "")
    assert json.loads(service.refresh(tokens["refresh_token"]).text) == {"error": "invalid_grant"}
    refused = Browser().get(info, **bearer)
    assert refused.status == 401
    assert 'error="invalid_token"' in refused.headers["WWW-Authenticate"]
    assert service.revoke(tokens["refresh_token"]).status == 200


@pytest.mark.parametrize(
    ("form", "status", "error"),
    [
        ({"token": ""}, 400, "invalid_request"),
        ({"token": "a.b.c"}, 400, "unsupported_token_type"),
        ({"client_id": "unknown"}, 401, "invalid_client"),
        ({"client_id": "{other}"}, 400, "invalid_request"),
    ],
)
def test_wrong_revocations(service: SignInService, form: dict[str, str], status: int, error: str) -> None:
    form = {name: value.format(other=service.outputs["OtherId"]) for name, value in form.items()}
    token = form.pop("token", "unknown")
    reply = service.revoke(token, **form)
    assert (reply.status, json.loads(reply.text)) == (status, {"error": error})


@pytest.mark.parametrize(("header", "status"), [("", 400), ("Bearer nonsense", 401), ("Basic YTpi", 400)])
def test_user_info_wants_an_access_token(service: SignInService, header: str, status: int) -> None:
    reply = Browser().get(f"{service.issuer.url}/oauth2/userInfo", Authorization=header)
    assert reply.status == status


def test_user_info_takes_no_id_token(service: SignInService) -> None:
    token = service.tokens()["id_token"]
    assert Browser().get(f"{service.issuer.url}/oauth2/userInfo", Authorization=f"Bearer {token}").status == 401


# --- browsers, names, faults, restarts ---


def test_scripts_of_other_origins_read_discovery_and_tokens_and_nothing_else(service: SignInService) -> None:
    origin = {"Origin": "http://localhost:4600"}
    allow = "Access-Control-Allow-Origin"
    known = f"{service.issuer_url}/.well-known/openid-configuration"
    assert Browser().get(known, **origin).headers[allow] == "*"
    token = f"{service.issuer.url}/oauth2/token"
    assert Browser().post(token, {}, **origin).headers[allow] == origin["Origin"]
    assert allow not in Browser().get(service.authorize_url(Pkce()), **origin).headers
    assert allow not in Browser().get(f"{service.issuer.url}/login", **origin).headers


@pytest.mark.parametrize("host", ["rebound.example", "localhost.evil.example"])
def test_only_names_of_this_machine_are_answered(service: SignInService, host: str) -> None:
    assert Browser().get(f"{service.issuer_url}/.well-known/jwks.json", Host=host).status == 403


def test_faults(service: SignInService) -> None:
    tokens = service.tokens()
    service.faults.arm("issuer.error", times=1, operation="token", status=503)
    assert service.refresh(tokens["refresh_token"]).status == 503
    service.faults.arm("issuer.unreachable", times=1, operation="token")
    with pytest.raises(OSError, match=r"closed|reset"):
        service.refresh(tokens["refresh_token"])
    assert service.issuer._grants.refreshed(tokens["refresh_token"]) is not None
    service.faults.arm("issuer.lost_ack", times=1, operation="token")
    with pytest.raises(OSError, match=r"closed|reset"):
        service.refresh(tokens["refresh_token"])
    service.offset_s = 11
    assert service.refresh(tokens["refresh_token"]).status == 400


def test_users_keys_and_refresh_tokens_outlive_a_restart(service: SignInService, tmp_path: Path) -> None:
    tokens = service.tokens()
    stored = json.loads(json.dumps(service.issuer.stored({"us-east-1_elsewhere": {"users": []}})))
    assert "us-east-1_elsewhere" in stored
    pools = service.issuer._moto_pools()
    pool = pools[service.pool_id]
    users = dict(pool.users)
    pool.users.clear()
    pool.refresh_tokens.clear()
    again = Issuer(lambda: pools, service.issuer._lock, service.faults, clock=service.clock)
    again.url = service.issuer.url
    again.restore(stored)
    assert [key["kid"] for key in again._ring(service.pool_id).published()["keys"]] == [
        key["kid"] for key in service.published_keys()
    ]
    assert pool.users.keys() == users.keys()
    user = again._pools.check_password(service.pool_id, EMAIL, PASSWORD)
    assert user is not None
    assert user.groups == ("users",)
    assert not again._pools.signed_out(service.pool_id, tokens["refresh_token"])
    assert again._grants.refreshed(tokens["refresh_token"]) is not None

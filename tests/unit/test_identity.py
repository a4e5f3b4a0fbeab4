"""Who may connect, and who a frame comes from."""

from __future__ import annotations

import time
from types import SimpleNamespace

import jwt
import pytest
from cryptography.hazmat.primitives.asymmetric import ec

from cicada.authorization import (
    MAX_SUBJECT_CHARS,
    MAX_TENANT_CHARS,
    ForbiddenOrigin,
    Identity,
    KeysUnavailable,
    TokenVerifier,
)
from cicada.errors import SettingsInvalid, Unauthorized
from cicada.identity import ANONYMOUS, Caller, asker_of, caller_of
from cicada.settings import AnswerSettings, AuthorizerSettings, MessageProcessorSettings

KEY = ec.generate_private_key(ec.SECP256R1())
OTHER_KEY = ec.generate_private_key(ec.SECP256R1())
ISSUER, AUDIENCE = "https://issuer.example", "cicada"


class Keys:
    def get_signing_key_from_jwt(self, token):
        return SimpleNamespace(key=KEY.public_key())


def token(key=KEY, algorithm="ES256", **claims):
    known = {"sub": "mara", "iss": ISSUER, "aud": AUDIENCE, "exp": int(time.time()) + 600}
    values = {name: value for name, value in (known | claims).items() if value is not None}
    return jwt.encode(values, key, algorithm=algorithm)


def verifier(*origins, tenant_claim=None):
    return TokenVerifier(
        Keys(), issuer=ISSUER, audience=AUDIENCE, origins=frozenset(origins), tenant_claim=tenant_claim
    )


def connect(query=None, **headers):
    return {"headers": headers, "queryStringParameters": query}


def test_a_valid_token_gives_subject_and_expiry():
    expires = int(time.time()) + 60
    assert verifier().identify(connect({"token": token(exp=expires)})) == Identity("mara", expires)


def test_a_token_may_come_in_the_authorization_header():
    assert verifier().identify(connect(None, Authorization=f"Bearer {token()}")).subject == "mara"


@pytest.mark.parametrize(
    "bad",
    [
        "",
        "not a token",
        "x" * 5000,
        token(exp=int(time.time()) - 60),
        token(exp=None),
        token(sub=None),
        token(sub=""),
        token(sub="x" * (MAX_SUBJECT_CHARS + 1)),
        token(iss="https://somebody.else"),
        token(aud="another"),
        token(key=OTHER_KEY),
        token(key="a shared secret of sufficient length!!", algorithm="HS256"),
        jwt.encode({"sub": "mara", "iss": ISSUER, "aud": AUDIENCE, "exp": 9_999_999_999}, "", algorithm="none"),
    ],
)
def test_anything_less_is_refused(bad):
    with pytest.raises(Unauthorized):
        verifier().identify(connect({"token": bad}))


@pytest.mark.parametrize("claim", ["exp", "sub", "iss", "aud"])
def test_a_missing_claim_is_named_for_the_log(claim):
    with pytest.raises(Unauthorized, match=f"MissingRequiredClaimError {claim}$"):
        verifier().identify(connect({"token": token(**{claim: None})}))


@pytest.mark.parametrize("event", [connect(), connect({}), {}, connect(None, Authorization="Basic abc")])
def test_no_token_is_refused(event):
    with pytest.raises(Unauthorized):
        verifier().identify(event)


def test_keys_that_cannot_be_fetched_are_a_fault_of_ours_not_of_the_token():
    class Unreachable:
        def get_signing_key_from_jwt(self, token):
            raise jwt.PyJWKClientConnectionError("no route")

    ours = TokenVerifier(Unreachable(), issuer=ISSUER, audience=AUDIENCE, origins=frozenset())
    with pytest.raises(KeysUnavailable):
        ours.identify(connect({"token": token()}))


def test_listed_origins_may_connect_and_no_other():
    ours = verifier("https://script.example")
    good = {"token": token()}
    assert ours.identify(connect(good, Origin="https://script.example")).subject == "mara"
    for headers in ({"Origin": "https://evil.example"}, {}):
        with pytest.raises(ForbiddenOrigin):
            ours.identify(connect(good, **headers))


def test_the_tenant_is_read_from_the_claim_that_the_deployer_names():
    claims = {"token": token(org_id="acme")}
    assert verifier(tenant_claim="org_id").identify(connect(claims)).tenant == "acme"
    assert verifier().identify(connect(claims)).tenant is None


@pytest.mark.parametrize("tenant", [None, "", 7, ["acme"], "x" * (MAX_TENANT_CHARS + 1)])
def test_a_token_without_a_tenant_is_refused_where_tenants_are_told_apart(tenant):
    with pytest.raises(Unauthorized, match="org_id"):
        verifier(tenant_claim="org_id").identify(connect({"token": token(org_id=tenant)}))


# --- every later frame ---


def frame(**authorizer):
    context = {"connectionId": "c1", "requestId": "r1", "messageId": "m1"}
    return {"requestContext": context | ({"authorizer": authorizer} if authorizer else {})}


def test_a_frames_caller_is_the_connections_identity():
    event = frame(subject="mara", expires_at="100")
    assert caller_of(event, anonymous=False, now_s=99) == Caller("mara", "c1", "m1", expires_at=100)


def test_a_frames_tenant_is_the_connections():
    event = frame(subject="mara", expires_at="100", tenant="acme")
    assert caller_of(event, anonymous=False, now_s=99) == Caller("mara", "c1", "m1", "acme", 100)


@pytest.mark.parametrize(
    "event",
    [frame(), frame(subject="mara"), frame(subject="", expires_at="100"), frame(subject="mara", expires_at="50")],
)
def test_a_connection_without_a_live_identity_is_refused(event):
    with pytest.raises(Unauthorized):
        caller_of(event, anonymous=False, now_s=50)


def test_nothing_in_a_body_can_name_the_caller():
    event = frame(subject="mara", expires_at="100") | {"body": '{"subject":"eve","connectionId":"c9"}'}
    assert caller_of(event, anonymous=False, now_s=0).subject == "mara"


def test_without_an_authorizer_everybody_is_anonymous():
    assert caller_of(frame(), anonymous=True, now_s=0) == Caller(ANONYMOUS, "c1", "m1", expires_at=None)


# --- settings ---


def test_settings_come_from_variables_of_their_own_names():
    settings = AnswerSettings.read(
        {
            "REQUESTS_TABLE": "t",
            "INDEX_BUCKET": "b",
            "GENERATION_MODEL_ID": "g",
            "DIRECT_MODEL_ID": "d",
            "EMBEDDING_MODEL_ID": "e",
            "EMBEDDING_DIMENSIONS": "384",
            "TEMPERATURE": "",
            "AWS_SECRET_ACCESS_KEY": "secret",
        }
    )
    assert (settings.embedding_dimensions, settings.temperature, settings.max_tokens) == (384, None, 2048)
    assert (settings.top_k, settings.min_score, settings.prompt_passages) == (20, 0.5, 10)


def test_a_missing_or_wrong_setting_is_named_and_no_value_repeated():
    with pytest.raises(SettingsInvalid) as problem:
        MessageProcessorSettings.read({"RETENTION_S": "soon", "AWS_SECRET_ACCESS_KEY": "secret"})
    assert "REQUESTS_TABLE" in str(problem.value)
    assert "RETENTION_S" in str(problem.value)
    assert "soon" not in str(problem.value)


def test_origins_are_separated_by_commas():
    settings = AuthorizerSettings(
        jwt_issuer="i", jwt_audience="a", jwks_url="u", allowed_origins=" https://a.example, https://b.example ,"
    )
    assert settings.origins() == {"https://a.example", "https://b.example"}


def test_an_asker_is_told_from_another_in_the_logs_and_not_named():
    assert asker_of("mara") == asker_of("mara") != asker_of("tamsin")
    assert len(asker_of("mara@example.org")) == 8
    assert "mara" not in asker_of("mara")


def test_a_subject_owns_other_requests_in_each_tenant():
    callers = [Caller("mara", "c", "f", tenant) for tenant in (None, "club", "club/mara", "cl%ub")]
    assert len({caller.owner for caller in callers}) == len(callers)
    assert Caller("b/c", "c", "f", "a").owner != Caller("c", "c", "f", "a/b").owner
    assert callers[0].owner == "mara"

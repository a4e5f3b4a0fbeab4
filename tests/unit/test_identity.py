"""Who may connect, and who a frame comes from."""

from __future__ import annotations

import json
import time
from types import SimpleNamespace

import jwt
import pytest
from cryptography.hazmat.primitives.asymmetric import ec

from cicada.authorization import (
    MAX_GROUPS_BYTES,
    MAX_SUBJECT_CHARS,
    MAX_TENANT_CHARS,
    ForbiddenOrigin,
    Identity,
    NotInGroup,
    TokenRules,
    TokenVerifier,
)
from cicada.errors import SettingsInvalid, Unauthorized
from cicada.identity import ANONYMOUS, Caller, asker_of, caller_of
from cicada.issuer_keys import IssuerUnavailable
from cicada.settings import AnswerSettings, AuthorizerSettings, MessageProcessorSettings
from cicada.subprotocols import BEARER, PROTOCOL, chosen, offered, offered_token

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


def verifier(*origins, audiences=(AUDIENCE,), token_in_url=False, **rules):
    return TokenVerifier(
        Keys(),
        TokenRules(ISSUER, frozenset(audiences), **rules),
        origins=frozenset(origins),
        token_in_url=token_in_url,
    )


def connect(token=None, **headers):
    """The event of an upgrade that brings a token as a browser does."""
    offered = {} if token is None else {"Sec-WebSocket-Protocol": f"{PROTOCOL}, {BEARER}{token}"}
    return {"headers": offered | headers, "queryStringParameters": None}


def test_a_valid_token_gives_subject_and_dates():
    now = int(time.time())
    made = token(exp=now + 60, iat=now - 5)
    assert verifier().identify(connect(made)) == Identity("mara", now + 60, issued_at=now - 5)
    assert verifier().identify(connect(token(exp=now + 60))) == Identity("mara", now + 60)


def test_a_token_may_come_in_the_authorization_header():
    assert verifier().identify(connect(Authorization=f"Bearer {token()}")).subject == "mara"


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
        verifier().identify(connect(bad))


@pytest.mark.parametrize("claim", ["exp", "sub", "iss"])
def test_a_missing_claim_is_named_for_the_log(claim):
    with pytest.raises(Unauthorized, match=f"MissingRequiredClaimError {claim}$"):
        verifier().identify(connect(token(**{claim: None})))


@pytest.mark.parametrize(
    ("claims", "accepted"),
    [
        ({"aud": AUDIENCE, "token_use": "id"}, True),
        ({"aud": ["another", AUDIENCE]}, True),
        ({"aud": "the-page"}, True),
        ({"aud": None, "client_id": AUDIENCE, "token_use": "access"}, True),
        ({"aud": None, "client_id": "another", "token_use": "access"}, False),
        ({"aud": None, "client_id": AUDIENCE}, False),
        ({"aud": None, "client_id": AUDIENCE, "token_use": "id"}, False),
        ({"aud": "another", "client_id": AUDIENCE, "token_use": "access"}, False),
        ({"aud": None, "client_id": [AUDIENCE], "token_use": "access"}, False),
        ({"aud": AUDIENCE, "token_use": "refresh"}, False),
        ({"aud": AUDIENCE, "token_use": ["access"]}, False),
        ({"aud": [AUDIENCE, 7]}, False),
        ({"aud": None}, False),
    ],
)
def test_id_and_access_tokens_for_this_deployment_are_accepted(claims, accepted):
    ours = verifier(audiences=(AUDIENCE, "the-page"))
    if accepted:
        assert ours.identify(connect(token(**claims))).subject == "mara"
        return
    with pytest.raises(Unauthorized, match=r"aud|token_use"):
        ours.identify(connect(token(**claims)))


@pytest.mark.parametrize("event", [connect(), connect(""), {}, connect(Authorization="Basic abc")])
def test_no_token_is_refused(event):
    with pytest.raises(Unauthorized):
        verifier().identify(event)


def test_keys_that_cannot_be_fetched_are_a_fault_of_ours_not_of_the_token():
    class Unreachable:
        def get_signing_key_from_jwt(self, token):
            raise jwt.PyJWKClientConnectionError("no route")

    ours = TokenVerifier(Unreachable(), TokenRules(ISSUER, frozenset({AUDIENCE})))
    with pytest.raises(IssuerUnavailable, match="no route"):
        ours.identify(connect(token()))


def test_listed_origins_may_connect_and_no_other():
    ours = verifier("https://script.example")
    good = token()
    assert ours.identify(connect(good, Origin="https://script.example")).subject == "mara"
    for origin in ("https://evil.example", "https://script.example.evil.example", "null"):
        with pytest.raises(ForbiddenOrigin):
            ours.identify(connect(good, Origin=origin))


def test_programs_which_name_no_origin_may_connect_where_origins_are_listed():
    assert verifier("https://script.example").identify(connect(token())).subject == "mara"


def test_the_tenant_is_read_from_the_claim_that_the_deployer_names():
    made = token(org_id="acme")
    assert verifier(tenant_claim="org_id").identify(connect(made)).tenant == "acme"
    assert verifier().identify(connect(made)).tenant is None


@pytest.mark.parametrize("tenant", [None, "", 7, ["acme"], "x" * (MAX_TENANT_CHARS + 1)])
def test_a_token_without_a_tenant_is_refused_where_tenants_are_told_apart(tenant):
    with pytest.raises(Unauthorized, match="org_id"):
        verifier(tenant_claim="org_id").identify(connect(token(org_id=tenant)))


def test_a_token_in_the_url_is_refused_unless_the_deployer_accepts_it():
    event = {"headers": {}, "queryStringParameters": {"token": token()}}
    with pytest.raises(Unauthorized, match=r"in the URL.*auth\.tokenInUrl"):
        verifier().identify(event)
    assert verifier(token_in_url=True).identify(event).subject == "mara"


def test_a_token_that_comes_as_it_should_makes_the_url_irrelevant():
    event = connect(token()) | {"queryStringParameters": {"token": "nonsense"}}
    assert verifier().identify(event).subject == "mara"


@pytest.mark.parametrize(
    ("claim", "groups"),
    [
        (["readers", "staff"], ("readers", "staff")),
        ("readers", ("readers",)),
        (["staff", 7, None, "", "a,b", "staff", "x" * 129], ("staff",)),
        (None, ()),
        ({"readers": True}, ()),
        ([], ()),
    ],
)
def test_groups_are_read_from_the_claim_that_the_deployer_names(claim, groups):
    made = token(roles=claim)
    assert verifier(groups_claim="roles").identify(connect(made)).groups == groups
    assert verifier().identify(connect(made)).groups == ()


def test_only_users_in_a_required_group_may_connect():
    ours = verifier(groups_claim="roles", required_groups=frozenset({"readers", "admins"}))
    assert ours.identify(connect(token(roles=["staff", "readers"]))).groups == ("readers", "staff")
    for roles in (["staff"], [], None, "reader", ["readers,admins"]):
        with pytest.raises(NotInGroup) as refused:
            ours.identify(connect(token(roles=roles)))
        assert "auth.requiredGroups (admins, readers)" in str(refused.value)
        assert "the token's roles" in str(refused.value)
        assert "add the user to one" in str(refused.value)


def test_the_context_of_a_connection_is_flat_and_bounded():
    many = ["\U0001f600" * 10 + str(n) for n in range(40)]
    made = token(roles=[*many, "readers"], iat=1, sub="s" * MAX_SUBJECT_CHARS, org_id="o" * MAX_TENANT_CHARS)
    ours = verifier(groups_claim="roles", tenant_claim="org_id", required_groups=frozenset({"readers"}))
    context = ours.verify(made).context()
    assert context.keys() == {"subject", "expires_at", "issued_at", "tenant", "groups"}
    assert all(isinstance(value, str) for value in context.values())
    assert context["groups"].startswith("readers,")
    assert len(json.dumps(context["groups"])) <= MAX_GROUPS_BYTES
    assert len(json.dumps(context)) < 7_000  # with a policy it stays below API Gateway's 8 KB


# --- the subprotocols of a browser ---


def test_the_protocol_is_chosen_where_it_is_offered_and_the_token_never():
    assert chosen(connect("abc")) == {"Sec-WebSocket-Protocol": "cicada.v1"}
    assert chosen({"headers": {"sec-websocket-protocol": "graphql-ws,cicada.v1"}}) == chosen(connect("abc"))
    for without in ({}, {"headers": None}, {"headers": {"Sec-WebSocket-Protocol": "cicada.bearer.abc, chat"}}):
        assert chosen(without) == {}


def test_a_header_may_come_in_several_lines():
    lines = ["chat", f"{PROTOCOL},{BEARER}abc"]
    event = {"headers": {"Sec-WebSocket-Protocol": lines[-1]}, "multiValueHeaders": {"Sec-Websocket-Protocol": lines}}
    assert offered(event) == ["chat", PROTOCOL, f"{BEARER}abc"]
    assert offered_token(event) == "abc"


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


def test_a_frames_caller_has_the_identity_that_was_attached_to_the_connection():
    identity = Identity("mara", 100, "acme", issued_at=40, groups=("readers", "the staff"))
    caller = caller_of(frame(**identity.context()), anonymous=False, now_s=99)
    assert (caller.issued_at, caller.groups) == (40, ("readers", "the staff"))
    assert (caller.subject, caller.tenant, caller.expires_at) == ("mara", "acme", 100)


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
        jwt_issuer="i", jwt_audience="a", allowed_origins=" https://a.example, https://b.example ,"
    )
    assert settings.origins() == {"https://a.example", "https://b.example"}
    assert settings.audiences() == {"a"}
    assert not settings.groups()


def test_an_asker_is_told_from_another_in_the_logs_and_not_named():
    assert asker_of("mara") == asker_of("mara") != asker_of("tamsin")
    assert len(asker_of("mara@example.org")) == 8
    assert "mara" not in asker_of("mara")


def test_a_subject_owns_other_requests_in_each_tenant():
    callers = [Caller("mara", "c", "f", tenant) for tenant in (None, "club", "club/mara", "cl%ub")]
    assert len({caller.owner for caller in callers}) == len(callers)
    assert Caller("b/c", "c", "f", "a").owner != Caller("c", "c", "f", "a/b").owner
    assert callers[0].owner == "mara"

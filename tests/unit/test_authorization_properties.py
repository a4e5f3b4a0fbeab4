"""Properties of the authorizer: it allows a rightly signed, valid token, and refuses everything else in one way."""

from __future__ import annotations

import base64
import json
import time
from dataclasses import dataclass
from typing import Any

import jwt
import pytest
from cryptography.hazmat.primitives.asymmetric import ec, ed25519, rsa
from cryptography.hazmat.primitives.serialization import Encoding, PublicFormat
from hypothesis import given, settings
from hypothesis import strategies as st
from jwt import PyJWKClient
from jwt.algorithms import ECAlgorithm, OKPAlgorithm, RSAAlgorithm, get_default_algorithms

from cicada.authorization import (
    ALGORITHMS,
    MAX_GROUPS_BYTES,
    MAX_SUBJECT_CHARS,
    MAX_TOKEN_CHARS,
    NotInGroup,
    TokenRules,
    TokenVerifier,
)
from cicada.errors import Unauthorized
from cicada.issuer_keys import IssuerUnavailable

ISSUER, AUDIENCE, CLIENT, TENANT_CLAIM = "https://issuer.example", "cicada", "the-page", "org_id"
HOUR_S = 3_600
NOW_S = int(time.time())

PRIVATE: dict[str, Any] = {
    "rsa": rsa.generate_private_key(65537, 2048),
    "p256": ec.generate_private_key(ec.SECP256R1()),
    "p384": ec.generate_private_key(ec.SECP384R1()),
    "ed25519": ed25519.Ed25519PrivateKey.generate(),
}
FOREIGN: dict[str, Any] = {
    "rsa": rsa.generate_private_key(65537, 2048),
    "p256": ec.generate_private_key(ec.SECP256R1()),
    "p384": ec.generate_private_key(ec.SECP384R1()),
    "ed25519": ed25519.Ed25519PrivateKey.generate(),
}
SECRET = b"a shared secret of more than sixty-four bytes, which no issuer should publish"
FITS = {
    "rsa": {"RS256", "RS384", "RS512", "PS256"},
    "p256": {"ES256"},
    "p384": {"ES384"},
    "ed25519": {"EdDSA"},
}
"""The allowed algorithms that a key of each kind signs with."""
TO_JWK: dict[str, Any] = {"rsa": RSAAlgorithm, "p256": ECAlgorithm, "p384": ECAlgorithm, "ed25519": OKPAlgorithm}
JWKS: dict[str, Any] = {
    "keys": [
        *({**json.loads(TO_JWK[kind].to_jwk(key.public_key())), "kid": kind} for kind, key in PRIVATE.items()),
        {"kty": "oct", "k": base64.urlsafe_b64encode(SECRET).decode().rstrip("="), "kid": "oct"},
        {"kty": "RSA", "n": "AQAB", "kid": "no exponent"},
        {"kty": "RSA", "n": "!", "e": "AQAB", "kid": "no number"},
        {"kty": "RSA", "n": 17, "e": None, "kid": "no text"},
        {"kty": "EC", "crv": "P-256", "x": "AQ", "y": "AQ", "kid": "no point"},
        {"kty": "EC", "crv": "P-999", "x": "AQ", "y": "AQ", "kid": "no curve"},
        {"kty": "OKP", "crv": "Ed25519", "x": "AQ", "kid": "short"},
        {"kty": "RSA", "alg": "ES256", "n": "AQAB", "e": "AQAB", "kid": "two minds"},
        {"kty": "unheard-of", "kid": "no kind"},
        {"kid": "empty"},
        "no key at all",
        {"kty": "RSA", "n": "AQAB", "e": "AQAB", "use": "enc", "kid": "for secrets"},
    ]
}
KIDS = [key["kid"] for key in JWKS["keys"] if isinstance(key, dict)]


class Published(PyJWKClient):
    """The real client of published keys, with a document in place of the network."""

    def __init__(self, document: Any = JWKS) -> None:
        super().__init__("https://issuer.example/jwks.json", cache_keys=True)
        self._document = document

    def fetch_data(self) -> Any:
        return self._document


RULES = TokenRules(ISSUER, frozenset({AUDIENCE, CLIENT}), tenant_claim=TENANT_CLAIM)
PUBLISHED = Published()
VERIFIER = TokenVerifier(PUBLISHED, RULES)


def segment(value: Any) -> str:
    raw = value if isinstance(value, bytes) else json.dumps(value).encode()
    return base64.urlsafe_b64encode(raw).decode().rstrip("=")


@dataclass(frozen=True)
class Token:
    """A token, and what is true of it by the way it was made."""

    text: str
    header: dict[str, Any]
    claims: dict[str, Any]
    signed: bool
    """By the private key that the header names, with the algorithm that it names."""

    @property
    def holds(self) -> bool:
        """Whether it must be allowed."""
        encoded = self.header.get("b64", True) is True
        understood = "crit" not in self.header or (self.header["crit"] == ["b64"] and "b64" in self.header)
        return self.signed and encoded and understood and is_valid(self.claims)


def is_date(value: Any) -> bool:
    number = isinstance(value, int | float) and not isinstance(value, bool)
    return number and abs(value) <= 253_402_300_799  # false of NaN


def is_name(value: Any, most: int) -> bool:
    return isinstance(value, str) and 0 < len(value) <= most and not any("\ud800" <= c <= "\udfff" for c in value)


def is_valid(claims: dict[str, Any]) -> bool:
    audience = claims.get("aud")
    if audience is None and claims.get("token_use") == "access":
        audience = claims.get("client_id")
        if isinstance(audience, list):
            return False
    audiences = audience if isinstance(audience, list) else [audience]
    return (
        is_date(claims.get("exp"))
        and claims["exp"] > NOW_S
        and all(name not in claims or (is_date(claims[name]) and claims[name] <= NOW_S) for name in ("nbf", "iat"))
        and claims.get("iss") == ISSUER
        and all(isinstance(one, str) for one in audiences)
        and (AUDIENCE in audiences or CLIENT in audiences)
        and ("token_use" not in claims or claims["token_use"] in (None, "id", "access"))
        and is_name(claims.get("sub"), MAX_SUBJECT_CHARS)
        and is_name(claims.get(TENANT_CLAIM), MAX_SUBJECT_CHARS)
    )


def mostly(usual: st.SearchStrategy[Any], unusual: st.SearchStrategy[Any]) -> st.SearchStrategy[Any]:
    """Three times of four the first: of a token that is odd in every part nothing but its first part is looked at."""
    return st.integers(0, 3).flatmap(lambda n: usual if n else unusual)


odd = st.one_of(
    st.none(),
    st.booleans(),
    st.just(""),
    st.text(max_size=3),
    st.just("x" * 1_000),
    st.just("\ud800"),
    st.integers(-5, 5),
    st.sampled_from([float("nan"), float("inf"), float("-inf"), 0.5, -1.5, 10**30, -(10**30)]),
    st.lists(st.one_of(st.text(max_size=3), st.integers(), st.none()), max_size=3),
    st.dictionaries(st.text(max_size=3), st.integers(), max_size=2),
)
dates = st.sampled_from(
    [NOW_S - HOUR_S, NOW_S + HOUR_S, float(NOW_S + HOUR_S), str(NOW_S - HOUR_S), str(NOW_S + HOUR_S), 253_402_300_800]
)
ODD_CLAIMS: dict[str, st.SearchStrategy[Any]] = {
    "exp": mostly(dates, odd),
    "nbf": mostly(dates, odd),
    "iat": mostly(dates, odd),
    "iss": mostly(odd, st.just([ISSUER])),
    "aud": mostly(odd, st.sampled_from([[AUDIENCE], ["another", AUDIENCE], [AUDIENCE, 7], ["another"]])),
    "token_use": mostly(st.sampled_from(["id", "access", "refresh"]), odd),
    "client_id": mostly(st.sampled_from([AUDIENCE, CLIENT, "another"]), odd),
    "sub": odd,
    TENANT_CLAIM: odd,
}
overridden = st.sampled_from(sorted(ODD_CLAIMS)).flatmap(lambda name: ODD_CLAIMS[name].map(lambda value: {name: value}))
extensions = st.fixed_dictionaries(
    {}, optional={"crit": odd | st.sampled_from([["exp"], ["b64"]]), "b64": st.booleans()}
)
every_algorithm = sorted(get_default_algorithms())


@st.composite
def claim_sets(draw: st.DrawFn) -> dict[str, Any]:
    known = {"sub": "mara", "iss": ISSUER, "aud": AUDIENCE, "exp": NOW_S + HOUR_S, TENANT_CLAIM: "acme"}
    claims: dict[str, Any] = known | draw(mostly(overridden, st.just({})))
    if draw(st.integers(0, 3)) == 0:  # an access token of Cognito's, whole or odd
        claims = {name: value for name, value in claims.items() if name != "aud"}
        claims = {"client_id": CLIENT, "token_use": "access"} | claims
    for name in draw(mostly(st.just(()), st.sampled_from(sorted(known)).map(lambda name: (name,)))):
        claims.pop(name, None)
    return claims


@st.composite
def headers(draw: st.DrawFn) -> dict[str, Any]:
    kid = draw(mostly(st.sampled_from(sorted(PRIVATE)), mostly(st.sampled_from(KIDS), odd)))
    fitting = sorted(FITS[kid]) if isinstance(kid, str) and kid in FITS else ALGORITHMS
    header: dict[str, Any] = {
        "alg": draw(mostly(st.sampled_from(fitting), mostly(st.sampled_from(every_algorithm), odd))),
        "kid": kid,
        "typ": draw(mostly(st.just("JWT"), odd)),
        **draw(mostly(st.just({}), extensions)),
    }
    for name in draw(mostly(st.just(()), st.sampled_from(sorted(header)).map(lambda name: (name,)))):
        del header[name]
    return header


def public_bytes(kind: str) -> list[bytes]:
    """A public key in every form that somebody could pass off as a shared secret."""
    public = PRIVATE[kind].public_key()
    pem = public.public_bytes(Encoding.PEM, PublicFormat.SubjectPublicKeyInfo)
    return [
        pem,
        pem.strip(),
        public.public_bytes(Encoding.DER, PublicFormat.SubjectPublicKeyInfo),
        json.dumps(next(key for key in JWKS["keys"] if key["kid"] == kind)).encode(),
    ]


def sign(algorithm: str, signing_input: bytes, key: Any) -> bytes:
    return get_default_algorithms()[algorithm].sign(signing_input, key)


@st.composite
def tokens(draw: st.DrawFn) -> Token:
    header, claims = draw(headers()), draw(claim_sets())
    signing_input = f"{segment(header)}.{segment(claims)}".encode()
    algorithm, kid = header.get("alg"), header.get("kid")
    kind = kid if isinstance(kid, str) and kid in PRIVATE else ""
    fits = isinstance(algorithm, str) and algorithm in FITS.get(kind, ())
    how = draw(mostly(st.just("right"), st.sampled_from(["foreign", "secret", "other key", "random", "none"])))
    signature = b""
    if how == "right" and fits:
        signature = sign(str(algorithm), signing_input, PRIVATE[kind])
    elif how == "foreign" and fits:
        signature = sign(str(algorithm), signing_input, FOREIGN[kind])
    elif how == "secret":
        secret = draw(st.sampled_from([SECRET, b"", *(one for each in PRIVATE for one in public_bytes(each))]))
        hashing = algorithm if isinstance(algorithm, str) and algorithm.startswith("HS") else "HS256"
        signature = get_default_algorithms()[hashing].sign(signing_input, secret)
    elif how != "none":  # by a key of ours that the header does not name, or not with the algorithm that it names
        other = draw(st.sampled_from(sorted(PRIVATE)))
        with_algorithm = draw(st.sampled_from(sorted(FITS[other])))
        if how == "other key" and (other, with_algorithm) != (kind, algorithm):
            signature = sign(with_algorithm, signing_input, PRIVATE[other])
        else:
            signature = draw(st.binary(max_size=300))
    text = f"{signing_input.decode()}.{segment(signature)}"
    return Token(text, header, claims, signed=how == "right" and fits)


@settings(max_examples=200)
@given(tokens())
def test_a_token_is_allowed_if_it_holds_and_otherwise_refused_in_one_way(token):
    if token.holds:
        identity = VERIFIER.verify(token.text)
        assert (identity.subject, identity.tenant) == (token.claims["sub"], token.claims[TENANT_CLAIM])
        assert identity.expires_at == int(token.claims["exp"])
    else:
        with pytest.raises(Unauthorized):
            VERIFIER.verify(token.text)


names = st.one_of(odd, st.just("readers"), st.text(max_size=150))


@settings(max_examples=40)
@given(
    st.one_of(names, st.lists(names, max_size=30)),
    st.frozensets(st.sampled_from(["readers", "staff"]), max_size=2),
)
def test_whatever_the_groups_claim_holds_some_of_its_names_are_passed_on_or_the_user_is_refused(claim, required):
    rules = TokenRules(ISSUER, frozenset({AUDIENCE}), groups_claim="groups", required_groups=required)
    claims = {"sub": "mara", "iss": ISSUER, "aud": AUDIENCE, "exp": NOW_S + HOUR_S, "groups": claim}
    signing_input = f"{segment({'alg': 'EdDSA', 'kid': 'ed25519'})}.{segment(claims)}".encode()
    token = f"{signing_input.decode()}.{segment(sign('EdDSA', signing_input, PRIVATE['ed25519']))}"
    listed = {one for one in (claim if isinstance(claim, list) else [claim]) if isinstance(one, str)}
    try:
        groups = TokenVerifier(PUBLISHED, rules).verify(token).groups
    except NotInGroup:
        assert required
        assert required.isdisjoint(listed)
        return
    except Unauthorized:
        assert len(token) > MAX_TOKEN_CHARS
        return
    assert set(groups) <= listed
    assert len(json.dumps(groups)) <= MAX_GROUPS_BYTES + 2 * len(groups)
    assert not required or required & set(groups)


@pytest.mark.parametrize("kind", PRIVATE)
@pytest.mark.parametrize("algorithm", ALGORITHMS)
def test_every_algorithm_holds_with_its_own_kind_of_key_alone(kind, algorithm):
    header = {"alg": algorithm, "kid": kind, "typ": "JWT"}
    claims = {"sub": "mara", "iss": ISSUER, "aud": AUDIENCE, "exp": NOW_S + HOUR_S, TENANT_CLAIM: "acme"}
    signing_input = f"{segment(header)}.{segment(claims)}".encode()
    if algorithm in FITS[kind]:
        signature = sign(str(algorithm), signing_input, PRIVATE[kind])
        assert VERIFIER.verify(f"{signing_input.decode()}.{segment(signature)}").subject == "mara"
    else:
        signer = next(each for each in PRIVATE if algorithm in FITS[each])
        signature = sign(algorithm, signing_input, PRIVATE[signer])
        with pytest.raises(Unauthorized):
            VERIFIER.verify(f"{signing_input.decode()}.{segment(signature)}")


@pytest.mark.parametrize("kind", PRIVATE)
@pytest.mark.parametrize("form", range(4))
@pytest.mark.parametrize("algorithm", ["HS256", "HS384", "HS512", "none", "None", "ES256", "RS256"])
def test_a_public_key_passed_off_as_a_secret_is_refused(kind, form, algorithm):
    header = {"alg": algorithm, "kid": kind}
    claims = {"sub": "mara", "iss": ISSUER, "aud": AUDIENCE, "exp": NOW_S + HOUR_S, TENANT_CLAIM: "acme"}
    signing_input = f"{segment(header)}.{segment(claims)}".encode()
    hashing = get_default_algorithms()[algorithm if algorithm.startswith("HS") else "HS256"]
    signature = hashing.sign(signing_input, public_bytes(kind)[form])
    for text in (segment(signature), ""):
        with pytest.raises(Unauthorized):
            VERIFIER.verify(f"{signing_input.decode()}.{text}")


@given(
    st.one_of(
        st.text(max_size=60),
        st.text(alphabet=".=eyJ-_", max_size=20),
        st.builds(lambda *parts: ".".join(map(segment, parts)), st.binary(max_size=40), st.binary(), st.binary()),
        st.builds(lambda header: f"{segment(header)}.{segment({})}.", odd),
        st.builds(lambda claims: f"{segment({'alg': 'RS256', 'kid': 'rsa'})}.{segment(claims)}.AA", odd),
        st.sampled_from(["\ud800.\ud800.\ud800", "[" * 4_000, segment("[" * 2_900) + "..", "x" * 5_000]),
    )
)
def test_what_is_no_token_is_refused(text):
    with pytest.raises(Unauthorized):
        VERIFIER.verify(text)


@given(
    st.sampled_from(["authorization", "Authorization", "AUTHORIZATION", "Origin", "X-Other"]),
    st.text(max_size=20),
    st.one_of(st.none(), st.dictionaries(st.sampled_from(["token", "Token"]), st.text(max_size=20))),
)
def test_an_upgrade_without_a_token_that_holds_is_refused(name, value, query):
    with pytest.raises(Unauthorized):
        VERIFIER.identify({"headers": {name: value}, "queryStringParameters": query})


def test_a_refusal_repeats_nothing_of_the_token():
    canary = "canary-7f3a"
    for header, claims in (
        ({"alg": "RS256", "kid": canary}, {}),
        ({"alg": canary, "kid": "rsa"}, {}),
        ({"alg": "RS256", "kid": "rsa", "crit": [canary]}, {}),
        ({"alg": "RS256", "kid": "rsa"}, {"sub": canary}),
    ):
        with pytest.raises(Unauthorized) as refused:
            VERIFIER.verify(f"{segment(header)}.{segment(claims)}.{segment(canary.encode())}")
        assert canary not in str(refused.value)


@pytest.mark.parametrize(
    "document", [{}, {"keys": []}, {"keys": 7}, {"keys": ["no key"]}, {"keys": [{"kty": "RSA", "alg": [1]}]}]
)
def test_keys_that_cannot_be_read_are_a_fault_of_ours_not_of_the_token(document):
    verifier = TokenVerifier(Published(document), RULES)
    token = jwt.encode({"sub": "mara"}, PRIVATE["p256"], algorithm="ES256", headers={"kid": "p256"})
    with pytest.raises(IssuerUnavailable):
        verifier.verify(token)

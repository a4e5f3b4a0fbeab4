"""Sign-in: the issuer, and where it is this account's, the user pool and its client."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping

from cicada_cli.doctor.calls import CallFailed, Calls
from cicada_cli.doctor.findings import Finding, Reporter
from cicada_cli.doctor.web import Fetch, PageUnavailable

DISCOVERY = "/.well-known/openid-configuration"
"""Source: OpenID Connect Discovery 1.0, section 4."""
CODE_FLOW = "code"
NOBODY = "none"


def signs_in(outputs: Mapping[str, str]) -> bool:
    """Whether askers need a token."""
    return outputs.get("AuthMode", "oidc") != NOBODY


def check_sign_in(calls: Calls, outputs: Mapping[str, str], fetch: Fetch, page: str | None) -> Iterable[Finding]:
    """Look at what the outputs name of sign-in; ``page`` is the page's URL as the stacks have it."""
    mode = outputs.get("AuthMode")
    if mode is None:
        yield Reporter("sign-in", "AuthMode").unknown(
            "the deployment does not tell how people sign in: it was made by an older version", "make deploy"
        )
        return
    if mode == NOBODY:
        yield Reporter("sign-in", mode).ok("nobody has to sign in: the local cloud alone allows that")
        return
    yield from _issuer(outputs.get("Issuer", ""), fetch)
    pool = outputs.get("UserPoolId")
    if pool is not None:
        yield from _pool(calls, pool)
        yield from _client(calls, pool, outputs.get("ClientId", ""), page)


def _issuer(issuer: str, fetch: Fetch) -> Iterator[Finding]:
    report = Reporter("sign-in", issuer)
    url = issuer.rstrip("/") + DISCOVERY
    try:
        page = fetch(url)
        document = json.loads(page.body) if page.status == 200 else None
    except (PageUnavailable, ValueError) as error:
        yield report.problem(f"its configuration cannot be read from {url}: {error}", "check auth.issuer in cdk.json")
        return
    if not isinstance(document, dict):
        yield report.problem(f"{url} answers {page.status}", "check auth.issuer in cdk.json")
    elif str(document.get("issuer", "")).rstrip("/") != issuer.rstrip("/"):
        yield report.problem(
            f"it calls itself {document.get('issuer')}: no token of it is accepted", "set auth.issuer to that"
        )
    elif missing := [
        name for name in ("authorization_endpoint", "token_endpoint", "jwks_uri") if not document.get(name)
    ]:
        yield report.problem(f"its configuration has no {', '.join(missing)}", "check auth.issuer in cdk.json")
    else:
        yield report.ok("tells its endpoints and keys")


def _pool(calls: Calls, pool: str) -> Iterator[Finding]:
    report = Reporter("sign-in", pool)
    try:
        found = calls("cognito-idp", "DescribeUserPool", UserPoolId=pool)["UserPool"]
    except CallFailed as failed:
        if failed.code != "ResourceNotFoundException":
            raise
        yield report.problem("the user pool is gone", "make deploy")
        return
    if int(found.get("EstimatedNumberOfUsers", 0)) == 0 and not _any_user(calls, pool):
        yield report.warning("nobody can sign in yet", "cicada users add ADDRESS")
    else:
        yield report.ok("the user pool has users")


def _any_user(calls: Calls, pool: str) -> bool:
    """The estimate comes late."""
    return bool(calls("cognito-idp", "ListUsers", UserPoolId=pool, Limit=1).get("Users"))


def _client(calls: Calls, pool: str, client_id: str, page: str | None) -> Iterator[Finding]:
    report = Reporter("sign-in", client_id)
    client = calls("cognito-idp", "DescribeUserPoolClient", UserPoolId=pool, ClientId=client_id)["UserPoolClient"]
    callbacks = set(client.get("CallbackURLs", ()))
    if CODE_FLOW not in client.get("AllowedOAuthFlows", ()):
        yield report.problem("the client does not allow the authorization code flow", "make deploy")
    elif page is not None and f"{page.rstrip('/')}/" not in callbacks:
        yield report.problem(
            f"the page {page} is not among the client's callback URLs: signing in on it fails", "make deploy"
        )
    elif not any(url.startswith("http://localhost:") for url in callbacks):
        yield report.problem("the client has no callback URL of this machine: cicada login fails", "make deploy")
    else:
        yield report.ok("the client sends people back to the page and to cicada login")

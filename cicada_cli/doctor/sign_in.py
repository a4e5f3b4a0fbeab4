"""Sign-in: the issuer and, with Cognito, the user pool and its client."""

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
    """Whether connections need a token."""
    return outputs.get("AuthMode", "oidc") != NOBODY


def check_sign_in(calls: Calls, outputs: Mapping[str, str], fetch: Fetch, page: str | None) -> Iterable[Finding]:
    """Check the sign-in that the outputs name; ``page`` is the page's URL in the stacks."""
    mode = outputs.get("AuthMode")
    if mode is None:
        yield Reporter("sign-in", "AuthMode").unknown(
            "the mode of sign-in is unknown: the deployment is of an older release", "make deploy"
        )
        return
    if mode == NOBODY:
        yield Reporter("sign-in", mode).ok("no sign-in, which only the local cloud allows")
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
        yield report.problem(f"cannot read its configuration from {url}: {error}", "check auth.issuer in cdk.json")
        return
    if not isinstance(document, dict):
        yield report.problem(f"{url} returned HTTP {page.status}", "check auth.issuer in cdk.json")
    elif str(document.get("issuer", "")).rstrip("/") != issuer.rstrip("/"):
        yield report.problem(
            f"its configuration names the issuer {document.get('issuer')}, so its tokens are rejected",
            "set auth.issuer to that",
        )
    elif missing := [
        name for name in ("authorization_endpoint", "token_endpoint", "jwks_uri") if not document.get(name)
    ]:
        yield report.problem(f"its configuration has no {', '.join(missing)}", "check auth.issuer in cdk.json")
    else:
        yield report.ok("its configuration is complete")


def _pool(calls: Calls, pool: str) -> Iterator[Finding]:
    report = Reporter("sign-in", pool)
    try:
        found = calls("cognito-idp", "DescribeUserPool", UserPoolId=pool)["UserPool"]
    except CallFailed as failed:
        if failed.code != "ResourceNotFoundException":
            raise
        yield report.problem("the user pool does not exist", "make deploy")
        return
    if int(found.get("EstimatedNumberOfUsers", 0)) == 0 and not _any_user(calls, pool):
        yield report.warning("the user pool has no users", "cicada users add EMAIL")
    else:
        yield report.ok("the user pool has users")


def _any_user(calls: Calls, pool: str) -> bool:
    """Whether the pool has a user; the estimated number is delayed."""
    return bool(calls("cognito-idp", "ListUsers", UserPoolId=pool, Limit=1).get("Users"))


def _client(calls: Calls, pool: str, client_id: str, page: str | None) -> Iterator[Finding]:
    report = Reporter("sign-in", client_id)
    client = calls("cognito-idp", "DescribeUserPoolClient", UserPoolId=pool, ClientId=client_id)["UserPoolClient"]
    callbacks = set(client.get("CallbackURLs", ()))
    if CODE_FLOW not in client.get("AllowedOAuthFlows", ()):
        yield report.problem("the client does not allow the authorization code flow", "make deploy")
    elif page is not None and f"{page.rstrip('/')}/" not in callbacks:
        yield report.problem(
            f"the page {page} is not a callback URL of the client, so signing in there fails", "make deploy"
        )
    elif not any(url.startswith("http://localhost:") for url in callbacks):
        yield report.problem("the client has no callback URL on localhost, so cicada login fails", "make deploy")
    else:
        yield report.ok("the client has callback URLs for the page and cicada login")

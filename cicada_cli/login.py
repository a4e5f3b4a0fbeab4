"""``cicada login``, ``cicada logout`` and ``cicada whoami``."""

from __future__ import annotations

import argparse
import contextlib
import os
import sys
import time
import webbrowser
from collections.abc import Callable, Sequence
from datetime import UTC, datetime
from typing import Any

from cicada_cli.context import deployment_of
from cicada_cli.deployment import CHAT, LOGIN, Deployment
from cicada_cli.exits import Exit
from cicada_cli.grammar import Commands
from cicada_cli.output import complain, note, say, say_json
from cicada_cli.shared_options import add_aws, add_json
from cicada_cli.sign_in_browser import PORTS as CALLBACK_PORTS
from cicada_cli.sign_in_browser import Callback, NoAnswer, NoPort, code_of, pasted, redirect_uri
from cicada_client import NotSignedIn, oauth
from cicada_client.connection import TransportClosed
from cicada_client.sign_in_store import SignIn, SignInStore, StoreError
from cicada_client.signed_in import SignedIn, lifetime_s

GROUP_CLAIMS = ("cognito:groups", "groups", "roles")
"""Claims in which issuers list a user's groups."""


def login(
    deployment: Deployment,
    store: SignInStore,
    *,
    browser: bool,
    open_url: Callable[[str], bool] = webbrowser.open,
    ports: Sequence[int] = CALLBACK_PORTS,
) -> Exit:
    """Sign in with a browser on this machine, or on another by pasting an address. A failure stores nothing."""
    if not deployment.wants_sign_in:
        say(_needs_none(deployment))
        return Exit.DONE
    try:
        endpoints = oauth.discover(deployment.issuer)
        signing = _Signing(deployment, store, endpoints)
        found = signing.by_browser(open_url, ports) if browser else signing.by_hand(ports[0])
    except (oauth.IssuerUnreachable, NoAnswer) as error:
        complain(f"not signed in: {error}. Run the same command again")
        return Exit.CONNECTION_LOST
    except oauth.IssuerRefused as error:
        complain(f"not signed in: {deployment.issuer} refused the sign-in: {error}")
        return Exit.FAILED
    except NoPort as error:
        complain(f"not signed in: {error}. Free one for the browser to return to, or add --no-browser")
        return Exit.FAILED
    except StoreError as error:
        complain(f"not signed in: {error}")
        return Exit.FAILED
    _tell_login(found)
    return Exit.DONE


def logout(url: str, store: SignInStore, *, forget: bool) -> Exit:
    """Revoke the sign-in at its issuer and delete the stored tokens."""
    try:
        with store.locked(url):
            if not forget:  # also deletes what cannot be read
                found = store.get(url)
                if found is None:
                    say(f"Not signed in to {url}.")
                    return Exit.DONE
                if found.refresh_token and found.revocation_endpoint:
                    oauth.revoke(found.revocation_endpoint, found.client_id, found.refresh_token)
            store.remove(url)
    except (oauth.IssuerUnreachable, oauth.IssuerRefused) as error:
        complain(f"still signed in: {error}. Run the same command again; --forget only deletes the stored tokens")
        return Exit.CONNECTION_LOST
    except StoreError as error:
        complain(str(error) if forget else f"{error}. --forget deletes the stored tokens")
        return Exit.FAILED
    say(f"Deleted the stored tokens for {url}." if forget else f"Signed out of {url}.")
    return Exit.DONE


def whoami(url: str, store: SignInStore, *, as_json: bool) -> Exit:
    """Show who is signed in, after a refresh if it is due."""
    try:
        found = SignedIn(url, store).current()
    except NotSignedIn as error:
        complain(str(error))
        return Exit.FAILED
    except TransportClosed as error:
        complain(f"{error}. Run the same command again")
        return Exit.CONNECTION_LOST
    told = described(found)
    if as_json:
        say_json(told)
        return Exit.DONE
    for name, label in _LABELS.items():
        value = told[name]
        if value is not None:
            say(f"{label:<9} {', '.join(value) or '(none)' if isinstance(value, list) else value}")
    return Exit.DONE


_LABELS = {
    "subject": "user",
    "email": "email",
    "groups": "groups",
    "url": "at",
    "page": "page",
    "issuer": "issuer",
    "expiresAt": "valid to",
}


def described(sign_in: SignIn) -> dict[str, Any]:
    """A sign-in as JSON data."""
    claims = oauth.claims_of(sign_in.token) or {}
    return {
        "subject": str(claims.get("sub", "")),
        "email": claims.get("email", sign_in.email),
        "groups": _groups(claims),
        "url": sign_in.url,
        "page": sign_in.page,
        "issuer": sign_in.issuer,
        "clientId": sign_in.client_id,
        "expiresAt": _time(sign_in.expires_at),
        "refreshable": sign_in.refreshable,
    }


class _Signing:
    """One sign-in."""

    def __init__(self, deployment: Deployment, store: SignInStore, endpoints: oauth.Endpoints) -> None:
        self._deployment = deployment
        self._store = store
        self._endpoints = endpoints

    def by_browser(self, open_url: Callable[[str], bool], ports: Sequence[int]) -> SignIn:
        """Have a browser of this machine come back."""
        callback = Callback(ports)
        attempt = oauth.Attempt.begin(callback.redirect_uri)
        outcome: list[SignIn | Exception] = []

        def finish(fields: dict[str, str]) -> str | None:
            try:
                outcome.append(self._keep(code_of(fields, attempt), attempt))
            except (oauth.IssuerUnreachable, oauth.IssuerRefused, StoreError) as error:
                outcome.append(error)
                return str(error)
            return None

        try:
            callback.serve(attempt.state, finish)
            url = self._url(attempt)
            note(f"Sign in in the browser. If none opens, open:\n\n  {url}\n\n(or use --no-browser)")
            with contextlib.suppress(webbrowser.Error):
                open_url(url)  # a browser in the terminal blocks until it is closed
            callback.wait()
        finally:
            callback.close()
        if isinstance(outcome[0], Exception):
            raise outcome[0]
        return outcome[0]

    def by_hand(self, port: int) -> SignIn:
        """Let the user paste the code."""
        attempt = oauth.Attempt.begin(redirect_uri(port))
        note(
            f"Open this address in a browser on any machine and sign in:\n\n  {self._url(attempt)}\n\n"
            f"The browser then shows an error for {attempt.redirect_uri}?code=…. Paste that address here."
        )
        if sys.stdin.isatty():
            note("Address or code: ", end="")
        text = sys.stdin.readline()
        if not text:
            raise oauth.IssuerRefused("nothing was pasted")
        return self._keep(pasted(text, attempt), attempt)

    def _url(self, attempt: oauth.Attempt) -> str:
        return attempt.url(self._endpoints, self._deployment.client_id, self._deployment.scopes)

    def _keep(self, code: str, attempt: oauth.Attempt) -> SignIn:
        tokens = oauth.redeem(self._endpoints, self._deployment.client_id, code, attempt)
        token, now = tokens.to_send, time.time()
        email = (oauth.claims_of(tokens.id_token or "") or {}).get("email")
        sign_in = SignIn(
            url=self._deployment.url,
            page=self._deployment.page if self._deployment.by_page else None,
            issuer=self._deployment.issuer,
            client_id=self._deployment.client_id,
            token_endpoint=self._endpoints.token_endpoint,
            revocation_endpoint=self._endpoints.revocation_endpoint,
            token=token,
            obtained_at=now,
            expires_at=now + lifetime_s(token, tokens.expires_in),
            refresh_token=tokens.refresh_token,
            signed_in_at=now,
            email=email if isinstance(email, str) else None,
        )
        with self._store.locked(sign_in.url):
            self._store.put(sign_in)
        return sign_in


def _needs_none(deployment: Deployment) -> str:
    """The message for a deployment without sign-in. A page may name none although connections need a token."""
    if not deployment.by_page:
        return f"{deployment.url} needs no sign-in."
    return (
        f"The page {deployment.page} has no sign-in. If {deployment.url} rejects connections without a token, name "
        "its issuer with --issuer URL --client-id ID."
    )


def _tell_login(sign_in: SignIn) -> None:
    told = described(sign_in)
    groups = f" (groups: {', '.join(told['groups'])})" if told["groups"] else ""
    say(f"Signed in to {sign_in.url} as {told['email'] or told['subject']}{groups}.")
    if not told["groups"]:
        note("The user has no groups. A deployment that requires one refuses the connection.")
    if sign_in.refresh_token is None:
        note(f"The issuer returned no refresh token: the sign-in ends at {told['expiresAt']}.")


def _groups(claims: dict[str, Any]) -> list[str]:
    for name in GROUP_CLAIMS:
        found = claims.get(name)
        if isinstance(found, list):
            return [str(group) for group in found]
    return []


def _time(at: float) -> str:
    return datetime.fromtimestamp(at, UTC).isoformat(timespec="seconds").replace("+00:00", "Z")


def add_login(commands: Commands) -> None:
    """Add the command's parser."""
    parser = commands.add_parser(
        "login",
        help="sign in",
        description="Sign in to a deployment with your browser.",
        examples=(
            "cicada login --page https://d111111abcdef8.cloudfront.net",
            "cicada login --no-browser      # on a machine without a browser",
        ),
    )
    parser.add_argument(
        "--no-browser",
        action="store_true",
        help="print the sign-in address and read the address that the browser shows",
    )
    group = _add_place(parser)
    group.add_argument("--issuer", metavar="URL", help="the issuer, if neither the page nor the stacks name it")
    group.add_argument("--client-id", metavar="ID", help="the public client at the issuer")
    group.add_argument("--scopes", metavar="SCOPES", help="scopes to request (default: openid email)")
    add_aws(group)
    parser.set_defaults(run=_login)


def add_logout(commands: Commands) -> None:
    """Add the command's parser."""
    parser = commands.add_parser(
        "logout",
        help="sign out",
        description="Sign out of a deployment and delete the stored tokens.",
        examples=("cicada logout",),
    )
    parser.add_argument("--forget", action="store_true", help="delete the stored tokens without asking the issuer")
    add_aws(_add_place(parser))
    parser.set_defaults(run=_logout)


def add_whoami(commands: Commands) -> None:
    """Add the command's parser."""
    parser = commands.add_parser(
        "whoami",
        help="show who is signed in",
        description="Show who is signed in to a deployment.",
        examples=("cicada whoami", "cicada whoami --json | jq .groups"),
    )
    add_json(parser)
    add_aws(_add_place(parser))
    parser.set_defaults(run=_whoami)


def _add_place(parser: argparse.ArgumentParser) -> argparse._ArgumentGroup:
    group = parser.add_argument_group("deployment")
    group.add_argument("--url", help="WebSocket URL of the deployment (CICADA_URL)")
    group.add_argument("--page", metavar="URL", help="web page of the deployment, which names the rest (CICADA_PAGE)")
    return group


def _login(args: argparse.Namespace) -> Exit:
    return login(deployment_of(args, LOGIN), store_of_user(), browser=not args.no_browser)


def _logout(args: argparse.Namespace) -> Exit:
    return logout(deployment_of(args, CHAT).url, store_of_user(), forget=args.forget)


def _whoami(args: argparse.Namespace) -> Exit:
    return whoami(deployment_of(args, CHAT).url, store_of_user(), as_json=args.json)


def store_of_user() -> SignInStore:
    """The user's stored sign-ins."""
    return SignInStore.of_user(os.environ)

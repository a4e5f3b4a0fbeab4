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

from cicada_cli.deployment import Deployment
from cicada_cli.exits import Exit
from cicada_cli.output import complain, note, say, say_json
from cicada_cli.sign_in_browser import PORTS as CALLBACK_PORTS
from cicada_cli.sign_in_browser import Callback, NoAnswer, NoPort, code_of, pasted, redirect_uri
from cicada_client import NotSignedIn, oauth
from cicada_client.connection import TransportClosed
from cicada_client.sign_in_store import SignIn, SignInStore, StoreError
from cicada_client.signed_in import SignedIn, lifetime_s

GROUP_CLAIMS = ("cognito:groups", "groups", "roles")
"""Where issuers list a user's groups."""


def login(
    deployment: Deployment,
    store: SignInStore,
    *,
    browser: bool,
    open_url: Callable[[str], bool] = webbrowser.open,
    ports: Sequence[int] = CALLBACK_PORTS,
) -> Exit:
    """Sign in, with a browser on this machine or by pasting where one elsewhere ends. A failure leaves nothing."""
    if not deployment.wants_sign_in:
        say(_needs_none(deployment))
        return Exit.DONE
    try:
        endpoints = oauth.discover(deployment.issuer)
        signing = _Signing(deployment, store, endpoints)
        found = signing.by_browser(open_url, ports) if browser else signing.by_hand(ports[0])
    except (oauth.IssuerUnreachable, NoAnswer) as error:
        complain(f"not signed in: {error}. The same command tries again")
        return Exit.CONNECTION_LOST
    except oauth.IssuerRefused as error:
        complain(f"not signed in: {deployment.issuer} refused it: {error}")
        return Exit.FAILED
    except NoPort as error:
        complain(f"not signed in: {error}, where the browser would come back to. Free one, or add --no-browser")
        return Exit.FAILED
    except StoreError as error:
        complain(f"not signed in: {error}")
        return Exit.FAILED
    _tell_login(found)
    return Exit.DONE


def logout(url: str, store: SignInStore, *, forget: bool) -> Exit:
    """End the sign-in at its issuer, and forget it here."""
    try:
        with store.locked(url):
            if not forget:  # what cannot be read can be forgotten
                found = store.get(url)
                if found is None:
                    say(f"Not signed in to {url}.")
                    return Exit.DONE
                if found.refresh_token and found.revocation_endpoint:
                    oauth.revoke(found.revocation_endpoint, found.client_id, found.refresh_token)
            store.remove(url)
    except (oauth.IssuerUnreachable, oauth.IssuerRefused) as error:
        complain(f"still signed in: {error}. The same command tries again; --forget only deletes what is kept here")
        return Exit.CONNECTION_LOST
    except StoreError as error:
        complain(str(error) if forget else f"{error}. --forget only deletes what is kept here")
        return Exit.FAILED
    say(f"Forgot the sign-in to {url}." if forget else f"Signed out of {url}.")
    return Exit.DONE


def whoami(url: str, store: SignInStore, *, as_json: bool) -> Exit:
    """Show who is signed in, after a refresh if that is due."""
    try:
        found = SignedIn(url, store).current()
    except NotSignedIn as error:
        complain(str(error))
        return Exit.FAILED
    except TransportClosed as error:
        complain(f"{error}. The same command tries again")
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
    """Who signed in, as plain data."""
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
            note(f"Sign in in the browser; if none opens, at:\n\n  {url}\n\n(without a browser here: --no-browser)")
            with contextlib.suppress(webbrowser.Error):
                open_url(url)  # one in the terminal is left before this returns
            callback.wait()
        finally:
            callback.close()
        if isinstance(outcome[0], Exception):
            raise outcome[0]
        return outcome[0]

    def by_hand(self, port: int) -> SignIn:
        """Have the user carry the code."""
        attempt = oauth.Attempt.begin(redirect_uri(port))
        note(
            f"Open this address in a browser, on any machine, and sign in:\n\n  {self._url(attempt)}\n\n"
            f"The browser then fails to load {attempt.redirect_uri}?code=…: paste that address here."
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
    """What to tell of a deployment without a sign-in. Its page may name none although connections need a token."""
    if not deployment.by_page:
        return f"{deployment.url} needs no sign-in."
    return (
        f"The page {deployment.page} names no sign-in. If {deployment.url} rejects connections without a token, name "
        "its issuer: --issuer URL --client-id ID."
    )


def _tell_login(sign_in: SignIn) -> None:
    told = described(sign_in)
    groups = f", in {', '.join(told['groups'])}" if told["groups"] else ""
    say(f"Signed in to {sign_in.url} as {told['email'] or told['subject']}{groups}.")
    if not told["groups"]:
        note("The user is in no group; a deployment that asks for one refuses the connection.")
    if sign_in.refresh_token is None:
        note(f"The issuer gave no refresh token: the sign-in ends at {told['expiresAt']}.")


def _groups(claims: dict[str, Any]) -> list[str]:
    for name in GROUP_CLAIMS:
        found = claims.get(name)
        if isinstance(found, list):
            return [str(group) for group in found]
    return []


def _time(at: float) -> str:
    return datetime.fromtimestamp(at, UTC).isoformat(timespec="seconds").replace("+00:00", "Z")


def add_login(
    commands: argparse._SubParsersAction[argparse.ArgumentParser],
    runs: dict[str, Callable[[argparse.Namespace], Exit]],
    add_aws: Callable[[argparse._ArgumentGroup], None],
) -> None:
    """Add the three commands."""
    signing = commands.add_parser("login", help="sign in", description="Sign in to a deployment.")
    signing.add_argument(
        "--no-browser",
        action="store_true",
        help="print the sign-in address, and read the address that the browser ends at",
    )
    leaving = commands.add_parser("logout", help="sign out", description="End the sign-in to a deployment.")
    leaving.add_argument("--forget", action="store_true", help="only delete what is kept here; ask the issuer nothing")
    who = commands.add_parser("whoami", help="show who is signed in", description="Show who is signed in.")
    who.add_argument("--json", action="store_true", help="a JSON object")
    for name, parser in (("login", signing), ("logout", leaving), ("whoami", who)):
        group = parser.add_argument_group("deployment")
        group.add_argument("--url", help="the deployment's WebSocket URL (CICADA_URL)")
        group.add_argument(
            "--page", metavar="URL", help="the deployment's page, which names all the rest (CICADA_PAGE)"
        )
        if name == "login":
            group.add_argument("--issuer", metavar="URL", help="who signs in, where neither page nor stacks say so")
            group.add_argument("--client-id", metavar="ID", help="the public client at the issuer")
            group.add_argument("--scopes", metavar="SCOPES", help="what to ask the issuer for (default: openid email)")
        add_aws(group)
        parser.set_defaults(run=runs[name])


def store_of_user() -> SignInStore:
    """The sign-ins of who types."""
    return SignInStore.of_user(os.environ)

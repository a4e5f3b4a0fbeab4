"""The access token for a deployment."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from pathlib import Path

from cicada_cli.deployment import Deployment
from cicada_cli.exits import UsageError
from cicada_client import SignedIn, TokenProvider
from cicada_client.sign_in_store import SignInStore, StoreError


def token_source(
    token: str | None, token_file: Path | None, environ: Mapping[str, str], deployment: Deployment
) -> str | TokenProvider | None:
    """The token from the option, the file, ``CICADA_TOKEN`` or the sign-in, in this order.

    A file is read again for every connection, so that another program can renew it. A sign-in is refreshed before it
    expires.

    Raises:
        UsageError: the file cannot be read or is empty, or the deployment needs a token and there is none.
    """
    if token is not None:
        return token
    if token_file is None:
        return environ.get("CICADA_TOKEN") or _signed_in(deployment, environ)
    _read(token_file)

    async def fresh() -> str:
        return await asyncio.to_thread(_read, token_file)

    return fresh


def _signed_in(deployment: Deployment, environ: Mapping[str, str]) -> TokenProvider | None:
    store = SignInStore.of_user(environ)
    try:
        found = store.get(deployment.url)
    except StoreError as error:
        raise UsageError(str(error)) from error
    if found is not None:
        return SignedIn(deployment.url, store)
    if deployment.wants_sign_in:
        page = f" --page {deployment.page}" if deployment.page else ""
        raise UsageError(f"not signed in to {deployment.url}. Run: cicada login{page}")
    return None


def _read(path: Path) -> str:
    try:
        token = path.read_text(encoding="utf-8").strip()
    except (OSError, ValueError) as error:  # not UTF-8, or an invalid path
        raise UsageError(f"cannot read the token file {path}: {error}") from error
    if not token:
        raise UsageError(f"the token file {path} is empty")
    return token

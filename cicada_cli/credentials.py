"""The token that a deployment's authorizer wants."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from pathlib import Path

from cicada_cli.exits import UsageError
from cicada_client import TokenProvider


def token_source(token: str | None, token_file: Path | None, environ: Mapping[str, str]) -> str | TokenProvider | None:
    """The token by option, from a file, or from ``CICADA_TOKEN``.

    A file is read anew for every connection, so that another program can keep it fresh.

    Raises:
        UsageError: the file cannot be read, or is empty.
    """
    if token is not None:
        return token
    if token_file is None:
        return environ.get("CICADA_TOKEN") or None
    _read(token_file)

    async def fresh() -> str:
        return await asyncio.to_thread(_read, token_file)

    return fresh


def _read(path: Path) -> str:
    try:
        token = path.read_text(encoding="utf-8").strip()
    except (OSError, ValueError) as error:  # not UTF-8, or a path that can be none
        raise UsageError(f"the token file {path} cannot be read: {error}") from error
    if not token:
        raise UsageError(f"the token file {path} is empty")
    return token

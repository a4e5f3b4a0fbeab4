"""The credentials that a function, or a laptop, has."""

from __future__ import annotations

import threading
from collections.abc import Mapping
from typing import Any

from cicada.errors import IndexUnavailable
from cicada.index.s3direct.signing import Credentials


class CredentialSource:
    """The environment's credentials, as Lambda gives them; where it has none, the SDK's chain. Safe for threads.

    The chain (profiles, SSO, roles, container credentials) keeps its own fresh; the SDK is imported only for it.
    """

    def __init__(self, environ: Mapping[str, str]) -> None:
        """Take the environment; it is read anew for each request."""
        self._environ = environ
        self._chain: Any = None
        self._lock = threading.Lock()

    def current(self) -> Credentials:
        """The credentials to sign with now.

        Raises:
            IndexUnavailable: there are none, or they cannot be had.
        """
        key_id, secret = (self._environ.get(name) for name in ("AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY"))
        if key_id and secret:
            return Credentials(key_id, secret, self._environ.get("AWS_SESSION_TOKEN"))
        return self._from_chain()

    def renewed(self, refused: Credentials) -> Credentials | None:
        """Other credentials than those that were refused as expired; None if there are none.

        Raises:
            IndexUnavailable: they cannot be had.
        """
        with self._lock:
            self._chain = None
        found = self.current()
        return None if found == refused else found

    def _from_chain(self) -> Credentials:
        from botocore.exceptions import BotoCoreError  # the SDK is slow to import, and Lambda needs none of it
        from botocore.session import get_session

        with self._lock:
            try:
                if self._chain is None:
                    self._chain = get_session().get_credentials()
                frozen = self._chain.get_frozen_credentials() if self._chain is not None else None
            except (BotoCoreError, OSError) as error:
                raise IndexUnavailable(f"AWS credentials cannot be had: {error}") from error
        if frozen is None:
            raise IndexUnavailable("no AWS credentials were found")
        return Credentials(frozen.access_key, frozen.secret_key, frozen.token)

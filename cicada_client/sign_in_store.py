"""Sign-ins on this machine: one file each, for its owner's eyes only, below the user's state directory.

Where the package ``keyring`` is installed and has a keyring, the refresh token lies there: it is the secret that lasts.
The file then holds the rest, with a token that ends within the hour.
"""

from __future__ import annotations

import contextlib
import hashlib
import importlib
import os
import stat
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping
from functools import cached_property
from pathlib import Path
from typing import Any

from pydantic import BaseModel, ConfigDict, ValidationError

LOCK_TIMEOUT_S = 45.0
"""How long to wait for another process: it refreshes with two requests of 10 s at most."""

_LOCK_POLL_S = 0.05
_OTHERS = stat.S_IRWXG | stat.S_IRWXO
_KEYRING_SERVICE = "cicada"


class StoreError(Exception):
    """A sign-in cannot be kept or read; the message says which, and what helps."""


class SignIn(BaseModel):
    """One sign-in: to which deployment, by whom, and the tokens."""

    model_config = ConfigDict(frozen=True, extra="ignore")

    url: str
    """The deployment's WebSocket URL."""
    page: str | None = None
    """The deployment's page, where it was found by that."""
    issuer: str
    client_id: str
    token_endpoint: str
    revocation_endpoint: str | None = None
    token: str
    """What connections carry."""
    obtained_at: float
    """Seconds since the epoch, as are all times."""
    expires_at: float
    refresh_token: str | None = None
    """None where the keyring has it, or the issuer gave none."""
    in_keyring: bool = False
    signed_in_at: float
    email: str | None = None
    """As the ID token had it: access tokens often have none."""

    @property
    def refreshable(self) -> bool:
        """Whether a new token can be had without signing in again."""
        return self.in_keyring or self.refresh_token is not None


class SignInStore:
    """The sign-ins of this user."""

    def __init__(self, folder: Path, *, load_keyring: Callable[[], Any] = lambda: None) -> None:
        """Keep them in a folder.

        Args:
            folder: made when needed.
            load_keyring: gives the package ``keyring``, or what acts like it; None for files alone.
        """
        self._folder = folder
        self._load_keyring = load_keyring

    @classmethod
    def of_user(cls, environ: Mapping[str, str]) -> SignInStore:
        """The store in the user's state directory (XDG Base Directory Specification), with the system's keyring."""
        home = Path(environ.get("HOME") or "~").expanduser()
        state = Path(environ.get("XDG_STATE_HOME") or home / ".local" / "state")
        return cls(state / "cicada" / "sign-ins", load_keyring=installed_keyring)

    def get(self, url: str) -> SignIn | None:
        """The sign-in to a deployment, complete; None where there is none.

        Raises:
            StoreError: it cannot be read, or others can.
        """
        found = self._read(self._path(url))
        if found is None or not found.in_keyring:
            return found
        return found.model_copy(update={"refresh_token": self._from_keyring(found.url)})

    def all(self) -> list[SignIn]:
        """All sign-ins, the latest first, without what the keyring has. What cannot be read is left out."""
        found = []
        for path in self._folder.glob("*.json"):
            with contextlib.suppress(StoreError):
                found.append(self._read(path))
        return sorted((one for one in found if one), key=lambda one: one.signed_in_at, reverse=True)

    def put(self, sign_in: SignIn) -> None:
        """Keep a sign-in in place of any to the same deployment: whole, or not at all.

        Raises:
            StoreError: it cannot be written.
        """
        if sign_in.refresh_token is not None:
            kept = self._to_keyring(sign_in.url, sign_in.refresh_token)
            sign_in = sign_in.model_copy(
                update={"in_keyring": kept, "refresh_token": None if kept else sign_in.refresh_token}
            )
        path = self._path(sign_in.url)
        try:
            self._make_folder()
            _write_whole(path, sign_in.model_dump_json(exclude_none=True))
        except OSError as error:
            raise StoreError(f"the sign-in cannot be kept in {path}: {error.strerror}") from error

    def remove(self, url: str) -> None:
        """Forget a sign-in.

        Raises:
            StoreError: it cannot be deleted.
        """
        if self._keyring is not None:
            with contextlib.suppress(Exception):  # each keyring has errors of its own; most often there is no entry
                self._keyring.delete_password(_KEYRING_SERVICE, _key(url))
        path = self._path(url)
        try:
            path.unlink(missing_ok=True)
        except OSError as error:
            raise StoreError(f"the sign-in cannot be deleted: {path}: {error.strerror}") from error

    @contextlib.contextmanager
    def locked(
        self, url: str, *, clock: Callable[[], float] = time.monotonic, sleep: Callable[[float], None] = time.sleep
    ) -> Iterator[None]:
        """Be the only process that changes a sign-in while the block runs.

        Raises:
            StoreError: another one takes too long.
        """
        path = self._path(url).with_suffix(".lock")
        try:
            self._make_folder()
            handle = os.open(path, os.O_RDWR | os.O_CREAT, 0o600)
        except OSError as error:
            raise StoreError(f"the sign-in cannot be locked: {path}: {error.strerror}") from error
        try:
            deadline = clock() + LOCK_TIMEOUT_S
            while not _try_lock(handle):
                if clock() >= deadline:
                    raise StoreError(f"another process has held {path} for {LOCK_TIMEOUT_S:.0f} s; end it and retry")
                sleep(_LOCK_POLL_S)
            yield
        finally:
            os.close(handle)  # which ends the lock

    # --- files ---

    def _path(self, url: str) -> Path:
        return self._folder / f"{_key(url)}.json"

    def _make_folder(self) -> None:
        self._folder.mkdir(mode=0o700, parents=True, exist_ok=True)

    @staticmethod
    def _read(path: Path) -> SignIn | None:
        try:
            with path.open("rb") as file:
                found = os.fstat(file.fileno())
                if sys.platform != "win32" and (found.st_mode & _OTHERS or found.st_uid != os.getuid()):
                    raise StoreError(f"others can read the sign-in: chmod 600 {path}, or sign in again")
                return SignIn.model_validate_json(file.read())
        except FileNotFoundError:
            return None
        except OSError as error:
            raise StoreError(f"the sign-in {path} cannot be read: {error.strerror}") from error
        except ValidationError:  # its text would hold tokens
            raise StoreError(f"the sign-in {path} is damaged: delete it and sign in again") from None

    # --- the keyring ---

    @cached_property
    def _keyring(self) -> Any:
        return self._load_keyring()

    def _to_keyring(self, url: str, token: str) -> bool:
        """Put a secret there; whether it is there afterwards."""
        if self._keyring is None:
            return False
        try:
            self._keyring.set_password(_KEYRING_SERVICE, _key(url), token)
            return bool(self._keyring.get_password(_KEYRING_SERVICE, _key(url)) == token)
        except Exception:  # each keyring has errors of its own; the file does as well
            return False

    def _from_keyring(self, url: str) -> str | None:
        if self._keyring is None:
            raise StoreError("the sign-in lies in a keyring, and the package keyring is not installed any more")
        try:
            token: str | None = self._keyring.get_password(_KEYRING_SERVICE, _key(url))
        except Exception as error:  # as above
            raise StoreError(f"the keyring cannot be read: {error}") from error
        return token


def installed_keyring() -> Any:
    """The package ``keyring``, where it is installed."""
    try:
        return importlib.import_module("keyring")
    except ImportError:
        return None


def _key(url: str) -> str:
    return hashlib.sha256(url.rstrip("/").encode()).hexdigest()[:32]


def _write_whole(path: Path, text: str) -> None:
    handle, name = tempfile.mkstemp(dir=path.parent, prefix=".new-")  # readable by its owner alone
    try:
        with os.fdopen(handle, "w", encoding="utf-8") as file:
            file.write(text)
            file.flush()
            os.fsync(file.fileno())
        Path(name).replace(path)
    except BaseException:
        Path(name).unlink(missing_ok=True)
        raise


if sys.platform == "win32":
    import msvcrt

    def _try_lock(handle: int) -> bool:
        try:
            msvcrt.locking(handle, msvcrt.LK_NBLCK, 1)
        except OSError:
            return False
        return True

else:
    import fcntl

    def _try_lock(handle: int) -> bool:
        try:
            fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            return False
        return True

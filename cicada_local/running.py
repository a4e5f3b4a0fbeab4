"""The process that runs from a home: that there is one at most, where it is, and how it is stopped."""

from __future__ import annotations

import contextlib
import fcntl
import json
import os
import signal
import time
import urllib.error
import urllib.request
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from cicada_local.places import PORT_VARIABLE, Places

STOP_TIMEOUT_S = 20.0
_HEALTH_TIMEOUT_S = 2.0


class UpFailed(Exception):
    """The local cloud could not start; the message is for the person at the terminal."""


class Running:
    """The file that names the running process."""

    def __init__(self, path: Path) -> None:
        self._path = path

    def tell(self, document: Mapping[str, Any]) -> None:
        """Replace what the file says."""
        fresh = self._path.with_suffix(".new")
        fresh.write_text(json.dumps(document), encoding="utf-8")
        fresh.replace(self._path)

    def read(self) -> dict[str, Any] | None:
        """What it says; None when no living process stands behind it."""
        try:
            document: dict[str, Any] = json.loads(self._path.read_text(encoding="utf-8"))
            os.kill(document["pid"], 0)
        except (OSError, ValueError, KeyError):
            return None
        return document


@contextlib.contextmanager
def only_one(places: Places) -> Iterator[Running]:
    """Be the only process of a home while the block runs.

    Raises:
        UpFailed: there is another one; the message says where.
    """
    places.home.mkdir(parents=True, exist_ok=True)
    running = Running(places.running)
    with (places.home / "lock").open("w") as lock:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError:
            found = running.read() or {}
            where = f" at {found['endpointUrl']}/" if "endpointUrl" in found else ""
            raise UpFailed(
                f"Cicada already runs{where} (process {found.get('pid', '?')}). `make down` stops it."
            ) from None
        running.tell({"pid": os.getpid(), "status": "starting"})
        try:
            yield running
        finally:
            places.running.unlink(missing_ok=True)


def who_has(port: int) -> str:
    """A sentence on who listens on a port, and how to choose another one."""
    other = f"Repeat the command with another one: {PORT_VARIABLE}={port + 1}"
    try:
        with urllib.request.urlopen(f"http://localhost:{port}/_cicada/health", timeout=_HEALTH_TIMEOUT_S) as answer:
            pid = json.load(answer)["pid"]
    except (OSError, ValueError, KeyError, TypeError, urllib.error.URLError):
        return f"Port {port} is taken by another program. {other}"
    return f"Port {port} is taken by another Cicada (process {pid}). {other}"


def down(places: Places) -> bool:
    """Stop the process that runs from a home, and wait for its end.

    Returns:
        Whether there was one.

    Raises:
        UpFailed: it does not stop.
    """
    found = Running(places.running).read()
    if found is None:
        return False
    os.kill(found["pid"], signal.SIGTERM)
    deadline = time.monotonic() + STOP_TIMEOUT_S
    while time.monotonic() < deadline:
        if Running(places.running).read() is None:
            return True
        time.sleep(0.1)
    raise UpFailed(f"Process {found['pid']} has not stopped within {STOP_TIMEOUT_S:.0f} s.")

"""The harnesses that stacks have made, with their endpoints."""

from __future__ import annotations

import hashlib
import re
import string
import threading
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

DEFAULT_ENDPOINT = "DEFAULT"
"""The endpoint that every harness has."""
_NAME = re.compile(r"[a-zA-Z][a-zA-Z0-9_]{0,39}")
_ENDPOINT = re.compile(r"[a-zA-Z][a-zA-Z0-9_]{0,47}")
_SUFFIX_LENGTH = 10
_ALPHABET = string.ascii_letters + string.digits


@dataclass
class HarnessVersion:
    """What a harness is told to be: the members of CreateHarness that invocations may override."""

    model: Mapping[str, Any]
    system_prompt: tuple[Mapping[str, Any], ...] = ()
    tools: tuple[Mapping[str, Any], ...] = ()
    allowed_tools: tuple[str, ...] = ("*",)
    max_iterations: int = 75
    max_tokens: int | None = None
    timeout_s: int = 3600


@dataclass
class Harness:
    """A harness, and which version each of its endpoints uses."""

    id: str
    arn: str
    versions: list[HarnessVersion]
    endpoints: dict[str, int | None] = field(default_factory=lambda: {DEFAULT_ENDPOINT: None})
    """Names of endpoints with their versions, from 1; the latest one when None."""

    def version_of(self, endpoint: str) -> HarnessVersion | None:
        """What an endpoint uses; None if there is no such endpoint."""
        if endpoint not in self.endpoints:
            return None
        version = self.endpoints[endpoint]
        return self.versions[-1 if version is None else version - 1]


class HarnessStore:
    """All harnesses of the account. Thread-safe."""

    def __init__(self) -> None:
        """Begin without any."""
        self._lock = threading.Lock()
        self._harnesses: dict[str, Harness] = {}

    def put(self, name: str, version: HarnessVersion, *, region: str, account_id: str) -> Harness:
        """Make a harness, or another version of it. Raises ValueError for a name that it cannot have."""
        if not _NAME.fullmatch(name):
            raise ValueError(f"a harness cannot be called {name!r}: letters, digits and _, at most 40")
        digest = hashlib.sha256(name.encode()).digest()
        identifier = f"{name}-{''.join(_ALPHABET[byte % len(_ALPHABET)] for byte in digest[:_SUFFIX_LENGTH])}"
        with self._lock:
            harness = self._harnesses.get(identifier)
            if harness is None:
                arn = f"arn:aws:bedrock-agentcore:{region}:{account_id}:harness/{identifier}"
                harness = self._harnesses[identifier] = Harness(identifier, arn, [])
            harness.versions.append(version)
        return harness

    def delete(self, identifier: str) -> None:
        """Delete a harness, if it is there."""
        with self._lock:
            self._harnesses.pop(identifier, None)

    def arn_of(self, identifier: str) -> str:
        """The ARN of a harness. Raises KeyError for an unknown one."""
        with self._lock:
            return self._harnesses[identifier].arn

    def put_endpoint(self, identifier: str, name: str, version: int | None) -> None:
        """Make an endpoint, or point it elsewhere.

        Raises:
            ValueError: there is no such harness or version, or the endpoint cannot be called so.
        """
        with self._lock:
            harness = self._harnesses.get(identifier)
            if harness is None:
                raise ValueError(f"there is no harness {identifier!r}")
            if not _ENDPOINT.fullmatch(name):
                raise ValueError(f"an endpoint cannot be called {name!r}: letters, digits and _, at most 48")
            if version is not None and not 1 <= version <= len(harness.versions):
                raise ValueError(f"the harness {identifier} has no version {version}")
            harness.endpoints[name] = version

    def delete_endpoint(self, identifier: str, name: str) -> None:
        """Delete an endpoint, if it is there."""
        with self._lock:
            harness = self._harnesses.get(identifier)
            if harness is not None:
                harness.endpoints.pop(name, None)

    def find(self, arn: str) -> Harness | None:
        """The harness of an ARN."""
        with self._lock:
            return next((harness for harness in self._harnesses.values() if harness.arn == arn), None)

"""What a run carries from call to call in the service's session: in whose name, until when, and which passages.

Session attributes are set by the worker and by the action-group function. They stand in no prompt, so that no model
reads or writes them.
"""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from typing import Self

from cicada.agents.ports import Actor
from cicada.agents.shelf import MAX_SOURCES
from cicada.errors import ToolInvalid

_KEY = re.compile(r"[0-9a-f]{16}")
_MS = re.compile(r"[0-9]{1,15}")
_MAX_CHARS = 1_024


def session_id(actor: Actor, conversation: str, run: str) -> str:
    """The session of one run: no other user, conversation, request or run can come upon it.

    Args:
        actor: in whose name it runs.
        conversation: which the request belongs to.
        run: tells this run from others of the same request; unique.

    Returns:
        68 characters of those that the service allows.
    """
    parts = (actor.tenant, actor.subject, conversation, actor.request_id, run)
    return f"run-{hashlib.sha256(json.dumps(parts).encode()).hexdigest()}"


@dataclass(frozen=True)
class RunAttributes:
    """The session attributes of a run."""

    subject: str
    request_id: str
    until_ms: int
    """When the run ends at the latest, in epoch milliseconds: past it, the function serves it no more."""
    shelf: tuple[str, ...] = ()
    """The keys of the sources so far, in the order of their numbers, from 1."""

    index_version: str = ""
    """Of the index that the run searches; empty before its first search."""

    def with_shelf(self, keys: Iterable[str], index_version: str) -> Self:
        """The same with another shelf, of a version of the index."""
        return replace(self, shelf=tuple(keys), index_version=index_version)

    def write(self) -> dict[str, str]:
        """As the service takes them."""
        return {
            "subject": self.subject,
            "requestId": self.request_id,
            "untilMs": str(self.until_ms),
            "shelf": ",".join(self.shelf),
            "indexVersion": self.index_version,
        }

    @classmethod
    def read(cls, given: Mapping[str, str]) -> Self:
        """Read them. Raises ToolInvalid if they are not what the worker sets."""
        subject, request_id = given.get("subject", ""), given.get("requestId", "")
        until_ms, shelf = given.get("untilMs", ""), given.get("shelf", "")
        if not (0 < len(subject) <= _MAX_CHARS and 0 < len(request_id) <= _MAX_CHARS):
            raise ToolInvalid("the session does not say in whose name it runs")
        if not _MS.fullmatch(until_ms):
            raise ToolInvalid("the session does not say until when it runs")
        keys = tuple(shelf.split(",")) if shelf else ()
        if len(keys) > MAX_SOURCES or len(set(keys)) != len(keys) or not all(_KEY.fullmatch(key) for key in keys):
            raise ToolInvalid("the session's passages cannot be read")
        return cls(subject, request_id, int(until_ms), keys, given.get("indexVersion", "")[:_MAX_CHARS])

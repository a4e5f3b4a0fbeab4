"""Saved queries, as ``DescribeQueryDefinitions`` tells them."""

from __future__ import annotations

import time
import uuid
from collections.abc import Sequence
from typing import Any

SAVED_QUERIES: dict[str, dict[str, Any]] = {}
"""By id. Deployed stacks put them here, as does ``PutQueryDefinition``."""
_SPACE = uuid.UUID("6ba7b811-9dad-11d1-80b4-00c04fd430c8")


def saved_query(name: str, text: str, groups: Sequence[str], *, id: str = "") -> str:
    """Save a query under an id, or under one made of its name; returns the id."""
    id = id or str(uuid.uuid5(_SPACE, name))
    SAVED_QUERIES[id] = {
        "queryLanguage": "CWLI",
        "queryDefinitionId": id,
        "name": name,
        "queryString": text,
        "lastModified": round(time.time() * 1000),
        "logGroupNames": list(groups),
    }
    return id


def named(prefix: str) -> list[dict[str, Any]]:
    """The queries whose name begins so, by name."""
    return sorted(
        (query for query in SAVED_QUERIES.values() if query["name"].startswith(prefix)), key=lambda query: query["name"]
    )

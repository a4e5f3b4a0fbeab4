"""The CloudWatch Logs Insights query of a collection's runs over its uploads."""

from __future__ import annotations

COLLECTION_PLACEHOLDER = "PASTE-COLLECTION"
"""The placeholder of the collection's name in the saved query."""

RUN_FIELDS = (
    "run",
    "batch",
    "level",
    "message",
    "documents",
    "gone",
    "prepared",
    "quarantined",
    "loaded",
    "unchanged",
    "not_prepared",
    "removed",
    "code",
    "version",
)
"""The columns, after the time: what the lines of the ingest's functions say."""


def runs_query() -> str:
    """The query that lists what a collection's runs did, in the order of their times."""
    commands = (
        f"fields @timestamp, {', '.join(RUN_FIELDS)}",
        f'filter collection = "{COLLECTION_PLACEHOLDER}"',
        "sort @timestamp asc",
        "limit 10000",
    )
    return "\n| ".join(commands)

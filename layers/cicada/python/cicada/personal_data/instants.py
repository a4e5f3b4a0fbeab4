"""Times as exports and receipts write them."""

from __future__ import annotations

from datetime import UTC, datetime


def instant(epoch_s: float) -> str:
    """A time in ISO 8601, UTC, to the second."""
    return datetime.fromtimestamp(epoch_s, UTC).isoformat(timespec="seconds").replace("+00:00", "Z")

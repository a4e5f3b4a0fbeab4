"""What a first visit of the page transfers."""

from __future__ import annotations

from benchmarks.page import transfer_bytes
from stacks.page_bundle import page_bundle

MOST_BYTES = 100_000


def test_a_first_visit_transfers_less_than_100_kb() -> None:
    sizes = transfer_bytes(page_bundle())
    assert {"index.html", "main.js", "page.css"} <= sizes.keys()
    assert sum(sizes.values()) <= MOST_BYTES

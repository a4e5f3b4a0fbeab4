"""After a load: wait until what was published is what questions are answered from."""

from __future__ import annotations

import time
from collections.abc import Callable

from rich.console import Console

SERVED_AFTER_S = 5.0
"""How long after its publication a version may be unknown to a function that searches: the interval between two of its
looks, ``cicada.index.reader.REFRESH_INTERVAL_S``, which a test compares. An answer waits for a look that is due."""

pause: Callable[[float], None] = time.sleep


def wait_until_served(err: Console) -> None:
    """Wait until every function answers from what was just published."""
    err.print(f"Waiting {SERVED_AFTER_S:.0f} s until the new version is served (--no-wait skips this).", soft_wrap=True)
    try:
        pause(SERVED_AFTER_S)
    except KeyboardInterrupt:
        err.print("Not waited: the new version is published, and is served within seconds.", soft_wrap=True)

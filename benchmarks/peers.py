"""The packages that benchmarks compare with. One that is not installed is left out, and named on standard error."""

from __future__ import annotations

import importlib
import sys
from functools import cache
from typing import Any


@cache
def peer(name: str) -> Any | None:
    """Import a package to compare with; None if it is not installed."""
    try:
        return importlib.import_module(name)
    except ModuleNotFoundError:
        print(f"{name} is not installed and left out: pip install -r requirements-bench.lock", file=sys.stderr)
        return None

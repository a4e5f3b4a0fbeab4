"""What the benchmarks over the local cloud share: its settings, and questions that no earlier answer is given to."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from cicada_local.testing import LocalCloud

SAMPLE = Path(__file__).parents[1] / "samples" / "script"


def plain_cloud(home: Path, environment: Mapping[str, str] | None = None, **settings: Any) -> LocalCloud:
    """The sample script without structured knowledge, so that each route is answered by the strategy of its name."""
    chosen = {"knowledge": {"enabled": False}, **settings}
    return LocalCloud(home, settings=chosen, load=[SAMPLE], environment=environment)


def reworded(question: str, number: int) -> str:
    """The same question, which the semantic cache takes for another one."""
    return f"{question} ({number})"

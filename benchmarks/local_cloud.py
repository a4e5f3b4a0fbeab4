"""What the benchmarks over the local cloud share: its settings, and questions that no earlier answer is given to."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from cicada_local.testing import LocalCloud

SAMPLE = Path(__file__).parents[1] / "samples" / "script"


def plain_cloud(home: Path, environment: Mapping[str, str] | None = None) -> LocalCloud:
    """The sample script without structured knowledge, so that each route is answered by the strategy of its name."""
    return LocalCloud(home, settings={"knowledge": {"enabled": False}}, load=[SAMPLE], environment=environment)


def reworded(question: str, number: int) -> str:
    """The same question, which the semantic cache takes for another one."""
    return f"{question} ({number})"

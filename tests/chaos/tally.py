"""What was done in a run, counted."""

from __future__ import annotations

import time
from collections import Counter
from dataclasses import dataclass, field


@dataclass
class Tally:
    """Counts, for the table and the verdict."""

    seed: int
    wanted_kills: int
    asked: int = 0
    ended: int = 0
    left: int = 0
    """Requests whose readers have left for good."""
    redeployed: int = 0
    published: int = 0
    sweeps: int = 0
    kills_by: Counter[str] = field(default_factory=Counter)
    """By function, as the function service saw them."""
    drops: Counter[str] = field(default_factory=Counter)
    """Sockets, by the kind of event at which they broke."""
    faults: Counter[str] = field(default_factory=Counter)
    """Armed, by what they are."""
    swept: Counter[str] = field(default_factory=Counter)
    """What the sweeps say that they did."""
    trouble: list[str] = field(default_factory=list)
    """What the run itself could not do."""
    _began: float = field(default_factory=time.monotonic)
    _took_s: float | None = None

    @property
    def kills(self) -> int:
        """All of them."""
        return sum(self.kills_by.values())

    def elapsed_s(self) -> float:
        """Since the run began, or of all of it."""
        return self._took_s if self._took_s is not None else time.monotonic() - self._began

    def finish(self) -> None:
        """The run is over."""
        self._took_s = time.monotonic() - self._began

    def faults_line(self) -> str:
        """The latest counts in one line."""
        return "  ".join(f"{name} {count}" for name, count in self.faults.most_common())

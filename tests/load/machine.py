"""Where the machine's processor time goes: by the local cloud's process, each function's processes, and the askers."""

from __future__ import annotations

import os
import time
from collections import defaultdict
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from cicada_local.testing import LocalCloud

CLOUD, ASKERS, OTHERS = "the local cloud's process", "the askers (this program)", "everything else"
_TICKS = os.sysconf("SC_CLK_TCK")


@dataclass(frozen=True)
class Reading:
    """What the machine had done up to a moment."""

    at: float
    cpu_s: Mapping[str, float]
    """Processor seconds since the first reading, by who used them."""
    busy_s: float
    """Of all processors together, whoever used them."""
    throttles: int
    invocations: int
    processes: int


class Machine:
    """Reads it now and then; what a process used after its last reading is not seen."""

    def __init__(self, cloud: LocalCloud) -> None:
        self._cloud = cloud
        self._seen: dict[int, float] = {}
        self._used: defaultdict[str, float] = defaultdict(float)
        self._busy_before = _busy_s()
        self._stats_before = self._stats(cloud.functions())
        self.readings: list[Reading] = []
        self.read()
        self._used.clear()

    def read(self) -> Reading:
        """Take a reading. Blocks for a call to the cloud."""
        functions = self._cloud.functions()
        self._note(self._cloud.pid, CLOUD)
        self._note(os.getpid(), ASKERS)
        for name, figures in functions.items():
            for pid in figures["processes"]:
                self._note(pid, short(name))
        throttles, invocations = self._stats(functions)
        reading = Reading(
            time.monotonic(),
            dict(self._used),
            _busy_s() - self._busy_before,
            throttles - self._stats_before[0],
            invocations - self._stats_before[1],
            sum(len(figures["processes"]) for figures in functions.values()),
        )
        self.readings.append(reading)
        return reading

    def _note(self, pid: int, whose: str) -> None:
        used = _cpu_s(pid)
        self._used[whose] += max(0.0, used - self._seen.get(pid, 0.0))
        self._seen[pid] = used

    @staticmethod
    def _stats(functions: Mapping[str, Mapping[str, int]]) -> tuple[int, int]:
        throttles = sum(figures["throttles"] for figures in functions.values())
        return throttles, sum(figures["invocations"] for figures in functions.values())


def short(name: str) -> str:
    """A function's construct, out of its name: ``Cicada-Answering-AnswerFunction1A2B-X7`` is ``Answer``."""
    parts = name.split("-")  # functions for other systems have names of their own: `Cicada-retrieve`
    return parts[min(2, len(parts) - 1)].partition("Function")[0]


def _cpu_s(pid: int) -> float:
    try:
        fields = Path(f"/proc/{pid}/stat").read_text(encoding="utf-8").rpartition(")")[2].split()
    except OSError:
        return 0.0
    return (int(fields[11]) + int(fields[12])) / _TICKS


def _busy_s() -> float:
    """Of all processors since the machine began; 0 where the system does not tell."""
    try:
        line = Path("/proc/stat").read_text(encoding="utf-8").splitlines()[0]
    except OSError:
        return 0.0
    user, nice, system, _, _, *interrupts = map(int, line.split()[1:8])
    return (user + nice + system + sum(interrupts)) / _TICKS

"""Runs checks in parallel, each within a time limit."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass

from cicada_cli.doctor.calls import CallFailed
from cicada_cli.doctor.explaining import explained
from cicada_cli.doctor.findings import Finding, Reporter

TIMEOUT_S = 30.0
"""How long a check may take, unless it says so itself."""


@dataclass(frozen=True)
class Check:
    """One check."""

    name: str
    subject: str
    """What it is about, where it fails as a whole."""
    run: Callable[[], Iterable[Finding]]
    """Raises CallFailed where it cannot go on."""
    timeout_s: float = TIMEOUT_S


def run_all(checks: Sequence[Check]) -> list[Finding]:
    """Run each check on a thread of its own and return the findings in the order of the checks.

    A check that takes too long is abandoned; its thread does not block the exit.
    """
    runs = [_Run(check) for check in checks]
    return [finding for run in runs for finding in run.result()]


class _Run:
    def __init__(self, check: Check) -> None:
        self._check = check
        self._deadline = time.monotonic() + check.timeout_s
        self._findings: list[Finding] | None = None
        self._thread = threading.Thread(target=self._work, name=f"doctor-{check.name}", daemon=True)
        self._thread.start()

    def result(self) -> list[Finding]:
        self._thread.join(max(0.0, self._deadline - time.monotonic()))
        if self._findings is not None:
            return self._findings
        report = Reporter(self._check.name, self._check.subject)
        return [report.unknown(f"timed out after {self._check.timeout_s:.0f} s", "run this command again")]

    def _work(self) -> None:
        report = Reporter(self._check.name, self._check.subject)
        try:
            self._findings = list(self._check.run())
        except CallFailed as failed:
            self._findings = [explained(report, failed)]
        except Exception as error:  # one faulty check must not hide the findings of the others
            self._findings = [report.unknown(f"the check failed: {type(error).__name__}: {error}")]

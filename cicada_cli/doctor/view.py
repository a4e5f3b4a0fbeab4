"""A report for people, and as JSON."""

from __future__ import annotations

from collections import Counter
from typing import Any

from cicada_cli.doctor.examine import Report
from cicada_cli.doctor.findings import Finding, Status, worst
from cicada_cli.text import clipped, counted, one_line

FORMAT_VERSION = 1
_SIGNS = {Status.OK: "ok", Status.UNKNOWN: "?", Status.WARNING: "!", Status.PROBLEM: "✗"}
_WIDTH = max(map(len, _SIGNS.values()))
MAX_SUBJECT_CHARS = 80


def as_json(report: Report) -> dict[str, Any]:
    """The report as JSON data. Within a format version, fields are only added."""
    return {
        "formatVersion": FORMAT_VERSION,
        "stage": report.stage,
        "status": worst(report.findings),
        "region": report.region,
        "account": report.account,
        "stackPrefix": report.prefix,
        "findings": [finding.as_json() for finding in report.findings],
    }


def lines(report: Report) -> list[str]:
    """The report for people: a line for each finding, and what to do below it."""
    told = [line for finding in report.findings for line in finding_lines(finding)]
    return [*told, "", _summary(report)]


def finding_lines(finding: Finding) -> list[str]:
    """A finding for people."""
    subject = clipped(one_line(finding.subject), MAX_SUBJECT_CHARS)
    first, *rest = finding.message.splitlines() or [""]
    indent = " " * (_WIDTH + 2)
    found = [f"{_SIGNS[finding.status]:<{_WIDTH}}  {finding.check}  {subject}: {one_line(first)}"]
    found += [f"{indent}{line.rstrip()}" for line in rest]
    if finding.mend is not None:
        found.append(f"{indent}→ {one_line(finding.mend)}")
    return found


def _summary(report: Report) -> str:
    counts = Counter(finding.status for finding in report.findings)
    parts = [
        counted(counts[Status.PROBLEM], "problem"),
        counted(counts[Status.WARNING], "warning"),
        f"{counts[Status.UNKNOWN]} unknown",
        f"{counts[Status.OK]} ok",
    ]
    if report.stage == "deployed":
        done = (
            "The deployment works." if worst(report.findings) is not Status.PROBLEM else "The deployment has problems."
        )
    else:
        done = "Ready to deploy." if worst(report.findings) is not Status.PROBLEM else "Not ready to deploy."
    return f"{done} {', '.join(parts)}."

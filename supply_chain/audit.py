"""``make audit``: known vulnerabilities of all that is locked, and licences that the policy does not allow.

pip-audit reads the advisories of the Python package index, ``npm audit`` those of npm's registry. A package that a
service knows nothing of was not audited, which is not the same as having no vulnerability: pip-audit itself passes
there, this does not.
"""

from __future__ import annotations

import json
import subprocess
import sys
import tempfile
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from supply_chain.licences import Policy
from supply_chain.locks import ROOT, all_locked, npm_packages

CLEAN = 0
FOUND = 1
"""A vulnerability, or a licence that is not allowed."""
UNKNOWN = 3
"""Nothing was found, but not everything could be looked up. Not 2, with which make and argparse end."""

TIMEOUT_S = 600
"""For each service as a whole."""

_SHOWN_PACKAGES = 8


@dataclass(frozen=True)
class Vulnerability:
    """One advisory that concerns a locked version."""

    package: str
    version: str
    advisory: str
    """Its identifiers, with blanks between: the service's own first, then those of other databases."""
    fixed_in: str


@dataclass
class Report:
    """What an audit has found."""

    vulnerabilities: list[Vulnerability] = field(default_factory=list)
    accepted: list[Vulnerability] = field(default_factory=list)
    """Advisories that the policy accepts."""
    licences: list[str] = field(default_factory=list)
    """Packages whose licence is unknown or not allowed, each with what is wrong."""
    unknown: list[str] = field(default_factory=list)
    """What could not be looked up, and why."""

    def exit_code(self) -> int:
        """What the command ends with."""
        if self.vulnerabilities or self.licences:
            return FOUND
        return UNKNOWN if self.unknown else CLEAN

    def text(self) -> str:
        """The report for a terminal."""
        lines: list[str] = []
        if self.vulnerabilities:
            lines += [f"Known vulnerabilities: {len(self.vulnerabilities)}", *_table(self.vulnerabilities)]
        if self.accepted:
            lines += [f"Accepted in policy.toml: {len(self.accepted)}", *_table(self.accepted)]
        if self.licences:
            lines += [f"Licences not allowed: {len(self.licences)}", *(f"  {each}" for each in self.licences)]
        lines += [f"Not audited: {each}" for each in self.unknown]
        if self.exit_code() == CLEAN:
            lines.append("No known vulnerabilities; every licence is allowed.")
        elif self.exit_code() == UNKNOWN:
            lines.append(f"Nothing found, but the audit is incomplete (exit code {UNKNOWN}).")
        return "\n".join(lines)


def audit(policy: Policy) -> Report:
    """Look up everything that is locked."""
    report = Report()
    python, npm = list(all_locked()), npm_packages()
    report.licences += refused_licences({key: policy.licence_of(key[0]) for key in python}, policy)
    report.licences += refused_licences({(each.name, each.version): each.licence for each in npm}, policy)
    _look_up_python(python, report)
    _look_up_npm({each.name: each.version for each in npm}, report)
    _accept(policy, report)
    return report


def refused_licences(licences: Mapping[tuple[str, str], str | None], policy: Policy) -> list[str]:
    """The packages, of names and versions, whose licence the policy does not allow."""
    refused = []
    for (name, version), licence in licences.items():
        if licence is None:
            refused.append(f"{name} {version}: unknown; read it, and state it in policy.toml")
        elif not policy.allows(licence):
            refused.append(f"{name} {version}: {licence}")
    return refused


def read_pip_audit(output: str, pins: Mapping[str, str], report: Report) -> None:
    """Take over what pip-audit printed of packages, by name and version. What it says nothing of was not audited.

    Raises:
        ValueError: it is no report.
    """
    audited = set()
    for package in _fields(json.loads(output), "dependencies"):
        if "skip_reason" in package:
            continue
        audited.add((package["name"], package["version"]))
        for found in package["vulns"]:
            advisory = " ".join([found["id"], *sorted(found["aliases"])])
            fixed_in = ", ".join(found["fix_versions"]) or "none"
            report.vulnerabilities.append(Vulnerability(package["name"], package["version"], advisory, fixed_in))
    if skipped := [name for name, version in pins.items() if (name, version) not in audited]:
        shown = ", ".join(skipped[:_SHOWN_PACKAGES]) + (", …" if len(skipped) > _SHOWN_PACKAGES else "")
        report.unknown.append(f"{len(skipped)} Python packages, which the advisory service does not know: {shown}")


def read_npm_audit(output: str, versions: Mapping[str, str], report: Report) -> None:
    """Take over what ``npm audit --json`` printed.

    Raises:
        ValueError: it is no report.
    """
    for name, package in _fields(json.loads(output), "vulnerabilities").items():
        fix = package["fixAvailable"]
        fixed_in = f"{fix['name']} {fix['version']}" if isinstance(fix, dict) else "npm audit fix" if fix else "none"
        for cause in package["via"]:
            if isinstance(cause, dict):  # else the name of a package that is listed itself
                advisory = cause["url"].rpartition("/")[2]
                report.vulnerabilities.append(Vulnerability(name, versions.get(name, "?"), advisory, fixed_in))


def _look_up_python(packages: Iterable[tuple[str, str]], report: Report) -> None:
    for number, pins in enumerate(_one_version_each(packages)):
        with tempfile.TemporaryDirectory() as folder:
            listed = Path(folder) / f"{number}.txt"
            listed.write_text("".join(f"{name}=={version}\n" for name, version in pins.items()), encoding="utf-8")
            command = [sys.executable, "-m", "pip_audit", "--requirement", str(listed), "--disable-pip", "--no-deps"]
            command += ["--format", "json", "--aliases", "on", "--desc", "off", "--progress-spinner", "off"]
            said = _run(command)
        try:
            read_pip_audit(said.stdout, pins, report)
        except ValueError:
            report.unknown.append(f"{len(pins)} Python packages: {_reason(said.stderr)}")


def _look_up_npm(versions: Mapping[str, str], report: Report) -> None:
    said = _run(["npm", "audit", "--json", "--package-lock-only"])
    try:
        read_npm_audit(said.stdout, versions, report)
    except ValueError:
        report.unknown.append(f"{len(versions)} npm packages: {_npm_reason(said)}")


def _one_version_each(packages: Iterable[tuple[str, str]]) -> list[dict[str, str]]:
    """The packages in as few lists as there are versions of one name: pip-audit takes one version of each."""
    lists: list[dict[str, str]] = []
    for name, version in packages:
        free = next((each for each in lists if name not in each), None)
        if free is None:
            lists.append(free := {})
        free[name] = version
    return lists


def _accept(policy: Policy, report: Report) -> None:
    def is_accepted(found: Vulnerability) -> bool:
        identifiers = found.advisory.split()
        return any(each.package == found.package and each.advisory in identifiers for each in policy.accepted)

    report.accepted = list(filter(is_accepted, report.vulnerabilities))
    report.vulnerabilities = [each for each in report.vulnerabilities if not is_accepted(each)]


def _run(command: Sequence[str]) -> subprocess.CompletedProcess[str]:
    try:
        return subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False, timeout=TIMEOUT_S)
    except FileNotFoundError as error:
        return subprocess.CompletedProcess(command, 127, "", str(error))
    except subprocess.TimeoutExpired:
        return subprocess.CompletedProcess(command, 124, "", f"no answer within {TIMEOUT_S} s")


def _fields(document: Any, name: str) -> Any:
    if not isinstance(document, dict) or name not in document:
        raise ValueError(f"{name} is missing")
    return document[name]


def _npm_reason(said: subprocess.CompletedProcess[str]) -> str:
    try:
        return str(_fields(json.loads(said.stdout), "message"))
    except ValueError:
        return _reason(said.stderr)


def _reason(output: str) -> str:
    lines = output.strip().splitlines()
    return lines[-1] if lines else "no answer"


def _table(found: Sequence[Vulnerability]) -> list[str]:
    rows = [("package", "version", "advisory", "fixed in")]
    rows += sorted((each.package, each.version, each.advisory, each.fixed_in) for each in found)
    widths = [max(len(row[column]) for row in rows) for column in range(4)]
    return [
        "  " + "  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip() for row in rows
    ]


def main() -> int:
    """Audit, print the report."""
    report = audit(Policy.read())
    print(report.text())
    return report.exit_code()


if __name__ == "__main__":
    sys.exit(main())

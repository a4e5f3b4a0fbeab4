"""The audit: what it takes over from pip-audit and npm, what it ends with, and the licences of all that is locked."""

from __future__ import annotations

import json
import subprocess
from collections.abc import Callable, Sequence
from pathlib import Path

import pytest
from packaging.version import Version
from pip_audit._format import JsonFormat
from pip_audit._service import Dependency, ResolvedDependency, SkippedDependency, VulnerabilityResult

from supply_chain import audit
from supply_chain.audit import CLEAN, FOUND, UNKNOWN, Report, Vulnerability, refused_licences
from supply_chain.licences import Accepted, Policy
from supply_chain.locks import SUPPORTED, all_locked, npm_packages

POLICY = Policy.read()
ADVISORY = VulnerabilityResult("PYSEC-2026-1", "", [Version("2.8.1")], {"CVE-2026-1", "GHSA-aaaa-bbbb-cccc"})
NPM_CLEAN = {"auditReportVersion": 2, "vulnerabilities": {}, "metadata": {}}
NPM_FOUND = {
    "auditReportVersion": 2,
    "vulnerabilities": {
        "aws-cdk": {
            "name": "aws-cdk",
            "severity": "high",
            "via": [
                {"name": "aws-cdk", "url": "https://github.com/advisories/GHSA-dddd-eeee-ffff", "range": "<3"},
                "tar",
            ],
            "range": "<3",
            "nodes": ["node_modules/aws-cdk"],
            "fixAvailable": {"name": "aws-cdk", "version": "3.0.0", "isSemVerMajor": True},
        }
    },
}
Said = Callable[[Sequence[str]], subprocess.CompletedProcess[str]]


def pip_audit_says(results: dict[Dependency, list[VulnerabilityResult]]) -> str:
    """What pip-audit prints, made by its own formatter."""
    return str(JsonFormat(output_desc=False, output_aliases=True).format(results, []))


def clean(pins: list[str]) -> str:
    found: dict[Dependency, list[VulnerabilityResult]] = {}
    for pin in pins:
        name, _, version = pin.partition("==")
        found[ResolvedDependency(name, Version(version))] = []
    return pip_audit_says(found)


def services(python: Callable[[list[str]], str], npm: object) -> Said:
    def run(command: Sequence[str]) -> subprocess.CompletedProcess[str]:
        if command[0] == "npm":
            return subprocess.CompletedProcess(command, 0, json.dumps(npm), "")
        listed = Path(command[list(command).index("--requirement") + 1])
        return subprocess.CompletedProcess(command, 0, python(listed.read_text().split()), "last words")

    return run


def audited(monkeypatch: pytest.MonkeyPatch, said: Said, policy: Policy = POLICY) -> Report:
    monkeypatch.setattr(audit, "_run", said)
    return audit.audit(policy)


def vulnerable(pins: list[str]) -> str:
    found: dict[Dependency, list[VulnerabilityResult]] = {}
    for pin in pins:
        name, _, version = pin.partition("==")
        found[ResolvedDependency(name, Version(version))] = [ADVISORY] if name == "urllib3" else []
    return pip_audit_says(found)


def test_every_locked_version_is_looked_up_and_no_list_names_a_package_twice(monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[list[str]] = []

    def python(pins: list[str]) -> str:
        asked.append(pins)
        return clean(pins)

    report = audited(monkeypatch, services(python, NPM_CLEAN))
    assert report.exit_code() == CLEAN
    assert report.text() == "No known vulnerabilities; every licence is allowed."
    assert sorted(pin for pins in asked for pin in pins) == sorted(
        f"{name}=={version}" for name, version in all_locked()
    )
    for pins in asked:
        names = [pin.partition("==")[0] for pin in pins]
        assert len(names) == len(set(names))


def test_a_vulnerability_is_reported_with_advisory_and_fix(monkeypatch: pytest.MonkeyPatch) -> None:
    report = audited(monkeypatch, services(vulnerable, NPM_FOUND))
    assert report.exit_code() == FOUND
    (urllib3,) = (version for name, version in all_locked() if name == "urllib3")
    (cdk,) = (package.version for package in npm_packages() if package.name == "aws-cdk")
    assert report.vulnerabilities == [
        Vulnerability("urllib3", urllib3, "PYSEC-2026-1 CVE-2026-1 GHSA-aaaa-bbbb-cccc", "2.8.1"),
        Vulnerability("aws-cdk", cdk, "GHSA-dddd-eeee-ffff", "aws-cdk 3.0.0"),
    ]
    text = report.text()
    assert "Known vulnerabilities: 2" in text
    assert [line.split()[0] for line in text.splitlines()[1:]] == ["package", "aws-cdk", "urllib3"]


def test_an_accepted_advisory_is_shown_and_does_not_fail(monkeypatch: pytest.MonkeyPatch) -> None:
    accepted = (Accepted("urllib3", "CVE-2026-1", "not called"), Accepted("rich", "GHSA-dddd-eeee-ffff", "another"))
    policy = Policy(POLICY.allowed, POLICY.names, POLICY.packages, accepted)
    report = audited(monkeypatch, services(vulnerable, NPM_CLEAN), policy)
    assert report.exit_code() == CLEAN
    assert "Accepted in policy.toml: 1" in report.text()
    assert audited(monkeypatch, services(vulnerable, NPM_FOUND), policy).exit_code() == FOUND


def test_a_package_that_the_service_does_not_know_is_not_called_clean(monkeypatch: pytest.MonkeyPatch) -> None:
    def python(pins: list[str]) -> str:
        names = [pin.partition("==")[0] for pin in pins]
        return pip_audit_says({SkippedDependency(name, "not found"): [] for name in names})

    report = audited(monkeypatch, services(python, NPM_CLEAN))
    assert report.exit_code() == UNKNOWN
    assert "Not audited" in report.text()
    assert "incomplete (exit code 3)" in report.text()


def test_a_package_that_pip_audit_says_nothing_of_is_not_called_clean(monkeypatch: pytest.MonkeyPatch) -> None:
    report = audited(monkeypatch, services(lambda pins: clean(pins[1:]), NPM_CLEAN))
    assert report.exit_code() == UNKNOWN
    assert next(iter(all_locked()))[0] in report.text()
    report = audited(monkeypatch, services(lambda pins: clean([f"{pins[0].partition('==')[0]}==0.0.1"]), NPM_CLEAN))
    assert report.exit_code() == UNKNOWN


def test_services_that_cannot_be_reached_are_named_with_the_reason(monkeypatch: pytest.MonkeyPatch) -> None:
    report = audited(monkeypatch, services(lambda pins: "", {"message": "no route", "error": {}}))
    assert report.exit_code() == UNKNOWN
    assert any("last words" in line for line in report.unknown)
    assert f"{len(npm_packages())} npm packages: no route" in report.unknown


def test_a_vulnerability_counts_more_than_a_service_that_cannot_be_reached(monkeypatch: pytest.MonkeyPatch) -> None:
    report = audited(monkeypatch, services(vulnerable, {"message": "no route"}))
    assert report.exit_code() == FOUND
    assert "no route" in report.text()


def test_a_missing_command_is_a_service_that_cannot_be_reached(tmp_path: Path) -> None:
    assert audit._run([str(tmp_path / "missing")]).returncode == 127


def test_every_locked_package_has_an_allowed_licence() -> None:
    assert refused_licences({key: POLICY.licence_of(key[0]) for key in all_locked()}, POLICY) == []
    assert refused_licences({(each.name, each.version): each.licence for each in npm_packages()}, POLICY) == []


def test_packages_that_some_machines_lack_have_their_licence_in_the_policy() -> None:
    lacking = {
        name
        for (name, _), locks in all_locked().items()
        if any(package.machines() < len(SUPPORTED) for package in locks.values())
        or all(path.name == "requirements-bench.lock" for path in locks)
    }
    assert lacking
    assert lacking <= POLICY.packages.keys()


def test_the_policy_speaks_of_locked_packages_alone() -> None:
    names = {name for name, _ in all_locked()}
    assert POLICY.packages.keys() <= names
    assert {each.package for each in POLICY.accepted} <= names | {package.name for package in npm_packages()}


@pytest.mark.parametrize(
    ("licence", "allowed"),
    [
        ("MIT", True),
        ("GPL-3.0-only", False),
        ("GPL-3.0-only OR MIT", True),
        ("GPL-3.0-only AND MIT", False),
        ("MIT AND (Apache-2.0 OR LGPL-3.0-only)", True),
        ("BSD", False),
        ("", False),
        ("MIT, BSD", False),
    ],
)
def test_alternatives_need_one_allowed_licence_and_conjunctions_every_one(licence: str, allowed: bool) -> None:
    assert POLICY.allows(licence) is allowed


def test_unknown_and_refused_licences_are_named() -> None:
    refused = refused_licences({("one", "1"): None, ("two", "2"): "GPL-3.0-only", ("three", "3"): "MIT"}, POLICY)
    assert refused == ["one 1: unknown; read it, and state it in policy.toml", "two 2: GPL-3.0-only"]


@pytest.mark.parametrize(
    ("package", "licence"),
    [("numpy", "BSD-3-Clause AND 0BSD"), ("boto3", "Apache-2.0"), ("certifi", "MPL-2.0"), ("defusedxml", "PSF-2.0")],
    ids=["expression", "licence field", "licence field of two words", "classifier"],
)
def test_a_licence_is_read_from_the_installed_metadata(package: str, licence: str) -> None:
    assert package not in POLICY.packages
    assert str(POLICY.licence_of(package)).startswith(licence)
    assert POLICY.licence_of("not-installed-anywhere") is None

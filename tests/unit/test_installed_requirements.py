"""What ``pip install`` brings: all that the installed packages import, in the versions that are tested here."""

from __future__ import annotations

import importlib.metadata
import sys
import tomllib
from collections.abc import Iterable

import pytest
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

from supply_chain.lock import MAIN
from supply_chain.locks import ROOT, lock_of, read_lock
from tests.support.source_imports import INSTALLED, MODULES, reached

pytest.importorskip("ir_measures")

PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
BASE = [Requirement(text) for text in PROJECT["dependencies"]]
EXTRAS = {name: [Requirement(text) for text in texts] for name, texts in PROJECT["optional-dependencies"].items()}
LOCKED = {package.name: package.version for package in read_lock(lock_of(MAIN))}
DISTRIBUTIONS = importlib.metadata.packages_distributions()
CLIENT = [name for name in MODULES if name.split(".")[0] == "cicada_client"]
COMMAND = [name for name in MODULES if name.split(".")[0] in ("cicada_cli", "cicada_evaluation", "cicada_mcp")]


def brought_by(requirements: Iterable[Requirement]) -> set[str]:
    """The packages that these bring, with what they need in turn here."""
    found: set[str] = set()
    waiting = list(requirements)
    while waiting:
        requirement = waiting.pop()
        name = canonicalize_name(requirement.name)
        if name not in found:
            found.add(name)
            needs = map(Requirement, importlib.metadata.requires(name) or [])
            waiting += [need for need in needs if need.marker is None or need.marker.evaluate({"extra": ""})]
    return found


def needed_by(modules: Iterable[str]) -> set[str]:
    """The packages that these modules, and those of the project that they reach, import."""
    others = {name.split(".")[0] for name in reached(modules)} - sys.stdlib_module_names - set(INSTALLED)
    return {canonicalize_name(name) for other in others for name in DISTRIBUTIONS[other]}


@pytest.mark.parametrize("requirement", [*BASE, *(one for some in EXTRAS.values() for one in some)], ids=str)
def test_the_tested_version_is_one_that_may_be_installed(requirement: Requirement) -> None:
    assert requirement.specifier.contains(LOCKED[canonicalize_name(requirement.name)])


def test_the_base_is_what_the_client_needs() -> None:
    assert needed_by(CLIENT) == {canonicalize_name(one.name) for one in BASE}
    assert EXTRAS["client"] == []


def test_the_command_needs_its_extra_and_others_for_pdf_files_measures_and_mcp_alone() -> None:
    of_mcp = {"anyio", "mcp", "mcp-types"}
    assert needed_by(COMMAND) - brought_by([*BASE, *EXTRAS["cli"]]) == {"pypdf", "ir-measures", *of_mcp}
    assert "pypdf" in brought_by(EXTRAS["pdf"])
    assert "ir-measures" in brought_by(EXTRAS["eval"])
    assert of_mcp <= brought_by(EXTRAS["mcp"])


def test_all_that_the_library_imports_comes_with_the_extras() -> None:
    everything = [*BASE, *(one for some in EXTRAS.values() for one in some)]
    assert needed_by(name for name in MODULES if name.split(".")[0] in INSTALLED) <= brought_by(everything)


def test_nothing_is_required_that_nobody_needs() -> None:
    """``cryptography`` is asked for by pypdf where it is there, and by nothing else."""
    needed = needed_by(name for name in MODULES if name.split(".")[0] in INSTALLED) | {"cryptography"}
    named = {canonicalize_name(one.name) for some in (BASE, *EXTRAS.values()) for one in some}
    assert named <= needed

"""Imports follow the chain of docs/architecture.md in the library, and go one way between the project's packages."""

from __future__ import annotations

import re
import sys
from graphlib import TopologicalSorter

import pytest

from tests.support.source_imports import MODULES, ROOT, imports, reached

CHAIN = re.search(
    r"^```\n(lambdas → .+?)\n```$",
    (ROOT / "docs" / "architecture.md").read_text(encoding="utf-8"),
    re.MULTILINE | re.DOTALL,
)
STEPS = [[name.strip() for name in step.split(",")] for step in (CHAIN[1] if CHAIN else "").split("→")]
HEIGHT = {name: -step for step, names in enumerate(STEPS) for name in names}
OF_A_TYPE_ALONE = {("cicada.errors", "cicada.models.ports"), ("cicada.errors", "cicada.usage.limits")}
"""A failure can carry what was used up to it, or the limit that is reached: imported for the type checker alone."""
MAY_IMPORT = {
    "app": {"cicada", "stacks"},
    "benchmarks": {
        *("cicada", "cicada_cli", "cicada_client", "cicada_evaluation", "cicada_local", "stacks", "tests", "training")
    },
    "cicada": set(),
    "cicada_cli": {"cicada", "cicada_client", "cicada_evaluation", "cicada_mcp"},
    "cicada_client": {"cicada"},
    "cicada_deploy": {"cicada_cli"},
    "cicada_evaluation": {"cicada"},
    "cicada_http": {"cicada", "cicada_client", "cicada_mcp"},
    "cicada_local": {"cicada"},
    "cicada_mcp": {"cicada", "cicada_client"},
    "lambdas": {"cicada", "cicada_http"},
    "stacks": {"cicada"},
    "supply_chain": {"cicada", "stacks"},
    "training": {"cicada", "cicada_evaluation", "cicada_local"},
}
"""The project's packages, and which others each may import."""


def top(module: str) -> str:
    return module.split(".")[0]


def package(module: str) -> str:
    return module.split(".")[1]


def test_the_chain_names_every_package_once() -> None:
    assert STEPS[0] == ["lambdas"]
    assert sorted(name for names in STEPS[1:] for name in names) == sorted(
        {package(name) for name in MODULES if top(name) == "cicada" and name != "cicada"}
    )


def test_no_import_goes_against_the_arrows() -> None:
    assert not [
        f"{name} imports {one}"
        for name in MODULES
        if top(name) == "cicada"
        for one in sorted(imports(name))
        if one.startswith("cicada.")
        and package(one) != package(name)
        and HEIGHT[package(one)] >= HEIGHT[package(name)]
        and (name, one) not in OF_A_TYPE_ALONE
    ]


def test_no_modules_import_each_other_in_a_circle() -> None:
    TopologicalSorter({name: imports(name) & MODULES.keys() for name in MODULES}).prepare()


@pytest.mark.parametrize("name", MAY_IMPORT)
def test_a_package_imports_only_those_below_it(name: str) -> None:
    allowed = {name} | MAY_IMPORT[name]
    of_the_project = MAY_IMPORT.keys() | {"handler", "tests", "wiring"}
    assert not [
        f"{module} imports {one}"
        for module in MODULES
        if top(module) == name
        for one in sorted(imports(module))
        if top(one) in of_the_project - allowed
    ]


def test_every_package_of_the_project_has_its_arrows() -> None:
    assert MAY_IMPORT.keys() == {top(name) for name in MODULES}


def test_the_client_takes_of_the_library_the_protocol_and_what_it_needs() -> None:
    of_the_protocol = reached(name for name in MODULES if name.startswith("cicada.protocol."))
    client = reached(name for name in MODULES if top(name) == "cicada_client")
    assert {name for name in client if top(name) == "cicada"} <= of_the_protocol
    assert {top(name) for name in client} - sys.stdlib_module_names == {
        *("cicada", "cicada_client", "pydantic", "websockets")
    }

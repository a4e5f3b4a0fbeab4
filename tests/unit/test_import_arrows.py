"""The library's packages import each other along the chain of docs/architecture.md alone, and never in a circle."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from functools import cache
from graphlib import TopologicalSorter
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
LIBRARY = ROOT / "layers" / "cicada" / "python"
CHAIN = re.search(
    r"^```\n(lambdas → .+?)\n```$",
    (ROOT / "docs" / "architecture.md").read_text(encoding="utf-8"),
    re.MULTILINE | re.DOTALL,
)
STEPS = [[name.strip() for name in step.split(",")] for step in (CHAIN[1] if CHAIN else "").split("→")]
HEIGHT = {name: -step for step, names in enumerate(STEPS) for name in names}
CLIENTS = {"cicada_cli", "cicada_client", "cicada_evaluation"}
ABOVE = {
    *CLIENTS,
    "app",
    "benchmarks",
    "cicada_local",
    "handler",
    "lambdas",
    "stacks",
    "supply_chain",
    "tests",
    "wiring",
}
"""The project's other modules; a function's own are called handler and wiring."""
OF_A_TYPE_ALONE = {("cicada.errors", "cicada.models.ports")}
"""A failure can carry what was used up to it: imported for the type checker alone."""


def name_of(path: Path) -> str:
    parts = path.relative_to(LIBRARY).with_suffix("").parts
    return ".".join(parts[:-1] if parts[-1] == "__init__" else parts)


MODULES = {name_of(path): path for path in sorted(LIBRARY.rglob("*.py"))}


def imports(path: Path) -> Iterator[str]:
    """What a module imports, wherever in it that stands; a module of the library under its own name."""
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, f"{path}: a relative import"
            whole = (f"{node.module}.{alias.name}" for alias in node.names)
            yield from (name if name in MODULES else node.module for name in whole)


@cache
def imported() -> dict[str, set[str]]:
    """What each module of the library imports; read when a test asks, not when tests are collected."""
    return {name: set(imports(path)) - {name} for name, path in MODULES.items()}


def package(module: str) -> str:
    return module.split(".")[1]


def test_the_chain_names_every_package_once() -> None:
    assert STEPS[0] == ["lambdas"]
    assert sorted(name for names in STEPS[1:] for name in names) == sorted(
        {package(name) for name in MODULES if name != "cicada"}
    )


def test_no_import_goes_against_the_arrows() -> None:
    assert not [
        f"{name} imports {one}"
        for name, found in imported().items()
        for one in sorted(found)
        if one.startswith("cicada.")
        and package(one) != package(name)
        and HEIGHT[package(one)] >= HEIGHT[package(name)]
        and (name, one) not in OF_A_TYPE_ALONE
    ]


def test_no_modules_import_each_other_in_a_circle() -> None:
    TopologicalSorter({name: found & MODULES.keys() for name, found in imported().items()}).prepare()


def test_nothing_above_the_library_is_imported_by_it() -> None:
    assert not [
        f"{name} imports {one}" for name, found in imported().items() for one in found if one.split(".")[0] in ABOVE
    ]

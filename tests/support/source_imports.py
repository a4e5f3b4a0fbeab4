"""The modules of the project, and what each imports: read from their source, so that nothing is run."""

from __future__ import annotations

import ast
from collections.abc import Iterable, Iterator
from functools import cache
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
LIBRARY = ROOT / "layers" / "cicada" / "python"
INSTALLED = ("cicada", "cicada_cli", "cicada_client", "cicada_evaluation", "cicada_mcp")
"""What the wheel installs."""
_OTHERS = (
    "benchmarks",
    "cicada_deploy",
    "cicada_http",
    "cicada_local",
    "lambdas",
    "stacks",
    "supply_chain",
    "training",
)


def _modules() -> dict[str, Path]:
    found = {"app": ROOT / "app.py"}
    for name in (*INSTALLED, *_OTHERS):
        above = LIBRARY if name == "cicada" else ROOT
        for path in sorted((above / name).rglob("*.py")):
            parts = path.relative_to(above).with_suffix("").parts
            found[".".join(parts[:-1] if parts[-1] == "__init__" else parts)] = path
    return found


MODULES = _modules()
"""Every module of the project but the tests, by its name; a function's handler is ``lambdas.<function>.handler``."""


@cache
def imports(name: str, *, of_types: bool = True) -> frozenset[str]:
    """What a module imports, wherever in it that stands; a module of the project under its own name.

    ``of_types``: whether what is imported for the type checker alone counts.
    """
    found: set[str] = set()
    folder = name.rpartition(".")[0]
    for node in _statements(ast.parse(MODULES[name].read_text(encoding="utf-8")), of_types):
        if isinstance(node, ast.Import):
            found |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom):
            module = node.module if node.level == 0 else None
            assert module, f"{name}: a relative import"
            whole = (f"{module}.{alias.name}" for alias in node.names)
            found |= {one if one in MODULES else module for one in whole}
    if name.startswith("lambdas."):  # a function finds what lies beside its handler without a package's name
        found = {f"{folder}.{one}" if f"{folder}.{one}" in MODULES else one for one in found}
    return frozenset(found - {name})


def _statements(node: ast.AST, of_types: bool) -> Iterator[ast.AST]:
    for child in ast.iter_child_nodes(node):
        if not isinstance(child, ast.stmt | ast.excepthandler | ast.match_case):
            continue
        if not of_types and isinstance(child, ast.If) and ast.unparse(child.test) == "TYPE_CHECKING":
            continue
        yield child
        yield from _statements(child, of_types)


def reached(names: Iterable[str]) -> set[str]:
    """Every module, of the project or not, that these load, at once or later, directly or through others."""
    found: set[str] = set()
    waiting = list(names)
    while waiting:
        name = waiting.pop()
        if name not in found:
            found.add(name)
            parents = name.split(".")[:-1]
            waiting += [".".join(parents[: end + 1]) for end in range(len(parents))] if name in MODULES else []
            waiting += imports(name, of_types=False) if name in MODULES else []
    return found

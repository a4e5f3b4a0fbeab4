"""The type checker's settings."""

from __future__ import annotations

import ast
import tomllib
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).parents[2]


def cdk_services(module: ast.Module) -> Iterator[str]:
    for node in ast.walk(module):
        if isinstance(node, ast.ImportFrom) and node.module == "aws_cdk":
            yield from (f"aws_cdk.{alias.name}" for alias in node.names if alias.name.startswith("aws_"))
        elif isinstance(node, ast.ImportFrom) and (node.module or "").startswith("aws_cdk."):
            yield str(node.module)
        elif isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names if alias.name.startswith("aws_cdk."))


def test_every_service_that_the_stacks_use_is_type_checked():
    settings = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["tool"]["mypy"]
    followed = {
        module
        for override in settings["overrides"]
        if override.get("follow_imports") == "normal"
        for module in override["module"]
        if module.startswith("aws_cdk.aws_")
    }
    files = [ROOT / "app.py", *(ROOT / "stacks").rglob("*.py"), *(ROOT / "tests").rglob("*.py")]
    sources = [text for text in (file.read_text(encoding="utf-8") for file in files) if "aws_cdk" in text]
    used = {service for text in sources for service in cdk_services(ast.parse(text))}
    assert used == followed

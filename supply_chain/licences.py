"""The licences of packages, and whether the policy allows them."""

from __future__ import annotations

import importlib.metadata
import tomllib
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from license_expression import AND, OR, ExpressionError, get_spdx_licensing

POLICY = Path(__file__).with_name("policy.toml")

_SPDX = get_spdx_licensing()


@dataclass(frozen=True)
class Accepted:
    """An advisory that was looked at and does not concern Cicada."""

    package: str
    advisory: str
    reason: str


@dataclass(frozen=True)
class Policy:
    """What ``policy.toml`` says."""

    allowed: frozenset[str]
    names: Mapping[str, str]
    """Names of licences, and what they are as SPDX expressions."""
    packages: Mapping[str, str]
    """Packages, and their licences as SPDX expressions."""
    accepted: tuple[Accepted, ...]

    @classmethod
    def read(cls, path: Path = POLICY) -> Policy:
        """The policy of a file."""
        said = tomllib.loads(path.read_text(encoding="utf-8"))
        accepted = tuple(Accepted(**each) for each in said.get("accepted", []))
        return cls(frozenset(said["allowed"]), said.get("names", {}), said.get("packages", {}), accepted)

    def licence_of(self, package: str) -> str | None:
        """A Python package's licence as an SPDX expression; None where neither policy nor metadata says it clearly."""
        if package in self.packages:
            return self.packages[package]
        try:
            metadata = importlib.metadata.metadata(package)
        except importlib.metadata.PackageNotFoundError:
            return None
        texts = [metadata[field] for field in ("License-Expression", "License") if field in metadata]
        classifiers = metadata.get_all("Classifier") or []
        ends = [text.rpartition(" :: ")[2] for text in classifiers if text.startswith("License :: OSI Approved :: ")]
        texts += ends if len(ends) == 1 else []
        candidates = (self.names.get(text, text) for text in texts)
        return next((text for text in candidates if is_expression(text)), None)

    def allows(self, licence: str) -> bool:
        """Whether a licence is allowed: of alternatives one, of several that all hold every one."""
        return is_expression(licence) and self._allows(_SPDX.parse(licence))

    def _allows(self, parsed: Any) -> bool:
        if isinstance(parsed, AND):
            return all(self._allows(part) for part in parsed.args)
        if isinstance(parsed, OR):
            return any(self._allows(part) for part in parsed.args)
        return str(parsed) in self.allowed


def is_expression(text: str) -> bool:
    """Whether a text is an expression of SPDX identifiers."""
    try:
        return _SPDX.parse(text, validate=True) is not None
    except ExpressionError:
        return False

"""The pinned CDK CLI, aimed at one account and Region."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Mapping, Sequence
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
"""The project's root."""
CLI = ROOT / "node_modules" / ".bin" / "cdk"
"""Not ``npx cdk``, which fetches another where this one is missing."""


class Cdk:
    """Runs the CLI, which writes to this terminal."""

    def __init__(self, profile: str | None, region: str, *, environ: Mapping[str, str] = os.environ) -> None:
        """Nothing is run yet.

        Args:
            profile: of the user's AWS configuration; None takes the environment's credentials.
            region: the CLI itself would take us-east-1 where none is named.
            environ: the environment.
        """
        named = {"AWS_REGION": region, "AWS_DEFAULT_REGION": region}
        self._environment = {**environ, **named, **({} if profile is None else {"AWS_PROFILE": profile})}
        self._region = region

    def bootstrap(self, account: str, more: Sequence[str] = ()) -> int:
        """Prepare the account; from a folder without ``cdk.json``, for the app is not needed and may not be ready."""
        return self._run(["bootstrap", f"aws://{account}/{self._region}", *more], CLI.parent)

    def synth(self, context: Sequence[str] = ()) -> tuple[Path, int]:
        """Synthesise the stacks; returns their folder, and the exit status."""
        folder = ROOT / "cdk.out"
        return folder, self._run(["synth", "--quiet", "--output", str(folder), *context], ROOT)

    def deploy(self, more: Sequence[str] = (), *, ask: bool) -> int:
        """Deploy all stacks.

        Args:
            more: further options of the CLI.
            ask: whether somebody can be asked to approve new permissions.
        """
        approval = [] if ask else ["--require-approval", "never"]
        return self._run(["deploy", "--all", *approval, *more], ROOT)

    def _run(self, words: Sequence[str], folder: Path) -> int:
        return subprocess.run([str(CLI), *words], cwd=folder, env=self._environment, check=False).returncode

"""Build each wheel from the tree alone; everything else is in pyproject.toml."""

from __future__ import annotations

import shutil

from setuptools import setup
from setuptools.command.build_py import build_py


class CleanBuild(build_py):
    """setuptools keeps ``build/lib``: without this, modules that have been renamed stay in the next wheel."""

    def run(self) -> None:
        """Remove what an earlier build left, and build."""
        if not self.editable_mode:
            shutil.rmtree(self.build_lib, ignore_errors=True)
        super().run()


setup(cmdclass={"build_py": CleanBuild})

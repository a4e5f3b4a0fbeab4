"""The page's modules without a browser: order, reconnection, reading. See modules/."""

from __future__ import annotations

import os
import shutil
import subprocess
from pathlib import Path

import pytest

MODULES = sorted((Path(__file__).parent / "modules").glob("*.test.mjs"))


@pytest.mark.parametrize("module", MODULES, ids=lambda path: path.name.removesuffix(".test.mjs"))
def test_module(module):
    node = shutil.which("node")
    if node is None and not os.environ.get("CI"):
        pytest.skip("there is no Node")
    assert node is not None, "there is no Node"
    run = subprocess.run([node, "--test", str(module)], capture_output=True, text=True, timeout=120)
    assert run.returncode == 0, run.stdout + run.stderr
    assert "# fail 0" in run.stdout
    assert "# pass 0" not in run.stdout

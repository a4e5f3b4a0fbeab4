"""The page's modules without a browser: order, reconnection, reading. See modules/."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
from pathlib import Path

import pytest

from cicada_cli.text import printable

CLIENT = Path(__file__).resolve().parents[3] / "packages" / "client" / "src"
MODULES = sorted((Path(__file__).parent / "modules").glob("*.test.mjs"))


@pytest.fixture
def node():
    found = shutil.which("node")
    if found is None and not os.environ.get("CI"):
        pytest.skip("there is no Node")
    assert found is not None, "there is no Node"
    return found


def test_the_page_drops_the_same_characters_as_the_command_line(node):
    program = (
        f"import {{ safe }} from {json.dumps((CLIENT / 'safe.js').as_uri())};"
        "const found = [];"
        "for (let code = 0; code < 0x110000; code += 1)"
        " if (safe(`a${String.fromCodePoint(code)}b`) === 'ab') found.push(code);"
        "console.log(JSON.stringify([found, safe('a\\x1b[2Jb\\x1b]0;c')]));"
    )
    run = subprocess.run([node, "--input-type=module", "-e", program], capture_output=True, text=True, timeout=120)
    assert run.returncode == 0, run.stderr
    dropped, sequences = json.loads(run.stdout)
    assert dropped == [code for code in range(0x110000) if printable(f"a{chr(code)}b") == "ab"]
    assert sequences == printable("a\x1b[2Jb\x1b]0;c") == "ab]0;c"


@pytest.mark.parametrize("module", MODULES, ids=lambda path: path.name.removesuffix(".test.mjs"))
def test_module(module, node):
    run = subprocess.run([node, "--test", str(module)], capture_output=True, text=True, timeout=120)
    assert run.returncode == 0, run.stdout + run.stderr
    assert "# fail 0" in run.stdout
    assert "# pass 0" not in run.stdout

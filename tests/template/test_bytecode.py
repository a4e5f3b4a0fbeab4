"""Bytecode of layers and functions: made by Lambda's Python, taken without a look at the source, always the same."""

from __future__ import annotations

import importlib.util
import marshal
import os
import subprocess
import sys
from pathlib import Path

import pytest

from stacks import bytecode
from stacks.bytecode import NONE_HERE, BytecodeFailed, Interpreter, compile_folder, compiled, interpreter, source_key
from tests.template.templates import FUNCTIONS, Synthesis

UNCHECKED = 1
"""The flags of a ``.pyc`` that is never checked against its source (PEP 552)."""

PYC_HEADER_BYTES = 16

needs_lambdas_python = pytest.mark.skipif(interpreter() is None, reason=NONE_HERE)


@pytest.fixture
def own_python() -> Interpreter:
    """This Python: what is compiled is the same with any."""
    return Interpreter(sys.executable, "own")


@pytest.fixture
def code(tmp_path: Path) -> Path:
    package = tmp_path / "code" / "python" / "one"
    package.mkdir(parents=True)
    (package / "__init__.py").write_text('"""A docstring."""\nWORDS = {"a", "b", "c", None}\n')
    (package / "two.py").write_text("def two(word):\n    return word in {'x', 'y', 'z'}\n")
    return tmp_path / "code"


def bytecode_of(folder: Path) -> dict[str, bytes]:
    return {str(path.relative_to(folder)): path.read_bytes() for path in folder.rglob("*.pyc")}


@needs_lambdas_python
def test_each_source_of_the_functions_and_their_layers_has_its_bytecode(shipped: Synthesis) -> None:
    for root in {root for folder in FUNCTIONS for root in (shipped.code(folder), *shipped.layers(folder))}:
        sources = list(root.rglob("*.py"))
        assert sources
        for source in sources:
            made = source.parent / "__pycache__" / f"{source.stem}.cpython-313.pyc"
            assert made.read_bytes()[4] == UNCHECKED, made


def test_the_local_cloud_has_sources_alone(local: Synthesis) -> None:
    for folder in FUNCTIONS.keys() - {"authorizer"}:
        assert not [path for root in (local.code(folder), *local.layers(folder)) for path in root.rglob("*.pyc")]


def test_bytecode_is_used_without_a_look_at_its_source(code: Path, own_python: Interpreter) -> None:
    compile_folder(code, "/opt", own_python)
    source = code / "python" / "one" / "two.py"
    source.write_text("raise AssertionError('compiled again')\n")
    os.utime(source, (0, 0))
    script = "from one.two import two; print(two.__code__.co_filename, two('x'))"
    environment = os.environ | {"PYTHONPATH": str(code / "python"), "PYTHONDONTWRITEBYTECODE": "1"}
    done = subprocess.run([sys.executable, "-c", script], env=environment, capture_output=True, text=True, check=True)
    assert done.stdout == f"{source} True\n"


def test_bytecode_names_the_folder_in_lambda(code: Path, own_python: Interpreter) -> None:
    compile_folder(code, "/opt", own_python)
    made = {marshal.loads(content[PYC_HEADER_BYTES:]).co_filename for content in bytecode_of(code).values()}
    assert made == {"/opt/python/one/__init__.py", "/opt/python/one/two.py"}


def test_docstrings_and_assertions_are_kept(code: Path, own_python: Interpreter) -> None:
    compile_folder(code, "/opt", own_python)
    (name,) = (name for name in bytecode_of(code) if "__init__" in name)
    assert name.endswith(f"__init__.{sys.implementation.cache_tag}.pyc")
    spec = importlib.util.spec_from_file_location("one", code / name)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    assert module.__doc__ == "A docstring."


def test_the_same_sources_give_the_same_bytes(tmp_path: Path, code: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(bytecode, "interpreter", lambda: Interpreter(sys.executable, "own"))
    first = compiled("some", code, "/opt", build=tmp_path / "here")
    (code / "python" / "one" / "__pycache__").mkdir()
    (code / "python" / "one" / "__pycache__" / "two.cpython-311.pyc").write_bytes(b"left by a test")
    monkeypatch.setenv("PYTHONHASHSEED", "7")
    monkeypatch.setenv("PYTHONOPTIMIZE", "2")
    second = compiled("some", code, "/opt", build=tmp_path / "there")
    assert first is not None
    assert second is not None
    assert first.name == second.name
    assert len(bytecode_of(first)) == 2
    assert bytecode_of(first) == bytecode_of(second)


def test_another_source_and_another_interpreter_are_another_build(code: Path) -> None:
    keys = [source_key(code, "3.13.0"), source_key(code, "3.13.1")]
    (code / "python" / "one" / "two.py").write_text("")
    keys.append(source_key(code, "3.13.0"))
    (code / "python" / "one" / "two.py").rename(code / "python" / "one" / "three.py")
    keys.append(source_key(code, "3.13.0"))
    assert len(set(keys)) == 4


def test_a_source_that_does_not_compile_is_named(tmp_path: Path, code: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(bytecode, "interpreter", lambda: Interpreter(sys.executable, "own"))
    (code / "python" / "one" / "two.py").write_text("def two(:\n")
    with pytest.raises(BytecodeFailed, match=r"two\.py"):
        compiled("some", code, "/opt", build=tmp_path / "build")
    assert not list((tmp_path / "build").iterdir())


def test_without_lambdas_python_the_sources_go_alone_and_it_is_said(
    code: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    interpreter.cache_clear()
    monkeypatch.setattr(bytecode, "_candidates", lambda: iter(["/no/such/python", "/bin/false"]))
    try:
        assert compiled("some", code, "/opt") is None
        assert compiled("some", code, "/opt") is None
    finally:
        interpreter.cache_clear()
    said = capsys.readouterr()
    assert said.out == ""
    assert said.err == f"{NONE_HERE}\n"


@pytest.mark.parametrize(
    ("told", "found"),
    [
        ("/x/python\\n3.13.5\\ncpython-313\\nfinal", Interpreter("/x/python", "3.13.5")),
        ("/x/python\\n3.13.0\\ncpython-313\\nalpha", None),
        ("/x/python\\n3.12.1\\ncpython-312\\nfinal", None),
        ("/x/python\\n3.13.1\\npypy-313\\nfinal", None),
        ("", None),
    ],
)
def test_only_a_release_of_lambdas_python_compiles(
    tmp_path: Path, told: str, found: Interpreter | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    python = tmp_path / "python3.13"
    python.write_text(f"#!/bin/sh\nprintf '{told}'\n")
    python.chmod(0o755)
    monkeypatch.setattr(bytecode, "_candidates", lambda: iter([str(python)]))
    assert interpreter.__wrapped__() == found

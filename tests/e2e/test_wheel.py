"""The wheel: what it holds, and that the client and the command work in environments that have nothing else, against
the deployed thing."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import zipfile

import pytest

from supply_chain.lock import MAIN
from supply_chain.locks import lock_of, read_lock
from tests.support.source_imports import INSTALLED, LIBRARY, ROOT

QUESTION = "How many strokes of the fog bell did Ilse count?"
OF_NO_PACKAGE = (".md", ".pyc")
NOT_COPIED = (".venv", ".git", ".cicada", "node_modules", "cdk.out", "build", "*.egg-info", "__pycache__", ".*_cache")
OF_OTHER_EXTRAS = {"aws_lambda_powertools", "jwt", "rapidfuzz", "anyio", "mcp"}
"""What the extras ``functions`` and ``mcp`` bring, as far as an import fails for it."""
ASK = """
import asyncio, sys
from cicada_client import CicadaClient

async def ask(url, token, question):
    async with CicadaClient(url, token=token) as client:
        return await client.answer(question, episodes=["ep1"])

print(asyncio.run(ask(*sys.argv[1:])).text)
"""
IMPORT_ALL = """
import importlib, json, pkgutil, sys

missing = set()
for name in sys.argv[1:]:
    for module in pkgutil.walk_packages(importlib.import_module(name).__path__, f"{name}."):
        try:
            if not module.name.endswith(".__main__"):
                importlib.import_module(module.name)
        except ModuleNotFoundError as error:
            missing.add(error.name)
print(json.dumps(sorted(missing)))
"""


@pytest.fixture(scope="module")
def wheel(tmp_path_factory):
    """Built from a copy in which an earlier build left a module that is gone since."""
    copy = tmp_path_factory.mktemp("source") / "cicada"
    shutil.copytree(ROOT, copy, ignore=shutil.ignore_patterns(*NOT_COPIED))
    earlier = copy / "build" / "lib" / "cicada"
    earlier.mkdir(parents=True)
    (earlier / "gone.py").touch()
    folder = tmp_path_factory.mktemp("wheel")
    pip("wheel", "--no-deps", "--no-build-isolation", "--wheel-dir", str(folder), str(copy))
    (built,) = folder.iterdir()
    return built


@pytest.fixture(scope="module")
def with_client(wheel, tmp_path_factory):
    """The programs of an environment that has ``cicada[client]``."""
    return installed(wheel, "client", tmp_path_factory.mktemp("client"))


@pytest.fixture(scope="module")
def with_command(wheel, tmp_path_factory):
    """The programs of an environment that has ``cicada[cli]``."""
    return installed(wheel, "cli", tmp_path_factory.mktemp("command"))


def installed(wheel, extra, folder):
    """A virtual environment with the wheel and what it requires, in the versions of the lock."""
    versions = folder / "versions.txt"
    versions.write_text("".join(f"{one.name}=={one.version}\n" for one in read_lock(lock_of(MAIN))))
    subprocess.run([sys.executable, "-m", "venv", "--without-pip", folder / "venv"], check=True)
    where = ("--python", str(folder / "venv"), "install", "--no-compile", "--only-binary", ":all:")
    pip(*where, "--constraint", str(versions), f"{wheel}[{extra}]")
    return folder / "venv" / "bin"


@pytest.fixture
def run(with_command, tmp_path):
    """Run a program beside the command."""
    return lambda program, *words, **variables: run_in(tmp_path, with_command / program, *words, **variables)


@pytest.fixture
def run_beside_client(with_client, tmp_path):
    """Run a program where only the client is installed."""
    return lambda program, *words, **variables: run_in(tmp_path, with_client / program, *words, **variables)


def run_in(folder, *words, **variables):
    """Run a program in a folder outside of the repository, without a path to it."""
    kept = {name: os.environ[name] for name in ("PATH", "LANG", "HOME") if name in os.environ}
    return subprocess.run(
        words,
        env=kept | variables,
        cwd=folder,
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        timeout=60,
    )


def pip(*words):
    done = subprocess.run([sys.executable, "-m", "pip", *words], capture_output=True, text=True, timeout=240)
    assert done.returncode == 0, done.stdout + done.stderr


def test_the_wheel_holds_its_packages_whole_and_nothing_else(wheel):
    expected = set()
    for name in INSTALLED:
        above = LIBRARY if name == "cicada" else ROOT
        files = (path for path in (above / name).rglob("*") if path.is_file())
        expected |= {str(path.relative_to(above)) for path in files if path.suffix not in OF_NO_PACKAGE}
    held = {name for name in zipfile.ZipFile(wheel).namelist() if ".dist-info/" not in name}
    assert held == expected
    assert {"cicada/routing/routing.bin", "cicada/models/prices.json", "cicada_client/py.typed"} <= held


def test_every_module_can_be_imported_but_for_packages_of_other_extras(run):
    done = run("python", "-c", IMPORT_ALL, *INSTALLED)
    assert done.returncode == 0, done.stderr
    assert set(json.loads(done.stdout)) == OF_OTHER_EXTRAS


def test_the_command_answers(run, cloud, issuer, user):
    token = issuer.token(user)
    done = run("cicada", "ask", QUESTION, "--episode", "ep1", CICADA_URL=cloud.websocket_url, CICADA_TOKEN=token)
    assert done.returncode == 0, done.stderr
    assert "thirteen" in done.stdout


def test_the_python_client_answers_without_the_packages_of_the_command(run_beside_client, cloud, issuer, user):
    done = run_beside_client("python", "-c", IMPORT_ALL, "cicada_client")
    assert (done.returncode, json.loads(done.stdout)) == (0, [])
    done = run_beside_client("cicada", "ask", "?")
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr == "cicada: the command needs the extra cli: pip install '.[cli]' in Cicada's repository\n"
    done = run_beside_client("python", "-c", ASK, cloud.websocket_url, issuer.token(user), QUESTION)
    assert done.returncode == 0, done.stderr
    assert "thirteen" in done.stdout


def test_the_command_searches_and_reads_documents_but_names_the_extra_for_pdf_files(run, cloud, tmp_path):
    where = ("--bucket", cloud.outputs["IndexBucket"], "--endpoint-url", cloud.endpoint_url, "--region", "us-east-1")
    model = {
        "CICADA_EMBEDDING_MODEL_ID": cloud.outputs["EmbeddingModelId"],
        "CICADA_EMBEDDING_DIMENSIONS": cloud.outputs["EmbeddingDimensions"],
        "AWS_ACCESS_KEY_ID": "test",
        "AWS_SECRET_ACCESS_KEY": "test",
    }
    done = run("cicada", "search", "who rang the fog bell", "--episode", "ep1", "--json", *where, **model)
    assert done.returncode == 0, done.stderr
    assert "ep1-" in done.stdout
    folder = tmp_path / "manuals"
    folder.mkdir()
    (folder / "bell.md").write_text("# The bell\n\nIt is rung in fog.\n")
    (folder / "lamp.yaml").write_text("- lamp: lit at dusk\n")
    (folder / "latin.txt").write_bytes("Das Läuten hört man über die ganze Bucht.".encode("cp1252"))
    estimate = ("load", str(folder), "--collection", "manuals", "--estimate", "--json", *where)
    done = run("cicada", *estimate, **model)
    assert done.returncode == 0, done.stderr
    (folder / "plan.pdf").write_bytes(b"%PDF-1.7\n")
    done = run("cicada", *estimate, **model)
    assert done.returncode == 2
    told = done.stderr.splitlines()[-1]
    assert told == "cicada: PDF files need the extra pdf: pip install '.[pdf]' in Cicada's repository"
    assert "Traceback" not in done.stderr


def test_what_is_not_installed_is_named(run):
    samples = str(ROOT / "samples")
    done = run("cicada", "eval", "--dataset", samples)
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr == "cicada: measuring needs the extra eval: pip install '.[eval]' in Cicada's repository\n"
    done = run("cicada", "eval", "--dataset", samples, "--answers")
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr.startswith("cicada: the local embedding model runs only from Cicada's repository")
    assert done.stderr.count("\n") == 1

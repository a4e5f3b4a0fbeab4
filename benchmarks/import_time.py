"""Import time of each function as Lambda has it: what its cold start costs before its first event.

Code and layers lie in folders laid out as in Lambda, once with bytecode and once without, and nothing is cached while
they are imported: Lambda's are read-only. Each row is a handler imported with its settings in the environment (clients
are made) by fresh processes, with and without in turns: the median of their CPU time and of their wall-clock time.
*The search path* is the index's reader, its store and the retriever, as the answer function has them: what searching
needs without the SDK, the models and the telemetry. The SDK is Lambda's own, and always has its bytecode here.

Lambda's version of Python is used where this machine has it, with packages fetched for it; else this Python, with the
packages of its environment.

    .venv/bin/python -m benchmarks.import_time
    .venv/bin/python -m benchmarks.import_time --only answer --packages
"""

from __future__ import annotations

import argparse
import hashlib
import importlib.metadata
import os
import platform
import re
import shutil
import statistics
import subprocess
import sys
import sysconfig
import tempfile
import time
from collections import Counter
from collections.abc import Mapping
from pathlib import Path
from typing import NamedTuple

from stacks.builds import BUILD, ROOT, built
from stacks.bytecode import FUNCTION_FOLDER, LAYER_FOLDER, Interpreter, compile_folder, interpreter
from stacks.http_access import BRINGS

LAMBDAS = ROOT / "lambdas"
FUNCTIONS = tuple(sorted(path.parent.name for path in LAMBDAS.glob("*/handler.py")))
ENVIRONMENT = {
    "AWS_REGION": "us-east-1",
    "AWS_DEFAULT_REGION": "us-east-1",
    "AWS_ACCESS_KEY_ID": "x",
    "AWS_SECRET_ACCESS_KEY": "x",
    "AWS_ENDPOINT_URL": "http://127.0.0.1:9",
    "AWS_ENDPOINT_URL_APIGATEWAYMANAGEMENTAPI": "http://127.0.0.1:9",
    "POWERTOOLS_SERVICE_NAME": "cicada",
    "POWERTOOLS_METRICS_NAMESPACE": "Cicada",
    "REQUESTS_TABLE": "t",
    "INDEX_BUCKET": "b",
    "PAGE_BUCKET": "b",
    "WEBSOCKET_URL": "wss://abc.execute-api.us-east-1.amazonaws.com/live",
    "STATE_MACHINE_ARN": "arn:aws:states:us-east-1:123456789012:stateMachine:m",
    "UPLOAD_URL": "https://b.s3.us-east-1.amazonaws.com/",
    "INGEST_MACHINE_ARN": "arn:aws:states:us-east-1:123456789012:stateMachine:ingest",
    "GENERATION_MODEL_ID": "g",
    "DIRECT_MODEL_ID": "d",
    "WRITING_MODEL_ID": "w",
    "EMBEDDING_MODEL_ID": "local.all-minilm-l6-v2",
    "EMBEDDING_DIMENSIONS": "384",
    "JWT_ISSUER": "https://issuer.example/",
    "JWT_AUDIENCE": "a",
    "JWKS_URL": "https://issuer.example/jwks.json",
}
SEARCH_PATH = """
from cicada.index.reader import IndexReader
from cicada.index.s3_direct import DirectS3Store
from cicada.retrieval.shards import ShardRetriever
reader = IndexReader(DirectS3Store("b"), embedding_model_id="e", dimensions=384)
"""
CASES = {
    "bare interpreter": "pass",
    "boto3 and one client": "import boto3; boto3.client('dynamodb')",
    "numpy": "import numpy",
    "the search path alone": SEARCH_PATH,
    **{name: f"import sys; sys.path.insert(0, {str(LAMBDAS / name)!r}); import handler" for name in FUNCTIONS},
}
VENDOR_LAYERS = ("base", "auth", "documents", "http", "search", "yaml")
SDK_LAYER = "sdk"
"""What Lambda's runtime brings."""
PACKAGES_SHOWN = 25

_TIMED = re.compile(r"import time:\s+(\d+) \|\s+\d+ \| +(\S+)")


class Taken(NamedTuple):
    """One process. Times in milliseconds."""

    cpu_ms: float
    wall_ms: float


class Layout(NamedTuple):
    """Where one variant lies: sources alone, or with bytecode."""

    root: Path
    runtime: Path

    @property
    def opt(self) -> Path:
        """The unpacked layers."""
        return self.root / LAYER_FOLDER.lstrip("/")

    @property
    def task(self) -> Path:
        """The unpacked functions, side by side."""
        return self.root / FUNCTION_FOLDER.lstrip("/")

    def command(self, python: Interpreter, code: str, *options: str) -> tuple[list[str], dict[str, str]]:
        """How a fresh process runs some code, and its environment: it finds this variant alone, and caches nothing."""
        code = code.replace(str(LAMBDAS), str(self.task))
        environment = {name: value for name, value in os.environ.items() if not name.startswith("PYTHON")} | ENVIRONMENT
        environment["PYTHONPATH"] = os.pathsep.join((str(self.opt / "python"), str(self.runtime)))
        environment["PYTHONDONTWRITEBYTECODE"] = "1"
        return [python.path, "-S", *options, "-c", f"{code}\nimport os; os._exit(0)"], environment


def laid_out(folder: Path, packages: Path, runtime: Path, python: Interpreter) -> Mapping[str, Layout]:
    """The variants, by name, below a folder."""
    variants = {name: Layout(folder / name, runtime) for name in ("sources", "bytecode")}
    ignored = shutil.ignore_patterns("__pycache__")
    for layout in variants.values():
        shutil.copytree(packages, layout.opt / "python", copy_function=os.link)
        shutil.copytree(ROOT / "layers" / "cicada", layout.opt, ignore=ignored, dirs_exist_ok=True)
        shutil.copytree(LAMBDAS, layout.task, ignore=ignored)
        for package in BRINGS:
            shutil.copytree(package, layout.task / "http" / package.name, ignore=ignored)
    compile_folder(variants["bytecode"].opt, LAYER_FOLDER, python)
    compile_folder(variants["bytecode"].task, FUNCTION_FOLDER, python)
    return variants


def fetched(python: Interpreter) -> Path:
    """The packages of all layers and of Lambda's runtime, for an interpreter and this machine, below ``BUILD``."""

    def make(folder: Path) -> None:
        command = [sys.executable, "-m", "pip", "--python", python.path, "install", "--quiet", "--no-compile"]
        command += ["--disable-pip-version-check", "--root-user-action=ignore", "--no-deps", "--only-binary=:all:"]
        for name in (*VENDOR_LAYERS, SDK_LAYER):
            target = folder / ("runtime" if name == SDK_LAYER else "vendor")
            command_of_layer = [*command, "--require-hashes", "--target", str(target), "--upgrade"]
            subprocess.run([*command_of_layer, "--requirement", str(_lock(name))], check=True)
        compile_folder(folder / "runtime", "/var/runtime", python)

    locks = b"".join(_lock(name).read_bytes() for name in (*VENDOR_LAYERS, SDK_LAYER))
    machine = f"{python.version} {platform.system()} {platform.machine()}"
    return built("measured", hashlib.sha256(machine.encode() + locks).hexdigest()[:16], make, build=BUILD)


def copied(folder: Path) -> Path:
    """The same packages but those of Lambda's runtime, copied from this Python's environment to a folder."""
    for name in VENDOR_LAYERS:
        lines = _lock(name).with_suffix(".txt").read_text(encoding="utf-8").splitlines()
        for requirement in filter(None, (re.match(r"[\w.-]+", line) for line in lines)):
            for file in importlib.metadata.files(requirement[0]) or ():
                source = Path(str(file.locate()))
                if ".." not in file.parts and "__pycache__" not in file.parts and source.is_file():
                    (folder / file).parent.mkdir(parents=True, exist_ok=True)
                    shutil.copy(source, folder / file)
    return folder


def _lock(layer: str) -> Path:
    return ROOT / "layers" / "vendor" / layer / "requirements.lock"


def taken(layout: Layout, python: Interpreter, code: str) -> Taken:
    """What a process takes that runs the code and leaves at once."""
    command, environment = layout.command(python, code)
    began = time.monotonic()
    process = subprocess.Popen(command, env=environment, stdout=subprocess.DEVNULL)
    _, status, used = os.wait4(process.pid, 0)
    process.returncode = os.waitstatus_to_exitcode(status)
    wall_ms = 1000 * (time.monotonic() - began)
    if process.returncode:
        raise SystemExit(f"failed: {code}")
    return Taken(1000 * (used.ru_utime + used.ru_stime), wall_ms)


def by_package(layout: Layout, python: Interpreter, code: str, runs: int) -> Mapping[str, tuple[float, int]]:
    """Milliseconds and modules of each imported package, this library's by part; a module's best of some runs."""
    best: dict[str, int] = {}
    for _ in range(runs):
        command, environment = layout.command(python, code, "-X", "importtime")
        told = subprocess.run(command, env=environment, capture_output=True, text=True, check=True).stderr
        for microseconds, module in _TIMED.findall(told):
            best[module] = min(int(microseconds), best.get(module, sys.maxsize))
    spent, modules = Counter[str](), Counter[str]()
    for module, microseconds in best.items():
        parts = module.split(".")
        package = ".".join(parts[: 2 if parts[0] == "cicada" else 1])
        spent[package] += microseconds
        modules[package] += 1
    return {package: (microseconds / 1000, modules[package]) for package, microseconds in spent.most_common()}


def measure(variants: Mapping[str, Layout], python: Interpreter, names: list[str], runs: int) -> None:
    """Measure some cases in turns, and print the table."""
    times: dict[tuple[str, str], list[Taken]] = {(name, kind): [] for name in names for kind in variants}
    for turn in range(runs + 1):
        for name, kind in times:
            one = taken(variants[kind], python, CASES[name])
            if turn:  # the first turn reads the files into memory
                times[name, kind].append(one)

    def median(name: str, kind: str, field: int) -> float:
        return statistics.median(one[field] for one in times[name, kind])

    ratios = f"{'bytecode':>10}{'ratio':>8}"
    print(f"{'':24}{'CPU ms, sources':>17}{ratios}{'wall ms, sources':>18}{ratios}")
    for name in names:
        line = f"{name:24}"
        for field, width in enumerate((17, 18)):
            sources, bytecode = (median(name, kind, field) for kind in ("sources", "bytecode"))
            line += f"{sources:>{width}.0f}{bytecode:>10.0f}{sources / bytecode:>8.2f}"
        print(line)
    if any(variants["sources"].root.rglob("*.pyc")):
        raise SystemExit("not measured: modules were compiled and kept")


def main(argv: list[str] | None = None) -> int:
    """Print the table, and where the time goes if asked."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--runs", type=int, default=7, help="processes of each row and variant (default: %(default)s)")
    parser.add_argument("--only", nargs="+", choices=CASES, default=list(CASES), help="these rows (default: all)")
    parser.add_argument("--packages", action="store_true", help="print what each package takes of a row, with bytecode")
    parser.add_argument("--own-python", action="store_true", help="use this Python and its packages; fetch nothing")
    args = parser.parse_args(argv)
    found = None if args.own_python else interpreter()
    python = found or Interpreter(sys.executable, platform.python_version())
    BUILD.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=BUILD, prefix=".measured-") as scratch:
        if found is None:
            packages, runtime = copied(Path(scratch, "packages")), Path(sysconfig.get_path("purelib"))
        else:
            packages, runtime = (fetched(python) / part for part in ("vendor", "runtime"))
        variants = laid_out(Path(scratch), packages, runtime, python)
        print(f"Python {python.version}, median of {args.runs} processes each")
        measure(variants, python, args.only, args.runs)
        for name in args.only if args.packages else ():
            print(f"\n{name}, by package{'ms':>24}{'modules':>10}")
            spent = by_package(variants["bytecode"], python, CASES[name], args.runs)
            for package, (milliseconds, modules) in list(spent.items())[:PACKAGES_SHOWN]:
                print(f"{package:32}{milliseconds:>10.1f}{modules:>10}")
    return 0


if __name__ == "__main__":
    sys.exit(main())

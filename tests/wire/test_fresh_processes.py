"""What a process imports, or writes, that has just started."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

from supply_chain import sbom
from supply_chain.locks import ROOT, layer_locks


def test_the_routes_classifier_brings_neither_numpy_nor_a_client_of_aws() -> None:
    code = (
        "import sys, cicada.routing.classifier;"
        "print(sorted({m.split('.')[0] for m in sys.modules} & {'numpy', 'boto3', 'botocore'}))"
    )
    assert subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout == "[]\n"


def test_nothing_of_the_endpoints_is_imported_before_a_model_of_one_is_asked_for() -> None:
    script = (
        "import sys; from cicada.models.factory import ModelFactory\n"
        "print([name for name in sys.modules if 'openai' in name or 'endpoint_keys' in name])"
    )
    path = str(ROOT / "layers" / "cicada" / "python")
    done = subprocess.run(
        [sys.executable, "-c", script], env={"PYTHONPATH": path}, capture_output=True, text=True, check=True
    )
    assert done.stdout.strip() == "[]"


def test_the_same_locks_give_the_same_bytes_in_another_process(tmp_path: Path) -> None:
    mine = {path.name: path.read_bytes() for path in sbom.write(tmp_path)}
    assert mine.keys() == {"cicada.cdx.json", *(f"layer-{name}.cdx.json" for name in layer_locks())}
    code = "import sys; from pathlib import Path; from supply_chain import sbom; sbom.write(Path(sys.argv[1]))"
    environment = {**os.environ, "PYTHONHASHSEED": "7", "PYTHONPATH": str(ROOT)}
    other = tmp_path / "other"
    subprocess.run([sys.executable, "-c", code, str(other)], check=True, cwd=ROOT, env=environment)
    assert {path.name: path.read_bytes() for path in other.iterdir()} == mine


def test_the_client_brings_neither_numpy_nor_a_client_of_aws() -> None:
    code = (
        "import sys\n"
        "sys.modules.update(dict.fromkeys(('boto3', 'botocore', 'numpy', 'rich'), None))\n"
        "import importlib, pkgutil, cicada_client\n"
        "for one in pkgutil.walk_packages(cicada_client.__path__, 'cicada_client.'): importlib.import_module(one.name)"
    )
    path = f"{ROOT}{os.pathsep}{ROOT / 'layers' / 'cicada' / 'python'}"
    subprocess.run([sys.executable, "-c", code], env={"PYTHONPATH": path}, check=True)

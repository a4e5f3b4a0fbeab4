"""Third-party wheels: made for Lambda's processor, complete, small enough, and fetched once."""

from __future__ import annotations

import hashlib
import re
import struct
import zipfile
from pathlib import Path

import pytest

from stacks import wheels
from stacks.builds import unzipped_bytes
from stacks.bytecode import PYTHON_VERSION, Interpreter
from stacks.wheels import VENDOR, WheelsUnavailable, build_key, built_layer
from tests.template.templates import FUNCTIONS, ROOT, Synthesis

LAMBDA_LIMIT_BYTES = 250 * 1024**2
AARCH64 = 183
"""``e_machine`` in an ELF header."""

IMPORTS = {
    "message_processor": {"aws_lambda_powertools", "pydantic"},
    "answer": {"aws_lambda_powertools", "pydantic", "numpy", "Stemmer", "rapidfuzz"},
    "corpus": {"aws_lambda_powertools", "pydantic", "numpy", "Stemmer"},
    "exhausted": {"aws_lambda_powertools", "pydantic"},
    "recovery_sweep": {"aws_lambda_powertools", "pydantic"},
    "index_maintenance": {"aws_lambda_powertools", "pydantic", "numpy", "Stemmer"},
    "page_files": {"aws_lambda_powertools", "pydantic"},
    "record_settings": {"aws_lambda_powertools", "pydantic"},
    "ingest_start": {"aws_lambda_powertools", "pydantic"},
    "ingest_plan": {"aws_lambda_powertools", "pydantic", "numpy"},
    "ingest_document": {"aws_lambda_powertools", "pydantic", "numpy", "pypdf", "markdown_it", "charset_normalizer"},
    "ingest_commit": {"aws_lambda_powertools", "pydantic", "numpy", "Stemmer"},
    "retrieve": {"aws_lambda_powertools", "pydantic", "numpy", "Stemmer"},
    "index_document": {"aws_lambda_powertools", "pydantic", "numpy", "pypdf", "markdown_it", "charset_normalizer"},
    "get_document_summary": {"aws_lambda_powertools", "pydantic", "numpy"},
    "extract_citations": {"aws_lambda_powertools", "pydantic", "numpy", "Stemmer"},
    "graph_query": {"aws_lambda_powertools", "pydantic", "numpy"},
    "facets": {"aws_lambda_powertools", "pydantic", "numpy"},
    "enrich_schema": {"aws_lambda_powertools", "pydantic", "numpy", "Stemmer"},
    "connection": {"aws_lambda_powertools", "pydantic"},
    "authorizer": {"aws_lambda_powertools", "pydantic", "jwt", "cryptography"},
}


@pytest.mark.parametrize("folder", FUNCTIONS)
def test_a_function_and_its_layers_fit_into_lambdas_limit(shipped: Synthesis, folder: str) -> None:
    layers = shipped.layers(folder)
    assert len(layers) <= 5
    total = unzipped_bytes(ROOT / "lambdas" / folder) + sum(unzipped_bytes(layer) for layer in layers)
    assert 1e6 < total <= LAMBDA_LIMIT_BYTES


@pytest.mark.parametrize("folder", FUNCTIONS)
def test_a_function_finds_what_it_imports(shipped: Synthesis, folder: str) -> None:
    found = {path.name.split(".")[0] for layer in shipped.layers(folder) for path in (layer / "python").iterdir()}
    assert IMPORTS[folder] | {"cicada"} <= found


def test_numpy_is_carried_only_by_those_who_read_the_index(shipped: Synthesis) -> None:
    carriers = {
        folder for folder in FUNCTIONS if any((layer / "python" / "numpy").exists() for layer in shipped.layers(folder))
    }
    assert carriers == {
        *("answer", "corpus", "index_maintenance", "ingest_plan", "ingest_document", "ingest_commit"),
        *("retrieve", "index_document", "get_document_summary", "extract_citations", "graph_query", "facets"),
        "enrich_schema",
    }


def test_readers_of_documents_are_carried_only_by_those_who_read_documents(shipped: Synthesis) -> None:
    carriers = {
        folder for folder in FUNCTIONS if any((layer / "python" / "pypdf").exists() for layer in shipped.layers(folder))
    }
    assert carriers == {"ingest_document", "index_document"}


def test_every_compiled_module_is_for_arm64_and_this_python(shipped: Synthesis) -> None:
    modules = [path for folder in FUNCTIONS for layer in shipped.layers(folder) for path in layer.rglob("*.so*")]
    assert modules
    for module in modules:
        head = module.read_bytes()[:20]
        assert head[:4] == b"\x7fELF"
        assert struct.unpack_from("<H", head, 18)[0] == AARCH64, module
        tag = re.search(r"\.cpython-(\d+)", module.name)
        assert tag is None or tag[1] == PYTHON_VERSION.replace(".", ""), module


@pytest.mark.parametrize("name", ["base", "auth", "documents", "search", "sdk", "yaml"])
def test_every_package_of_a_layer_is_pinned(name: str) -> None:
    def normal(distribution: str) -> str:
        return re.sub(r"[-_.]+", "-", distribution).lower()

    lines = (VENDOR / name / "requirements.txt").read_text().splitlines()
    pins = {
        (normal(pin[1]), pin[2]) for pin in (re.match(r"([\w.-]+)(?:\[\w+\])?==(\S+)$", line) for line in lines) if pin
    }
    found = (info.stem.rsplit("-", 1) for info in (built_layer(name) / "python").glob("*.dist-info"))
    built = {(normal(distribution), version) for distribution, version in found}
    assert built == pins


def test_nothing_is_carried_that_no_function_reads(shipped: Synthesis) -> None:
    files = [path for folder in FUNCTIONS for layer in shipped.layers(folder) for path in layer.rglob("*")]
    assert not [path for path in files if path.name in ("tests", "RECORD") or path.suffix in (".pyi", ".js")]


def test_the_local_cloud_fetches_no_wheels(local: Synthesis) -> None:
    for folder in FUNCTIONS.keys() - {"authorizer"}:
        library, *vendor = local.layers(folder)
        assert (library / "python" / "cicada").is_dir()
        assert vendor
        for layer in vendor:
            assert [path.name for path in layer.iterdir()] == ["requirements.txt"]


@pytest.fixture
def described(tmp_path: Path) -> Path:
    folder = tmp_path / "vendor" / "some"
    folder.mkdir(parents=True)
    (folder / "requirements.lock").write_text("one==1\n")
    return folder.parent


def fake_pip(monkeypatch: pytest.MonkeyPatch) -> list[Path]:
    installed: list[Path] = []

    def install(lock: Path, target: Path) -> None:
        installed.append(lock)
        (target / "one" / "tests").mkdir(parents=True)
        (target / "one" / "__init__.py").write_text("")
        (target / "one" / "stub.pyi").write_text("")
        (target / "one" / "tests" / "test_one.py").write_text("")
        (target / "one-1.dist-info").mkdir()
        (target / "one-1.dist-info" / "RECORD").write_text("")
        (target / "one-1.dist-info" / "METADATA").write_text("Name: one")

    monkeypatch.setattr(wheels, "_install", install)
    monkeypatch.setattr(wheels, "interpreter", lambda: None)
    return installed


def test_what_has_not_changed_is_not_fetched_again(
    described: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    installed = fake_pip(monkeypatch)
    first = built_layer("some", vendor=described, build=tmp_path / "build")
    assert built_layer("some", vendor=described, build=tmp_path / "build") == first
    assert len(installed) == 1
    kept = {str(path.relative_to(first)) for path in first.rglob("*") if path.is_file()}
    assert kept == {"python/one/__init__.py", "python/one-1.dist-info/METADATA"}


def test_what_has_changed_takes_the_place_of_the_old(
    described: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    installed = fake_pip(monkeypatch)
    first = built_layer("some", vendor=described, build=tmp_path / "build")
    (described / "some" / "requirements.lock").write_text("one==2\n")
    second = built_layer("some", vendor=described, build=tmp_path / "build")
    assert len(installed) == 2
    assert not first.exists()
    assert [path.name for path in (tmp_path / "build").iterdir()] == [second.name]


def test_another_target_is_another_build(monkeypatch: pytest.MonkeyPatch) -> None:
    before = build_key(b"one==1", None)
    monkeypatch.setattr(wheels, "PYTHON_VERSION", "3.14")
    assert build_key(b"one==1", None) != before


def test_a_layer_with_bytecode_is_another_build() -> None:
    pythons = (None, Interpreter("python", "3.13.0"), Interpreter("python", "3.13.1"))
    assert len({build_key(b"one==1", python) for python in pythons}) == 3
    assert build_key(b"one==1", pythons[1]) == build_key(b"one==1", Interpreter("another", "3.13.0"))


def test_progress_goes_to_stderr(
    described: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    fake_pip(monkeypatch)
    built_layer("some", vendor=described, build=tmp_path / "build")
    said = capsys.readouterr()
    assert said.out == ""
    assert "layer some: fetching wheels for arm64" in said.err


def test_a_wheel_that_cannot_be_had_is_named_and_leaves_nothing_behind(described: Path, tmp_path: Path) -> None:
    missing = tmp_path / "missing-1-py3-none-any.whl"
    (described / "some" / "requirements.lock").write_text(f"{missing.as_uri()} --hash=sha256:{'0' * 64}\n")
    with pytest.raises(WheelsUnavailable, match="missing-1-py3"):
        built_layer("some", vendor=described, build=tmp_path / "build")
    assert not list((tmp_path / "build").iterdir())


@pytest.fixture
def wheel(tmp_path: Path) -> Path:
    path = tmp_path / "one-1-py3-none-any.whl"
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr("one.py", "")
        archive.writestr("one-1.dist-info/METADATA", "Metadata-Version: 2.1\nName: one\nVersion: 1\n")
        archive.writestr("one-1.dist-info/WHEEL", "Wheel-Version: 1.0\nRoot-Is-Purelib: true\nTag: py3-none-any\n")
        archive.writestr("one-1.dist-info/RECORD", "")
    return path


def test_a_wheel_with_the_locked_hash_is_installed(described: Path, tmp_path: Path, wheel: Path) -> None:
    digest = hashlib.sha256(wheel.read_bytes()).hexdigest()
    (described / "some" / "requirements.lock").write_text(f"{wheel.as_uri()} --hash=sha256:{digest}\n")
    built = built_layer("some", vendor=described, build=tmp_path / "build")
    assert (built / "python" / "one.py").is_file()


@pytest.mark.parametrize("said", ["", f" --hash=sha256:{'0' * 64}"], ids=["no hash", "another hash"])
def test_a_wheel_without_the_locked_hash_is_refused(described: Path, tmp_path: Path, wheel: Path, said: str) -> None:
    (described / "some" / "requirements.lock").write_text(f"{wheel.as_uri()}{said}\n")
    with pytest.raises(WheelsUnavailable, match=r"(?i)hash"):
        built_layer("some", vendor=described, build=tmp_path / "build")
    assert not list((tmp_path / "build").iterdir())

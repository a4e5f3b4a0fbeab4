"""The locks: complete, hashed, of one version each, and made from the requirements as they are."""

from __future__ import annotations

import importlib.metadata
import re
from collections.abc import Iterable
from pathlib import Path

import pytest
from packaging.markers import default_environment
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

from cicada_local import install
from supply_chain import lock
from supply_chain.locks import (
    ROOT,
    LockDamaged,
    Locked,
    layer_locks,
    lock_of,
    read_lock,
    read_requirements,
    requirement_files,
)

HERE = {key: str(value) for key, value in default_environment().items()}
IN_LAMBDA = {
    **HERE,
    "python_version": "3.13",
    "python_full_version": "3.13.0",
    "platform_machine": "aarch64",
    "platform_system": "Linux",
    "sys_platform": "linux",
}
FILES = requirement_files()
NOT_HERE = ("requirements-no-deps.txt", "requirements-bench.txt", "requirements-docs.txt")
WITH_DEPENDENCIES = [path for path in FILES if path.name not in NOT_HERE]
"""Those whose packages are installed here, so that their metadata can be read."""


def name_of(path: Path) -> str:
    return str(path.relative_to(ROOT))


def missing(requirements: Iterable[Requirement], locked: Iterable[Locked], environment: dict[str, str]) -> list[str]:
    """What the requirements need, and their needs in turn, and the lock does not have in a version that fits."""
    versions = {
        package.name: package.version
        for package in locked
        if package.marker is None or package.marker.evaluate(environment)
    }
    found: list[str] = []
    seen: set[tuple[str, str]] = set()
    waiting = [requirement for requirement in requirements if applies(requirement, environment, "")]
    while waiting:
        requirement = waiting.pop()
        name = canonicalize_name(requirement.name)
        if name not in versions or not requirement.specifier.contains(versions[name], prereleases=True):
            found.append(str(requirement))
            continue
        for extra in {"", *requirement.extras}:
            if (name, extra) in seen:
                continue
            seen.add((name, extra))
            needs = map(Requirement, importlib.metadata.distribution(name).requires or [])
            waiting += [need for need in needs if applies(need, environment, extra)]
    return sorted(set(found))


def applies(requirement: Requirement, environment: dict[str, str], extra: str) -> bool:
    return requirement.marker is None or requirement.marker.evaluate({**environment, "extra": extra})


@pytest.mark.parametrize("path", FILES, ids=name_of)
def test_every_requirement_is_pinned_and_locked_as_pinned(path: Path) -> None:
    locked = {(package.name, package.version) for package in read_lock(lock_of(path))}
    for requirement in read_requirements(path):
        (pin,) = requirement.specifier
        assert pin.operator == "=="
        assert (canonicalize_name(requirement.name), pin.version) in locked


@pytest.mark.parametrize("path", FILES, ids=name_of)
def test_every_locked_package_has_hashes_and_a_need(path: Path) -> None:
    packages = read_lock(lock_of(path))
    assert packages
    included = {f"-r {name_of(other)}" for other in FILES}
    names = {package.name for package in packages}
    for package in packages:
        assert package.hashes, package.name
        needs = {reason for reason in package.needed_by if not reason.startswith("-c ")}
        assert needs, package.name
        assert needs <= included | names


@pytest.mark.parametrize("path", FILES, ids=name_of)
def test_a_lock_holds_no_requirement_that_is_gone(path: Path) -> None:
    direct = {
        package.name
        for package in read_lock(lock_of(path))
        if any(reason.startswith("-r ") for reason in package.needed_by)
    }
    assert direct == {canonicalize_name(requirement.name) for requirement in read_requirements(path)}


@pytest.mark.parametrize("path", FILES, ids=name_of)
def test_a_lock_names_no_index(path: Path) -> None:
    assert not re.search(r"://|--(extra-)?index-url|--find-links", lock_of(path).read_text(encoding="utf-8"))


@pytest.mark.parametrize("path", WITH_DEPENDENCIES, ids=name_of)
def test_all_that_is_needed_in_turn_is_locked(path: Path) -> None:
    environment = IN_LAMBDA if path.parent != ROOT else HERE
    assert missing(read_requirements(path), read_lock(lock_of(path)), environment) == []


def test_a_need_that_is_not_locked_is_found() -> None:
    path = ROOT / "layers" / "vendor" / "auth" / "requirements.txt"
    locked = [package for package in read_lock(lock_of(path)) if package.name != "cffi"]
    found = missing(read_requirements(path), locked, IN_LAMBDA)
    assert {Requirement(need).name for need in found} == {"cffi"}


@pytest.mark.parametrize("path", [lock_of(path) for path in FILES if path != lock.MAIN], ids=name_of)
def test_every_other_lock_agrees_with_the_main_one(path: Path) -> None:
    main: dict[str, dict[str, tuple[str, ...]]] = {}
    for package in read_lock(lock_of(lock.MAIN)):
        main.setdefault(package.name, {})[package.version] = package.hashes
    for package in read_lock(path):
        if package.name in main:
            assert main[package.name].get(package.version) == package.hashes, package.name


@pytest.mark.parametrize("name", layer_locks())
def test_a_layer_holds_what_its_requirements_name(name: str) -> None:
    path = layer_locks()[name]
    named = {canonicalize_name(requirement.name) for requirement in read_requirements(path.with_suffix(".txt"))}
    assert {package.name for package in read_lock(path)} == named
    assert named <= {package.name for package in read_lock(lock_of(lock.MAIN))}


def test_every_layer_has_a_lock() -> None:
    assert set(layer_locks()) == {path.name for path in (ROOT / "layers" / "vendor").iterdir() if path.is_dir()}


def test_what_is_installed_here_is_what_is_locked() -> None:
    other = [
        (package.name, package.version, found)
        for package in read_lock(lock_of(lock.MAIN))
        if package.marker is None or package.marker.evaluate()
        if (found := importlib.metadata.version(package.name)) != package.version
    ]
    assert not other, "run `make setup`"


@pytest.mark.parametrize(
    "line", ["one==1", "one>=1 \\", "--index-url elsewhere", "one @ file:///one.whl \\", "    --hash=md5:00"]
)
def test_a_line_that_is_not_the_compilers_is_refused(tmp_path: Path, line: str) -> None:
    path = tmp_path / "some.lock"
    path.write_text(f"# comment\ntwo==2 \\\n    --hash=sha256:{'0' * 64}\n    # via -r some.txt\n{line}\n")
    with pytest.raises(LockDamaged, match="line 5"):
        read_lock(path)


def test_a_layer_is_compiled_for_lambda_and_the_rest_for_every_machine() -> None:
    layer = lock.command(ROOT / "layers" / "vendor" / "base" / "requirements.txt")
    assert layer[layer.index("--python-platform") + 1] == "aarch64-manylinux_2_34"
    assert layer[layer.index("--constraint") + 1] == "requirements.lock"
    main = lock.command(lock.MAIN, "--upgrade")
    assert "--universal" in main
    assert "--constraint" not in main
    assert main[-2:] == ["--upgrade", "requirements.txt"]


def test_setup_takes_nothing_without_a_hash_and_builds_nothing_in_isolation(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    commands: list[list[str]] = []
    monkeypatch.setattr(install, "VENV", tmp_path)
    monkeypatch.setattr(install, "PYTHON", tmp_path / "python")
    monkeypatch.setattr(install, "_run", lambda title, command, *more: commands.append(command))
    install.install_python_packages()
    installs = [command for command in commands if "pip" in command]
    *locked, own = installs
    assert [command[-1] for command in locked] == [
        "requirements-build.lock",
        "requirements.lock",
        "requirements-no-deps.lock",
    ]
    assert all({"--require-hashes", "--no-deps", "--only-binary=:all:"} <= set(command) for command in locked)
    assert own[-2:] == ["--editable", "."]
    assert all("--no-build-isolation" in command for command in installs)
    commands.clear()
    (tmp_path / "python").touch()
    install.install_python_packages()
    assert commands == []

"""Bills of materials: valid CycloneDX, complete, the same from the same locks."""

from __future__ import annotations

import json
from functools import cache
from pathlib import Path
from typing import Any

import pytest
from cyclonedx.validation.json import JsonStrictValidator

from supply_chain import sbom
from supply_chain.licences import Policy
from supply_chain.locks import all_locked, layer_locks, npm_packages, read_lock

POLICY = Policy.read()
LAYERS = layer_locks()


@cache
def bill_of(name: str) -> str:
    return sbom.layer_bill(name, POLICY) if name in LAYERS else sbom.project_bill(POLICY)


@pytest.fixture(scope="module")
def project() -> dict[str, Any]:
    bill: dict[str, Any] = json.loads(bill_of("project"))
    return bill


@pytest.mark.parametrize("name", ["project", *LAYERS])
def test_a_bill_is_valid_cyclonedx_and_every_component_has_its_licence(name: str) -> None:
    bill = bill_of(name)
    assert JsonStrictValidator(sbom.SPECIFICATION).validate_str(bill) is None
    document = json.loads(bill)
    assert document["bomFormat"] == "CycloneDX"
    for component in document["components"]:
        assert component["licenses"], component["name"]
        assert component["hashes"], component["name"]


def test_an_invalid_bill_is_found() -> None:
    document = json.loads(bill_of("yaml"))
    document["components"][0]["hashes"][0]["content"] = "short"
    assert JsonStrictValidator(sbom.SPECIFICATION).validate_str(json.dumps(document)) is not None


@pytest.mark.parametrize("name", LAYERS)
def test_a_layers_bill_is_its_lock(name: str) -> None:
    components = json.loads(bill_of(name))["components"]
    locked = read_lock(LAYERS[name])
    assert {each["purl"] for each in components} == {f"pkg:pypi/{each.name}@{each.version}" for each in locked}
    hashes = {each["name"]: {hashed["content"] for hashed in each["hashes"]} for each in components}
    assert hashes == {each.name: set(each.hashes) for each in locked}


def test_the_projects_bill_has_every_locked_package(project: dict[str, Any]) -> None:
    python = {f"pkg:pypi/{name}@{version}" for name, version in all_locked()}
    npm = {f"pkg:npm/{each.name.replace('@', '%40')}@{each.version}" for each in npm_packages()}
    assert {each["purl"] for each in project["components"]} == python | npm
    assert project["metadata"]["component"]["name"] == "cicada"


def test_what_layers_ship_is_told_from_tools(project: dict[str, Any]) -> None:
    scopes = {each["name"]: each["scope"] for each in project["components"]}
    assert (scopes["pydantic"], scopes["moto"], scopes["aws-cdk"]) == ("required", "excluded", "excluded")


def test_the_bill_says_who_needs_what(project: dict[str, Any]) -> None:
    needs = {
        each["ref"].partition("@")[0]: [need.partition("@")[0] for need in each.get("dependsOn", [])]
        for each in project["dependencies"]
    }
    assert {"pkg:pypi/pydantic", "pkg:npm/aws-cdk"} <= set(needs["cicada"])
    assert "pkg:pypi/pydantic-core" in needs["pkg:pypi/pydantic"]
    assert "pkg:pypi/multidict" not in needs["cicada"]


def test_the_serial_number_follows_the_content() -> None:
    numbers = {json.loads(bill_of(name))["serialNumber"] for name in ["project", *LAYERS]}
    assert len(numbers) == 1 + len(LAYERS)


def test_npm_packages_are_read_with_those_that_need_them(tmp_path: Path) -> None:
    lock = tmp_path / "package-lock.json"
    packages = {
        "": {"name": "some", "devDependencies": {"one": "^1"}},
        "node_modules/one": {"version": "1.0.0", "license": "MIT", "dependencies": {"@two/three": "^3"}},
        "node_modules/one/node_modules/@two/three": {"version": "3.0.0", "integrity": "sha512-AAAA"},
    }
    lock.write_text(json.dumps({"packages": packages}))
    three, one = npm_packages(lock)
    assert (three.name, three.version, three.licence, three.needed_by) == ("@two/three", "3.0.0", None, ("one",))
    assert (one.name, one.licence, one.needed_by) == ("one", "MIT", ("",))

"""``make sbom``: bills of materials in CycloneDX 1.6 JSON, of the whole project and of each vendor layer.

They are made from the locks without network, and the same locks give the same bytes: there is no time in them, and the
serial number is derived from the content. Licences come from the policy and from what is installed here.
"""

from __future__ import annotations

import base64
import hashlib
import json
import sys
import tomllib
import uuid
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

from cyclonedx.contrib.license.factories import LicenseFactory
from cyclonedx.model import HashAlgorithm, HashType, Property
from cyclonedx.model.bom import Bom
from cyclonedx.model.component import Component, ComponentScope, ComponentType
from cyclonedx.output import make_outputter
from cyclonedx.schema import OutputFormat, SchemaVersion
from packageurl import PackageURL

from cicada import __version__
from supply_chain.licences import Policy
from supply_chain.locks import PACKAGE_LOCK, ROOT, Locked, NpmPackage, all_locked, layer_locks, npm_packages, read_lock

FOLDER = ROOT / ".cicada" / "sbom"
SPECIFICATION = SchemaVersion.V1_6

_LOCK = "cicada:lock"
"""The property that names the locks which hold a component."""
_NAMESPACE = uuid.UUID("2f9d3f0e-6f0a-5a58-9a5e-5b0f3f6a9c11")
_NPM_HASHES = {"sha256": HashAlgorithm.SHA_256, "sha384": HashAlgorithm.SHA_384, "sha512": HashAlgorithm.SHA_512}


def project_bill(policy: Policy) -> str:
    """The bill of all that the project installs anywhere: to run, to deploy, to test, to measure."""
    python = all_locked()
    shipped = {
        key for path in layer_locks().values() for key in ((each.name, each.version) for each in read_lock(path))
    }
    parts = _Parts(policy)
    for key, locks in python.items():
        names = [str(lock.relative_to(ROOT)) for lock in locks]
        scope = ComponentScope.REQUIRED if key in shipped else ComponentScope.EXCLUDED
        parts.add_python(list(locks.values()), names, scope)
    for package in npm_packages():
        parts.add_npm(package)
    return parts.bill(_project())


def layer_bill(name: str, policy: Policy) -> str:
    """The bill of one vendor layer."""
    lock = layer_locks()[name]
    parts = _Parts(policy)
    for package in read_lock(lock):
        parts.add_python([package], [str(lock.relative_to(ROOT))], ComponentScope.REQUIRED)
    project = _project()
    layer = Component(
        name=f"cicada-layer-{name}",
        version=project.version,
        type=ComponentType.LIBRARY,
        bom_ref=f"cicada-layer-{name}",
    )
    return parts.bill(layer)


def write(folder: Path = FOLDER) -> list[Path]:
    """Write all bills; what is written."""
    policy = Policy.read()
    bills = {"cicada": project_bill(policy), **{f"layer-{name}": layer_bill(name, policy) for name in layer_locks()}}
    folder.mkdir(parents=True, exist_ok=True)
    for name, bill in bills.items():
        (folder / f"{name}.cdx.json").write_text(bill, encoding="utf-8")
    return [folder / f"{name}.cdx.json" for name in bills]


class _Parts:
    """Components and who needs which."""

    def __init__(self, policy: Policy) -> None:
        self._policy = policy
        self._licences = LicenseFactory()
        self._components: dict[str, list[Component]] = {}
        self._needs: list[tuple[Component, str]] = []
        """A component, and the registry and name of a package that needs it."""
        self._direct: list[Component] = []

    def add_python(self, packages: Sequence[Locked], locks: Iterable[str], scope: ComponentScope) -> None:
        """Add one version of a package as it is in one or several locks."""
        first = packages[0]
        hashes = [HashType(alg=HashAlgorithm.SHA_256, content=digest) for digest in first.hashes]
        purl = PackageURL("pypi", None, first.name, first.version)
        component = self._component(purl, self._policy.licence_of(first.name), hashes, scope)
        component.properties = [Property(name=_LOCK, value=lock) for lock in locks]
        for reason in sorted({reason for package in packages for reason in package.needed_by}):
            if reason.startswith("-r "):
                self._direct.append(component)
            elif not reason.startswith("-c "):
                self._needs.append((component, f"pypi:{reason}"))

    def add_npm(self, package: NpmPackage) -> None:
        """Add a package of npm's lock."""
        algorithm, _, digest = package.integrity.partition("-")
        hashes = [HashType(alg=_NPM_HASHES[algorithm], content=base64.b64decode(digest).hex())] if digest else []
        group, _, name = package.name.rpartition("/")
        component = self._component(
            PackageURL("npm", group or None, name, package.version), package.licence, hashes, ComponentScope.EXCLUDED
        )
        component.properties = [Property(name=_LOCK, value=PACKAGE_LOCK.name)]
        for dependent in package.needed_by:
            if dependent:
                self._needs.append((component, f"npm:{dependent}"))
            else:
                self._direct.append(component)

    def bill(self, subject: Component) -> str:
        """The bill of what these are parts of."""
        bom = Bom(components=[each for named in self._components.values() for each in named])
        bom.metadata.component = subject
        bom.register_dependency(subject, self._direct)
        for component, dependent in self._needs:
            for each in self._components.get(dependent, []):
                bom.register_dependency(each, [component])
        document = json.loads(make_outputter(bom, OutputFormat.JSON, SPECIFICATION).output_as_string())
        return _reproducible(document)

    def _component(
        self, purl: PackageURL, licence: str | None, hashes: list[HashType], scope: ComponentScope
    ) -> Component:
        component = Component(
            name=purl.name,
            group=purl.namespace,
            version=purl.version,
            type=ComponentType.LIBRARY,
            scope=scope,
            purl=purl,
            bom_ref=str(purl),
            hashes=hashes,
            licenses=[self._licences.make_from_string(licence)] if licence else [],
        )
        name = f"{purl.namespace}/{purl.name}" if purl.namespace else purl.name
        self._components.setdefault(f"{purl.type}:{name}", []).append(component)
        return component


def _project() -> Component:
    said = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    return Component(
        name=said["name"],
        version=__version__,
        type=ComponentType.APPLICATION,
        bom_ref=said["name"],
        licenses=[LicenseFactory().make_from_string(said["license"])],
    )


def _reproducible(document: dict[str, Any]) -> str:
    """The document without the time and the random serial number that the library puts into it."""
    document["metadata"].pop("timestamp", None)
    document.pop("serialNumber", None)
    content = json.dumps(document, sort_keys=True).encode()
    document["serialNumber"] = uuid.uuid5(_NAMESPACE, hashlib.sha256(content).hexdigest()).urn
    return json.dumps(document, indent=2, sort_keys=True) + "\n"


def main() -> int:
    """Write the bills and name them."""
    for path in write():
        print(path.relative_to(ROOT))
    return 0


if __name__ == "__main__":
    sys.exit(main())

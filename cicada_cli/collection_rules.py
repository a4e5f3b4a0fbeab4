"""``cicada collections --rules``: list the collections of the bucket and their readers."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from rich.console import Console

from cicada.errors import CicadaError
from cicada.rights import AccessRules
from cicada_cli.access import rules_of
from cicada_cli.deployment import Deployment
from cicada_cli.exits import Exit
from cicada_cli.index import store_of
from cicada_cli.output import complain, show_list

if TYPE_CHECKING:
    from cicada.index.manifest import Manifest

NEEDS = ("bucket", "access")
"""Values of the deployment that the list needs."""
COLUMNS = ("collection", "passages", "kind", "readers")


@dataclass(frozen=True)
class ListedCollection:
    """A collection, or an access rule for one that does not exist."""

    name: str
    passages: int
    kind: str | None
    """From its declaration; None without one."""
    readers: tuple[str, ...] | None
    """The groups that may read it; None for everybody."""

    @property
    def told(self) -> str:
        """Its readers as text."""
        if self.readers is None:
            return "everybody"
        return ", ".join(self.readers) or "nobody"


def collection_rules(deployment: Deployment, *, as_json: bool, out: Console) -> Exit:
    """List the collections, by name."""
    from cicada.index.versions import must_be_published

    try:
        rules = rules_of(deployment)
        manifest = must_be_published(store_of(deployment)).manifest
    except CicadaError as error:
        complain(f"{error.told} ({error.code}: {error})")
        return Exit.FAILED
    found = listed(manifest, rules)
    for one in found:
        if not one.passages:
            complain(f"the access rules name a collection that does not exist: {one.name}")
    show_list(
        COLUMNS,
        found,
        row=lambda one: (one.name, str(one.passages), one.kind or "", one.told),
        data=_data,
        as_json=as_json,
        out=out,
        numbers=("passages",),
    )
    return Exit.DONE


def listed(manifest: Manifest, rules: AccessRules) -> list[ListedCollection]:
    """The collections of an index version, and the access rules for others."""
    kinds = {one.collection: one.kind for one in manifest.declarations}
    otherwise = None if rules.default == "everybody" else ()
    return [
        ListedCollection(
            name,
            sum(entry.live for entry in manifest.of_collection(name)),
            kinds.get(name),
            rules.readers.get(name, otherwise),
        )
        for name in sorted({*manifest.collections, *rules.readers})
    ]


def _data(one: ListedCollection) -> dict[str, Any]:
    readers = "everybody" if one.readers is None else list(one.readers)
    return {"collection": one.name, "passages": one.passages, "kind": one.kind, "readers": readers}

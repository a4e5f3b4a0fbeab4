"""``cicada collections``: what the index holds, and who may read it."""

from __future__ import annotations

import argparse
from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from rich.console import Console

from cicada.errors import CicadaError
from cicada.rights import AccessRules
from cicada_cli.access import rules_of
from cicada_cli.deployment import Deployment
from cicada_cli.exits import Exit
from cicada_cli.index import store_of
from cicada_cli.listing import show_rows
from cicada_cli.output import complain, say_json
from cicada_cli.shared_options import add_access, add_aws

if TYPE_CHECKING:
    from cicada.index.manifest import Manifest

NEEDS = ("bucket", "access")
"""What the command must know of the deployment: it calls no model."""


@dataclass(frozen=True)
class ListedCollection:
    """A collection, or a rule for one that the index does not hold."""

    name: str
    passages: int
    kind: str | None
    """As it declares; None without a declaration."""
    readers: tuple[str, ...] | None
    """The groups that may read it; None for everybody."""

    @property
    def told(self) -> str:
        """Who may read it, in words."""
        if self.readers is None:
            return "everybody"
        return ", ".join(self.readers) or "nobody"


def add_collections(
    commands: argparse._SubParsersAction[argparse.ArgumentParser], run: Callable[[argparse.Namespace], Exit]
) -> None:
    """Add the command's grammar."""
    parser = commands.add_parser(
        "collections",
        help="list the collections",
        description="List the index's collections, with their passages and who may read them.",
    )
    parser.add_argument("--json", action="store_true", help="one JSON object per line and collection")
    group = parser.add_argument_group("deployment")
    group.add_argument("--bucket", help="the bucket that holds the index (CICADA_INDEX_BUCKET)")
    add_access(group)
    add_aws(group)
    parser.set_defaults(run=run)


def collections(deployment: Deployment, *, as_json: bool, out: Console) -> Exit:
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
            complain(f"there is a rule for {one.name}, and no such collection")
    if as_json:
        for one in found:
            say_json(_plain(one))
    else:
        rows = ((one.name, str(one.passages), one.kind or "", one.told) for one in found)
        show_rows(("collection", "passages", "kind", "readers"), rows, out, numbers=("passages",))
    return Exit.DONE


def listed(manifest: Manifest, rules: AccessRules) -> list[ListedCollection]:
    """The version's collections, and the rules for others."""
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


def _plain(one: ListedCollection) -> dict[str, Any]:
    readers = "everybody" if one.readers is None else list(one.readers)
    return {"collection": one.name, "passages": one.passages, "kind": one.kind, "readers": readers}

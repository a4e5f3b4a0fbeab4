"""``cicada index``: manage the versions of the index, and maintain it."""

from __future__ import annotations

import argparse
from collections.abc import Callable, Iterator
from dataclasses import asdict
from functools import partial, wraps
from itertools import islice
from typing import TYPE_CHECKING, Any, Concatenate, ParamSpec

from rich.console import Console

from cicada.errors import CicadaError, PublishConflict
from cicada.index.maintenance import KEEP_VERSIONS
from cicada_cli import argument_types
from cicada_cli.context import deployment_of
from cicada_cli.deployment import Deployment
from cicada_cli.exits import Exit
from cicada_cli.grammar import Commands
from cicada_cli.index import PIECES, recorded_store_of, store_of
from cicada_cli.output import complain, console, say, say_json, show_list
from cicada_cli.progress import progress_on
from cicada_cli.shared_options import add_aws, add_bucket, add_json, add_json_lines
from cicada_cli.text import counted, printable

if TYPE_CHECKING:
    from cicada.index.ports import ObjectStore
    from cicada.index.versions import PastVersion

NEEDS = ("bucket",)
"""Values of the deployment that the commands need."""
VERSIONS = ("version", "written", "collections", "segments", "state")


def add_index(commands: Commands) -> None:
    """Add the command's parsers."""
    parser = commands.add_parser(
        "index",
        help="manage index versions",
        description="Manage the versions of the index, and maintain it.",
        examples=("cicada index versions", "cicada index check"),
    )
    actions = parser.add_subparsers(dest="index_command", required=True, metavar="COMMAND")

    listing = actions.add_parser(
        "versions",
        help="list the versions",
        description="List the versions of the index that can be rolled back to, newest first.",
        examples=("cicada index versions --limit 5",),
    )
    listing.add_argument(
        "--limit", type=argument_types.positive, metavar="N", help="maximum number of versions (default: all)"
    )
    add_json_lines(listing)

    rolling = actions.add_parser(
        "rollback",
        help="roll back to a version",
        description="Publish the content of an old version as a new version.",
        examples=("cicada index rollback 000041-5988accaffc910e1",),
    )
    rolling.add_argument("version", metavar="VERSION", help="id of the version; see `cicada index versions`")

    compacting = actions.add_parser(
        "compact",
        help="merge small segments",
        description="Merge small segments and drop deleted rows, if it is due.",
        examples=("cicada index compact",),
    )
    compacting.add_argument("--collection", metavar="COLLECTION", help="this collection only (default: all)")

    collecting = actions.add_parser(
        "collect",
        help="delete unused objects",
        description="Delete objects that no kept version needs and that are older than 24 hours.",
        examples=("cicada index collect --keep-versions 20",),
    )
    collecting.add_argument(
        "--keep-versions",
        type=argument_types.positive,
        default=KEEP_VERSIONS,
        metavar="N",
        help="newest versions to keep, in addition to those of the last 24 hours (default: %(default)s)",
    )

    checking = actions.add_parser(
        "check",
        help="verify every object",
        description="Read every object of the current version and verify its checksum.",
        examples=("cicada index check",),
    )
    add_json(checking)

    allowing = actions.add_parser(
        "partial",
        help="allow or refuse partial searches",
        description="Set whether searches may continue without a segment that cannot be read.",
        examples=("cicada index partial allow",),
    )
    allowing.add_argument("partial", choices=("allow", "refuse"), metavar="SETTING", help="allow or refuse")

    for name, command in actions.choices.items():
        command.set_defaults(run=_RUNS[name])
        group = command.add_argument_group("deployment")
        add_bucket(group)
        add_aws(group)


_P = ParamSpec("_P")


_OnStore = Callable[Concatenate["ObjectStore", _P], Exit]
_OnDeployment = Callable[Concatenate[Deployment, _P], Exit]


def _told(open_store: Callable[[Deployment], ObjectStore], command: _OnStore[_P]) -> _OnDeployment[_P]:
    @wraps(command)
    def told(deployment: Deployment, /, *args: _P.args, **kwargs: _P.kwargs) -> Exit:
        try:
            return command(open_store(deployment), *args, **kwargs)
        except PublishConflict as error:
            complain(f"nothing was changed, because another writer published a version: {error}")
        except CicadaError as error:
            complain(f"{error.told} ({error.code}: {error})")
        return Exit.FAILED

    return told


def _on_the_store(command: _OnStore[_P]) -> _OnDeployment[_P]:
    """A command on the deployment's store, with its failures reported."""
    return _told(store_of, command)


def _publishes(command: _OnStore[_P]) -> _OnDeployment[_P]:
    """The same, for a command that publishes a version."""
    return _told(partial(recorded_store_of, command=f"index {command.__name__.removeprefix('allow_')}"), command)


def _rolls_back(command: _OnStore[_P]) -> _OnDeployment[_P]:
    """The same, for a command that rolls back."""
    opened = partial(recorded_store_of, command="index rollback", publishing="version_rolled_back")
    return _told(opened, command)


@_on_the_store
def versions(store: ObjectStore, *, limit: int | None, as_json: bool) -> Exit:
    """List the versions that can be rolled back to, newest first."""
    from cicada.index.versions import history, must_be_published

    current = must_be_published(store).manifest
    found = (
        _described(past) | {"current": past.version == current.version}
        for past in islice(history(store, current), limit)
    )
    show_list(VERSIONS, found, row=_row, data=lambda one: one, as_json=as_json, out=console())
    return Exit.DONE


def _described(past: PastVersion) -> dict[str, Any]:
    described: dict[str, Any] = {"version": past.version, "writtenAt": past.written_at.isoformat(timespec="seconds")}
    try:
        manifest = past.manifest()
    except CicadaError as error:
        return described | {"unreadable": str(error)}
    return described | {
        "embeddingModelId": manifest.embedding_model_id,
        "collections": {
            name: sum(entry.live for entry in manifest.of_collection(name)) for name in manifest.collections
        },
        "segments": len(manifest.segments),
        "deletedRows": sum(entry.count - entry.live for entry in manifest.segments),
        "bytes": sum(entry.bytes for entry in manifest.segments),
        "allowPartial": manifest.allow_partial,
    }


def _row(found: dict[str, Any]) -> tuple[str, ...]:
    if "unreadable" in found:
        return found["version"], found["writtenAt"], "", "", "unreadable"
    held = ", ".join(f"{printable(name)} {count:,}" for name, count in found["collections"].items()) or "nothing"
    segments = f"{counted(found['segments'], 'segment')}, {found['bytes'] / 1e6:,.1f} MB"
    return found["version"], found["writtenAt"], held, segments, "current" if found["current"] else ""


@_rolls_back
def rollback(store: ObjectStore, version: str) -> Exit:
    """Publish the content of an old version as a new version."""
    from cicada.index.versions import restore

    restored = restore(store, version)
    if restored.version == version:
        say(f"Version {version} is already current.")
    else:
        say(f"Published version {restored.version} with the content of version {version}.")
    return Exit.DONE


@_publishes
def compact(store: ObjectStore, *, collection: str | None, err: Console) -> Exit:
    """Merge segments, if it is due."""
    from cicada.index.compaction import compact

    with progress_on(err, PIECES) as progress:
        done = compact(store, collection=collection, progress=progress)
    if done is None:
        say("Nothing to compact.")
    else:
        say(
            f"Merged {counted(done.merged, 'segment')} into {done.segments:,} and dropped "
            f"{counted(done.dropped, 'deleted row')}.\nCurrent version: {done.version}."
        )
    return Exit.DONE


@_on_the_store
def collect(store: ObjectStore, *, keep_versions: int, err: Console) -> Exit:
    """Delete objects that no kept version needs."""
    from cicada.index.maintenance import collect_garbage

    with progress_on(err, PIECES) as progress:
        done = collect_garbage(store, keep_versions=keep_versions, progress=progress)
    say(
        f"Deleted {counted(done.objects, 'object')} ({done.bytes / 1e6:,.1f} MB) and kept "
        f"{counted(done.versions, 'version')}."
    )
    return Exit.DONE


@_on_the_store
def check(store: ObjectStore, *, as_json: bool, err: Console) -> Exit:
    """Read and verify every object of the current version."""
    from cicada.index.maintenance import check_index

    with progress_on(err, PIECES) as progress:
        found = check_index(store, progress=progress)
    if as_json:
        say_json(asdict(found))
    else:
        for damage in found.damaged:
            where = f" ({printable(damage.collection)})" if damage.collection else ""
            say(f"damaged: {damage.key}{where}: {printable(damage.reason)}")
        outcome = f"{len(found.damaged):,} damaged" if found.damaged else "no damage"
        say(f"Version {found.version}: {counted(found.objects, 'object')}, {found.bytes / 1e6:,.1f} MB, {outcome}.")
        for line in _advice({damage.collection for damage in found.damaged}):
            complain(line)
    return Exit.FAILED if found.damaged else Exit.DONE


def _advice(collections: set[str | None]) -> Iterator[str]:
    for collection in sorted(filter(None, collections)):
        yield f"to repair {printable(collection)}, load it again with --verify"


@_publishes
def allow_partial(store: ObjectStore, *, allowed: bool) -> Exit:
    """Publish whether searches may continue without a segment that cannot be read."""
    from cicada.index.versions import set_allow_partial

    version = set_allow_partial(store, allowed).version
    told = "continue without" if allowed else "fail at"
    say(f"Searches {told} a segment that cannot be read. Current version: {version}.")
    return Exit.DONE


def _versions(args: argparse.Namespace) -> Exit:
    return versions(deployment_of(args, NEEDS), limit=args.limit, as_json=args.json)


def _rollback(args: argparse.Namespace) -> Exit:
    return rollback(deployment_of(args, NEEDS), args.version)


def _compact(args: argparse.Namespace) -> Exit:
    return compact(deployment_of(args, NEEDS), collection=args.collection, err=console(stderr=True))


def _collect(args: argparse.Namespace) -> Exit:
    return collect(deployment_of(args, NEEDS), keep_versions=args.keep_versions, err=console(stderr=True))


def _check(args: argparse.Namespace) -> Exit:
    return check(deployment_of(args, NEEDS), as_json=args.json, err=console(stderr=True))


def _partial(args: argparse.Namespace) -> Exit:
    return allow_partial(deployment_of(args, NEEDS), allowed=args.partial == "allow")


_RUNS: dict[str, Callable[[argparse.Namespace], Exit]] = {
    "versions": _versions,
    "rollback": _rollback,
    "compact": _compact,
    "collect": _collect,
    "check": _check,
    "partial": _partial,
}

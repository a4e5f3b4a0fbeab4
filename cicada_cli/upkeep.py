"""``cicada index``: the versions of the index, and what keeps it in order."""

from __future__ import annotations

import argparse
from collections.abc import Callable, Iterator, Mapping
from dataclasses import asdict
from functools import partial, wraps
from itertools import islice
from typing import TYPE_CHECKING, Any, Concatenate, ParamSpec

from rich.console import Console

from cicada.errors import CicadaError, PublishConflict
from cicada.index.maintenance import KEEP_VERSIONS
from cicada_cli import argument_types
from cicada_cli.deployment import Deployment
from cicada_cli.exits import Exit
from cicada_cli.index import PIECES, recorded_store_of, store_of
from cicada_cli.output import complain, say, say_json
from cicada_cli.progress import progress_on
from cicada_cli.shared_options import add_aws
from cicada_cli.text import counted, printable

if TYPE_CHECKING:
    from cicada.index.ports import ObjectStore
    from cicada.index.versions import PastVersion

NEEDS = ("bucket",)
"""What these commands must know of the deployment: they call no model."""


def add_index(
    commands: argparse._SubParsersAction[argparse.ArgumentParser],
    runs: Mapping[str, Callable[[argparse.Namespace], Exit]],
) -> None:
    """Add the commands to the grammar; ``runs`` carries each out."""
    parser = commands.add_parser(
        "index", help="manage index versions", description="Manage the versions of the index and its maintenance."
    )
    actions = parser.add_subparsers(dest="index_command", required=True, metavar="COMMAND")

    listing = actions.add_parser(
        "versions",
        help="list the versions that can be rolled back to",
        description="List the versions of the index that can be rolled back to, newest first.",
    )
    listing.add_argument("--limit", type=argument_types.positive, metavar="N", help="versions at most (default: all)")
    listing.add_argument("--json", action="store_true", help="one JSON object per line and version")

    rolling = actions.add_parser(
        "rollback", help="roll back to a version", description="Publish an old version's content as a new version."
    )
    rolling.add_argument("version", metavar="VERSION", help="the version's id; see `cicada index versions`")

    compacting = actions.add_parser(
        "compact", help="merge small segments", description="Merge small segments and drop deleted rows, if due."
    )
    compacting.add_argument("--collection", help="only this collection (default: all)")

    collecting = actions.add_parser(
        "collect",
        help="delete unused objects",
        description="Delete objects that no kept version needs and that are older than 24 hours.",
    )
    collecting.add_argument(
        "--keep-versions",
        type=argument_types.positive,
        default=KEEP_VERSIONS,
        metavar="N",
        help="newest versions to keep, with those that were current within 24 hours (default: %(default)s)",
    )

    checking = actions.add_parser(
        "check", help="verify every object", description="Read every object of the current version, and verify it."
    )
    checking.add_argument("--json", action="store_true", help="report as a JSON object")

    allowing = actions.add_parser(
        "partial",
        help="allow or refuse partial searches",
        description="Set whether searches may answer without a segment that cannot be read, and report it as degraded.",
    )
    allowing.add_argument("partial", choices=("allow", "refuse"), help="whether they may")

    for name, command in actions.choices.items():
        command.set_defaults(run=runs[name])
        group = command.add_argument_group("deployment")
        group.add_argument("--bucket", help="the bucket that holds the index (CICADA_INDEX_BUCKET)")
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
            complain(f"another writer published first; nothing was changed: {error}")
        except CicadaError as error:
            complain(f"{error.told} ({error.code}: {error})")
        return Exit.FAILED

    return told


def _on_the_store(command: _OnStore[_P]) -> _OnDeployment[_P]:
    """A command on the deployment's store; its failures are reported."""
    return _told(store_of, command)


def _publishes(command: _OnStore[_P]) -> _OnDeployment[_P]:
    """The same for a command that publishes a version."""
    return _told(partial(recorded_store_of, command=f"index {command.__name__.removeprefix('allow_')}"), command)


def _rolls_back(command: _OnStore[_P]) -> _OnDeployment[_P]:
    """The same for a command that rolls back."""
    opened = partial(recorded_store_of, command="index rollback", publishing="version_rolled_back")
    return _told(opened, command)


@_on_the_store
def versions(store: ObjectStore, *, limit: int | None, as_json: bool) -> Exit:
    """List the versions that can be rolled back to, newest first."""
    from cicada.index.versions import history, must_be_published

    current = must_be_published(store).manifest
    for past in islice(history(store, current), limit):
        found = _described(past) | {"current": past.version == current.version}
        if as_json:
            say_json(found)
        else:
            say(_line(found))
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


def _line(found: dict[str, Any]) -> str:
    """A version as a line: when, what it holds, and whether it is the current one; separated by tabs."""
    if "unreadable" in found:
        return "\t".join((found["version"], found["writtenAt"], "cannot be read"))
    held = ", ".join(f"{printable(name)} {count:,}" for name, count in found["collections"].items()) or "nothing"
    segments = f"{counted(found['segments'], 'segment')}, {found['bytes'] / 1e6:,.1f} MB"
    return "\t".join(
        (found["version"], found["writtenAt"], held, segments, *(("current",) if found["current"] else ()))
    )


@_rolls_back
def rollback(store: ObjectStore, version: str) -> Exit:
    """Publish an old version's content as a new version."""
    from cicada.index.versions import restore

    restored = restore(store, version)
    if restored.version == version:
        say(f"Version {version} is current already.")
    else:
        say(f"Version {restored.version} is current: it holds what version {version} held.")
    return Exit.DONE


@_publishes
def compact(store: ObjectStore, *, collection: str | None, err: Console) -> Exit:
    """Merge segments, where that is due."""
    from cicada.index.compaction import compact

    with progress_on(err, PIECES) as progress:
        done = compact(store, collection=collection, progress=progress)
    if done is None:
        say("Nothing is due.")
    else:
        say(
            f"{counted(done.merged, 'segment')} became {done.segments:,}, without "
            f"{counted(done.dropped, 'deleted row')}.\nVersion {done.version} is current."
        )
    return Exit.DONE


@_on_the_store
def collect(store: ObjectStore, *, keep_versions: int, err: Console) -> Exit:
    """Delete what no kept version needs."""
    from cicada.index.maintenance import collect_garbage

    with progress_on(err, PIECES) as progress:
        done = collect_garbage(store, keep_versions=keep_versions, progress=progress)
    say(
        f"{counted(done.objects, 'object')} deleted, {done.bytes / 1e6:,.1f} MB; "
        f"{counted(done.versions, 'version')} can be rolled back to."
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
        outcome = f"{len(found.damaged):,} damaged" if found.damaged else "all sound"
        say(f"Version {found.version}: {counted(found.objects, 'object')}, {found.bytes / 1e6:,.1f} MB, {outcome}.")
        for line in _advice({damage.collection for damage in found.damaged}):
            complain(line)
    return Exit.FAILED if found.damaged else Exit.DONE


def _advice(collections: set[str | None]) -> Iterator[str]:
    for collection in sorted(filter(None, collections)):
        yield f"load {printable(collection)} again with --verify to write anew what is damaged of it"


@_publishes
def allow_partial(store: ObjectStore, *, allowed: bool) -> Exit:
    """Publish whether searches may do without a segment that cannot be read."""
    from cicada.index.versions import set_allow_partial

    version = set_allow_partial(store, allowed).version
    told = "answer from the rest, and say so," if allowed else "fail"
    say(f"Searches {told} when a segment cannot be read: version {version} is current.")
    return Exit.DONE

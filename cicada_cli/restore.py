"""``cicada restore``: puts back what was damaged or lost, from earlier versions, copies and backups."""

from __future__ import annotations

import argparse
from collections.abc import Callable, Iterable
from functools import partial
from typing import TYPE_CHECKING

from cicada_cli.administration import Command, Run, confirmed, recorded
from cicada_cli.deployment import Deployment
from cicada_cli.exits import Exit
from cicada_cli.index import PIECES, store_of
from cicada_cli.output import complain, console, note, say
from cicada_cli.progress import progress_on
from cicada_cli.shared_options import add_aws
from cicada_cli.text import counted

if TYPE_CHECKING:
    from cicada.restoring.index import CopyPlan, PutBackPlan
    from cicada.restoring.object_versions import VersionedBucket

INDEX_NEEDS = ("bucket",)
"""What restoring the index must know of the deployment."""


def add_restore(
    commands: argparse._SubParsersAction[argparse.ArgumentParser],
    run: Callable[[Command, tuple[str, ...]], Run],
) -> None:
    """Add the commands to the grammar."""
    parser = commands.add_parser(
        "restore",
        help="restore the index or the table",
        description="Restore what was damaged or lost. The plan is printed first; see docs/recovery.md.",
    )
    actions = parser.add_subparsers(dest="restore_command", required=True, metavar="COMMAND")
    index = actions.add_parser(
        "index",
        help="put back damaged objects of the index",
        description="Put back each damaged or deleted object of the index's current version as its newest sound "
        "version, or take the index from a copy of the bucket.",
    )
    index.add_argument(
        "--from",
        dest="source",
        metavar="BUCKET",
        help="take the newest complete version of the index from this copy of the bucket (default: this bucket's past)",
    )
    _add_confirmation(index)
    group = index.add_argument_group("deployment")
    group.add_argument("--bucket", help="the bucket that holds the index (CICADA_INDEX_BUCKET)")
    add_aws(group)
    index.set_defaults(run=run(partial(_guarded, _index), INDEX_NEEDS))


def _add_confirmation(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--dry-run", action="store_true", help="print the plan and change nothing")
    parser.add_argument("--yes", action="store_true", help="do not ask for confirmation")


def _guarded(command: Command, args: argparse.Namespace, deployment: Deployment) -> Exit:
    from cicada.errors import AuditUnavailable, CicadaError, PublishConflict

    try:
        return command(args, deployment)
    except AuditUnavailable:
        raise  # reported as of all commands that administer
    except PublishConflict as error:
        complain(f"the index was written meanwhile: {error}. The same command goes on where this one stopped")
    except CicadaError as error:
        complain(f"{error.told} ({error.code}: {error})")
    return Exit.FAILED


def _goes_on(args: argparse.Namespace, plan: Iterable[str], question: str) -> bool:
    """Print the plan; whether it is to be carried out."""
    for line in plan:
        say(line)
    if args.dry_run:
        return False
    if args.yes or confirmed(question, "restore"):
        return True
    note("Nothing was changed.")
    return False


# --- the index ---


def _index(args: argparse.Namespace, deployment: Deployment) -> Exit:
    return _put_back(args, deployment) if args.source is None else _copy(args, deployment)


def _versioned(deployment: Deployment, bucket: str) -> VersionedBucket:
    from cicada.index.s3 import CLIENT_CONFIG
    from cicada.restoring.object_versions import VersionedBucket

    return VersionedBucket(deployment.aws.client("s3", CLIENT_CONFIG), bucket)


def _put_back(args: argparse.Namespace, deployment: Deployment) -> Exit:
    from cicada.restoring.index import plan_put_back, put_back

    store, bucket = store_of(deployment), _versioned(deployment, deployment.bucket)
    with progress_on(console(stderr=True), PIECES) as progress:
        plan = plan_put_back(store, bucket, progress=progress)
    if not plan.due:
        for line in _put_back_told(plan):
            say(line)
        return Exit.FAILED if plan.lost else Exit.DONE
    if not _goes_on(args, _put_back_told(plan), "Put these objects back?"):
        return Exit.DONE if args.dry_run else Exit.FAILED
    keys = [*plan.rewritten, *(one.key for one in plan.put_back)]
    change = recorded(deployment, "index_restored", None, version=plan.manifest.version, objects=keys)
    with change, progress_on(console(stderr=True), PIECES) as progress:
        put_back(store, bucket, plan, progress=progress)
    say(f"Put back {counted(len(keys), 'object')}: version {plan.manifest.version} is current.")
    return Exit.FAILED if plan.lost else Exit.DONE


def _put_back_told(plan: PutBackPlan) -> Iterable[str]:
    yield f"Version {plan.manifest.version}: {counted(len(plan.manifest.segments), 'segment')}."
    for version in plan.put_back:
        at = version.modified_at.isoformat(timespec="seconds")
        yield f"put back: {version.key} as of {at} ({version.bytes:,} bytes)"
    for key in plan.rewritten:
        yield f"write again: {key}"
    for damage in plan.lost:
        yield f"lost: {damage.key}: {damage.reason}"
    if plan.lost:
        yield "No sound version is left of these. Roll back to an older version, or load the collection with --verify."
    elif not plan.due:
        yield "Every object is sound: nothing to put back."


def _copy(args: argparse.Namespace, deployment: Deployment) -> Exit:
    from cicada.index.s3 import CLIENT_CONFIG, S3Store
    from cicada.restoring.index import copy_index, plan_copy

    store, source = store_of(deployment), _versioned(deployment, args.source)
    copies = S3Store(deployment.aws.client("s3", CLIENT_CONFIG), args.source)
    plan = plan_copy(store, copies, source)
    if not plan.due:
        say(f"Version {plan.manifest.version} of {args.source} is what this bucket holds: nothing to restore.")
        return Exit.DONE
    if not _goes_on(args, _copy_told(plan, args.source), "Publish this version here?"):
        return Exit.DONE if args.dry_run else Exit.FAILED
    told = {"version": plan.manifest.version, "source": args.source, "objects": len(plan.objects)}
    target = _versioned(deployment, deployment.bucket)
    change = recorded(deployment, "index_restored", None, **told)
    with change, progress_on(console(stderr=True), PIECES) as progress:
        published = copy_index(store, target, args.source, plan, progress=progress)
    say(f"Version {published.version} is current: it holds what version {plan.manifest.version} of {args.source} held.")
    return Exit.DONE


def _copy_told(plan: CopyPlan, source: str) -> Iterable[str]:
    size = sum(one.bytes for one in plan.objects)
    written = plan.manifest.created_at.isoformat(timespec="seconds")
    yield f"Version {plan.manifest.version} of {source}, written {written}: {plan.manifest.count:,} passages."
    for version in plan.incomplete:
        yield f"left out: version {version}, whose objects had not all arrived"
    yield f"copy: {counted(len(plan.objects), 'object')} ({size / 1e6:,.1f} MB); {plan.present:,} are here already"
    if plan.replaces is not None:
        yield f"replace: version {plan.replaces.manifest.version}, which can be rolled back to"

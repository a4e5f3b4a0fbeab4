"""``cicada restore``: puts back what was damaged or lost, from earlier versions, copies and backups."""

from __future__ import annotations

import argparse
import json
from collections.abc import Callable, Iterable, Mapping
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING, Any

from cicada_cli import argument_types
from cicada_cli.administration import Command, Run, confirmed, recorded
from cicada_cli.deployment import DEFAULT_STACK_PREFIX, Deployment
from cicada_cli.exits import Exit, UsageError
from cicada_cli.index import PIECES, store_of
from cicada_cli.output import complain, console, note, say
from cicada_cli.progress import progress_on
from cicada_cli.shared_options import add_aws
from cicada_cli.text import counted

if TYPE_CHECKING:
    from cicada.restoring.index import CopyPlan, PutBackPlan
    from cicada.restoring.object_versions import VersionedBucket
    from cicada.restoring.table import Table

INDEX_NEEDS = ("bucket",)
"""What restoring the index must know of the deployment."""
TABLE_NEEDS = ("requests_table", "bucket")
"""What restoring the table must know; audit records lie in the bucket."""
TABLE_TYPE = "AWS::DynamoDB::Table"
WAIT_TOLD_S = 60.0
"""Between two lines about a table that is being made."""


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
    table = actions.add_parser(
        "table",
        help="restore the table",
        description="Restore a deleted table from the backup that DynamoDB made of it, or put items back into a "
        "damaged one.",
    )
    table.add_argument(
        "--at", type=argument_types.moment, metavar="TIME", help="put items back as they were at this time: ISO 8601"
    )
    table.add_argument(
        "--replace", action="store_true", help="with --at: replace items that differ too, not missing ones alone"
    )
    table.add_argument(
        "--from",
        dest="source",
        metavar="TABLE",
        help="with --at: copy from this table, whose data is of that time (default: the table's own past)",
    )
    table.add_argument("--empty", action="store_true", help="make a deleted table anew, without items")
    _add_confirmation(table)
    group = table.add_argument_group("deployment")
    group.add_argument("--table", metavar="NAME", help="the table of requests (CICADA_REQUESTS_TABLE)")
    group.add_argument("--bucket", help="the bucket that holds the audit records (CICADA_INDEX_BUCKET)")
    add_aws(group)
    table.set_defaults(run=run(partial(_guarded, _table), TABLE_NEEDS))


def _add_confirmation(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--dry-run", action="store_true", help="print the plan and change nothing")
    parser.add_argument("--yes", action="store_true", help="do not ask for confirmation")


def _guarded(command: Command, args: argparse.Namespace, deployment: Deployment) -> Exit:
    from cicada.errors import AuditUnavailable, CicadaError, PublishConflict
    from cicada.restoring.table import RestoreFault

    try:
        return command(args, deployment)
    except AuditUnavailable:
        raise  # reported as of all commands that administer
    except PublishConflict as error:
        complain(f"the index was written meanwhile: {error}. The same command goes on where this one stopped")
    except CicadaError as error:
        complain(f"{error.told} ({error.code}: {error})")
    except RestoreFault as error:
        complain(f"{error} ({error.code}). The same command goes on where this one stopped")
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


# --- the table ---


def _table(args: argparse.Namespace, deployment: Deployment) -> Exit:
    from cicada.personal_data.items import SCAN_CONFIG
    from cicada.restoring.table import Table

    if args.replace and args.at is None:
        raise UsageError("--replace is for --at")
    if args.source is not None and args.at is None:
        raise UsageError("--from needs --at: the time as of which the table's data is, so that erasures hold")
    table = Table(deployment.aws.client("dynamodb", SCAN_CONFIG), deployment.requests_table)
    there = table.status() is not None
    if args.at is not None:
        if not there:
            raise UsageError(f"{table.name} does not exist: restore it first, without --at")
        return _copy_back(args, deployment, table)
    if args.empty:
        if there:
            raise UsageError(f"{table.name} exists")
        return _create_empty(args, deployment, table)
    return _restore_deleted(args, deployment, table)


def _restore_deleted(args: argparse.Namespace, deployment: Deployment, table: Table) -> Exit:
    """Restore a deleted table, or complete what was begun."""
    from cicada.restoring.table import erased_since

    declared, backup = declared_table(deployment), table.deleted_backup()
    at = backup.created_at.isoformat(timespec="seconds")
    erased = erased_since(store_of(deployment), backup.created_at)
    began = table.status() is not None
    plan = [
        f"{table.name} exists. Complete its restoration from the backup of {at}: set what its stack declares."
        if began
        else f"{table.name} does not exist. Restore it, under its name, from the backup of its deletion, {at}.",
        *([f"delete again: data of {counted(len(erased), 'person', 'people')} erased since"] if erased else []),
    ]
    if not _goes_on(args, plan, "Restore the table?"):
        return Exit.DONE if args.dry_run else Exit.FAILED
    with recorded(deployment, "table_restored", None, table=table.name, backup=backup.arn) as change:
        if not began:
            table.restore_deleted(backup, declared)
        table.wait(_waited)
        forgotten = table.forget(erased) if erased else 0
        table.settle(declared)
        change.note(erasedItems=forgotten)
    say(f"{table.name} is restored.")
    return Exit.DONE


def _create_empty(args: argparse.Namespace, deployment: Deployment, table: Table) -> Exit:
    declared = declared_table(deployment)
    plan = [f"{table.name} does not exist. Make it anew, as its stack declares it, without any item."]
    if not _goes_on(args, plan, "Make an empty table?"):
        return Exit.DONE if args.dry_run else Exit.FAILED
    with recorded(deployment, "table_restored", None, table=table.name, empty=True):
        table.create(declared)
        table.wait(_waited)
        table.settle(declared)
    say(f"{table.name} is made anew, and empty.")
    return Exit.DONE


def _copy_back(args: argparse.Namespace, deployment: Deployment, table: Table) -> Exit:
    from cicada.restoring.table import erased_since, restorable_second

    at = restorable_second(args.at)
    erased = erased_since(store_of(deployment), at)
    plan = [f"Put items back into {table.name}, as they were at {at.isoformat()}:"]
    if args.source is None:
        earliest, latest = table.window()
        plan.append(f"its past can be restored from {earliest.isoformat()} to {latest.isoformat()}")
        plan.append("restore its past into another table, copy items back, and delete that table")
    else:
        plan.append(f"copy items from {args.source}, which stays")
    plan.append("items that are missing are put back" + ("; those that differ are replaced" if args.replace else ""))
    plan.append(f"left out: data of {counted(len(erased), 'person', 'people')} erased since")
    if not _goes_on(args, plan, "Copy the items back?"):
        return Exit.DONE if args.dry_run else Exit.FAILED
    told = {"table": table.name, "at": at.isoformat(), "replace": args.replace, "source": args.source}
    with recorded(deployment, "table_restored", None, **told) as change:
        past = table.as_of(at) if args.source is None else replace(table, name=args.source)
        past.wait(_waited)
        done = table.copy_from(past, erased=erased, replace=args.replace)
        if args.source is None:
            past.drop()
        change.note(putBack=dict(done.put_back), replaced=dict(done.replaced), leftOut=dict(done.left_out))
    say(f"Put back: {_counts(done.put_back)}. Replaced: {_counts(done.replaced)}. Kept as they are: {done.kept:,}.")
    say(f"Left out: {_counts(done.left_out)}.")
    return Exit.DONE


def _counts(counter: Mapping[Any, int]) -> str:
    return ", ".join(f"{count:,} {kind}" for kind, count in sorted(counter.items())) or "none"


def _waited(seconds: float) -> None:
    if seconds % WAIT_TOLD_S == 0:
        note(f"Waiting for the table: {seconds / 60:.0f} min. AWS usually takes less than an hour.")


def declared_table(deployment: Deployment) -> dict[str, Any]:
    """The properties of the table in the template of its stack, with the key's id in place of a reference to it.

    Raises RestoreFault.
    """
    from botocore.config import Config
    from botocore.exceptions import BotoCoreError, ClientError

    from cicada.restoring.table import RestoreFault

    config = Config(connect_timeout=3, read_timeout=10, retries={"mode": "standard", "total_max_attempts": 3})
    client = deployment.aws.client("cloudformation", config)
    stack = f"{deployment.stack_prefix or DEFAULT_STACK_PREFIX}-Data"
    try:
        template = client.get_template(StackName=stack, TemplateStage="Processed")["TemplateBody"]
        resources = (json.loads(template) if isinstance(template, str) else template)["Resources"]
        declared = dict(next(one for one in resources.values() if one["Type"] == TABLE_TYPE)["Properties"])
        encryption = declared.get("SSESpecification")
        if encryption and isinstance(encryption.get("KMSMasterKeyId"), Mapping):
            logical = encryption["KMSMasterKeyId"]["Fn::GetAtt"][0]
            found = client.describe_stack_resource(StackName=stack, LogicalResourceId=logical)
            declared["SSESpecification"] = encryption | {
                "KMSMasterKeyId": found["StackResourceDetail"]["PhysicalResourceId"]
            }
    except (BotoCoreError, ClientError, KeyError, StopIteration) as error:
        raise RestoreFault(f"the stack {stack}, which declares the table, cannot be read: {error}") from error
    return declared

"""``cicada restore``: restore damaged or lost data from object versions, copies and backups."""

from __future__ import annotations

import argparse
import json
from collections.abc import Iterable, Mapping
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING, Any

from cicada_cli import argument_types
from cicada_cli.administration import Command, administrative, confirmed, recorded
from cicada_cli.deployment import DEFAULT_STACK_PREFIX, Deployment
from cicada_cli.exits import Exit, UsageError
from cicada_cli.grammar import Commands
from cicada_cli.index import PIECES, store_of
from cicada_cli.output import complain, console, note, say
from cicada_cli.progress import progress_on
from cicada_cli.shared_options import add_aws, add_bucket, add_table
from cicada_cli.text import counted

if TYPE_CHECKING:
    from cicada.restoring.index import CopyPlan, PutBackPlan
    from cicada.restoring.object_versions import VersionedBucket
    from cicada.restoring.table import Table

INDEX_NEEDS = ("bucket",)
"""Values of the deployment that restoring the index needs."""
TABLE_NEEDS = ("requests_table", "bucket")
"""Values that restoring the table needs; the bucket has the audit records."""
TABLE_TYPE = "AWS::DynamoDB::Table"
WAIT_TOLD_S = 60.0
"""Between two messages about a table that is being restored."""


def add_restore(commands: Commands) -> None:
    """Add the command's parsers."""
    parser = commands.add_parser(
        "restore",
        help="restore the index or the table",
        description="Restore damaged or lost data. The plan is printed first; see docs/recovery.md.",
        examples=("cicada restore index --dry-run", "cicada restore table --at 2026-11-25T10:00:00Z"),
    )
    actions = parser.add_subparsers(dest="restore_command", required=True, metavar="COMMAND")
    index = actions.add_parser(
        "index",
        help="restore damaged objects of the index",
        description="Restore the newest intact object version of each damaged or deleted object of the current index "
        "version, or restore the index from a copy of the bucket.",
        examples=("cicada restore index --dry-run", "cicada restore index --from my-copy-bucket"),
    )
    index.add_argument(
        "--from",
        dest="source",
        metavar="BUCKET",
        help="restore from this copy of the bucket (default: from old object versions of this bucket)",
    )
    _add_confirmation(index)
    group = index.add_argument_group("deployment")
    add_bucket(group)
    add_aws(group)
    index.set_defaults(run=administrative(partial(_guarded, _index), INDEX_NEEDS))
    table = actions.add_parser(
        "table",
        help="restore the table",
        description="Restore a deleted table from the backup that DynamoDB made of it, or put items back into an "
        "existing one.",
        examples=("cicada restore table --dry-run", "cicada restore table --at 2026-11-25T10:00:00Z"),
    )
    table.add_argument(
        "--at", type=argument_types.moment, metavar="TIME", help="put items back as they were at this time: ISO 8601"
    )
    table.add_argument(
        "--replace", action="store_true", help="with --at: replace items that differ too, not only missing ones"
    )
    table.add_argument(
        "--from",
        dest="source",
        metavar="TABLE",
        help="with --at: copy from this table, which has the data of that time (default: the table's own past)",
    )
    table.add_argument("--empty", action="store_true", help="create a deleted table without items")
    _add_confirmation(table)
    group = table.add_argument_group("deployment")
    add_table(group)
    add_bucket(group, "the audit records")
    add_aws(group)
    table.set_defaults(run=administrative(partial(_guarded, _table), TABLE_NEEDS))


def _add_confirmation(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--dry-run", action="store_true", help="print the plan and change nothing")
    parser.add_argument("--yes", action="store_true", help="do not ask for confirmation")


def _guarded(command: Command, args: argparse.Namespace, deployment: Deployment) -> Exit:
    from cicada.errors import AuditUnavailable, CicadaError, PublishConflict
    from cicada.restoring.table import RestoreFault

    try:
        return command(args, deployment)
    except AuditUnavailable:
        raise  # reported by administrative()
    except PublishConflict as error:
        complain(f"another writer changed the index: {error}. Run the same command to resume")
    except CicadaError as error:
        complain(f"{error.told} ({error.code}: {error})")
    except RestoreFault as error:
        complain(f"{error} ({error.code}). Run the same command to resume")
    return Exit.FAILED


def _goes_on(args: argparse.Namespace, plan: Iterable[str], question: str) -> bool:
    """Print the plan and ask whether to carry it out."""
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
    if not _goes_on(args, _put_back_told(plan), "Restore these objects?"):
        return Exit.DONE if args.dry_run else Exit.FAILED
    keys = [*plan.rewritten, *(one.key for one in plan.put_back)]
    change = recorded(deployment, "index_restored", None, version=plan.manifest.version, objects=keys)
    with change, progress_on(console(stderr=True), PIECES) as progress:
        put_back(store, bucket, plan, progress=progress)
    say(f"Restored {counted(len(keys), 'object')}. Current version: {plan.manifest.version}.")
    return Exit.FAILED if plan.lost else Exit.DONE


def _put_back_told(plan: PutBackPlan) -> Iterable[str]:
    yield f"Version {plan.manifest.version}: {counted(len(plan.manifest.segments), 'segment')}."
    for version in plan.put_back:
        at = version.modified_at.isoformat(timespec="seconds")
        yield f"restore: {version.key} as of {at} ({version.bytes:,} bytes)"
    for key in plan.rewritten:
        yield f"rewrite: {key}"
    for damage in plan.lost:
        yield f"lost: {damage.key}: {damage.reason}"
    if plan.lost:
        yield "These have no intact version. Roll back to an older version, or load the collection with --verify"
    elif not plan.due:
        yield "Nothing to restore: every object is intact."


def _copy(args: argparse.Namespace, deployment: Deployment) -> Exit:
    from cicada.index.s3 import CLIENT_CONFIG, S3Store
    from cicada.restoring.index import copy_index, plan_copy

    store, source = store_of(deployment), _versioned(deployment, args.source)
    copies = S3Store(deployment.aws.client("s3", CLIENT_CONFIG), args.source)
    plan = plan_copy(store, copies, source)
    if not plan.due:
        say(f"Nothing to restore: this bucket has version {plan.manifest.version} of {args.source}.")
        return Exit.DONE
    if not _goes_on(args, _copy_told(plan, args.source), "Publish this version?"):
        return Exit.DONE if args.dry_run else Exit.FAILED
    told = {"version": plan.manifest.version, "source": args.source, "objects": len(plan.objects)}
    target = _versioned(deployment, deployment.bucket)
    change = recorded(deployment, "index_restored", None, **told)
    with change, progress_on(console(stderr=True), PIECES) as progress:
        published = copy_index(store, target, args.source, plan, progress=progress)
    say(f"Published version {published.version} with the content of {plan.manifest.version} of {args.source}.")
    return Exit.DONE


def _copy_told(plan: CopyPlan, source: str) -> Iterable[str]:
    size = sum(one.bytes for one in plan.objects)
    written = plan.manifest.created_at.isoformat(timespec="seconds")
    yield f"Version {plan.manifest.version} of {source}, written {written}: {plan.manifest.count:,} passages."
    for version in plan.incomplete:
        yield f"skipped: version {version}, which is incomplete in the copy"
    yield f"copy: {counted(len(plan.objects), 'object')} ({size / 1e6:,.1f} MB); {plan.present:,} already exist"
    if plan.replaces is not None:
        yield f"replace: version {plan.replaces.manifest.version}, which can be rolled back to"


# --- the table ---


def _table(args: argparse.Namespace, deployment: Deployment) -> Exit:
    from cicada.personal_data.items import SCAN_CONFIG
    from cicada.restoring.table import Table

    if args.replace and args.at is None:
        raise UsageError("--replace needs --at")
    if args.source is not None and args.at is None:
        raise UsageError("--from needs --at: the time of the table's data, to repeat erasures since then")
    table = Table(deployment.aws.client("dynamodb", SCAN_CONFIG), deployment.requests_table)
    there = table.status() is not None
    if args.at is not None:
        if not there:
            raise UsageError(f"table {table.name} does not exist: restore it first, without --at")
        return _copy_back(args, deployment, table)
    if args.empty:
        if there:
            raise UsageError(f"table {table.name} already exists")
        return _create_empty(args, deployment, table)
    return _restore_deleted(args, deployment, table)


def _restore_deleted(args: argparse.Namespace, deployment: Deployment, table: Table) -> Exit:
    """Restore a deleted table, or complete an interrupted restoration."""
    from cicada.restoring.table import erased_since

    declared, backup = declared_table(deployment), table.deleted_backup()
    at = backup.created_at.isoformat(timespec="seconds")
    erased = erased_since(store_of(deployment), backup.created_at)
    began = table.status() is not None
    plan = [
        f"Table {table.name} exists. Complete its restoration from the backup of {at}: apply the stack's settings."
        if began
        else f"Table {table.name} does not exist. Restore it under its name from the backup of its deletion at {at}.",
        *([f"erase again: data of {counted(len(erased), 'person', 'people')} erased since"] if erased else []),
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
    say(f"Restored table {table.name}.")
    return Exit.DONE


def _create_empty(args: argparse.Namespace, deployment: Deployment, table: Table) -> Exit:
    declared = declared_table(deployment)
    plan = [f"Table {table.name} does not exist. Create it without items, as its stack declares it."]
    if not _goes_on(args, plan, "Create an empty table?"):
        return Exit.DONE if args.dry_run else Exit.FAILED
    with recorded(deployment, "table_restored", None, table=table.name, empty=True):
        table.create(declared)
        table.wait(_waited)
        table.settle(declared)
    say(f"Created table {table.name} without items.")
    return Exit.DONE


def _copy_back(args: argparse.Namespace, deployment: Deployment, table: Table) -> Exit:
    from cicada.restoring.table import erased_since, restorable_second

    at = restorable_second(args.at)
    erased = erased_since(store_of(deployment), at)
    plan = [f"Put items back into table {table.name}, as they were at {at.isoformat()}:"]
    if args.source is None:
        earliest, latest = table.window()
        plan.append(f"point-in-time recovery covers {earliest.isoformat()} to {latest.isoformat()}")
        plan.append("restore that time into another table, copy items back, and delete the other table")
    else:
        plan.append(f"copy items from table {args.source}, which is kept")
    plan.append("put back missing items" + ("; replace items that differ" if args.replace else ""))
    plan.append(f"skip: data of {counted(len(erased), 'person', 'people')} erased since")
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
    say(f"Put back: {_counts(done.put_back)}. Replaced: {_counts(done.replaced)}. Unchanged: {done.kept:,}.")
    say(f"Skipped: {_counts(done.left_out)}.")
    return Exit.DONE


def _counts(counter: Mapping[Any, int]) -> str:
    return ", ".join(f"{count:,} {kind}" for kind, count in sorted(counter.items())) or "none"


def _waited(seconds: float) -> None:
    if seconds % WAIT_TOLD_S == 0:
        note(f"Waiting for the table: {seconds / 60:.0f} min. AWS usually takes less than an hour.")


def declared_table(deployment: Deployment) -> dict[str, Any]:
    """The properties of the table in the template of its stack, with references to the key resolved.

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
        raise RestoreFault(f"cannot read the stack {stack}, which declares the table: {error}") from error
    return declared

"""``cicada ingest``: process documents uploaded below ``incoming/``, and show reports."""

from __future__ import annotations

import argparse
import json
import time
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from cicada.errors import CicadaError, WorkflowUnavailable
from cicada.ingest.incoming.places import is_collection
from cicada_cli.context import deployment_of
from cicada_cli.deployment import Deployment
from cicada_cli.exits import Exit
from cicada_cli.grammar import Commands
from cicada_cli.index import store_of
from cicada_cli.output import complain, say, say_json
from cicada_cli.shared_options import add_aws, add_bucket, add_json
from cicada_cli.text import counted, one_line

if TYPE_CHECKING:
    from cicada.index.s3 import S3Store
    from cicada.ingest.incoming.run_records import RunReport

REPORT_NEEDS = ("bucket",)
RUN_NEEDS = ("bucket", "ingest_machine_arn")
"""Values of the deployment that the commands need."""

POLL_S = 1.0
WINDOW_S = 5
"""How long a run that is started by hand waits for further uploads."""
DEFAULT_WAIT_S = 3600.0


def add_ingest(commands: Commands) -> None:
    """Add the command's parsers."""
    parser = commands.add_parser(
        "ingest",
        help="process uploaded documents, show reports",
        description="Process documents that were uploaded to incoming/<collection>/ in the bucket.",
        examples=("cicada ingest run --collection manuals", "cicada ingest report --collection manuals"),
    )
    actions = parser.add_subparsers(dest="ingest_command", required=True, metavar="COMMAND")

    reporting = actions.add_parser(
        "report",
        help="show a run's report",
        description="Show the report of a run over a collection's uploads.",
        examples=("cicada ingest report --collection manuals",),
    )
    reporting.add_argument("--run", dest="of_run", metavar="ID", help="the run (default: the last that ended)")
    add_json(reporting)
    reporting.set_defaults(run=_report)

    running = actions.add_parser(
        "run",
        help="process a collection's uploads now",
        description="Start a run over a collection's uploads and wait for its end.",
        examples=("cicada ingest run --collection manuals", "cicada ingest run --collection manuals --no-wait"),
    )
    running.add_argument("--no-wait", action="store_true", help="print the run's id without waiting for its end")
    add_json(running)
    running.set_defaults(run=_run)

    for command in actions.choices.values():
        command.add_argument(
            "--collection",
            required=True,
            type=_collection,
            metavar="COLLECTION",
            help="folder below incoming/, and collection",
        )
        group = command.add_argument_group("deployment")
        add_bucket(group, "the uploads and the index")
        if command is running:
            group.add_argument(
                "--ingest-machine", metavar="ARN", help="ingest state machine (CICADA_INGEST_MACHINE_ARN)"
            )
        add_aws(group)


def _report(args: argparse.Namespace) -> Exit:
    return report(deployment_of(args, REPORT_NEEDS), args.collection, args.of_run, as_json=args.json)


def _run(args: argparse.Namespace) -> Exit:
    return run(deployment_of(args, RUN_NEEDS), args.collection, wait=not args.no_wait, as_json=args.json)


def _collection(name: str) -> str:
    if not is_collection(name):
        raise argparse.ArgumentTypeError("invalid collection name: up to 64 letters, digits, - and _")
    return name


def report(deployment: Deployment, collection: str, run: str | None, *, as_json: bool) -> Exit:
    """Show the report of a run."""
    from cicada.ingest.incoming.finishing import read_report

    store = store_of(deployment)
    try:
        wanted = _reports(store, collection, run)
        if not wanted:
            complain(
                f"no run of {collection} has a report" if run is None else f"unknown run {run}, or it has no report"
            )
            return Exit.FAILED
        found = read_report(store, wanted[-1])
    except CicadaError as error:
        return _failed(error)
    return _told(found, as_json=as_json)


def run(
    deployment: Deployment,
    collection: str,
    *,
    wait: bool,
    as_json: bool,
    sleep: Callable[[float], None] = time.sleep,
    wait_s: float = DEFAULT_WAIT_S,
) -> Exit:
    """Start a run, and wait for its report if asked to."""
    from cicada.ingest.incoming.finishing import read_report
    from cicada.ingest.incoming.starting import START_CONFIG, IngestStarter

    client = deployment.aws.client("stepfunctions", START_CONFIG)
    machine_arn = deployment.ingest_machine_arn
    try:
        started = IngestStarter(client, machine_arn, window_s=WINDOW_S).start(collection, now_s=time.time())
        if not wait:
            if as_json:
                say_json({"run": started})
            else:
                say(f"Started run {started}.")
            return Exit.DONE
        arn = f"{machine_arn.replace(':stateMachine:', ':execution:')}:{started}"
        ended = _ended(client, arn, sleep, wait_s)
        if ended is None:
            complain(
                f"run {started} is still in progress: cicada ingest report --collection {collection} shows its report"
            )
            return Exit.FAILED
        if ended["status"] != "SUCCEEDED":
            complain(f"run {started} ended with {ended['status']}: {ended.get('error', 'no error given')}")
            return Exit.FAILED
        store = store_of(deployment)
        # Not the execution's output: a run that checked again and found nothing more ends with that.
        left = _reports(store, collection, started)
        if not left:
            deferred = bool(json.loads(ended["output"]).get("deferred"))
            plain = "Another run is in progress. It will check again." if deferred else "Nothing to do."
            if as_json:
                say_json({"run": started, "needed": False, "deferred": deferred})
            else:
                say(plain)
            return Exit.DONE
        found = read_report(store, left[-1])
    except CicadaError as error:
        return _failed(error)
    return _told(found, as_json=as_json)


def _reports(store: S3Store, collection: str, run: str | None) -> list[str]:
    """The keys of a run's reports, or of all reports of a collection, oldest first."""
    from cicada.ingest.incoming.finishing import reports
    from cicada.ingest.incoming.places import run_folder

    begins = "" if run is None else run_folder(collection, run)
    return [key for key in reports(store, collection) if key.startswith(begins)]


def _ended(client: Any, execution_arn: str, sleep: Callable[[float], None], wait_s: float) -> Mapping[str, Any] | None:
    """The description of an execution that has ended; None if it has not ended in time.

    Raises:
        WorkflowUnavailable: the call to Step Functions failed.
    """
    from botocore.exceptions import BotoCoreError, ClientError

    for _ in range(max(1, round(wait_s / POLL_S))):
        try:
            found: Mapping[str, Any] = client.describe_execution(executionArn=execution_arn)
        except ClientError as error:
            # Step Functions is eventually consistent: a new execution may be unknown for a moment.
            if error.response.get("Error", {}).get("Code") != "ExecutionDoesNotExist":
                raise WorkflowUnavailable(f"cannot describe the run: {error}") from error
        except BotoCoreError as error:
            raise WorkflowUnavailable(f"cannot describe the run: {error}") from error
        else:
            if found["status"] != "RUNNING":
                return found
        sleep(POLL_S)
    return None


def _failed(error: CicadaError) -> Exit:
    complain(f"{error.told} ({error.code}: {error})")
    return Exit.FAILED


def _told(found: RunReport, *, as_json: bool) -> Exit:
    if as_json:
        say_json(found.model_dump(mode="json", by_alias=True))
    else:
        say("\n".join(map(one_line, _words(found))))
    return Exit.INCOMPLETE if found.report.quarantined or found.not_prepared else Exit.DONE


def _words(found: RunReport) -> Sequence[str]:
    report = found.report
    new = report.loaded - report.unchanged
    lines = [
        f"Run {found.run} ended at {found.ended_at}.",
        f"{report.collection}: loaded {report.loaded:,} of {counted(report.documents, 'document')} ({new:,} new or "
        f"changed; {counted(report.added, 'passage')} added, {report.deleted:,} deleted).",
    ]
    if report.published:
        lines.append(f"Published version {report.version}.")
    if report.removed:
        lines.append(f"Removed: {', '.join(report.removed)}.")
    lines += [f"Quarantined: {one.source}: {one.message} ({one.code})" for one in report.quarantined]
    lines += [f"Still quarantined: {one.source}: {one.message} ({one.code})" for one in found.still_refused]
    lines += [f"Not prepared, will be retried: {one.source}: {one.message} ({one.code})" for one in found.not_prepared]
    lines += [f"Changed or deleted during the run: {source}" for source in found.superseded]
    lines += [f"Ignored, not a document's key: {key}" for key in found.ignored]
    lines += [f"Note on {source}: {note}" for source, notes in report.notes.items() for note in notes]
    return lines

"""``cicada ingest``: what became of the documents that were uploaded below ``incoming/``."""

from __future__ import annotations

import argparse
import json
import time
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from cicada.errors import CicadaError, WorkflowUnavailable
from cicada.ingest.incoming.places import is_collection
from cicada_cli.deployment import Deployment
from cicada_cli.exits import Exit
from cicada_cli.index import store_of
from cicada_cli.output import complain, say, say_json
from cicada_cli.text import counted, one_line

if TYPE_CHECKING:
    from cicada.index.s3 import S3Store
    from cicada.ingest.incoming.run_records import RunReport

REPORT_NEEDS = ("bucket",)
RUN_NEEDS = ("bucket", "ingest_machine_arn")
"""What these commands must know of the deployment: they call no model."""

POLL_S = 1.0
WINDOW_S = 5
"""A run that is asked for by hand waits for no further uploads."""
DEFAULT_WAIT_S = 3600.0

Command = Callable[[argparse.Namespace], Exit]


def add_ingest(
    commands: argparse._SubParsersAction[argparse.ArgumentParser],
    report_command: Command,
    run_command: Command,
    add_aws: Callable[[argparse._ArgumentGroup], None],
) -> None:
    """Add the command and its own commands to the grammar."""
    parser = commands.add_parser(
        "ingest",
        help="manage uploaded documents",
        description="Manage documents that are uploaded to incoming/<collection>/ in the bucket.",
    )
    actions = parser.add_subparsers(dest="ingest_command", required=True, metavar="COMMAND")

    reporting = actions.add_parser(
        "report", help="show a run's report", description="Show the report of a run over a collection's uploads."
    )
    reporting.add_argument("--run", dest="of_run", metavar="ID", help="of this run (default: the last that ended)")
    reporting.add_argument("--json", action="store_true", help="the report as a JSON object")
    reporting.set_defaults(run=report_command)

    running = actions.add_parser(
        "run",
        help="process a collection's uploads now",
        description="Start a run over a collection's uploads and wait for it to finish.",
    )
    running.add_argument("--no-wait", action="store_true", help="do not wait for its end")
    running.add_argument("--json", action="store_true", help="the report as a JSON object")
    running.set_defaults(run=run_command)

    for command in actions.choices.values():
        command.add_argument(
            "--collection", required=True, type=_collection, help="the folder below incoming/, and the collection"
        )
        group = command.add_argument_group("deployment")
        group.add_argument("--bucket", help="the bucket that holds uploads and index (CICADA_INDEX_BUCKET)")
        if command is running:
            group.add_argument(
                "--ingest-machine", metavar="ARN", help="the ingest's state machine (CICADA_INGEST_MACHINE_ARN)"
            )
        add_aws(group)


def _collection(name: str) -> str:
    if not is_collection(name):
        raise argparse.ArgumentTypeError("invalid collection name: up to 64 letters, digits, - and _")
    return name


def report(deployment: Deployment, collection: str, run: str | None, *, as_json: bool) -> Exit:
    """Tell what a run came to."""
    from cicada.ingest.incoming.finishing import read_report

    store = store_of(deployment)
    try:
        wanted = _reports(store, collection, run)
        if not wanted:
            complain(f"no run of {collection} has left a report" if run is None else f"run {run} has left no report")
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
    """Start a run, and wait for its report unless told otherwise."""
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
                say(f"Run {started} is started.")
            return Exit.DONE
        arn = f"{machine_arn.replace(':stateMachine:', ':execution:')}:{started}"
        ended = _ended(client, arn, sleep, wait_s)
        if ended is None:
            complain(f"run {started} goes on: cicada ingest report --collection {collection} tells when it has ended")
            return Exit.FAILED
        if ended["status"] != "SUCCEEDED":
            complain(f"run {started} ended as {ended['status']}: {ended.get('error', 'no error is told')}")
            return Exit.FAILED
        store = store_of(deployment)
        # Not the execution's output: a run that looked again, and found nothing more to do, ends with that.
        left = _reports(store, collection, started)
        if not left:
            deferred = bool(json.loads(ended["output"]).get("deferred"))
            plain = "Another run is at work: it will look again." if deferred else "There was nothing to do."
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
    """The keys of what a run has left, or all of a collection's, the oldest first."""
    from cicada.ingest.incoming.finishing import reports
    from cicada.ingest.incoming.places import run_folder

    begins = "" if run is None else run_folder(collection, run)
    return [key for key in reports(store, collection) if key.startswith(begins)]


def _ended(client: Any, execution_arn: str, sleep: Callable[[float], None], wait_s: float) -> Mapping[str, Any] | None:
    """What Step Functions says of an execution when it has ended; None if it has not in time.

    Raises:
        WorkflowUnavailable: Step Functions does not respond, or refuses.
    """
    from botocore.exceptions import BotoCoreError, ClientError

    for _ in range(max(1, round(wait_s / POLL_S))):
        try:
            found: Mapping[str, Any] = client.describe_execution(executionArn=execution_arn)
        except ClientError as error:
            # An execution that was started a moment ago may not be known everywhere yet.
            if error.response.get("Error", {}).get("Code") != "ExecutionDoesNotExist":
                raise WorkflowUnavailable(f"the run could not be looked at: {error}") from error
        except BotoCoreError as error:
            raise WorkflowUnavailable(f"the run could not be looked at: {error}") from error
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
        f"{report.collection}: {counted(report.loaded, 'document')} of {report.documents:,} loaded, {new:,} of them "
        f"new or changed; {counted(report.added, 'passage')} added, {report.deleted:,} deleted.",
    ]
    if report.published:
        lines.append(f"Version {report.version} was published.")
    if report.removed:
        lines.append(f"Deleted with their uploads: {', '.join(report.removed)}.")
    lines += [f"Set aside: {one.source}: {one.message} ({one.code})" for one in report.quarantined]
    lines += [f"Still set aside: {one.source}: {one.message} ({one.code})" for one in found.still_refused]
    lines += [
        f"Not prepared, to be tried again: {one.source}: {one.message} ({one.code})" for one in found.not_prepared
    ]
    lines += [f"Uploaded anew, or deleted, meanwhile: {source}" for source in found.superseded]
    lines += [f"Ignored, for it can be no document's key: {key}" for key in found.ignored]
    lines += [f"Note on {source}: {note}" for source, notes in report.notes.items() for note in notes]
    return lines

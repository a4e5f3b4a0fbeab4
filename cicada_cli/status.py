"""``cicada status``: whether the deployment answers, and what the user can see of it."""

from __future__ import annotations

import argparse
import os
import time
from collections.abc import Callable, Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import TYPE_CHECKING

from cicada_cli.collection_list import read_collections
from cicada_cli.context import deployment_of
from cicada_cli.credentials import token_source
from cicada_cli.deployment import CHAT, DEFAULT_STACK_PREFIX, Deployment
from cicada_cli.doctor.findings import Finding, Reporter, Status, worst
from cicada_cli.exits import Exit, UsageError, exit_of
from cicada_cli.grammar import Commands
from cicada_cli.output import console, show_list
from cicada_cli.shared_options import add_connection, add_json_lines
from cicada_cli.text import counted

if TYPE_CHECKING:
    from cicada.protocol.corpus import Collections
    from cicada_cli.doctor.running import Check
    from cicada_client import TokenProvider

OPERATOR = ("bucket", "requests_table")
"""Values of the deployment that an operator can find."""
PUBLISHED = ("version_published", "version_rolled_back", "index_restored")
"""Audited changes of the index."""
LOOK_BACK = timedelta(days=30)
"""How far back to look for the last load."""
COLUMNS = ("status", "check", "subject", "result")
SHOWN_COLLECTIONS = 10
NEEDS_CREDENTIALS = "only operators can see this: it needs AWS credentials for the deployment"


def add_status(commands: Commands) -> None:
    """Add the command's parser."""
    parser = commands.add_parser(
        "status",
        help="check the deployment",
        description="Show whether the deployment answers, who is signed in, what is loaded, and open problems.",
        examples=("cicada status", "cicada status --json | jq -r 'select(.status == \"problem\").message'"),
    )
    add_json_lines(parser)
    add_connection(parser)
    parser.set_defaults(run=_status)


def _status(args: argparse.Namespace) -> Exit:
    from cicada_cli.doctor.running import run_all

    deployment = deployment_of(args, CHAT)
    found, ended = _of_user(deployment, args.token, args.token_file)
    try:
        operator = None if deployment.by_page else deployment_of(args, OPERATOR)
    except UsageError:
        operator = None
    found += _unseen() if operator is None else run_all(_checks(operator))
    show_list(
        COLUMNS,
        found,
        row=lambda one: (one.status.value, one.check, one.subject, _result(one)),
        data=Finding.as_json,
        as_json=args.json,
        out=console(),
    )
    if ended is not Exit.DONE:
        return ended
    return Exit.FAILED if worst(found) is Status.PROBLEM else Exit.DONE


def _result(finding: Finding) -> str:
    return finding.message if finding.mend is None else f"{finding.message} → {finding.mend}"


# --- what every user can see ---


def _of_user(deployment: Deployment, token: str | None, token_file: Path | None) -> tuple[list[Finding], Exit]:
    """The findings of a user, and the exit status if the deployment does not answer."""
    from cicada_cli.session import ClientSession
    from cicada_client import ClientError

    sign_in = Reporter("sign-in", deployment.url)
    try:
        source = token_source(token, token_file, os.environ, deployment)
    except UsageError as error:
        return [sign_in.problem(str(error), "cicada login")], Exit.FAILED
    reached = Reporter("deployment", deployment.url)
    began_s = time.monotonic()
    try:
        with ClientSession(deployment.url, source) as session:
            loaded = read_collections(session)
    except ClientError as error:
        return [reached.problem(str(error), "cicada doctor"), _signed_in(sign_in, deployment, source)], exit_of(error)
    took_ms = (time.monotonic() - began_s) * 1000
    return [
        reached.ok(f"answers, {took_ms:.0f} ms"),
        _signed_in(sign_in, deployment, source),
        *_of_corpus(loaded),
    ], Exit.DONE


def _signed_in(report: Reporter, deployment: Deployment, source: str | TokenProvider | None) -> Finding:
    if source is None:
        return report.ok("not needed" if deployment.wants_sign_in is False else "connected without a token")
    from cicada_cli.login import described, store_of_user

    found = None if isinstance(source, str) else store_of_user().get(deployment.url)
    if found is None:
        return report.ok("by the given token")
    told = described(found)
    groups = f" (groups: {', '.join(told['groups'])})" if told["groups"] else ""
    return report.ok(f"{told['email'] or told['subject']}{groups}, until {told['expiresAt']}")


def _of_corpus(loaded: Collections | None) -> Iterator[Finding]:
    index, collections = Reporter("index", "version"), Reporter("collections", "corpus")
    if loaded is None:
        yield index.unknown("the server is of an earlier release, which does not list its collections")
        return
    if loaded.index_version is None or loaded.empty:
        yield index.warning("nothing is loaded that you may read", "cicada load PATH")
        return
    yield index.ok(loaded.index_version)
    names = [f"{one.name} ({one.passages:,})" for one in loaded.collections]
    more = f" and {len(names) - SHOWN_COLLECTIONS} more" if len(names) > SHOWN_COLLECTIONS else ""
    passages = counted(sum(one.passages for one in loaded.collections), "passage")
    listed = ", ".join(names[:SHOWN_COLLECTIONS])
    yield collections.ok(f"{counted(len(names), 'collection')}, {passages}: {listed}{more}")


# --- what operators can see ---


def _unseen() -> list[Finding]:
    return [Reporter(check, "deployment").unknown(NEEDS_CREDENTIALS) for check in ("loads", "breakers", "alarms")]


def _checks(deployment: Deployment) -> list[Check]:
    from cicada_cli.doctor.running import Check

    return [
        Check("loads", deployment.bucket, lambda: _last_load(deployment)),
        Check("breakers", deployment.requests_table, lambda: _open_breakers(deployment)),
        Check("alarms", deployment.stack_prefix or DEFAULT_STACK_PREFIX, lambda: _alarms(deployment)),
    ]


def _last_load(deployment: Deployment, now: Callable[[], datetime] = lambda: datetime.now(UTC)) -> Iterator[Finding]:
    from cicada.audit.listing import list_records
    from cicada.errors import IndexUnavailable
    from cicada_cli.index import store_of

    report = Reporter("loads", deployment.bucket)
    at = now()
    try:
        records = list_records(store_of(deployment), since=at - LOOK_BACK, now=at)
        last = next((one for one in records if one.action in PUBLISHED), None)
    except IndexUnavailable as error:
        yield report.unknown(f"cannot read the audit records: {error}", permission="s3:GetObject")
        return
    if last is None:
        yield report.ok(f"no change of the index in {LOOK_BACK.days} days")
        return
    when = last.at.astimezone(UTC).isoformat(timespec="seconds").replace("+00:00", "Z")
    told = f"last change {when}: {last.action.replace('_', ' ')} by {last.actor}"
    if last.outcome == "failed":
        yield report.problem(f"{told} failed: {last.fault}", "cicada audit, then repeat the command")
    else:
        yield report.ok(f"{told}, {last.outcome}")


def _open_breakers(deployment: Deployment) -> Iterator[Finding]:
    from cicada.delivery.ports import StoreFault
    from cicada_cli.breakers import read_states, state_words

    now_s = time.time()
    report = Reporter("breakers", deployment.requests_table)
    try:
        states = [one for one in read_states(deployment, now_s) if one.open_since_s is not None]
    except StoreFault as fault:
        yield report.unknown(f"cannot read the breakers: {fault}", permission="dynamodb:Query")
        return
    for state in states:
        told = f"{state.stage.replace('_', ' ')}, {state_words(state, now_s)}"
        yield Reporter("breakers", state.name).problem(told, f"cicada breakers close {state.name}, once it works again")
    if not states:
        yield report.ok("none open")


def _alarms(deployment: Deployment) -> Iterator[Finding]:
    from botocore.config import Config

    from cicada_cli.doctor.calls import ATTEMPTS, CONNECT_TIMEOUT_S, READ_TIMEOUT_S, AwsCalls
    from cicada_cli.doctor.operations import check_alarms

    config = Config(
        connect_timeout=CONNECT_TIMEOUT_S,
        read_timeout=READ_TIMEOUT_S,
        retries={"mode": "standard", "total_max_attempts": ATTEMPTS},
    )
    calls = AwsCalls(lambda service: deployment.aws.client(service, config))
    yield from check_alarms(calls, deployment.stack_prefix or DEFAULT_STACK_PREFIX)

"""``cicada user``: export or erase the data that a deployment stores about a user."""

from __future__ import annotations

import argparse
import os
import time
from collections.abc import Collection
from contextlib import AbstractContextManager
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

from cicada_cli.administration import CHANGING, add_deployment, administrative, confirmed, recorded, subject_of
from cicada_cli.deployment import Deployment
from cicada_cli.exits import Exit, UsageError
from cicada_cli.grammar import Commands
from cicada_cli.output import note, say, say_json
from cicada_cli.shared_options import add_json
from cicada_cli.text import counted, one_line
from cicada_cli.user_pool import PoolUser, UserPool
from cicada_cli.users import described, refuse_tokens, revocations_of

if TYPE_CHECKING:
    from cicada.audit.records import ChangeRecord
    from cicada.delivery.ports import Connections
    from cicada.personal_data.erasure import ErasureReceipt

BACKUP_DAYS = 35
"""Retention of point-in-time recovery, unless it is set lower."""


def add_user(commands: Commands) -> None:
    """Add the command's parsers."""
    parser = commands.add_parser(
        "user",
        help="export or erase a user's data",
        description="Export or erase the data that the deployment stores about a user.",
        examples=("cicada user export ada@example.com --to ada.json", "cicada user erase ada@example.com"),
    )
    actions = parser.add_subparsers(dest="action", required=True, metavar="COMMAND")

    exporting = actions.add_parser(
        "export",
        help="export a user's data",
        description="Export all data about a user as a JSON object.",
        examples=("cicada user export ada@example.com --to ada.json",),
    )
    exporting.add_argument(
        "--to",
        type=Path,
        metavar="FILE",
        help="new file, readable only by you (default: standard output)",
    )
    exporting.set_defaults(run=administrative(_export, CHANGING))

    erasing = actions.add_parser(
        "erase",
        help="erase a user's data",
        description="Erase all data about a user. If interrupted, run the same command to resume.",
        examples=("cicada user erase ada@example.com", "cicada user erase ada@example.com --remove-user --yes"),
    )
    erasing.add_argument("--yes", action="store_true", help="do not ask for confirmation")
    erasing.add_argument("--remove-user", action="store_true", help="remove the user from the user pool too")
    add_json(erasing, "print the receipt as a JSON object")
    erasing.set_defaults(run=administrative(_erase, CHANGING))

    for action in actions.choices.values():
        action.add_argument("user", metavar="USER", help="e-mail address of the user, or subject of the tokens")
        action.add_argument("--tenant", metavar="TENANT", help="tenant of the user's tokens, if they name one")
        add_deployment(action, bucket=True)


@dataclass(frozen=True)
class Person:
    """The user whose data is exported or erased."""

    deployment: Deployment
    subject: str
    tenant: str | None
    account: PoolUser | None
    """The user in the user pool."""

    @classmethod
    def of(cls, args: argparse.Namespace, deployment: Deployment) -> Person:
        """The user that a command names. A removed user has a subject only."""
        if not args.user.strip():
            raise UsageError("missing USER: an e-mail address or a subject")
        subject, account = subject_of(deployment, args.user)
        return cls(deployment, subject, args.tenant, account)

    @property
    def owner(self) -> str:
        """The owner of the user's items in the table."""
        from cicada.identity import owner_of

        return owner_of(self.subject, self.tenant)

    @cached_property
    def client(self) -> Any:
        """A DynamoDB client."""
        from cicada.personal_data.items import SCAN_CONFIG

        return self.deployment.aws.client("dynamodb", SCAN_CONFIG)

    @property
    def pool(self) -> UserPool:
        """The user pool of a user with an account."""
        assert self.deployment.user_pool_id is not None
        return UserPool.of(self.deployment.aws, self.deployment.user_pool_id)

    def recorded(self, action: Literal["user_exported", "user_erased"]) -> AbstractContextManager[ChangeRecord]:
        """The audit record. It names the user by the pseudonym of the logs, because it outlives the data."""
        from cicada.identity import asker_of

        return recorded(self.deployment, action, f"asker/{asker_of(self.owner)}")

    def refuse_tokens(self, *, for_good: bool) -> None:
        """Revoke the tokens issued up to now, if the deployment has sign-in; ``for_good``: and disable the user."""
        if not self.deployment.wants_sign_in:
            return
        if for_good and self.account is not None:
            self.pool.disable(self.account)
        refuse_tokens(self.deployment, self.subject, self.account)


# --- export ---


def _export(args: argparse.Namespace, deployment: Deployment) -> Exit:
    from cicada.delivery.dynamodb import DynamoDbLog
    from cicada.personal_data.export import exported
    from cicada.personal_data.items import OwnedItems
    from cicada.profiles.dynamodb import DynamoDbProfiles
    from cicada.profiles.service import ProfileService

    person = Person.of(args, deployment)
    if args.to is not None and args.to.exists():
        raise UsageError(f"{args.to} already exists")
    table = deployment.requests_table
    items = OwnedItems(person.client, table, person.subject, person.tenant)
    with person.recorded("user_exported") as change:
        export = exported(
            items,
            DynamoDbLog(person.client, table),
            ProfileService(DynamoDbProfiles(person.client, table)),
            subject=person.subject,
            tenant=person.tenant,
            account=described(person.account) if person.account else None,
            refused_up_to=revocations_of(deployment).not_before(person.subject),
            now_s=time.time,
        )
        change.note(requests=len(export.requests))
        if args.to is None:
            say_json(export.model_dump(mode="json", by_alias=True), indent=2)
        else:
            _write(args.to, export.model_dump_json(by_alias=True, indent=2) + "\n")
            note(f"Exported to {args.to}.")
    _tell_tenants(items.elsewhere)
    return Exit.DONE


def _write(path: Path, text: str) -> None:
    """Write a file with mode 600."""
    try:
        with os.fdopen(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "w", encoding="utf-8") as file:
            file.write(text)
    except OSError as error:
        raise UsageError(f"cannot write {path}: {error.strerror}") from error


def _tell_tenants(tenants: Collection[str]) -> None:
    """Name the other tenants in which the subject has items."""
    for tenant in sorted(tenants):
        note(f"The subject also has data in tenant {one_line(tenant)}: add --tenant {one_line(tenant)}.")


# --- erase ---


def _erase(args: argparse.Namespace, deployment: Deployment) -> Exit:
    from cicada.delivery.dynamodb import DynamoDbLog
    from cicada.personal_data.erasure import Erasure
    from cicada.personal_data.items import OwnedItems

    person = Person.of(args, deployment)
    if not args.yes and not _confirmed(person):
        note("Nothing was erased.")
        return Exit.FAILED
    items = OwnedItems(person.client, deployment.requests_table, person.subject, person.tenant)
    with person.recorded("user_erased") as change:
        receipt = Erasure(
            items,
            DynamoDbLog(person.client, deployment.requests_table),
            _connections(deployment),
            lambda: person.refuse_tokens(for_good=args.remove_user),
            on_step=lambda told: note(f"{told[0].upper()}{told[1:]}."),
        ).run()
        removed = bool(args.remove_user and person.account)
        if removed and person.account is not None:
            person.pool.delete(person.account)
        told = receipt.model_dump(mode="json", by_alias=True) | {"userRemoved": removed}
        change.note(**told)
    items.end()
    _tell_tenants(items.elsewhere)
    remains = _remaining(person, receipt, removed=removed)
    if args.json:
        say_json(told | {"remains": remains})
        return Exit.DONE
    for line in _told(person, receipt, remains, removed=removed):
        say(line)
    return Exit.DONE


def _confirmed(person: Person) -> bool:
    who = person.subject if person.account is None else f"{person.account.email} ({person.subject})"
    return confirmed(f"Erase all data about {one_line(who)}? This cannot be undone.", "erase")


def _connections(deployment: Deployment) -> Connections:
    """The deployment's connections, to close those that follow the user's open requests."""
    from cicada.delivery.connections import POST_CONFIG, ApiGatewayConnections

    url = deployment.values.get("url")
    if url is None:
        return _Unreachable()
    aws = replace(deployment.aws, endpoint_url=f"http{url.removeprefix('ws')}")
    return ApiGatewayConnections(aws.client("apigatewaymanagementapi", POST_CONFIG))


class _Unreachable:
    """The connections of a deployment whose address is unknown: clients notice the erasure when they resume."""

    def post(self, connection_id: str, _frame: str) -> None:
        from cicada.delivery.ports import ConnectionBusy

        raise ConnectionBusy(f"{connection_id}: the deployment's address is unknown")


# --- the receipt ---


def _told(person: Person, receipt: ErasureReceipt, remains: list[dict[str, str | None]], *, removed: bool) -> list[str]:
    items = ", ".join(f"{count} {kind}" for kind, count in receipt.deleted.items()) or "no data was stored"
    runs = "" if receipt.runs == 1 else f", in {counted(receipt.runs, 'run')}"
    return [
        f"Erased the data of {one_line(person.subject)}: {items}.",
        f"Receipt {receipt.erasure_id}: asker {receipt.asker}, {receipt.begun_at} to {receipt.ended_at}{runs}.",
        *(["Removed the user from the user pool."] if removed else []),
        "Remaining data:",
        *(f"- {one['what']}{'' if one['until'] is None else ', until ' + one['until']}" for one in remains),
    ]


def _remaining(person: Person, receipt: ErasureReceipt, *, removed: bool) -> list[dict[str, str | None]]:
    """The data that an erasure leaves, and until when; see docs/privacy.md."""
    from cicada.personal_data.instants import instant
    from cicada.revocation import KEPT_S

    now = time.time()
    remains: list[tuple[str, str | None]] = []
    if person.account is not None and not removed:
        remains.append((f"the account in the user pool: `cicada users remove {person.account.email}`", None))
    if person.deployment.wants_sign_in:
        remains.append(("a digest of the subject, to reject earlier tokens", instant(now + KEPT_S)))
        if person.account is None and not removed:
            remains.append(("the account at the issuer, if there is one", None))
    if (days := _backup_days(person)) is not None:
        remains.append(("point-in-time backups of the table", instant(now + days * 24 * 3600)))
    remains += [
        (f"log lines with the pseudonym {receipt.asker} and no texts, for `logRetentionDays`", None),
        ("audit records of this erasure (with the pseudonym) and of earlier changes (with the subject)", None),
        ("unless `cache.sharing` is `user`: other users' requests that were answered from this user's answers", None),
    ]
    if receipt.nameless_until is not None:
        nameless = counted(receipt.nameless_items, "item")
        remains.append((f"{nameless} without an owner, stored by an earlier release", receipt.nameless_until))
    return [{"what": what, "until": until} for what, until in remains]


def _backup_days(person: Person) -> int | None:
    """Days of point-in-time recovery; None if it is off; :data:`BACKUP_DAYS` if unknown."""
    from botocore.exceptions import BotoCoreError, ClientError

    try:
        told = person.client.describe_continuous_backups(TableName=person.deployment.requests_table)
    except (BotoCoreError, ClientError):
        return BACKUP_DAYS
    recovery = told["ContinuousBackupsDescription"].get("PointInTimeRecoveryDescription", {})
    if recovery.get("PointInTimeRecoveryStatus") != "ENABLED":
        return None
    return int(recovery.get("RecoveryPeriodInDays", BACKUP_DAYS))

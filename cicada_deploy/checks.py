"""The doctor's checks around a deployment, told on this terminal."""

from __future__ import annotations

import os
import sys
from collections.abc import Sequence
from functools import partial
from pathlib import Path

from cicada_cli.aws import Aws
from cicada_cli.deployment import DEFAULT_STACK_PREFIX, STACKS, DeploymentChoice, discover
from cicada_cli.doctor.account import identify
from cicada_cli.doctor.changes import can_change, check_changes, read_assembly
from cicada_cli.doctor.command import ports_of
from cicada_cli.doctor.examine import Report, Wanted, examine
from cicada_cli.doctor.findings import Finding, Status, worst
from cicada_cli.doctor.running import Check, run_all
from cicada_cli.doctor.stacks import Stack, read_stacks
from cicada_cli.doctor.view import finding_lines, lines
from cicada_deploy.cdk import ROOT

ENDPOINT_VARIABLE = "AWS_ENDPOINT_URL"
BYPASS = 'To deploy nevertheless: make deploy ARGS="--no-checks"'


class Doctor:
    """Looks at one account before and after."""

    def __init__(self, aws: Aws, region: str | None, *, settings: str | None, checks: bool) -> None:
        """Nothing is looked at yet.

        Args:
            aws: how to reach the account.
            region: where; None where none is named.
            settings: a file in place of ``cdk.json``.
            checks: whether more than the credentials is looked at.
        """
        self._choice = DeploymentChoice(profile=aws.profile, region=region)
        self._wanted = Wanted(project=ROOT, region=region)
        self._ports = ports_of(aws, self._wanted, settings)
        self._checks = checks
        self._prefix = DEFAULT_STACK_PREFIX

    def account(self) -> str | None:
        """The account's number; None, and the reason is told, where it cannot be reached."""
        who, finding = identify(self._ports.calls, self._ports.elsewhere, self._wanted.region)
        if who is None:
            _tell([finding])
            return None
        return who.account

    def before(self) -> bool:
        """Whether nothing stands against a deployment; what does is told, and what is to be known."""
        if not self._checks:
            return True
        report = self._examine("before")
        self._prefix = report.prefix
        return _may_go_on(report.findings)

    def is_update(self) -> bool:
        """Whether there are stacks that a deployment would change."""
        return self._checks and bool(can_change(self._stacks()))

    def changes(self, assembly: Path) -> bool:
        """Whether the stacks that are there bear the change to those of a synthesis; what does not is told."""
        read = partial(check_changes, self._ports.calls, self._stacks(), read_assembly(assembly))
        return _may_go_on(run_all([Check("changes", str(assembly), read)]))

    def after(self) -> bool:
        """Whether the deployment works, as far as can be seen; all that was looked at is told."""
        if not self._checks:
            return True
        report = self._examine("deployed")
        print("\n".join(lines(report)))
        return worst(report.findings) is not Status.PROBLEM

    def after_failure(self) -> None:
        """Say in what state the stacks are, and what completes the deployment."""
        report = self._examine("before", only_stacks=True)
        _tell([one for one in report.findings if one.check == "stacks" and one.status is not Status.OK])
        print("Not deployed as a whole. Run the same command to complete it.", file=sys.stderr)

    def _examine(self, stage: str, *, only_stacks: bool = False) -> Report:
        wanted = Wanted(
            project=self._wanted.project,
            region=self._wanted.region,
            stage=stage,
            only_stacks=only_stacks,
            outputs=self._local_outputs(),
        )
        return examine(wanted, self._ports, DEFAULT_STACK_PREFIX)

    def _stacks(self) -> dict[str, Stack]:
        return read_stacks(self._ports.calls, self._prefix)

    def _local_outputs(self) -> dict[str, str]:
        """Where a local cloud that stands for AWS serves what is deployed; nothing for AWS itself."""
        if not os.environ.get(ENDPOINT_VARIABLE):
            return {}
        return discover(self._choice, STACKS, environ=os.environ, cwd=Path.cwd()).known_outputs()


def _may_go_on(findings: Sequence[Finding]) -> bool:
    """Whether there is no problem; all that is not as it should be is told."""
    _tell([finding for finding in findings if finding.status is not Status.OK])
    if worst(findings) is not Status.PROBLEM:
        return True
    print(f"Not ready to deploy: nothing was created or changed. {BYPASS}", file=sys.stderr)
    return False


def _tell(findings: Sequence[Finding]) -> None:
    for finding in findings:
        print("\n".join(finding_lines(finding)), file=sys.stderr)

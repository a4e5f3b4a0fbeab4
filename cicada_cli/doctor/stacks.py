"""The states of the stacks, and what to do about each."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from cicada import __version__
from cicada_cli.deployment import STACK_PARTS
from cicada_cli.doctor.calls import CallFailed, Calls
from cicada_cli.doctor.findings import Finding, Reporter

RELEASE_OUTPUT = "Release"
UPGRADE = "make deploy from a checkout of the newer release, or install the command of the deployment's release"
Stack = Mapping[str, Any]
"""As DescribeStacks gives it."""

USABLE = (
    "CREATE_COMPLETE",
    "UPDATE_COMPLETE",
    "UPDATE_ROLLBACK_COMPLETE",
    "IMPORT_COMPLETE",
    "IMPORT_ROLLBACK_COMPLETE",
)
"""States in which a stack has its resources and can be updated."""
ALWAYS = ("Data", "Answering", "Ingest", "Integrators", "Gateway")
"""Stacks that every deployment has."""
ROLL_BACK = "node_modules/.bin/cdk rollback {name}, then make deploy"
UNPROTECT = (
    "aws cloudformation update-termination-protection --no-enable-termination-protection --stack-name {name}, then "
    "make deploy, which deletes it and creates it again"
)
DELETE = "aws cloudformation delete-stack --stack-name {name}, then make deploy"


def read_stacks(calls: Calls, prefix: str) -> dict[str, Stack]:
    """The deployment's stacks that exist, by name. Raises CallFailed."""
    return {stack["StackName"]: stack for stack in _described(calls, prefix)}


def _described(calls: Calls, prefix: str) -> Iterator[Stack]:
    for part in STACK_PARTS:
        try:
            yield from calls("cloudformation", "DescribeStacks", StackName=f"{prefix}-{part}")["Stacks"]
        except CallFailed as failed:
            if failed.code != "ValidationError" or "does not exist" not in str(failed):
                raise


def read_outputs(stacks: Mapping[str, Stack]) -> dict[str, str]:
    """The outputs of all stacks by their names."""
    return {
        output["OutputKey"]: output["OutputValue"] for stack in stacks.values() for output in stack.get("Outputs", ())
    }


def check_release(outputs: Mapping[str, str]) -> Iterable[Finding]:
    """The deployment's release against this command's."""
    deployed = outputs.get(RELEASE_OUTPUT)
    report = Reporter("release", deployed or RELEASE_OUTPUT)
    if deployed == __version__:
        yield report.ok("same as this command")
    elif deployed is None:
        yield report.warning(f"the deployment is older than 0.2.0, this command is {__version__}", UPGRADE)
    else:
        yield report.warning(f"the deployment is {deployed}, this command is {__version__}", UPGRADE)


def is_deployed(stacks: Mapping[str, Stack], prefix: str) -> bool:
    """Whether the last stack is deployed."""
    return bool(stacks.get(f"{prefix}-Gateway", {}).get("Outputs"))


def check_stacks(stacks: Mapping[str, Stack], prefix: str, *, deployed: bool) -> Iterable[Finding]:
    """The state of each stack; with ``deployed``, a missing one is a problem."""
    if deployed and (missing := [part for part in ALWAYS if f"{prefix}-{part}" not in stacks]):
        names = ", ".join(f"{prefix}-{part}" for part in missing)
        yield Reporter("stacks", names).problem("not deployed", "make deploy")
    if not stacks:
        yield Reporter("stacks", f"{prefix}-*").ok("no stacks yet")
    for name, stack in stacks.items():
        yield _state(name, stack)


def _state(name: str, stack: Stack) -> Finding:
    """A stack's state as a finding.

    What ``cdk deploy`` does by itself in each: it waits for an operation under way, deletes a stack that failed to be
    created and creates it again, and executes a new change set over one that was never executed. What is paused it
    only rolls back where it can ask somebody.
    """
    report = Reporter("stacks", name)
    status = str(stack["StackStatus"])
    reason = f" ({stack['StackStatusReason']})" if stack.get("StackStatusReason") else ""
    told = f"{status}{reason}"
    if status in ("ROLLBACK_COMPLETE", "ROLLBACK_FAILED"):
        if stack.get("EnableTerminationProtection"):
            return report.problem(
                f"{told}: the creation failed, and deletion protection is on", UNPROTECT.format(name=name)
            )
        return report.warning(f"{told}: the creation failed", "make deploy deletes it and creates it again")
    if status in ("CREATE_FAILED", "UPDATE_FAILED", "UPDATE_ROLLBACK_FAILED"):
        return report.problem(f"{told}: the update is stuck", ROLL_BACK.format(name=name))
    if status == "DELETE_FAILED":
        return report.problem(f"{told}: the deletion failed", DELETE.format(name=name))
    if status == "REVIEW_IN_PROGRESS":
        return report.warning(f"{told}: a deployment was interrupted before it started", "make deploy completes it")
    if status.endswith("_IN_PROGRESS"):
        return report.warning(
            f"{told}: a deployment is in progress, or was interrupted and continues in AWS",
            "make deploy waits for it and completes the rest",
        )
    if status == "UPDATE_ROLLBACK_COMPLETE":
        return report.warning(
            f"{told}: the last update failed and was rolled back",
            f"see the events of the stack {name}, then make deploy",
        )
    return report.ok(status)

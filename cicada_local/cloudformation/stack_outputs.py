"""``Fn::GetStackOutput``, which moto does not know: a value of another stack, read when a stack is created or updated.

CloudFormation asks for the outputs before it processes the rest of the template, so a missing stack or output fails the
operation before any resource is touched. A stack that has read a value keeps it until its own next update.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

FUNCTION = "Fn::GetStackOutput"
_MAY_HAVE = {"StackName", "OutputName", "Region", "RoleArn"}
_MUST_HAVE = {"StackName", "OutputName"}

ReadOutputs = Callable[[str], Mapping[str, str] | None]
"""Outputs of a stack by its name; None when there is no such stack, or it is being created, updated or deleted."""


class StackOutputUnresolved(Exception):
    """A template refers to a stack or an output that is not there, or refers to it wrongly."""


def resolve_stack_outputs(template: dict[str, Any], *, stack_name: str, region: str, read: ReadOutputs) -> Any:
    """A copy of a template with the values in place of the references to them.

    Args:
        template: the consuming stack's.
        stack_name: the consuming stack.
        region: of the consuming stack, the only one here.
        read: reads the outputs of a stack.

    Raises:
        StackOutputUnresolved: saying which reference cannot be resolved and why.
    """

    def visit(node: Any) -> Any:
        if isinstance(node, list):
            return [visit(each) for each in node]
        if not isinstance(node, dict):
            return node
        if FUNCTION not in node:
            return {key: visit(value) for key, value in node.items()}
        wanted = node[FUNCTION]
        if len(node) != 1 or not isinstance(wanted, dict) or not _MUST_HAVE <= wanted.keys() <= _MAY_HAVE:
            raise StackOutputUnresolved(f"Template error: {FUNCTION} takes StackName, OutputName, Region and RoleArn")
        producer, output = (_literal(wanted[name], stack_name, region) for name in ("StackName", "OutputName"))
        if _literal(wanted.get("Region", region), stack_name, region) != region or "RoleArn" in wanted:
            raise StackOutputUnresolved(f"{FUNCTION}: the local cloud has one account and one Region, {region}")
        if producer == stack_name:
            raise StackOutputUnresolved(f"Template error: {FUNCTION} of stack {producer} refers to itself")
        found = read(producer)
        if found is None:
            raise StackOutputUnresolved(f"Stack with id {producer} does not exist")
        if output not in found:
            raise StackOutputUnresolved(f"Output {output} does not exist in stack {producer}")
        return found[output]

    return visit(template)


def _literal(value: Any, stack_name: str, region: str) -> str:
    match value:
        case str():
            return value
        case {"Ref": "AWS::Region"}:
            return region
        case {"Ref": "AWS::StackName"}:
            return stack_name
        case _:
            raise StackOutputUnresolved(f"{FUNCTION}: the local cloud cannot resolve {value!r}")

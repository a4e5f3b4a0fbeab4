"""Findings of cdk-nag that are accepted, each with its reason."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from typing import Any

from aws_cdk import Acknowledgment, Stack, Validations
from constructs import IConstruct


def accept(construct: IConstruct, reasons: Mapping[str, str]) -> None:
    """Accept findings on one construct and on what lies within it.

    Args:
        construct: where they are reported.
        reasons: a rule's id, with the finding in brackets where it reports several, and why it is accepted.
    """
    Validations.of(construct).acknowledge(*(Acknowledgment(id=rule, reason=reason) for rule, reason in reasons.items()))


def as_reported(construct: IConstruct, value: str) -> str:
    """A value as cdk-nag writes it in the id of a finding: ``arn:<AWS::Partition>:s3:::<Bucket>/index/*``."""
    return _flat(Stack.of(construct).resolve(value), lambda output: json.dumps(output, separators=(",", ":")))


def flat(resolved: Any) -> str:
    """A template's value in one line: references in angle brackets, outputs of other stacks as ``<stack.output>``.

    Raises:
        TypeError: an intrinsic function that no policy of the stacks needs.
    """
    return _flat(resolved, lambda output: "<{StackName}.{OutputName}>".format(**output["Fn::GetStackOutput"]))


def _flat(resolved: Any, write_output: Callable[[Mapping[str, Any]], str]) -> str:
    match resolved:
        case str():
            return resolved
        case {"Ref": name}:
            return f"<{name}>"
        case {"Fn::GetAtt": [name, attribute]}:
            return f"<{name}.{attribute}>"
        case {"Fn::GetStackOutput": _}:
            return write_output(resolved)
        case {"Fn::Join": [separator, parts]}:
            return str(separator).join(_flat(part, write_output) for part in parts)
        case _:
            raise TypeError(f"no way to write {resolved!r} is known")

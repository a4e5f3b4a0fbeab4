"""Findings of cdk-nag that are accepted, each with its reason."""

from __future__ import annotations

from collections.abc import Mapping
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
    """A value as cdk-nag writes it in the id of a finding: ``arn:<AWS::Partition>:s3:::Cicada-Bucket/index/*``."""
    return flat(Stack.of(construct).resolve(value))


def flat(resolved: Any) -> str:
    """A template's value in one line: references in angle brackets, imports by their names.

    Raises:
        TypeError: an intrinsic function that no policy of the stacks needs.
    """
    match resolved:
        case str():
            return resolved
        case {"Ref": name}:
            return f"<{name}>"
        case {"Fn::GetAtt": [name, attribute]}:
            return f"<{name}.{attribute}>"
        case {"Fn::ImportValue": name}:
            return flat(name)
        case {"Fn::Join": [separator, parts]}:
            return str(separator).join(flat(part) for part in parts)
        case _:
            raise TypeError(f"no way to write {resolved!r} is known")

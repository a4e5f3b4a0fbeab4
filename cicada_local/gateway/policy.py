"""What an authorizer's IAM policy says of one call.

Source: IAM user guide, "Policy evaluation logic": an explicit deny wins, nothing said is a deny.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from typing import Any, Literal

Decision = Literal["allow", "explicit deny", "implicit deny"]


class PolicyInvalid(Exception):
    """The document is no IAM policy."""


def decide(document: Any, action: str, resource: str) -> Decision:
    """Evaluate a policy document for an action on a resource.

    Conditions are not evaluated: an Allow with a condition does not allow, a Deny with one denies.

    Raises:
        PolicyInvalid: a statement lacks what every statement has.
    """
    allowed = False
    for statement in _statements(document):
        effect = statement.get("Effect")
        if effect not in ("Allow", "Deny"):
            raise PolicyInvalid(f"a statement's Effect is {effect!r}")
        covers_action = _covers(statement, "Action", action, re.IGNORECASE)
        covers_resource = _covers(statement, "Resource", resource, 0)
        if covers_action and covers_resource:
            if effect == "Deny":
                return "explicit deny"
            allowed = allowed or not statement.get("Condition")
    return "allow" if allowed else "implicit deny"


def _statements(document: Any) -> Iterable[Mapping[str, Any]]:
    if not isinstance(document, Mapping):
        raise PolicyInvalid("the policy is no JSON object")
    statements = document.get("Statement")
    if isinstance(statements, Mapping):
        statements = [statements]
    if not isinstance(statements, list) or not all(isinstance(each, Mapping) for each in statements):
        raise PolicyInvalid("the policy has no statements")
    return statements


def _covers(statement: Mapping[str, Any], key: str, value: str, flags: int) -> bool:
    patterns = statement.get(key, statement.get(f"Not{key}"))
    if isinstance(patterns, str):
        patterns = [patterns]
    if not isinstance(patterns, list) or not all(isinstance(each, str) for each in patterns):
        raise PolicyInvalid(f"a statement has no {key}")
    matched = any(re.fullmatch(_expression(pattern), value, flags | re.DOTALL) for pattern in patterns)
    return matched if key in statement else not matched


def _expression(pattern: str) -> str:
    return "".join({"*": ".*", "?": "."}.get(char, re.escape(char)) for char in pattern)

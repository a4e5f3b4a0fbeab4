"""Policy documents, compiled, and what they say of a request.

Source: IAM User Guide, "Policy evaluation logic" and "IAM JSON policy elements reference". Policy variables such as
``${aws:username}`` are not filled in: a statement with one matches nothing.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from enum import Enum
from functools import lru_cache
from typing import Any

from cicada_local.permissions.conditions import Context, PolicyInvalid, Test, compile_condition, like

ROOT_SUFFIX = ":root"


@dataclass(frozen=True)
class Required:
    """One action on one resource, which a request needs."""

    action: str
    """Such as ``s3:GetObject``."""
    resource: str
    """An ARN; ``*`` for an action that knows no resources."""
    context: Context = field(default_factory=dict)
    """The request's condition keys."""


class Effect(Enum):
    """What policies say of a request."""

    ALLOW = "Allow"
    DENY = "Deny"
    NOTHING = ""


@dataclass(frozen=True)
class Statement:
    """One statement; ``None`` stands for an element that it does not have."""

    allows: bool
    actions: tuple[str, ...] | None
    not_actions: tuple[str, ...] | None
    resources: tuple[str, ...] | None
    not_resources: tuple[str, ...] | None
    principals: Mapping[str, tuple[str, ...]] | None
    """By kind, such as ``Service`` and ``AWS``; ``{"*": ("*",)}`` is everybody."""
    condition: Test | None

    def matches(self, required: Required) -> bool:
        """Whether it speaks of this action on this resource, under this context. Its principal is not looked at."""
        return (
            self.names_action(required.action.lower())
            and self._names_resource(required.resource)
            and (self.condition is None or self.condition(required.context))
        )

    def names(self, kind: str, principals: Sequence[str]) -> bool:
        """Whether its principal is one of these, or everybody."""
        if self.principals is None:
            return False
        named = self.principals.get(kind, ())
        return "*" in self.principals or "*" in named or any(principal in named for principal in principals)

    def names_action(self, action: str) -> bool:
        """Whether it speaks of an action, in lower case."""
        if self.actions is not None:
            return any(like(action, wanted) for wanted in self.actions)
        return self.not_actions is not None and not any(like(action, wanted) for wanted in self.not_actions)

    def _names_resource(self, resource: str) -> bool:
        if self.resources is not None:
            return any(like(resource, wanted) for wanted in self.resources)
        # A trust policy names no resource: it is the role's own.
        return self.not_resources is None or not any(like(resource, wanted) for wanted in self.not_resources)


_texts: dict[int, tuple[Any, str]] = {}


def text_of(document: Any) -> str:
    """A policy document's text. moto keeps those of some stacks' resources as objects; each is written once."""
    if isinstance(document, str):
        return document
    known = _texts.get(id(document))
    if known is None or known[0] is not document:
        known = _texts[id(document)] = (document, json.dumps(document))
    return known[1]


@lru_cache(maxsize=1024)
def parse(document: str) -> tuple[Statement, ...]:
    """The statements of a policy document.

    Raises:
        PolicyInvalid: it is none, or uses what is not evaluated here.
    """
    try:
        statements = json.loads(document)["Statement"]
    except (ValueError, KeyError, TypeError) as error:
        raise PolicyInvalid(f"not a policy document: {error}") from error
    return tuple(map(_statement, statements if isinstance(statements, list) else [statements]))


def _statement(raw: Mapping[str, Any]) -> Statement:
    if raw.get("Effect") not in ("Allow", "Deny"):
        raise PolicyInvalid("a statement needs the effect Allow or Deny")
    if "NotPrincipal" in raw:
        raise PolicyInvalid("NotPrincipal is not evaluated")
    condition = raw.get("Condition")
    return Statement(
        allows=raw["Effect"] == "Allow",
        actions=_lower(_list(raw, "Action")),
        not_actions=_lower(_list(raw, "NotAction")),
        resources=_list(raw, "Resource"),
        not_resources=_list(raw, "NotResource"),
        principals=_principals(raw.get("Principal")),
        condition=compile_condition(condition) if condition else None,
    )


def _list(raw: Mapping[str, Any], name: str) -> tuple[str, ...] | None:
    value = raw.get(name)
    if value is None:
        return None
    return tuple(value) if isinstance(value, list) else (str(value),)


def _lower(values: tuple[str, ...] | None) -> tuple[str, ...] | None:
    return None if values is None else tuple(value.lower() for value in values)


def _principals(raw: Any) -> Mapping[str, tuple[str, ...]] | None:
    if raw is None:
        return None
    if isinstance(raw, str):
        return {"*": ("*",)} if raw == "*" else {"AWS": (raw,)}
    return {kind: _list(raw, kind) or () for kind in raw}


@lru_cache(maxsize=4096)
def speaking_of(documents: tuple[str, ...], action: str) -> tuple[Statement, ...]:
    """The statements of some documents that name an action.

    Raises:
        PolicyInvalid: one of the documents is none, or uses what is not evaluated here.
    """
    return tuple(one for document in documents for one in parse(document) if one.names_action(action.lower()))


def evaluate(statements: Iterable[Statement], required: Required) -> Effect:
    """What statements say together: a denial wins over what allows."""
    found = Effect.NOTHING
    for statement in statements:
        if statement.matches(required):
            if not statement.allows:
                return Effect.DENY
            found = Effect.ALLOW
    return found

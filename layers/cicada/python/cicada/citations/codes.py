"""Why a citation is unverified."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal, get_args

ReasonCode = Literal[
    "no_such_passage",
    "wrong_place",
    "quote_not_found",
    "number_missing",
    "name_missing",
    "contradicted",
    "unsupported",
]
"""Stable. What each means: docs/citations.md."""
REASON_CODES: tuple[ReasonCode, ...] = get_args(ReasonCode)


@dataclass(frozen=True)
class Objection:
    """What speaks against a citation."""

    code: ReasonCode
    reason: str
    """A sentence for people, without its period."""

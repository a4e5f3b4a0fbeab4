"""What a failed call means for whoever made it, in the domain's words."""

from __future__ import annotations

from dataclasses import dataclass

from cicada.errors import ModelError


@dataclass(frozen=True)
class Failure:
    """A failed call."""

    error: ModelError
    retry: bool
    """Whether calling again at once, or after a short wait, can help."""
    invalid: bool = False
    """The request itself is refused: another one might not be."""
    retry_after_s: float | None = None
    """How long the service asks to be left alone, where it says so."""
    free: bool = False
    """Whether the call is known to cost nothing: it was turned away, or never arrived. What else fails may have been
    worked on, and paid for."""

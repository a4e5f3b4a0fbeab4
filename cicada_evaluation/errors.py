"""What keeps an evaluation from being carried out, apart from what the library itself tells."""

from __future__ import annotations


class EvaluationRefused(Exception):
    """It cannot be carried out as it was asked for; the message says why, and what to do."""

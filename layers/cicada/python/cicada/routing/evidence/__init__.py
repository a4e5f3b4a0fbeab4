"""What speaks for which route: a table a route, a row a kind of evidence, a line a way to say it.

To teach the classifier a new way of asking, add a line to a row, or a row to a table.
"""

from __future__ import annotations

from cicada.routing.evidence import complex_questions, profile, script, service, small_talk, theory
from cicada.routing.evidence.table import Evidence

EVIDENCE: tuple[Evidence, ...] = (
    *small_talk.ROWS,
    *profile.ROWS,
    *theory.ROWS,
    *complex_questions.ROWS,
    *service.ROWS,
    *script.ROWS,
)
"""All rows of all tables."""

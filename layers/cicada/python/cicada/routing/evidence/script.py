"""``rag``: questions about the text. What is not recognised is one too; these rows guard the words of other routes."""

from __future__ import annotations

from cicada.routing.evidence.table import HINT, STRONG, WEAK, said, seen
from cicada.routing.reading import Fact

ROWS = (
    seen("rag", HINT, "asks for a fact of the text", Fact.ASKS_A_FACT),
    said(
        "rag",
        WEAK,
        "asks for a place in the text",
        """
        & show|find|give|get|quote|cite|locate|read|look [me|us] [for|up] the|a|that|every|all @place_in_text
        & show|find|remind me|us @fact_asked|what
        in|on|at which|what ..1 @unit
        ^ which|what @unit
        """,
    ),
    said(
        "rag",
        STRONG,
        "repeats what somebody says",
        """
        , * [*] @said
        , @said * [*] -|,|$
        """,
    ),
    said(
        "rag",
        WEAK,
        "asks what a word means",
        "meaning of ..1 word|name|term|phrase|inscription|abbreviation|code|light",
    ),
)

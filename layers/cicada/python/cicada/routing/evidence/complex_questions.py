"""``hybrid``: questions of several parts, comparisons, explanations, analyses."""

from __future__ import annotations

from cicada.routing.evidence.table import FAINT, FAIR, STRONG, said, seen
from cicada.routing.reading import Fact

SEVERAL = (FAIR + STRONG) / 2
"""Enough on its own, and yet less than a strong sign of another route: prices, too, take several questions."""

ROWS = (
    said(
        "hybrid",
        STRONG,
        "asks for an explanation, a summary or an analysis",
        """
        & @analyse !yourself|:
        & describe ..2 how|why|relationship|differences|development
        & sum up
        & map|lay|spell ..2 out
        & put ..6 in|into order
        & make|draw|create|build|give|write ..3 table|chart|diagram|matrix|ranking of
        & break|breaking ..1 down
        break ..8 down for
        & walk|talk|take|guide|lead me|us ..1 through
        & go [through|over|into] how|why|the|all|everything
        & tell|show|teach me|us [exactly] how|why
        & how|why ..12 explain $
        ^ understand
        i do not ..2 understand|get|see how|why
        understand|understanding|grasp how|why
        & give|write|provide|need|want [me|us] ..4 @analysis
        & @depth ..1 @analysis
        @analysis of
        in|with more|great|some|full|much [more] depth|detail
        in depth|detail
        step by step
        """,
    ),
    said(
        "hybrid",
        STRONG,
        "compares",
        """
        @difference between
        what|which ..2 is|are ..1 different|difference|differences|similarities|similar
        how|what|where|why|do|does|did|ways|way ..8 @differ
        is|are|was|were ..5 alike|similar|unlike
        different|differently from|than
        how ..8 compare|compares
        in common
        what|which ..2 changes|changed|remains|stays between|across|from|over
        what ..1 distinguishes|distinguish|separates|connects|links|unites
        versus|vs
        pros and cons
        advantages and disadvantages
        compared to|with
        better or worse
        which|who|what ..1 is|are|would ..2 better|worse|stronger|weaker|safer|wiser
        what ..6 apart
        side by side
        both sides
        """,
    ),
    said(
        "hybrid",
        FAIR,
        "asks how something works or came about",
        """
        how do|does|did|is|are|was|were|has|have|can|could|would|might !i|we|you ..7 @develop
        in what|which way|ways
        how come
        to what extent
        what would|might ..5 if
        what ..3 led|leads|lead|drove|drives|caused|causes ..4 to
        """,
    ),
    said(
        "hybrid",
        FAIR,
        "asks for meaning or development",
        """
        @meaning of|behind
        what|which ..1 theme|themes|motif|motifs|symbol|symbols
        what ..1 @meaning do|does|did
        what ..6 symbolize|symbolise|symbolizes|symbolises|represent|represents|signify|signifies
        what ..6 mean|means to|for
        what do|does ..5 tell|reveal|show us|about
        over time
        over the ..2 course|story|series|parts|episodes|chapters|years
        from beginning|start|first to ..2 end|finish|last
        """,
    ),
    said("hybrid", FAIR, "describes something at length", "& describe|characterize|characterise *"),
    said("hybrid", FAIR, "asks for the reason as well", "and why $"),
    said("hybrid", FAINT, "asks why or how", "why\n how do|does|did"),
    seen("hybrid", SEVERAL, "asks several things", Fact.ASKS_SEVERAL),
    seen("hybrid", FAINT, "writes a long message", Fact.LONG),
    seen("hybrid", FAIR, "asks several things at length", Fact.LONG, Fact.ASKS_SEVERAL),
    said("hybrid", FAIR, "wants examples", "with|give|cite|list ..1 examples"),
    said(
        "hybrid",
        STRONG,
        "asks for an explanation or a comparison in another language",
        """
        ^ vergleiche|vergleich|erkläre|erklär|analysiere|beschreibe|erläutere
        ^ comparez|expliquez|analysez|décris|décrivez|résume|résumez
        ^ compara|explica|explique|analiza
        ^ confronta|spiega|analizza|riassumi
        worin|inwiefern
        unterschied|unterschiede|différence|différences|diferencia|diferencias|differenza zwischen|entre|tra
        比较
        比較
        解释
        分析
        区别
        説明
        比べ
        違い
        """,
    ),
)

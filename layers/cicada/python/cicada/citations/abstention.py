"""Sentences that say that nothing was found: they claim nothing that a passage could hold."""

from __future__ import annotations

import re

from cicada.text.quotes import without_quotations

_SOURCES = r"(?:passages?|sources?|documents?|context|excerpts?|texts? (?:given|provided)|script|materials?)"
_ABSTENTION = re.compile(
    rf"""
    \bI\s+(?:found|find|could\s+find|can\s+find)\s+(?:nothing|no\s)
    | \bI\s+(?:could|can|did|do)\s*(?:not|n't)\s+(?:find|answer|tell|know|determine)
    | \b(?:none|nothing)\s+(?:of|in)\s+(?:the|these|those)\s+(?:\w+\s+){{0,2}}{_SOURCES}\s+(?:\w+\s+){{0,2}}
      (?:say|tell|mention|answer|state|explain|contain|name|describe|speak)
    | \b(?:the|these|this|provided|given|retrieved)\s+(?:\w+\s+){{0,2}}{_SOURCES}\s+(?:\w+\s+)?
      (?:do(?:es)?\s*(?:not|n't)|never)\s+
      (?:\w+\s+)?(?:say|tell|mention|answer|state|explain|contain|specify|provide|give|name|describe|speak|reveal|show)
    | \b(?:the|these|this)\s+(?:\w+\s+)?{_SOURCES}\s+(?:say|tell|contain|mention)s?\s+nothing
    | \b(?:there\s+is|there\s+are)\s+(?:no|nothing)\b[^.]{{0,60}}\b(?:in|among)\s+(?:the|these)\s+(?:\w+\s+)?{_SOURCES}
    | \b(?:ich\s+habe|ich\s+konnte)\s+(?:\w+\s+){{0,6}}(?:nichts|kein\w*)\s.*?\b(?:gefunden|finden)
    | \bdie\s+(?:\w+\s+)?(?:passagen|quellen|textstellen|dokumente)\s+(?:nennen|sagen|enthalten|beantworten)\b
      .*\b(?:nicht|nichts|kein\w*)\b
    | \bje\s+n[e']\s*ai\s+rien\s+trouvé | \bles\s+(?:passages|sources|documents)\s+ne\s
    | \bno\s+(?:he\s+)?encontr(?:é|ado)\s | \blos\s+(?:pasajes|documentos)\s+no\s | \blas\s+fuentes\s+no\s
    | \bnon\s+ho\s+trovato\s | \bnão\s+encontrei\s | \bik\s+heb\s+niets\s+gevonden
    | 見つかりませんでした | 没有找到 | 未找到 | 찾을\s수\s없
    """,
    re.IGNORECASE | re.VERBOSE,
)


_GOES_ON = re.compile(
    r"[,;]\s*(?:but|however|though|although|only|yet|aber|doch|mais|pero|ma|mas|maar)\b", re.IGNORECASE
)


def abstains(sentence: str) -> bool:
    """Whether a sentence says of the passages, or of the search, that they do not tell, and nothing else.

    Quotations do not count: *Mara says: “I could not find it”* tells what a passage says.
    """
    told = without_quotations(sentence)
    return _ABSTENTION.search(told) is not None and _GOES_ON.search(told) is None

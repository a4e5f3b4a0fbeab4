"""Whether an answer about a theory says something that it would have to show, and shows nothing."""

from __future__ import annotations

import re

from cicada.citations.abstention import abstains
from cicada.citations.sentences import sentences_of

_VERDICT = re.compile(
    r"""
    \b(?:supported|supports|contradicted|contradicts|confirmed|confirms|refuted|refutes|disproved|disproven|disproves
    |proven|proved|proves|debunked|true|false|correct|incorrect|wrong|likely|unlikely|plausible|implausible
    |belegt|bestätigt|widerlegt|widersprochen|wahr|falsch|richtig)\b
    | \bholds?\s+up\b
    """,
    re.IGNORECASE | re.VERBOSE,
)
_NOTHING = re.compile(
    r"""
    \b(?:no|nothing|none|neither|not\s+any|nichts|kein\w*)\b [^.!?]{0,80}
    \b(?:evidence|passages?|found|supports?|contradicts?|speaks?|theor(?:y|ies)|belege?n?|gefunden|theorien?)\b
    """,
    re.IGNORECASE | re.VERBOSE,
)


def lacks_evidence(text: str, *, recorded: bool, changed: bool) -> bool:
    """Whether an answer without a verified citation says more than it may.

    It may say that nothing was found, and ask back; and, where something was changed, tell so. Any other sentence
    states something, and words of a verdict always do. Rather too strict than too kind: what is refused here is
    answered by a search.

    Args:
        text: the whole answer.
        recorded: whether a verdict was recorded.
        changed: whether a tool has changed anything for the user.
    """
    if recorded:
        return True
    stating = [sentence.text for sentence in sentences_of(text) if not _may_stand(sentence.text)]
    return any(not changed or _VERDICT.search(sentence) for sentence in stating)


def _may_stand(sentence: str) -> bool:
    return sentence.rstrip().endswith("?") or abstains(sentence) or _NOTHING.search(sentence) is not None

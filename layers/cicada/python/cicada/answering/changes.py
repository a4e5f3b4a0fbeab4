"""Whether an answer says that something was noted, changed or deleted just now."""

from __future__ import annotations

import re

from cicada.citations.quotes import without_quotations
from cicada.citations.sentences import Sentence, sentences_of

_DID = (
    r"(?:created|noted|saved|stored|recorded|added|updated|changed|corrected|renamed|refined|deleted|removed|kept"
    r"|made\s+a\s+(?:note|profile))"
)
_GETAN = (
    r"(?:angelegt|erstellt|notiert|gespeichert|vermerkt|hinzugefügt|ergänzt|geändert|korrigiert|aktualisiert|gelöscht"
    r"|entfernt|festgehalten|eingetragen|aufgenommen)"
)
_KEPT = r"(?:profiles?|notes?|entr(?:y|ies)|facts?|fields?|theor(?:y|ies)|verdict|it|this|that|they)"
_GEHALTEN = r"(?:profile?|notiz(?:en)?|einträge?|eintrag|angaben?|theorien?|urteil|es|das|dies)"
_NOW = r"(?:now|just|also|then|therefore|successfully)"
_CLAIMS = tuple(
    re.compile(pattern, re.IGNORECASE)
    for pattern in (
        rf"\bI(?:['’]ve|\s+have)?(?:\s+{_NOW})*\s+{_DID}\b(?!\s+(?:nothing|no)\b)",
        rf"\bhabe\s+ich\b[^.!?\n]{{0,120}}\b{_GETAN}\b",
        rf"\bich\s+habe\b[^.!?\n]{{0,120}}\b{_GETAN}\b",
        r"^(?:done|noted|saved|created|recorded|updated|deleted|removed|added|stored)\s*[.!]",
        rf"^(?:erledigt|{_GETAN})\s*[.!]",
    )
)
"""The agent says so of itself."""
_REPORTS = tuple(
    re.compile(pattern, re.IGNORECASE)
    for pattern in (
        rf"\b{_KEPT}\b[^.!?\n]{{0,60}}?\b(?:(?:has|have)\s+been|(?:is|are)\s+now)(?:\s+{_NOW})*\s+{_DID}\b",
        rf"^(?:profile|note|entry|fact|field)\b(?:\s+(?:of|for|on|about)\s+[^.!?\n]{{1,40}})?\s+{_DID}\b",
        rf"\b{_GEHALTEN}\b[^.!?\n]{{0,60}}\b(?:wurden?|(?:ist|sind)\s+(?:jetzt|nun))\b[^.!?\n]{{0,60}}\b{_GETAN}\b",
    )
)
"""The agent says so of what is kept. Elsewhere such words tell what was done before, or what a passage says."""
_NOT = re.compile(r"\b(?:not|never|nothing|nobody|no|nicht|nie|nichts|kein\w*)\b|n['’]t\b", re.IGNORECASE)
_PERHAPS = re.compile(r"\b(?:if|once|when|unless|until|before|wenn|falls|sobald|bevor|bis)\b", re.IGNORECASE)
_BEFORE = re.compile(
    r"\b(?:already|earlier|previously|last|since|ago|bereits|schon|früher|zuletzt|seit|vor)\b|\b(?:19|20)\d\d\b",
    re.IGNORECASE,
)


def claims_change(text: str) -> bool:
    """Whether an answer confirms a change, in English or German.

    Only what is said in so many words counts: an answer may tell what was noted before, that something was not, or what
    a passage says of notes. Questions, conditions and quotations confirm nothing.
    """
    return any(map(_confirms, sentences_of(text)))


def _confirms(sentence: Sentence) -> bool:
    bare = without_quotations(sentence.text).strip().lstrip("-*•# ")
    if bare.endswith("?") or _BEFORE.search(bare):
        return False
    patterns = _CLAIMS if sentence.citing else (*_CLAIMS, *_REPORTS)
    return any(_stands(found, bare) for pattern in patterns for found in pattern.finditer(bare))


def _stands(found: re.Match[str], sentence: str) -> bool:
    return not (_NOT.search(found[0]) or _PERHAPS.search(sentence[: found.start()]))

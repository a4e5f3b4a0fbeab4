"""What a user's message asks, and what it says: who asks whether something is so has not said that it is."""

from __future__ import annotations

import re

from cicada.corpus.chunking.sentences import sentences

MARKS = r".!?;:,\n…–—。！？；：，、"
"""A clause begins anew after one of them."""
GAP = rf"[^\w{MARKS}]*"
"""Up to the next mark: what is looked for after each mark is looked for once."""
_NOT = r"(?:n['’]?t)?"
_DO = rf"(?:did|does|do|was|were|is|are|has|have|had){_NOT}"
_MODAL = rf"(?:can|could|would|should|might|must){_NOT}"
_WHICH = "what|why|who|whose|whom|when|where|which|how"
_GERMAN = "hat|haben|wird|wurde|was|warum|wer|wann|wo|wie|wenn"
_QUESTION = re.compile(
    rf"(?:^|[{MARKS}(])[^\w{MARKS}(]*(?:{_DO}|{_WHICH}|if|{_GERMAN})\b|"
    rf"\b(?:{_WHICH})\s+(?:[^\W_]+\s+)?(?:{_DO}|{_MODAL}|(?:will|wo){_NOT})\b",
    re.IGNORECASE,
)
_PARTS = re.compile(r"[^?？؟]*[?？؟]+|[^?？؟]+")
_TURNED_ROUND = re.compile(
    rf"\W*(?i:(?:(?:so|and|but|or|hey|ok|okay|please)\b\W*)*(?:(?:why|how|when|where)\s+)?(?:{_DO}|{_MODAL})\s+)"
    r"(?:(?i:he|she|it|they|there|i|we|you)\b|[A-ZÀ-ÖØ-Þ])"
)
"""*Is he*, *does Oswin*: English asks so with or without a mark at the end. *Is a thief* leaves a subject out."""
_TO_KEEP = re.compile(
    r"\b(?:(?:can|could|would|will)\s+you|(?:can|could|may|might)\s+(?:i|we)|please|bitte)\s+"
    r"(?:(?:please|also|just|now|kindly)\s+)*(?:note|add|keep|remember|record|save|store|write|put|set|change|update|"
    r"correct|replace|include|enter|mention|give|(?:make|create)\s+(?:a|an|another|my|the|one))\b|"
    r"\b(?:do|would)\s+you\s+mind\s+(?:not|add|keep|remember|record|sav|stor|writ|putt|sett|chang|updat)ing\b|"
    r"\b(?:kannst|könntest|würdest)\s+du\b[^.!?,:;\n]*\b(?:merken|notieren|vermerken|speichern|festhalten|eintragen|"
    r"hinzufügen|ergänzen|aufnehmen|anlegen|erstellen|ändern)\b",
    re.IGNORECASE,
)
_WHETHER = re.compile(
    r"\bwhether\b.*|,\s*ob\b.*|"
    r"\b(?:tell|telling|ask|asking|check|see|know|remember|say|sure|wonder|wondering|find\s+out|look\s+up)\b"
    r"(?:\W+\w+){0,3}?\W+if\b.*",
    re.IGNORECASE | re.DOTALL,
)


def first_question(message: str) -> int:
    """Where a message has first begun to ask whether or why something is so; beyond its end where it nowhere does."""
    found = _QUESTION.search(message)
    return len(message) + 1 if found is None else found.end()


def said_in(message: str) -> str:
    """A message without what it asks: *Is Oswin a thief?* and *tell me whether he is one* say nothing of him.

    *Can you note that he is a thief?* asks for something to be kept, and says it.
    """
    parts = (
        part for line in message.splitlines(keepends=True) for one in sentences(line) for part in _PARTS.findall(one)
    )
    return "".join(_WHETHER.sub("", part) for part in parts if not _asks(part))


def _asks(part: str) -> bool:
    return (part[-1] in "?？؟" or _TURNED_ROUND.match(part) is not None) and not _TO_KEEP.search(part)

"""Which language a sentence and a short passage are in."""

from __future__ import annotations

import re
from collections import defaultdict

from cicada.citations.reading import ENGLISH
from cicada.index.lexical.detection import SAMPLE_TOKENS, detect
from cicada.index.lexical.languages import STEMMED, UNSTEMMED_SCRIPTS
from cicada.index.lexical.scripts import is_unspaced
from cicada.index.lexical.stopwords import EVIDENCE
from cicada.text.tokens import normalised, tokens

MIN_SHARED = 0.3
"""The share of a sentence's longer words that a passage in its own language has at least, where only one is known."""
_MIN_LEAD = 0.6
"""By how much more a text's frequent words must speak for a language than for the one that it would be read in."""
_MIN_LETTERS = 4
_NOT_ENGLISH = re.compile(r"[¿¡ßà-öø-ÿœ]", re.IGNORECASE)
_MORE = {
    "eng": "after before until must not only never were they there does did",
    "deu": "muss darf wurde wurden sind keine kein seit beim am ihn ihm ihre seine unter gegen ohne",
    "fra": "n'a qu'il d'un d'une l'a était fut depuis après avant sans aucun ont été chez lui y jusqu'en on a",
    "spa": "tiene desde hasta cada fue había después antes dice solo está del los unas unos ningún",
    "ita": "ho ha gli che con fino dopo prima ogni solo è sono alle dalle nei sulla ce me l'ha l'hanno stato stata",
    "por": "foi são não uma pelo pela até depois antes só está tem você ela ele",
    "nld": "moet mag niet geen wordt werden zijn naar sinds alleen hij",
}
_EVIDENCE: defaultdict[str, dict[str, float]] = defaultdict(dict, {word: dict(of) for word, of in EVIDENCE.items()})
for _language, _words in _MORE.items():
    for _word in _words.split():
        _EVIDENCE[_word].setdefault(_language, 0.5)


def language_of(text: str, otherwise: str = ENGLISH) -> str:
    """The language (ISO 639-3) that a text shows itself to be in; ``otherwise`` where it does not.

    A sentence has few words to tell by: a smaller lead is enough than where a whole document is indexed.
    """
    found = tokens(normalised(text))[:SAMPLE_TOKENS]
    by_script = detect(found)
    evidence: defaultdict[str, float] = defaultdict(float)
    telling: defaultdict[str, set[str]] = defaultdict(set)
    for token in found:
        for language, weight in _EVIDENCE.get(token, {}).items():
            evidence[language] += weight
            telling[language].add(token)
    if by_script not in (ENGLISH, otherwise) and by_script not in evidence:
        return by_script
    best = max(evidence, key=lambda language: evidence[language], default=otherwise)
    marked = _NOT_ENGLISH.search(text) is not None
    needed = evidence[otherwise] + (_MIN_LEAD / 2 if marked else _MIN_LEAD)
    enough = evidence[best] >= needed and (marked or len(telling[best]) > 1)  # one word may be a name
    if enough or by_script != ENGLISH:
        return best if enough else by_script
    return otherwise if _is_latin(otherwise) else ENGLISH


def common_language(sentence: str, passage: str) -> str | None:
    """The language of both, where a sentence has so many of a passage's words that they must be in one; else None."""
    mine = {token for token in tokens(normalised(sentence)) if len(token) >= _MIN_LETTERS or is_unspaced(token)}
    shared = mine & set(tokens(normalised(passage)))
    if not mine or len(shared) < 2 or len(shared) < len(mine) * MIN_SHARED:
        return None
    return language_of(f"{sentence}\n{passage}")


def _is_latin(language: str) -> bool:
    script = STEMMED[language].script if language in STEMMED else UNSTEMMED_SCRIPTS.get(language, "latin")
    return script == "latin"

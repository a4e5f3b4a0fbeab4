"""Which language a text is in: by its script, and within a script by its most frequent words."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from functools import cache

from cicada.index.lexical.languages import BY_SCRIPT, STEMMED, UNSTEMMED_SCRIPTS
from cicada.index.lexical.scripts import script_of
from cicada.text.frequent import EVIDENCE

SAMPLE_TOKENS = 200
"""How much of a text is looked at."""
MIN_EVIDENCE = 1.5
"""What must speak for another language than its script's most usual one: about two words that only it has."""
MIN_LEAD = 1.5
"""How many times more must speak for it than for the most usual one."""

_BY_SCRIPT = BY_SCRIPT | {
    "hangul": "kor", "kana": "jpn", "han": "zho", "thai": "tha", "lao": "lao", "burmese": "mya", "khmer": "khm",
    "hebrew": "heb",
}  # fmt: skip
_MIN_KANA = 0.1
"""A share of kana that Japanese does not fall below, and names in Chinese texts do not reach."""


def detect(tokens: Iterable[str]) -> str:
    """The language (ISO 639-3) of a text's normalised tokens; English where nothing speaks for another one.

    It looks at each text alone, so that a text has the same language in whatever company it is indexed.
    """
    sample = [token for token, _ in zip(tokens, range(SAMPLE_TOKENS), strict=False)]
    letters: Counter[str] = Counter()
    for token in sample:
        if token.isascii():
            letters["latin"] += len(token) if token.isalpha() else 0
        else:
            letters.update(map(script_of, token))
    del letters[""]
    if letters["kana"] > _MIN_KANA * (letters["kana"] + letters["han"]):
        letters["kana"] += letters["han"]
    script = letters.most_common(1)[0][0] if letters else "latin"
    usual = _BY_SCRIPT[script]
    evidence: Counter[str] = Counter()
    for token in sample:
        evidence.update(EVIDENCE.get(token, {}))
    best, most = usual, max(MIN_EVIDENCE, MIN_LEAD * evidence[usual])
    for language, found in evidence.items():
        if found > most and _script(language) == script:
            best, most = language, found
    return best


@cache
def _script(language: str) -> str:
    return STEMMED[language].script if language in STEMMED else UNSTEMMED_SCRIPTS.get(language, "latin")

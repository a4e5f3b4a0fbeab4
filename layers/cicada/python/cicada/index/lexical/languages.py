"""Languages and writing systems: which stemmer a word gets, which script a letter is of, and language detection."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass
from functools import cache
from itertools import islice, pairwise

from cicada.text.frequent import EVIDENCE
from cicada.text.letters import BOPOMOFO, BURMESE, HAN, HANGUL, KANA, KHMER, LAO, THAI


@dataclass(frozen=True)
class Language:
    """One language with a Snowball stemmer."""

    code: str  # ISO 639-3
    tag: str  # ISO 639-1: what marks its terms in the dictionary
    stemmer: str  # the name in Snowball
    script: str = "latin"
    letters: str = ""  # letters that folding keeps, although they look like accented ones
    elides: bool = False
    """Whether an apostrophe ends a word (*l'avion*, *İstanbul'da*) instead of standing inside one (*don't*)."""


_TABLE = (
    Language("ara", "ar", "arabic", "arabic"),
    Language("hye", "hy", "armenian", "armenian"),
    Language("eus", "eu", "basque", letters="ñ"),
    Language("cat", "ca", "catalan", elides=True),
    Language("ces", "cs", "czech"),
    Language("dan", "da", "danish", letters="æøå"),
    Language("nld", "nl", "dutch"),
    Language("eng", "en", "english"),
    Language("epo", "eo", "esperanto", letters="ĉĝĥĵŝŭ", elides=True),
    Language("est", "et", "estonian", letters="äöüõ"),
    Language("fin", "fi", "finnish", letters="äöå", elides=True),
    Language("fra", "fr", "french", elides=True),
    Language("deu", "de", "german"),
    Language("ell", "el", "greek", "greek", elides=True),
    Language("hin", "hi", "hindi", "devanagari"),
    Language("hun", "hu", "hungarian", letters="öőüű"),
    Language("ind", "id", "indonesian"),
    Language("gle", "ga", "irish", elides=True),
    Language("ita", "it", "italian", elides=True),
    Language("lit", "lt", "lithuanian"),
    Language("nep", "ne", "nepali", "devanagari"),
    Language("nor", "no", "norwegian", letters="æøå"),
    Language("fas", "fa", "persian", "arabic"),
    Language("pol", "pl", "polish"),
    Language("por", "pt", "portuguese"),
    Language("ron", "ro", "romanian"),
    Language("rus", "ru", "russian", "cyrillic"),
    Language("srp", "sr", "serbian", "cyrillic"),
    Language("sot", "st", "sesotho"),
    Language("spa", "es", "spanish", letters="ñ"),
    Language("swe", "sv", "swedish", letters="åäö"),
    Language("tam", "ta", "tamil", "tamil"),
    Language("tur", "tr", "turkish", letters="çğıöşü", elides=True),
    Language("yid", "yi", "yiddish", "hebrew"),
)
STEMMED: dict[str, Language] = {language.code: language for language in _TABLE}  # by ISO 639-3 code

_TWO_LETTERS = {language.tag: language.code for language in _TABLE} | {
    "ja": "jpn", "zh": "zho", "ko": "kor", "th": "tha", "lo": "lao", "km": "khm", "my": "mya", "vi": "vie", "he": "heb",
    "uk": "ukr", "bg": "bul", "be": "bel", "mk": "mkd", "ur": "urd", "bn": "ben", "mr": "mar", "te": "tel", "ka": "kat",
}  # fmt: skip
_SAME = {  # bibliographic codes, members of a macrolanguage, and what shares a stemmer
    "fre": "fra", "ger": "deu", "dut": "nld", "cze": "ces", "gre": "ell", "per": "fas", "rum": "ron", "arm": "hye",
    "baq": "eus", "chi": "zho", "bur": "mya", "nb": "nor", "nn": "nor", "nob": "nor", "nno": "nor", "pes": "fas",
    "arb": "ara", "cmn": "zho", "npi": "nep", "ydd": "yid", "ekk": "est", "iw": "heb", "in": "ind",
}  # fmt: skip

UNSTEMMED_SCRIPTS = {
    "jpn": "kana", "zho": "han", "kor": "hangul", "tha": "thai", "lao": "lao", "khm": "khmer", "mya": "burmese",
    "ukr": "cyrillic", "bul": "cyrillic", "bel": "cyrillic", "mkd": "cyrillic", "urd": "arabic", "mar": "devanagari",
    "heb": "hebrew", "ben": "", "tel": "", "kat": "",
}  # fmt: skip
"""The scripts of languages without a stemmer; those that are not here count as written in Latin letters."""

BY_SCRIPT = {
    "latin": "eng",
    "cyrillic": "rus",
    "greek": "ell",
    "arabic": "ara",
    "devanagari": "hin",
    "armenian": "hye",
    "tamil": "tam",
}
"""The language whose stemmer is used for words in another script than their document's (English in a Russian text)."""


def canonical(code: str) -> str:
    """A language's ISO 639-3 code, from that, from ISO 639-1, or from a tag with a region such as ``pt-BR``.

    An unknown code is returned in lower case: its words are folded, and not stemmed.
    """
    primary = code.strip().lower().replace("_", "-").partition("-")[0]
    primary = _SAME.get(primary, primary)
    return _TWO_LETTERS.get(primary, primary)


_SPOKEN_AROUND = (  # vowels and tones that belong to the consonant before them
    "\u0e31\u0e34-\u0e3a\u0e47-\u0e4e"
    "\u0eb1\u0eb4-\u0ebc\u0ec8-\u0ece"
    "\u102b-\u103e\u1056-\u1059\u105e-\u1060\u1062-\u1064\u1067-\u106d\u1071-\u1074\u1082-\u108d\u108f\u109a-\u109d"
    "\u17b4-\u17d3"
)
_CLUSTERS = re.compile(f"[^{_SPOKEN_AROUND}]?[{_SPOKEN_AROUND}]+|.", re.DOTALL)
_WORDLIKE = re.compile(f"[{HAN}{HANGUL}]")

_BY_LETTER = (  # the first that fits; a script without an entry has no stemmer and needs none
    ("hangul", HANGUL),
    ("kana", KANA),
    ("han", HAN + BOPOMOFO),
    ("thai", THAI),
    ("lao", LAO),
    ("burmese", BURMESE),
    ("khmer", KHMER),
    ("latin", "a-zA-Z\u00aa\u00ba\u00c0-\u024f\u1e00-\u1eff"),
    ("cyrillic", "\u0400-\u052f\u1c80-\u1c8f"),
    ("greek", "\u0370-\u03ff\u1f00-\u1fff"),
    ("arabic", "\u0600-\u06ff\u0750-\u077f\u08a0-\u08ff\ufb50-\ufdff\ufe70-\ufefe"),
    ("hebrew", "\u0591-\u05f4\ufb1d-\ufb4f"),
    ("devanagari", "\u0900-\u097f"),
    ("armenian", "\u0531-\u058f"),
    ("tamil", "\u0b80-\u0bff"),
)
_SCRIPTS = tuple((name, re.compile(f"[{letters}]")) for name, letters in _BY_LETTER)


@cache
def script_of(letter: str) -> str:
    """The name of the script that a letter belongs to; empty for those that no decision depends on."""
    for name, pattern in _SCRIPTS:
        if pattern.match(letter):
            return name
    return ""


def is_wordlike(character: str) -> bool:
    """Whether a single character of a run can be a word: Han characters and Hangul syllables can."""
    return _WORDLIKE.match(character) is not None


def clusters(run: str) -> list[str]:
    """The characters of a run, each with the vowels and tones that belong to it."""
    return _CLUSTERS.findall(run)


def pairs(characters: list[str]) -> list[str]:
    """The overlapping pairs of a run's characters."""
    return [first + second for first, second in pairwise(characters)]


SAMPLE_TOKENS = 200  # how many tokens of a text are looked at
MIN_EVIDENCE = 1.5
"""The least evidence for another language than the script's most usual one: about two words that only it has."""
MIN_LEAD = 1.5  # the evidence that it needs, as a multiple of the evidence for the most usual language

_DEFAULT_BY_SCRIPT = BY_SCRIPT | {
    "hangul": "kor", "kana": "jpn", "han": "zho", "thai": "tha", "lao": "lao", "burmese": "mya", "khmer": "khm",
    "hebrew": "heb",
}  # fmt: skip
_MIN_KANA = 0.1  # the least share of kana in Japanese texts; names in Chinese texts have less


def detect(tokens: Iterable[str]) -> str:
    """The language (ISO 639-3) of a text's normalised tokens; English without evidence for another one.

    The result depends on this text only, so that a text has the same language with whatever others it is indexed.
    """
    sample = list(islice(tokens, SAMPLE_TOKENS))
    script = _main_script(sample)
    usual = _DEFAULT_BY_SCRIPT[script]
    evidence: Counter[str] = Counter()
    for token in sample:
        evidence.update(EVIDENCE.get(token, {}))
    best, most = usual, max(MIN_EVIDENCE, MIN_LEAD * evidence[usual])
    for language, found in evidence.items():
        if found > most and _script(language) == script:
            best, most = language, found
    return best


def _main_script(sample: Iterable[str]) -> str:
    letters: Counter[str] = Counter()
    for token in sample:
        if token.isascii():
            letters["latin"] += len(token) if token.isalpha() else 0
        else:
            letters.update(map(script_of, token))
    del letters[""]
    if letters["kana"] > _MIN_KANA * (letters["kana"] + letters["han"]):
        letters["kana"] += letters["han"]
    return letters.most_common(1)[0][0] if letters else "latin"


@cache
def _script(language: str) -> str:
    return STEMMED[language].script if language in STEMMED else UNSTEMMED_SCRIPTS.get(language, "latin")

"""The languages that words are stemmed in: their codes, scripts and stemmers."""

from __future__ import annotations

from dataclasses import dataclass


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

CAPITALISES_NOUNS = frozenset({"deu"})  # languages that write all their nouns with capitals

UNSTEMMED_SCRIPTS = {
    "jpn": "kana", "zho": "han", "kor": "hangul", "tha": "thai", "lao": "lao", "khm": "khmer", "mya": "burmese",
    "ukr": "cyrillic", "bul": "cyrillic", "bel": "cyrillic", "mkd": "cyrillic", "urd": "arabic", "mar": "devanagari",
    "heb": "hebrew", "ben": "", "tel": "", "kat": "",
}  # fmt: skip
"""The scripts of languages without a stemmer; those that are not here count as written in Latin letters."""

BY_SCRIPT = {
    "latin": "eng", "cyrillic": "rus", "greek": "ell", "arabic": "ara", "devanagari": "hin", "armenian": "hye",
    "tamil": "tam",
}  # fmt: skip
"""The language that stems words in another script than their document's (English in a Russian text)."""


def canonical(code: str) -> str:
    """A language's ISO 639-3 code, from that, from ISO 639-1, or from a tag with a region such as ``pt-BR``.

    An unknown code is returned in lower case: its words are folded, and not stemmed.
    """
    primary = code.lower().replace("_", "-").partition("-")[0].strip()
    primary = _SAME.get(primary, primary)
    return _TWO_LETTERS.get(primary, primary)


def script_of_language(code: str) -> str:
    """The script that a language (ISO 639-3) is written in."""
    return STEMMED[code].script if code in STEMMED else UNSTEMMED_SCRIPTS.get(code, "latin")

"""Detect the language of a text: by its script, and in Latin letters by the spelling of its words."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterable, Mapping, Sequence

from cicada.text.characters import main_script, most_used, normalised, script_of
from cicada.text.features import spelling_of
from cicada.text.frequent import EVIDENCE
from cicada.text.languages import BY_SCRIPT, script_of_language
from cicada.text.linear import LinearClassifier
from cicada.text.tokens import tokens

TOLD_APART = ("deu", "eng", "fra", "ita", "por", "spa")
"""Languages that a trained classifier tells apart, by ISO 639-3; ``python -m training.languages`` makes its weights."""
SAMPLE_TOKENS = 200  # how much of a text is looked at
MAX_SAMPLE_CHARS = 4_000  # of a text whose tokens are not told yet
LEAST_SURE = 0.5  # the probability from which on the classifier is believed
MIN_EVIDENCE = 1.5  # what must speak for a language that no classifier knows: about two frequent words that only it has
MIN_LEAD = 1.5  # how many times more must speak for it than for any other one

_BY_SCRIPT = BY_SCRIPT | {
    "hangul": "kor", "kana": "jpn", "han": "zho", "thai": "tha", "lao": "lao", "burmese": "mya", "khmer": "khm",
    "hebrew": "heb",
}  # fmt: skip


def language_of(
    text: str, among: Collection[str] = (), otherwise: str = "eng", *, by_frequent_words: bool = False
) -> str:
    """The language (ISO 639-3) of a question or a sentence, from its beginning and its end.

    ``among``: the candidates, by default all; ``otherwise``: the result if in doubt; ``by_frequent_words``: in Latin
    letters a frequent word of the language is required, since names alone have some language's spelling.
    """

    def possible(name: str) -> bool:
        return not among or name in among

    script = main_script(text[:MAX_SAMPLE_CHARS])
    if script != "latin":
        return _BY_SCRIPT[script] if possible(_BY_SCRIPT[script]) else otherwise
    sample = tokens(normalised(text[:MAX_SAMPLE_CHARS]))[:SAMPLE_TOKENS]
    evidence = {name: found for name, found in _evidence(sample).items() if possible(name)}
    first = _by_evidence(evidence, *((0.0, 1.0) if among else (MIN_EVIDENCE, MIN_LEAD)))
    if first is not None and first not in TOLD_APART:
        return first
    best = _by_spelling(text, list(filter(possible, TOLD_APART)))
    return best if best is not None and (not by_frequent_words or best in evidence) else otherwise


def _by_evidence(evidence: Mapping[str, float], least: float, lead: float) -> str | None:
    """The language with the most evidence, if it is enough, and enough more than of any other."""
    (first, most), (_, second) = [*sorted(evidence.items(), key=lambda one: -one[1])[:2], ("", 0.0), ("", 0.0)][:2]
    return first if first and most >= max(least, lead * second) else None


def _by_spelling(text: str, among: Sequence[str]) -> str | None:
    """The language that the classifier is sure of, if any."""
    shares = LinearClassifier.of("cicada.text", "languages", spelling_of).decide(text, most_telling=0).probabilities
    best = max(among, key=shares.__getitem__, default=None)
    return best if best is not None and shares[best] >= LEAST_SURE * sum(shares[name] for name in among) else None


def indexed_language(tokens: Iterable[str]) -> str:
    """The language (ISO 639-3) of a passage's normalised tokens; English if in doubt.

    It decides the stems by which the passage is found, which are on disk: so it must not change, uses frequent words
    alone, and depends on nothing but the text.
    """
    sample = [token for token, _ in zip(tokens, range(SAMPLE_TOKENS), strict=False)]
    script = _script_in(sample)
    usual = _BY_SCRIPT[script]
    evidence = _evidence(sample)
    best, most = usual, max(MIN_EVIDENCE, MIN_LEAD * evidence[usual])
    for language, found in evidence.items():
        if found > most and script_of_language(language) == script:
            best, most = language, found
    return best


def _script_in(sample: Sequence[str]) -> str:
    """The script of most letters of some tokens."""
    letters: Counter[str] = Counter()
    for token in sample:
        if token.isascii():
            letters["latin"] += len(token) if token.isalpha() else 0
        else:
            letters.update(map(script_of, token))
    return most_used(letters)


def _evidence(sample: Sequence[str]) -> Counter[str]:
    """The evidence of frequent words for each language."""
    evidence: Counter[str] = Counter()
    for token in sample:
        evidence.update(EVIDENCE.get(token, {}))
    return evidence

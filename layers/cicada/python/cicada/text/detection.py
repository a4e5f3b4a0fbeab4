"""Which language a text is in: by its script, and within Latin letters by how its words are spelt."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterable, Sequence

from cicada.text.features import spelling_of
from cicada.text.frequent import EVIDENCE
from cicada.text.languages import BY_SCRIPT, script_of_language
from cicada.text.linear import LinearClassifier
from cicada.text.normal import normalised
from cicada.text.scripts import main_script, most_used, script_of
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
    """The language (ISO 639-3) of a question or a sentence.

    Args:
        text: any text; of a long one its beginning and its end are looked at.
        among: the languages that come into question; all if none are given.
        otherwise: what is told where nothing speaks for one of them.
        by_frequent_words: whether, in Latin letters, a frequent word of the language must be there: names alone are
            spelt like some language, and are in none.
    """
    script = main_script(text[:MAX_SAMPLE_CHARS])
    if script != "latin":
        found = _BY_SCRIPT[script]
        return found if not among or found in among else otherwise
    sample = tokens(normalised(text[:MAX_SAMPLE_CHARS]))[:SAMPLE_TOKENS]
    evidence = {name: found for name, found in _evidence(sample).items() if not among or name in among}
    first, *others = sorted(evidence, key=lambda name: -evidence[name]) or [otherwise]
    least, lead = (0.0, 1.0) if among else (MIN_EVIDENCE, MIN_LEAD)
    most = max(least, lead * evidence[others[0]] if others else 0.0)
    if evidence and first not in TOLD_APART and evidence[first] >= most:
        return first
    shares = LinearClassifier.of("cicada.text", "languages", spelling_of).decide(text, most_telling=0).probabilities
    likely = {name: shares[name] for name in TOLD_APART if not among or name in among}
    best = max(likely, key=likely.__getitem__, default=otherwise)
    sure = bool(likely) and likely[best] >= LEAST_SURE * sum(likely.values())
    return best if sure and (not by_frequent_words or best in evidence) else otherwise


def indexed_language(tokens: Iterable[str]) -> str:
    """The language (ISO 639-3) of a passage's normalised tokens; English where nothing speaks for another one.

    It decides by what stems the passage is found, on disk for as long as its segment is: so it stays what it was, by
    frequent words alone. It looks at each text alone, so that a text has the same language in whatever company it is
    indexed.
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
    """The script that most letters of some tokens are in."""
    letters: Counter[str] = Counter()
    for token in sample:
        if token.isascii():
            letters["latin"] += len(token) if token.isalpha() else 0
        else:
            letters.update(map(script_of, token))
    return most_used(letters)


def _evidence(sample: Sequence[str]) -> Counter[str]:
    """How much frequent words speak for each language."""
    evidence: Counter[str] = Counter()
    for token in sample:
        evidence.update(EVIDENCE.get(token, {}))
    return evidence

"""Text analysis: from passages to their terms."""

from __future__ import annotations

from array import array
from collections.abc import Iterable, Sequence
from itertools import chain, islice, pairwise

import numpy as np
from numpy.typing import NDArray

from cicada.corpus.indexable import WeightedText
from cicada.index.arrays import offsets_of
from cicada.index.lexical import MAX_POSITION, MAX_WEIGHT_UNITS, WEIGHT_UNITS
from cicada.index.lexical.codec import TermRows, stack
from cicada.text.characters import normalised
from cicada.text.detection import indexed_language
from cicada.text.languages import canonical
from cicada.text.terms import Terms, terms_of
from cicada.text.tokens import tokens

BATCH_PASSAGES = 8192  # passages whose terms are gathered in plain lists before they become arrays
MAX_REMEMBERED_TOKENS = 500_000
"""Distinct tokens, over all languages, whose terms are remembered while texts are analysed."""
MAX_LANGUAGES = 255  # languages that one call distinguishes; passages in further languages count as of an unknown one
UNKNOWN = ""


def analyse(documents: Iterable[Sequence[WeightedText]], languages: Iterable[str | None]) -> TermRows:
    """Analyse passages.

    ``documents`` has the parts of each passage: its own text first, then other texts, all weighted in steps of 1/64.
    ``languages`` has a code for each (ISO 639-3 or 639-1), or None to detect the language.
    """
    analysis = _Analysis()
    passages = zip(documents, languages, strict=True)
    batches = [analysis.batch([])]  # so that there is one, even without passages
    while batch := list(islice(passages, BATCH_PASSAGES)):
        batches.append(analysis.batch(batch))
    return stack(batches, list(analysis.numbers), tuple(analysis.languages))


class _Analysis:
    """Numbers the terms, and caches the terms of each token as one number.

    A single term is twice its number, plus 1. Several terms are the index of a list of such numbers, counted down from
    -1. The lowest bit tells whether the next term is one position further.
    """

    def __init__(self) -> None:
        self.numbers: dict[str, int] = {}
        self.languages: dict[str, int] = {}
        self._given: dict[str, _Given] = {}
        self._several: list[list[int]] = []

    def batch(self, passages: Sequence[tuple[Sequence[WeightedText], str | None]]) -> TermRows:
        """Analyse some passages. The result lacks vocabulary and languages, which all batches share."""
        if sum(map(len, self._given.values())) > MAX_REMEMBERED_TOKENS:
            self._given.clear()
        self._several.clear()
        for known in self._given.values():
            known.forget_several()
        stream = array("q")
        runs: list[tuple[int, int, int, int]] = []  # passage, own text or not, weight, numbers in the stream
        spoken = []
        for passage, (parts, declared) in enumerate(passages):
            language = canonical(declared) if declared else UNKNOWN
            for at, part in enumerate(parts):
                before = len(stream)
                found, language = _tokens_and_language(part.text, language)
                given = self._given.get(language)
                if given is None:
                    given = self._given[language] = _Given(language, self.numbers, self._several)
                stream.extend(map(given.__getitem__, found))
                units = min(max(round(part.weight * WEIGHT_UNITS), 0), MAX_WEIGHT_UNITS)
                runs.append((passage, at == 0, units, len(stream) - before))
            if language not in self.languages and len(self.languages) >= MAX_LANGUAGES:
                language = UNKNOWN
            spoken.append(self.languages.setdefault(language, len(self.languages)))
        return self._arrays(np.frombuffer(stream, np.int64), runs, np.array(spoken, np.uint8))

    def _arrays(
        self, given: NDArray[np.int64], runs: list[tuple[int, int, int, int]], spoken: NDArray[np.uint8]
    ) -> TermRows:
        passage, own, units, sizes = np.array(runs, np.int64).reshape(-1, 4).T
        of_run = np.repeat(np.arange(len(runs)), sizes)
        given, of_run = self._expanded(given, of_run)
        steps = given & 1
        positions = np.cumsum(steps) - steps
        sizes = np.bincount(of_run, minlength=len(runs))
        first = np.minimum(np.cumsum(sizes) - sizes, max(len(positions) - 1, 0))
        if len(positions):
            positions -= positions[first][of_run]
        counted = units[of_run] > 0
        given, of_run, positions = given[counted], of_run[counted], positions[counted]

        key = (passage[of_run] << 32) | (given >> 1)
        order = np.argsort(key, kind="stable")
        key, of_run, positions = key[order], of_run[order], positions[order]
        starts = np.flatnonzero(np.diff(key, prepend=-1))
        placed = (own[of_run] == 1) & (positions <= MAX_POSITION)
        owner = key[starts] >> 32
        weights = np.minimum(_sums(units[of_run], starts), MAX_WEIGHT_UNITS)
        return TermRows(
            vocabulary=(),
            starts=offsets_of(np.bincount(owner, minlength=len(spoken))),
            terms=(key[starts] & 0xFFFFFFFF).astype(np.uint32),
            weights=weights.astype(np.uint16),
            occurrences=np.minimum(_sums(placed.astype(np.int64), starts), MAX_POSITION).astype(np.uint16),
            positions=positions[placed].astype(np.uint16),
            lengths=np.bincount(owner, weights=weights, minlength=len(spoken)).astype(np.uint32),
            language_names=(),
            languages=spoken,
        )

    def _expanded(
        self, given: NDArray[np.int64], of_run: NDArray[np.intp]
    ) -> tuple[NDArray[np.int64], NDArray[np.intp]]:
        """With the listed terms in place of the negative numbers."""
        at = np.flatnonzero(given < 0)
        if not len(at):
            return given, of_run
        lists = [self._several[~number] for number in given[at].tolist()]
        sizes = np.ones(len(given), np.int64)
        sizes[at] = list(map(len, lists))
        expanded = np.repeat(given, sizes)
        expanded[expanded < 0] = list(chain.from_iterable(lists))
        return expanded, np.repeat(of_run, sizes)


def _tokens_and_language(text: str, language: str) -> tuple[list[str], str]:
    """A text's tokens, and its given or detected language."""
    found = tokens(normalised(text, dotless_i=language == "tur"))
    if not language:
        language = indexed_language(found)
        if language == "tur":
            found = tokens(normalised(text, dotless_i=True))
    return found, language


def _sums(values: NDArray[np.int64], starts: NDArray[np.intp]) -> NDArray[np.int64]:
    return np.add.reduceat(values, starts) if len(starts) else values[:0]


class _Given(dict[str, int]):
    """The terms of each token in one language as one number, computed on first use."""

    def __init__(self, language: str, numbers: dict[str, int], several: list[list[int]]) -> None:
        super().__init__()
        self._language = language
        self._numbers = numbers
        self._several = several
        self._with_several: list[str] = []

    def __missing__(self, token: str) -> int:
        terms = terms_of(token, self._language)
        if len(terms.parts) == 1 and not terms.beside:
            given = 2 * self._number(terms.parts[0]) + 1
        else:
            self._several.append(self._listed(terms))
            self._with_several.append(token)
            given = -len(self._several)
        self[token] = given
        return given

    def forget_several(self) -> None:
        """Forget the tokens with several terms: most of them occur once."""
        for token in self._with_several:
            del self[token]
        self._with_several.clear()

    def _listed(self, terms: Terms) -> list[int]:
        placed = [*((at, term) for term, at in terms.beside), *enumerate(terms.parts)]
        placed.sort(key=lambda placed: placed[0])
        steps = [here[0] != there[0] for here, there in pairwise([*placed, (terms.width, "")])]
        return [2 * self._number(term) + step for (_, term), step in zip(placed, steps, strict=True)]

    def _number(self, term: str) -> int:
        return self._numbers.setdefault(term, len(self._numbers))

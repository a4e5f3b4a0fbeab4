"""Captions: of each passage the sentence nearest to the query, with the query's words highlighted."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from cicada.index.embedding import Vectors, unit_vectors
from cicada.models.ports import Embedder, Usage
from cicada.retrieval.calibration import calibration_of
from cicada.retrieval.pipelines.api import Caption, Highlight
from cicada.retrieval.pipelines.stages import StageBudget
from cicada.text.characters import clusters, is_unspaced, normalised, pairs, written_word
from cicada.text.detection import indexed_language
from cicada.text.frequent import FREQUENT
from cicada.text.sentences import sentences
from cicada.text.terms import terms_of
from cicada.text.tokens import estimated_tokens, tokens

Span = tuple[int, int]
"""Start and end in characters, the end excluded."""


class QueryWords:
    """A query's content words, by the analysis that searches them."""

    def __init__(self, query: str) -> None:
        self._tokens = tokens(normalised(query))
        self._of: dict[str, frozenset[str]] = {}

    def spans(self, text: str, language: str = "") -> list[Span]:
        """Where a text has words of the query, in order; neighbouring characters of unspaced scripts as one.

        ``language`` (ISO 639-3) is that of the whole, by :func:`language_of`; when empty the text alone tells it.
        """
        language = language or language_of(text)
        wanted = self._terms(language)
        found: list[Span] = []
        for match in written_word().finditer(text):
            piece = match.group()
            if is_unspaced(piece):
                found += _spans_of_run(piece, match.start(), wanted)
            elif wanted & _terms(normalised(piece), language):
                found.append(match.span())
        return found

    def matched(self, text: str, language: str = "") -> int:
        """How many different words of the query a text has; arguments as of :meth:`spans`."""
        language = language or language_of(text)
        wanted = self._terms(language)
        return len(wanted & _terms(normalised(text), language))

    def _terms(self, language: str) -> frozenset[str]:
        """The query's terms as a text in a language would have them."""
        if language not in self._of:
            common = FREQUENT.get(language, frozenset())
            content = [token for token in self._tokens if token not in common] or self._tokens
            self._of[language] = frozenset(term for token in content for term in _terms_of(token, language))
        return self._of[language]


def language_of(text: str) -> str:
    """The language that a text is analysed in (ISO 639-3)."""
    return indexed_language(tokens(normalised(text)))


def _terms(text: str, language: str) -> frozenset[str]:
    return frozenset(term for token in tokens(text) for term in _terms_of(token, language))


def _terms_of(token: str, language: str) -> tuple[str, ...]:
    """A token's terms; of a run without spaces its pairs, for single characters say little."""
    terms = terms_of(token, language)
    return terms.parts if is_unspaced(token) else (*terms.parts, *(term for term, _ in terms.beside))


def _spans_of_run(run: str, start: int, wanted: frozenset[str]) -> list[Span]:
    """The stretches of a run that are covered by pairs of the query; a run of one character is a word by itself."""
    characters = clusters(run)
    plain = [normalised(character) for character in characters]
    covered = [len(characters) == 1 and plain[0] in wanted] * len(characters)
    for at, pair in enumerate(pairs(plain)):
        if pair in wanted:
            covered[at] = covered[at + 1] = True
    found: list[Span] = []
    place = start
    for character, is_covered in zip(characters, covered, strict=True):
        end = place + len(character)
        if is_covered and found and found[-1][1] == place:
            found[-1] = (found[-1][0], end)
        elif is_covered:
            found.append((place, end))
        place = end
    return found


SENTENCES_A_PASSAGE = 3
"""Of a passage, how many sentences are compared by meaning: those with the most words of the query."""
MAX_CAPTION_CHARS = 320
"""Of a longer sentence, a stretch around the query's words is taken."""
MIN_SECOND_SCORE = 0.5
"""A passage's second caption is given from this score on: as likely to the point as not."""
EMBED_SENTENCES = "embed_sentences"
"""The purpose of the use of the embedding model."""


@dataclass(frozen=True)
class _Candidate:
    text: int
    """Which text it is of."""
    language: str
    """Of that text (ISO 639-3)."""
    sentence: str


def captions(
    query: str, texts: Sequence[str], embedder: Embedder, stage_budget: StageBudget
) -> list[tuple[Caption, ...]]:
    """One or two captions a text, the best first; none of a text without words.

    A few sentences of each text are embedded with the query; scores are their calibrated similarity. The embedder does
    not report its requests: each sentence counts as a call with its estimated tokens.

    Raises ModelBusy, ModelUnavailable, ModelRefused or OutOfTime, or IndexMismatch for useless vectors.
    """
    words = QueryWords(query)
    chosen = [one for number, text in enumerate(texts) for one in _candidates(number, text, words)]
    made: list[list[Caption]] = [[] for _ in texts]
    if chosen:
        distinct = list(dict.fromkeys([query, *(one.sentence for one in chosen)]))
        vectors = _embedded(distinct, embedder, stage_budget)
        cosines = dict(zip(distinct, (vectors @ vectors[0]).tolist(), strict=True))
        calibration = calibration_of(embedder.model_id)
        for one in chosen:
            score = calibration.score(cosines[one.sentence])
            marks = tuple(Highlight(start=start, end=end) for start, end in words.spans(one.sentence, one.language))
            made[one.text].append(Caption(text=one.sentence, score=round(score, 6), highlights=marks))
    return [_best(found) for found in made]


def _embedded(texts: Sequence[str], embedder: Embedder, stage_budget: StageBudget) -> Vectors:
    """The vectors of a query and of sentences, in that order."""
    _, *sentences_of_all = texts
    usage = Usage(input_tokens=sum(map(estimated_tokens, sentences_of_all)))
    with stage_budget.time_for_model() as time_s, stage_budget.use(EMBED_SENTENCES, embedder.model_id) as use:
        use.allow(embedder.model_id, usage)
        for _ in sentences_of_all:
            use.call()
        vectors = unit_vectors(embedder, texts, time_budget_s=time_s)
        use.took(usage)
    return vectors


def _candidates(number: int, text: str, words: QueryWords) -> list[_Candidate]:
    language = language_of(text)
    pieces = (sentence.strip() for sentence in sentences(text))
    found = list(dict.fromkeys(piece for piece in pieces if any(character.isalnum() for character in piece)))
    # The sort is stable: of those that tie, the first come first.
    best = sorted(found, key=lambda sentence: -words.matched(sentence, language))[:SENTENCES_A_PASSAGE]
    return [_Candidate(number, language, _clipped(sentence, words, language)) for sentence in best]


def _clipped(sentence: str, words: QueryWords, language: str) -> str:
    """A sentence, or the stretch of a long one that begins a little before the query's first word in it."""
    if len(sentence) <= MAX_CAPTION_CHARS:
        return sentence
    spans = words.spans(sentence, language)
    first = spans[0][0] if spans else 0
    start = 0 if first < MAX_CAPTION_CHARS // 2 else _word_start(sentence, first - MAX_CAPTION_CHARS // 4)
    stretch = sentence[start : start + MAX_CAPTION_CHARS - 2]
    if start + len(stretch) < len(sentence):
        stretch = (stretch.rpartition(" ")[0] or stretch) + "…"
    return ("…" if start else "") + stretch.strip()


def _word_start(text: str, near: int) -> int:
    """The beginning of the first word after a place, if one begins soon."""
    space = text.find(" ", near, near + MAX_CAPTION_CHARS // 8)
    return near if space < 0 else space + 1


def _best(found: list[Caption]) -> tuple[Caption, ...]:
    ranked = sorted(found, key=lambda caption: -caption.score)
    return (*ranked[:1], *(caption for caption in ranked[1:2] if caption.score >= MIN_SECOND_SCORE))

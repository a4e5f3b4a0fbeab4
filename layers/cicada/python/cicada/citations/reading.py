"""A text in clauses: the words that carry its meaning, and what turns them."""

from __future__ import annotations

import re
import unicodedata
from functools import lru_cache

from cicada.citations import english_tables as english
from cicada.citations.clauses import Clause, Word
from cicada.citations.drafts import Draft, with_ellipses
from cicada.citations.english_terms import RELATIONS, english_term
from cicada.citations.numbers import quantities
from cicada.citations.other_tables import (
    ALL_OF,
    DETERMINERS,
    DOUBTFUL,
    FIRST_PERSON,
    PART_OF,
    UNSPACED_OPPOSITES,
    stop_words,
    turning,
)
from cicada.citations.unspaced import denials_in, doubts_in, pairs_of
from cicada.corpus.chunking.abbreviations import NEVER_LAST
from cicada.guards.english_forms import PARTICIPLES, has_ed
from cicada.guards.other_languages import NEGATIONS as OTHER_NEGATIONS
from cicada.index.lexical.scripts import is_unspaced
from cicada.index.lexical.words import stemmed
from cicada.text.tokens import normalised, tokens

ENGLISH = "eng"
_READINGS_KEPT = 1024
_TOKEN = re.compile(r"[^\W\d_]+(?:['’][^\W\d_]+)*|\d+|[^\w\s]")
_SENTENCE_ENDS = frozenset(".!?。！？;；\n")
_CLAUSE_ENDS = frozenset(':()—–"“”„«»「」『』、，。！？；…')
_YEAR = re.compile(r"1\d{3}|20\d{2}")
_UN = re.compile(r"un[a-z]{3,}(?:ed|able)")
_ELIDED = re.compile(r"^(?:[^\W\d_]|qu|jusqu|lorsqu|puisqu|dell|nell|all|sull|dall|quell|un)'")
_AGENTS = {
    language: frozenset(words.split())
    for language, words in {
        "deu": "von vom durch", "fra": "par", "spa": "por", "ita": "da dal dalla dai dagli dall",
        "por": "por pelo pela pelos", "nld": "door", "swe": "av", "dan": "af", "nor": "av", "pol": "przez", "ron": "de",
    }.items()
}  # fmt: skip
"""What stands before who does it, in a passive."""
_NOUNS_TOO = frozenset("personne personnes rien nada nichts".split())
"""Negations that are nouns after an article."""
_MORE_NEGATIONS = frozenset({"нельзя"})
_SHORTEST = 2
"""Letters of the shortest word that carries meaning."""
_SHORT = 5
"""Letters up to which a word of another language's opposites is taken for a preposition or an adverb."""


@lru_cache(_READINGS_KEPT)
def read(text: str, language: str, voice: str = "") -> tuple[Clause, ...]:
    """The clauses of a text, in order.

    Args:
        text: a sentence of an answer, or a passage.
        language: ISO 639-3.
        voice: whose words the text is: what its *I* stands for; empty for nobody's.
    """
    plain = unicodedata.normalize("NFKC", text).replace("’", "'")
    return tuple(with_ellipses(_clauses(plain, language, voice)))


def _clauses(text: str, language: str, voice: str) -> list[Clause]:
    reader = _Reader(language, voice)
    found: list[tuple[str, str]] = []
    end = 0
    for quantity in quantities(text):
        found += ((written, "") for written in _TOKEN.findall(text[end : quantity.start]))
        found.append((quantity.shown, f"#{quantity.value}"))
        end = quantity.end
    found += ((written, "") for written in _TOKEN.findall(text[end:]))
    for at, (written, number) in enumerate(found):
        reader.take(written, number, found[at + 1][0] if at + 1 < len(found) else "")
    return reader.finish()


class _Reader:
    """Goes through a text's tokens."""

    def __init__(self, language: str, voice: str) -> None:
        self._language = language
        self._english = language == ENGLISH
        self._voice = voice
        self._stop = english.STOP if self._english else stop_words(language)
        self._negations = english.NEGATIONS if self._english else OTHER_NEGATIONS.get(language, frozenset())
        self._draft = Draft()
        self._found: list[Clause] = []
        self._opens = True
        self._after_of = False
        self._determined = False
        self._before = ""

    def finish(self) -> list[Clause]:
        self._end()
        return self._found

    def take(self, written: str, number: str, following: str) -> None:
        """Read the next token; ``number`` is its term where it is a number."""
        before, self._before = self._before, written
        if number:
            if following.lower() in PART_OF or self._after_of:
                self._draft.levels.add("share")  # 180 of the 240; of 240, 180
            elif not self._draft.words and not _YEAR.fullmatch(written):
                self._draft.levels.add("counted")
            self._after_of = False
            self._word(Word(number, written))
            return
        self._after_of = written == "Of"
        determined, self._determined = self._determined, written.lower() in DETERMINERS
        if written == "." and before.lower() in NEVER_LAST:
            return
        if written in _SENTENCE_ENDS or written in _CLAUSE_ENDS:
            self._end()
            self._opens = True
            return
        low = written.lower()
        if written == ",":
            after = following.lower()
            if (
                not self._english
                or after in english.AFTER_COMMA
                or self._draft.agent_at is not None
                or _is_participle(after)
            ):
                self._end()
            return
        if not written[0].isalpha():
            return
        if is_unspaced(normalised(written)):
            self._run(normalised(written))
            return
        if self._english:
            self._english_word(written, low, following, determined=determined)
        else:
            self._other_word(written, low, determined=determined)
        self._opens = False

    def _end(self) -> None:
        clause = self._draft.clause()
        if clause is not None:
            self._found.append(clause)
        self._draft = Draft()

    def _word(self, word: Word) -> None:
        if self._draft.waiting and not word.turning:
            self._draft.negations += [word.term] * self._draft.waiting
            self._draft.waiting = 0
        self._draft.words.append(word)

    def _english_word(self, written: str, low: str, following: str, *, determined: bool) -> None:
        draft = self._draft
        if low in english.DOUBTFUL:
            draft.doubtful.add(english_term(low))
        if low in english.ALONE or (low == "and" and following.lower() in english.AFTER_AND):
            if low == "but" and draft.waiting and not draft.words:
                draft.waiting = 0  # nobody but, nothing but
                draft.levels = {"only"}
                return
            denied = draft.waiting if low == "that" else 0  # denies that
            draft.waiting -= denied
            self._end()
            self._draft.waiting = denied
            if low == "unless":
                self._draft.doubtful.add(low)
            if low not in english.SPECULATIVE:
                return
            draft = self._draft
        if low.endswith("n't") or low == "cannot":
            draft.waiting += 1
            self._mode(low.removesuffix("n't").replace("cannot", "can"))
            return
        owner = low.endswith("'s")
        bare = low.removesuffix("'s").replace("'", "")
        if bare == "not" and following.lower() == "only":
            return
        if bare == "to" and following.lower() == "be":
            return
        draft.been = draft.been or bare in english.BE
        if bare == "by" and draft.words and (draft.participle_at is not None or _is_participle(draft.words[-1].shown)):
            draft.agent_at = len(draft.words)
        if draft.been and _is_participle(bare):
            draft.participle_at = len(draft.words)
        if written == "May" and not self._opens:
            self._word(Word("may", written, name=True))
            return
        if bare in english.FAILS and following.lower() == "to":
            draft.waiting += 1
            return
        if bare == "one" and following.lower() == "of":
            draft.levels.add("some")
        if bare in english.LEVELS:
            draft.levels.add(english.LEVELS[bare])
        self._mode(bare)
        if bare in english.FIRST_PERSON | english.FIRST_POSSESSIVE and written != "US":
            draft.first_person = True
            if self._voice:
                owned = bare in english.FIRST_POSSESSIVE
                draft.words += (Word(self._term(part), written, name=True, owner=owned) for part in tokens(self._voice))
            return
        if bare in ("no", "not") and following.lower() in english.STATING:
            draft.doubtful.add(following.lower())
        if bare == "without" and (draft.waiting or draft.negations):
            draft.doubtful.add(bare)  # not without: only with
        if bare in self._negations or bare == "no":
            draft.waiting += 1
            if bare in english.REFUSALS:
                draft.words.append(Word(english_term(bare), written, turning=True))
            return
        if _UN.fullmatch(bare) and bare not in english.UNLIKE:
            draft.waiting += 1
            bare = bare[2:]
        letter = len(written) == 1 and written.isupper() and written != "I" and not self._opens
        capital = written[0].isupper() and written not in english.NOT_NAMES
        if bare in self._stop and not letter and bare not in RELATIONS:
            return
        if len(bare) < _SHORTEST and not letter:
            return
        term = bare if letter else self._term(bare)
        self._word(
            Word(
                term,
                written.removesuffix("'s"),
                turning=bare in RELATIONS,
                name=capital and not self._opens,
                owner=owner,
                opens=self._opens,
                determined=determined,
            )
        )

    def _term(self, word: str) -> str:
        return term_in(word, self._language)

    def _mode(self, word: str) -> None:
        modes = self._draft.modes
        if word in english.NECESSARY:
            modes.add("must")
        if word in english.POSSIBLE:
            modes.add("may")
        if word in english.SPECULATIVE:
            modes.add("perhaps")

    def _other_word(self, written: str, low: str, *, determined: bool) -> None:
        language, piece = self._language, _ELIDED.sub("", low)
        if piece in DOUBTFUL:
            self._draft.doubtful.add(piece)
        if (piece in self._negations and not (determined and piece in _NOUNS_TOO)) or piece in _MORE_NEGATIONS:
            self._draft.waiting += 1
            return
        if self._voice and piece in FIRST_PERSON.get(language, frozenset()):
            self._draft.first_person = True
            self._draft.words += (Word(self._term(part), written, name=True) for part in tokens(self._voice))
            return
        if piece in _AGENTS.get(language, frozenset()):
            self._draft.agent_at = len(self._draft.words)
        if piece in ALL_OF:
            self._draft.levels.add("all")
        term = stemmed(normalised(piece), language) if piece else ""
        turns = term in turning(language)
        if not piece or ((piece in self._stop or len(piece) < _SHORTEST) and not turns):
            return
        self._word(
            Word(
                term,
                written,
                turning=turns and (piece in self._stop or len(piece) <= _SHORT),
                name=written[0].isupper() and not self._opens and language != "deu",
                opens=self._opens,
                determined=determined,
            )
        )

    def _run(self, run: str) -> None:
        """A run of a script without spaces: its pairs of characters, those that only inflect left out."""
        draft = self._draft
        draft.negations += [""] * denials_in(run)
        draft.doubtful.update(doubts_in(run))
        draft.words += (Word(pair, pair) for pair in pairs_of(run))
        for pair in UNSPACED_OPPOSITES:
            draft.words += (Word(f"\t{sign}", sign, turning=True) for sign in pair if sign in run)


def term_in(word: str, language: str) -> str:
    """What a word in normal form is compared by."""
    return english_term(word) if language == ENGLISH else stemmed(word, language)


def _is_participle(word: str) -> bool:
    return has_ed(word.lower()) or word.lower() in PARTICIPLES

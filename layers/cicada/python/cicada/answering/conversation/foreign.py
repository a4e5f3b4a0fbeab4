"""Whether a question in a language other than English leans on what was said before, by word lists."""

from __future__ import annotations

import re
import unicodedata
from collections import defaultdict
from collections.abc import Collection, Iterable

from cicada.answering.conversation.foreign_words import SPACED, UNSPACED, Leaning, Phrases
from cicada.index.lexical.detection import detect
from cicada.index.lexical.stopwords import EVIDENCE
from cicada.text.tokens import normalised, tokens

ENGLISH = "eng"
_WORD = re.compile(r"\w+(?:['’-]\w+)*|[?？]")
_ELIDED = re.compile(r"^(?:qu|[cdjlmnst]|all|dell|nell|un)['’]")
_INVERTED = re.compile(r"-(?:t-)?(il|elle|ils|elles)$")
_SHORT_WORDS = 4
_ENDING_CHARS = 8
"""How long a question may be that an ending alone tells (*and Mara?*), in a language without spaces."""
_CONVERSATION_WEIGHT = 0.3
"""How much a word of the turns tells of the question's language, beside one of its own."""
_OWN_LIST = 0.5
"""How much a word of a language's list tells of it."""


def language_of(query: str, before: Iterable[str] = ()) -> str:
    """The language of a question in a conversation (ISO 639-3); English where nothing speaks for another one.

    A short question has few words that tell: those of the questions ``before`` it are heard too.
    """
    own = tokens(normalised(query))
    found = detect(own)
    if found in UNSPACED or found == "rus":
        return found
    heard: defaultdict[str, float] = defaultdict(float)
    for weight, words in ((1.0, own), (_CONVERSATION_WEIGHT, [w for text in before for w in tokens(normalised(text))])):
        for word in words:
            for language, evidence in EVIDENCE.get(word, {}).items():
                heard[language] += weight * evidence
    for word in own:
        for language, leaning in SPACED.items():
            if word in leaning.all or word in leaning.courtesies:
                heard[language] += _OWN_LIST
    candidates = [language for language in heard if language in SPACED or language == ENGLISH]
    return max(candidates, key=lambda language: (heard[language], language == ENGLISH), default=found)


def foreign_leans(query: str, language: str, names: Collection[str] = ()) -> bool:
    """Whether a question leans on what was said before; False in a language without a list.

    Args:
        query: the question.
        language: its, as ISO 639-3.
        names: those known from the conversation, case folded.
    """
    if language in UNSPACED:
        return _phrases_lean(query, UNSPACED[language])
    return language in SPACED and _words_lean(query, SPACED[language], names)


def _phrases_lean(query: str, phrases: Phrases) -> bool:
    plain = unicodedata.normalize("NFKC", query).strip().strip("?!.。、, ")
    if any(phrase in f" {plain} " for phrase in phrases.anywhere) or plain in phrases.whole:
        return True
    return len(plain) <= _ENDING_CHARS and plain.endswith(phrases.endings)


def _words_lean(query: str, leaning: Leaning, names: Collection[str]) -> bool:
    plain = unicodedata.normalize("NFKC", query).replace("’", "'")
    for phrase in leaning.impersonal:
        plain = re.sub(rf"\b{phrase}\b", " ", plain, flags=re.IGNORECASE)
    written = [word for word in _WORD.findall(plain) if word not in "?？"]
    words = [part for word in written for part in _parts(word)]
    folded = [word.casefold() for word in words]
    asks = "?" in query or "？" in query
    if not folded or (set(folded) & leaning.courtesies and not asks):
        return False
    return (
        _is_bare(folded, leaning)
        or any(f"{' '.join(folded)} ".startswith(phrase) for phrase in leaning.about)
        or _has_pronoun(words, leaning, names)
        or _has_pointer(folded, leaning)
    )


def _is_bare(words: list[str], leaning: Leaning) -> bool:
    """Whether it is no whole question, or continues one: *why?*, *and Mara?*, *and in the second episode?*"""
    continues = words[0] in leaning.starters and len(words) > 1
    rest = words[1:] if continues else words
    content = [word for word in rest if word not in leaning.all and word not in EVIDENCE]
    if not content and all(word in leaning.all for word in rest):
        return True
    most = 1 if leaning.asking & set(rest) else 2
    return continues and len(rest) <= _SHORT_WORDS and len(content) <= most


def _has_pronoun(words: list[str], leaning: Leaning, names: Collection[str]) -> bool:
    """Whether it has a pronoun with no name before it."""
    for at, word in enumerate(words):
        folded = word.casefold()
        if folded in leaning.pronouns and (at == 0 or word[0].islower()):
            return True  # a capital inside a sentence is a polite form of address
        if folded in names or (at and word[0].isupper() and folded not in leaning.all):
            return False
    return False


def _has_pointer(words: list[str], leaning: Leaning) -> bool:
    for at, word in enumerate(words):
        if word in leaning.pointers and at:
            return True
        if word in leaning.last and at and at + 1 == len(words):
            return True
        if word in leaning.determiners and (at + 1 == len(words) or (at and _no_noun(words[at + 1], leaning))):
            return True
    return False


def _no_noun(following: str, leaning: Leaning) -> bool:
    """*Das Schwert* does not lean, *was das bedeutet* does."""
    return following in leaning.all


def _parts(word: str) -> list[str]:
    """A written word as the words in it: *a-t-elle*, *qu'il*."""
    inverted = _INVERTED.search(word)
    if inverted:
        return [*_parts(word[: inverted.start()]), inverted[1]]
    elided = _ELIDED.match(word)
    return [elided[0], word[elided.end() :]] if elided and elided.end() < len(word) else [word]

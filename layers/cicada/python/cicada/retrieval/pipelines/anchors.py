"""What a question is about beyond doubt: its names, numbers, codes and quotations, which no other wording may lose."""

from __future__ import annotations

from cicada.text.detection import language_of
from cicada.text.frequent import EVIDENCE
from cicada.text.languages import CAPITALISES_NOUNS
from cicada.text.letters import stands_in
from cicada.text.normal import compared, compatible, normalised, raised_apart
from cicada.text.quotes import quotations
from cicada.text.scripts import katakana_in
from cicada.text.sentences import opens_sentence
from cicada.text.terms import accent_folded
from cicada.text.tokens import Written, tokens, written_tokens
from cicada.text.words import POSSESSIVE, is_among


def anchors(question: str) -> tuple[str, ...]:
    """The words that every other wording of a question must have, in normal form, each once, in order.

    Words with a digit, words in capitals, capitalised words but common ones, quoted words, and words in katakana. A
    capital at the beginning of a sentence says nothing by itself: that word counts if the next is a name too. In
    German, which writes all nouns so, and in a question all in capitals, capitals do not count.
    """
    plain = compatible(raised_apart(question))
    capitals_tell = not plain.isupper() and language_of(plain, by_frequent_words=True) not in CAPITALISES_NOUNS
    found: dict[str, None] = {}
    words = list(written_tokens(plain))
    names = [capitals_tell and _is_name(word, plain) for word in words]
    for at, (word, start) in enumerate(words):
        possessive = POSSESSIVE.search(word) is not None
        name = names[at] and (possessive or not opens_sentence(plain, start) or (at + 1 < len(words) and names[at + 1]))
        acronym = len(word) > 1 and word.isupper() and not plain.isupper()
        if name or acronym or any(letter.isdigit() for letter in word):
            found[normalised(POSSESSIVE.sub("", word))] = None
    for quoted in quotations(plain):
        found |= dict.fromkeys(tokens(normalised(quoted)))
    found |= dict.fromkeys(map(normalised, katakana_in(plain)))
    return tuple(found)


def keeps(wording: str, needed: tuple[str, ...]) -> bool:
    """Whether another wording has all the anchors, be it with another ending; those with digits as they are."""
    text = compared(wording)
    read = tokens(text)
    words = {accent_folded(POSSESSIVE.sub("", word)) for word in read} | set(read)
    return all(_has(anchor, text, words) for anchor in needed)


def _is_name(word: Written, text: str) -> bool:
    if not word.text[0].isupper():
        return False
    common = normalised(POSSESSIVE.sub("", word.text))
    initial = len(word.text) == 1 and text[word.start + 1 : word.start + 2] != "."
    return common not in EVIDENCE and not initial


def _has(anchor: str, text: str, words: set[str]) -> bool:
    if any(letter.isdigit() for letter in anchor):
        return stands_in(text, anchor)
    return is_among(accent_folded(anchor), words) or (not anchor.isascii() and anchor in text)

"""Whether a text has certain words: exact comparisons, up to case, punctuation and the forms of characters."""

from __future__ import annotations

from cicada.text.letters import word_pattern
from cicada.text.tokens import normalised, raised_apart


def words_of(text: str) -> tuple[str, ...]:
    """The words of a text in normal form; in scripts without spaces each character is one."""
    return tuple(word_pattern().findall(normalised(raised_apart(text))))


def quotes(text: str, quote: str) -> bool:
    """Whether the words of ``quote``, at least one, stand in ``text`` one after another."""
    wanted = words_of(quote)
    return bool(wanted) and f" {' '.join(wanted)} " in f" {' '.join(words_of(text))} "


def foreign_words(text: str, *others: str) -> tuple[str, ...]:
    """The words of a text that none of the others has, each once, in order."""
    known = {word for other in others for word in words_of(other)}
    return tuple(dict.fromkeys(word for word in words_of(text) if word not in known))

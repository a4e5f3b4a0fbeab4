"""Questions and names as comparable words, and the ways to write a name."""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import NamedTuple

from cicada.text.characters import compatible, is_unspaced, normalised, script_of, written_word
from cicada.text.frequent import EVIDENCE
from cicada.text.names import ARTICLES, bare_key
from cicada.text.sentences import opens_sentence
from cicada.text.terms import accent_folded, stemmed
from cicada.text.word_lists import any_word, word_lists

_LISTS = word_lists("cicada.retrieval.knowledge", "gazetteer_words.json")
_ASKING = _LISTS["asking"]
"""Words of asking, and words of every day that are given names as well."""
MAX_TEXT_CHARS = 4_000
"""Of a longer text, this much is looked at."""
_POSSESSIVE = re.compile(r"(?:'s|'|s')$")
_ELIDED = re.compile(rf"{any_word(_LISTS['elided'])}'(?=..)", re.IGNORECASE)
"""An article or pronoun before a word that begins with a vowel, in French and Italian."""
_LEAST_STEM = 3
"""Letters that a word and its inflection have in common at least."""
_ENDINGS = _LISTS["noun_endings"] | {""}
"""Endings of inflected nouns in languages with Latin letters; no verb endings, as *hoping* is not *Hope*."""
_MOST_ENDING = 3
_JOINING = "・=＝ "


class Word(NamedTuple):
    """A word of a text."""

    start: int
    end: int
    """Without a possessive's ending."""
    key: str
    """Folded, without a possessive's ending."""
    capital: bool
    """Whether it is written large."""
    opens: bool
    """Whether a sentence begins with it, so that its capital says nothing."""


@dataclass(frozen=True)
class GazetteerText:
    """A text, read."""

    text: str
    """In compatibility form (NFKC)."""
    words: tuple[Word, ...]
    """Of the scripts that have spaces."""
    run: str
    """All its letters and digits, where some are of a script without spaces, else nothing: in lower case, with a space
    for what parts words."""
    places: tuple[int, ...]
    """Where each character of ``run`` stands in the text."""


def line_of(text: str) -> GazetteerText:
    """Read a text; any string is one."""
    plain = compatible(text[:MAX_TEXT_CHARS])
    found: list[Word] = []
    for match in written_word().finditer(plain):
        start, written = match.start(), match.group()
        if is_unspaced(written):
            continue
        opens = not found or opens_sentence(plain, start)
        elided, bare, key = _key(written)
        start += elided
        end = start + len(bare)
        found.append(Word(start, end, key, bare[:1].isupper(), opens))
    run, places = _run_of(plain)
    return GazetteerText(plain, tuple(found), run, places)


def written_in(name: str, text: GazetteerText) -> str | None:
    """A name's words in a text, perhaps with another ending; None if it does not have them."""
    wanted = line_of(name)
    if wanted.run:
        at = text.run.find(wanted.run)
        return None if at < 0 else text.text[text.places[at] : text.places[at + len(wanted.run) - 1] + 1]
    count = len(wanted.words)
    for at in range(len(text.words) - count + 1 if count else 0):
        here = text.words[at : at + count]
        if all(same_word(one.key, other.key) for one, other in zip(wanted.words, here, strict=True)):
            return text.text[here[0].start : here[-1].end]
    return None


def same_word(one: str, other: str) -> bool:
    """Whether two words, folded, are the same but for an ending."""
    return one == other or (not inflection_keys(one).isdisjoint(inflection_keys(other)) and forms_of_one(one, other))


@lru_cache(maxsize=16_384)
def inflection_keys(word: str) -> frozenset[str]:
    """Keys that a folded word shares with its inflections: stems, and forms without a plural ending.

    Two words with a common key are the same only if :func:`forms_of_one` agrees.
    """
    if len(word) < _LEAST_STEM or any(map(str.isdigit, word)):
        return frozenset()
    keys = {stemmed(word, "")}
    if script_of(word[0]) == "latin":
        keys.add(stemmed(word, "deu"))
        keys.update(f"\n{form}" for form in _without_plural(word))  # a namespace that no stem is in
    return frozenset(keys)


def forms_of_one(one: str, other: str) -> bool:
    """Whether two folded words can be forms of one noun: by what follows the letters that they begin with alike."""
    common = 0
    for letter, its in zip(one, other, strict=False):
        if letter != its:
            break
        common += 1
    if common < _LEAST_STEM or max(len(one), len(other)) - common > _MOST_ENDING:
        return False
    return script_of(one[0]) != "latin" or (one[common:] in _ENDINGS and other[common:] in _ENDINGS)


def is_frequent(word: str) -> bool:
    """Whether a folded word is one of the most frequent of a language: a name only if it is written large."""
    return word in EVIDENCE or word in _ASKING or len(word) < 2


@lru_cache(maxsize=16_384)
def _key(written: str) -> tuple[int, str, str]:
    """How many characters of a word are an elided article; the rest without a possessive's ending; and that folded."""
    elided = _ELIDED.match(written.replace("’", "'"))
    begins = elided.end() if elided else 0
    bare = written = written[begins:]
    flat = written.replace("’", "'")
    ending = _POSSESSIVE.search(flat)
    if ending is not None and "'" in ending[0] and ending.start():
        bare = written[: ending.start()] + ("s" if ending[0] == "s'" else "")
    return begins, bare, accent_folded(normalised(bare).replace("'", ""))


def _without_plural(word: str) -> set[str]:
    """A word, and what it may be the plural of in English."""
    forms = {word}
    if word.endswith("ies") and len(word) > 4:
        forms.add(word[:-3] + "y")
    if word.endswith("ves") and len(word) > 4:
        forms |= {word[:-3] + "f", word[:-3] + "fe"}
    if word.endswith("es") and len(word) > 4:
        forms.add(word[:-2])
    if word.endswith("s") and not word.endswith("ss"):
        forms.add(word[:-1])
    return forms


def _run_of(plain: str) -> tuple[str, tuple[int, ...]]:
    """See :class:`GazetteerText`. A joint of a name (``・``), or a space next to such a script, separates nothing."""
    if plain.isascii() or not any(map(is_unspaced, plain)):
        return "", ()
    characters: list[str] = []
    places: list[int] = []
    parted = ""
    for place, character in enumerate(plain):
        if not (character.isalnum() or is_unspaced(character)):
            parted += character
            continue
        if parted and characters and _separates(parted, characters[-1], character):
            characters.append(" ")
            places.append(place - 1)
        parted = ""
        lower = character.lower()
        characters.append(lower if len(lower) == 1 else character)
        places.append(place)
    return "".join(characters), tuple(places)


def _separates(parted: str, before: str, after: str) -> bool:
    """Whether what is between two characters separates words."""
    return not (is_unspaced(before) or is_unspaced(after)) or bool(parted.strip(_JOINING))


class Filed(NamedTuple):
    """A name as the index files it."""

    name: str
    passages: int
    """That name it."""
    given: bool = False
    """Whether a collection's declaration gives it: as one that has aliases, or by the heading of an entry."""


def merged(filed: Iterable[Filed], aliases: Sequence[tuple[str, Sequence[str]]]) -> list[Filed]:
    """The names, each once, as most passages spell it, with those that aliases stand for.

    Spellings that differ in case, in what joins their words or by an article are of one name.
    """
    stands_for: dict[str, str] = {}
    spelt: dict[str, Filed] = {}
    for name, others in aliases:
        spelt.setdefault(bare_key(name), Filed(name, 0, given=True))
        for other in others:
            stands_for[bare_key(other)] = bare_key(name)
    declared, given = frozenset(spelt), set(spelt)
    passages: defaultdict[str, int] = defaultdict(int)
    most: defaultdict[str, int] = defaultdict(int)
    for one in filed:
        own = bare_key(one.name)
        key = own if own in declared else stands_for.get(own, own)
        passages[key] += one.passages
        if one.given:
            given.add(key)
        if key == own and one.passages > most[key]:
            most[key] = one.passages
            spelt[key] = one
    return [Filed(one.name, passages[key], key in given) for key, one in sorted(spelt.items())]


def owned(
    names: Sequence[Filed],
    aliases: Iterable[tuple[str, Sequence[str]]],
    ways: Callable[[str], Iterable[tuple[str, ...]]],
) -> dict[tuple[str, ...], tuple[tuple[int, ...], bool]]:
    """The owners of each way to write a name, and whether it is an alias. A name's own way is never an alias."""
    own: defaultdict[tuple[str, ...], list[int]] = defaultdict(list)
    other: defaultdict[tuple[str, ...], list[int]] = defaultdict(list)
    number = {bare_key(one.name): place for place, one in enumerate(names)}
    for place, one in enumerate(names):
        for way in ways(one.name):
            own[way].append(place)
    for name, others in aliases:
        for alias in others:
            for way in ways(alias):
                if number[bare_key(name)] not in other[way]:
                    other[way].append(number[bare_key(name)])
    owned = {way: (tuple(places), True) for way, places in other.items()}
    return owned | {way: (tuple(places), False) for way, places in own.items()}


def ways_of(name: str) -> Iterable[tuple[str, ...]]:
    """A name as its folded words, with its article and without."""
    line = line_of(name)
    words = tuple(word.key for word in line.words)
    if line.run or not words:
        return
    yield words
    if len(words) > 1 and words[0] in ARTICLES:
        yield words[1:]


def runs_of(name: str) -> Iterable[tuple[str, ...]]:
    """A name with characters of a script without spaces as its run."""
    if not name.isascii() and (run := line_of(name).run):
        yield (run,)

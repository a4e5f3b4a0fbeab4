"""Whom and what a document names, by rules, by its collection's declaration, and by a model.

In scripts with capitals a name is a capitalised run of words whose capital says something: it stands inside a
sentence, and the document does not write the words small as well. A single word that only begins sentences is none. In
German, where all nouns have capitals, only runs of several words count. Who speaks in a script is known. In Japanese a
name is what an honorific follows, and a foreign one joined by ``・``; other scripts without capitals have only
speakers. Rather none than a wrong one.

What is found once is then looked for in every passage, also where its capital would say nothing.
"""

from __future__ import annotations

import re
from collections import Counter, defaultdict
from collections.abc import Collection, Iterable, Sequence

from cicada.corpus.declared.naming import DeclaredNames
from cicada.corpus.documents import Document, DocumentBlock
from cicada.corpus.indexable import Indexable
from cicada.ingest.enrichment.codes import MAX_CODE_CHARS, MAX_CODES, without_codes
from cicada.ingest.enrichment.mentions import (
    DESCRIBING,
    GERMAN_ARTICLES,
    GERMAN_NOUN_ENDINGS,
    NAMING_FIELDS,
    NARRATORS,
    NOBODY,
    Mention,
    MentionReader,
)
from cicada.text.detection import indexed_language
from cicada.text.languages import CAPITALISES_NOUNS
from cicada.text.names import name_words
from cicada.text.normal import compatible, folded, normalised
from cicada.text.scripts import written_as
from cicada.text.sentences import sentences
from cicada.text.tokens import tokens
from cicada.text.visible import visible

MAX_ENTITIES = 32  # per passage
MAX_ENTITY_CHARS = 80
_SAMPLE_CHARS = 20_000
_HAN = "\u3005\u4e00-\u9fff"
_HONOURED = re.compile(rf"(?<![{_HAN}\u30a1-\u30fc])([{_HAN}]{{1,4}}|[\u30a1-\u30fc]{{2,8}})(?=さん|ちゃん|くん|さま)")
_JOINED = re.compile("[\u30a1-\u30fa\u30fc]{2,12}(?:・[\u30a1-\u30fa\u30fc]{2,12})+")
_UNSPACED = "\u3005-\u9fff"
_BEGINS = re.compile(rf"(?<![^\W{_UNSPACED}])(?:[^\W{_UNSPACED}_]+|[{_UNSPACED}])")
"""A name is looked for from every word on, and from every sign of a script that has no spaces."""
_GOES_ON = re.compile(r"[A-Za-z0-9\u00c0-\u04ff]")
_ACRONYM = re.compile(r"[A-Z]{2,6}")

_Key = tuple[str, ...]


class Names:
    """The names of one document, ready to be found in its passages."""

    def __init__(self, names: Iterable[str]) -> None:
        self._names = frozenset(" ".join(name.split()) for name in names)
        lengths: defaultdict[str, set[int]] = defaultdict(set)
        for name in self._names:
            if (begins := _BEGINS.match(name)) is not None:
                lengths[begins[0]].add(len(name))
        self._lengths = {beginning: sorted(found, reverse=True) for beginning, found in lengths.items()}
        """By the word that names begin with: however many do, each length is looked for once."""

    def of(self, text: str) -> tuple[str, ...]:
        """The names in a text, each once, in order; a longer one hides those inside of it."""
        if not self._lengths:
            return ()
        flat = " ".join(text.split())
        found: dict[str, None] = {}
        end = 0
        for begins in _BEGINS.finditer(flat):
            if begins.start() < end:
                continue
            for length in self._lengths.get(begins[0], ()):
                name = flat[begins.start() : begins.start() + length]
                if name in self._names and not _GOES_ON.match(flat, begins.start() + length):
                    found[name] = None
                    end = begins.start() + length
                    break
        return tuple(found)[:MAX_ENTITIES]


def names_of(document: Document, texts: Sequence[str], speakers: Collection[str] = ()) -> Names:
    """The names in a document.

    Args:
        document: its blocks say what is a heading, which proves nothing, and what a cell; a script has none.
        texts: of its passages: looked at where there are no blocks.
        speakers: who speaks in it.
    """
    prose, given = _told_by_blocks(document.blocks) if document.blocks else (list(texts), [])
    known = [*given, *(voice for voice in sorted(speakers) if voice.strip().casefold() not in NARRATORS)]
    found = _Evidence(prose, known).names()
    return Names(name for name in [*found, *known] if name.strip() and len(name) <= MAX_ENTITY_CHARS)


def _told_by_blocks(blocks: Sequence[DocumentBlock]) -> tuple[list[str], list[str]]:
    """The texts that prove names, and the values of cells that are names."""
    prose: list[str] = []
    given: list[str] = []
    for block in blocks:
        if block.fields:
            for name, value in block.fields:
                naming = NAMING_FIELDS & set(re.split(r"[^a-z]+", name.lower()))
                (given if naming and _looks_like_name(value) else prose).append(value)
        elif block.kind not in ("heading", "code"):
            prose.append(block.text)
    return prose, given


def _looks_like_name(value: str) -> bool:
    """Whether a cell is one to four capitalised words, and nothing else."""
    words = value.split()
    return 0 < len(words) <= 4 and all(word[0].isupper() and not any(map(str.isdigit, word)) for word in words)


class _Evidence:
    """What a document's texts say for and against each capitalised run."""

    def __init__(self, texts: Sequence[str], known: Sequence[str]) -> None:
        sample = normalised(" ".join(texts)[:_SAMPLE_CHARS])
        self._language = indexed_language(tokens(sample))
        self._inside: Counter[_Key] = Counter()
        self._opening: Counter[_Key] = Counter()
        self._written: defaultdict[_Key, Counter[str]] = defaultdict(Counter)
        self._small: Counter[str] = Counter()
        self._parts: Counter[str] = Counter(word for name in known for word in _key(name.split()))
        self._things: set[str] = set()
        """Words that stand alone after a German article."""
        self._without_capitals: Counter[str] = Counter()
        reader = MentionReader(self._language)
        for text in map(without_codes, texts):
            self._small.update(word.text.casefold() for word in name_words(text) if word.text[0].islower())
            self._without_capitals.update(_names_without_capitals(text))
            for sentence in sentences(text):
                for mention in reader.read(sentence):
                    self._count(mention)

    def names(self) -> list[str]:
        """The names, as they are written most often."""
        keys = list(dict.fromkeys([*self._inside, *self._opening]))
        names = {key for key in keys if self._is_name(key)}
        parts = {word for key in names if len(key) > 1 for word in key}
        names |= {key for key in keys if len(key) == 1 and key[0] in parts and not self._small[key[0]]}
        found = [self._written[key].most_common(1)[0][0] for key in keys if key in names]
        return [*found, *self._without_capitals]

    def _count(self, mention: Mention) -> None:
        key = _key(mention.words)
        self._written[key][mention.text] += 1
        if len(key) == 1 and mention.after in GERMAN_ARTICLES:
            self._things.update(key)
        if not mention.opens:
            self._inside[key] += 1
            self._parts.update(key)
            return
        self._opening[key] += 1
        rest = mention.rest()
        if rest is not None:
            self._parts.update(_key(rest.words))

    def _is_name(self, key: _Key) -> bool:
        if any(any(map(str.isdigit, word)) for word in key) or all(len(word) < 2 for word in key):
            return False
        small = [self._small[word] for word in key]
        if len(key) == 1 and key[0] in DESCRIBING:
            return False
        if len(key) == 1:
            return self._is_single_name(key, small[0])
        if self._language in CAPITALISES_NOUNS and not self._is_german_name(key):
            return False
        if all(small) and sum(small) >= len(key) * (self._inside[key] + self._opening[key]):
            return False  # words of every day in capitals: a title, a term that the document defines
        return bool(self._inside[key]) or self._proves_itself(key)

    def _is_single_name(self, key: _Key, small: int) -> bool:
        inside = self._inside[key]
        if self._language in CAPITALISES_NOUNS:
            return False
        if _ACRONYM.fullmatch(self._written[key].most_common(1)[0][0]):
            return inside > small
        return inside > small and not (small and inside < 2)

    def _proves_itself(self, key: _Key) -> bool:
        """Whether a run that only begins sentences is a name all the same: none of its words is ever written small, and
        its first is part of another name, or it stands there more than once."""
        if any(self._small[word] for word in key):
            return False
        return self._opening[key] > 1 or self._parts[key[0]] > 0 or not key[0].endswith(("ly", "ing", "ed"))

    def _is_german_name(self, key: _Key) -> bool:
        """Whether none of its words is formed like a noun, or stands alone after an article elsewhere."""
        return not any(word.endswith(GERMAN_NOUN_ENDINGS) or word in self._things for word in key)


def _names_without_capitals(text: str) -> list[str]:
    honoured = [name for name in _HONOURED.findall(text) if name not in NOBODY]
    return [*honoured, *_JOINED.findall(text)]


def _key(words: Iterable[str]) -> _Key:
    return tuple(word.casefold() for word in words)


def with_names(item: Indexable, declared: Sequence[str], aliases: DeclaredNames) -> Indexable:
    """A passage that names the declared first; what was found beside is filed under the name that it is an alias of."""
    found = (name for entity in item.passage.entities for name in aliases.filed_under(entity))
    names: dict[str, str] = {}
    for name in (*declared, *found):
        names.setdefault(folded(name), name)
    entities = tuple(names.values())[:MAX_ENTITIES]
    return Indexable(item.passage.model_copy(update={"entities": entities}), item.parts)


MAX_SUMMARY_CHARS = 600


def summary_of(written: str) -> str | None:
    """A summary on one line; None if there is nothing in it."""
    return " ".join(visible(written).split())[:MAX_SUMMARY_CHARS] or None


def entities_in(text: str, written: Iterable[str]) -> tuple[str, ...]:
    """The entities that stand in a text as whole words, as the text writes them, each once in the order given."""
    plain = _plain(text)
    found: dict[str, str] = {}
    for entity in written:
        name = _plain(entity)
        if not 1 < len(name) <= MAX_ENTITY_CHARS or not any(character.isalpha() for character in name):
            continue
        there = written_as(plain, name)
        if there is not None:
            found.setdefault(folded(there), there)
    return tuple(found.values())[:MAX_ENTITIES]


def codes_in(text: str, written: Iterable[str]) -> tuple[str, ...]:
    """The codes that stand in a text exactly so, each once; a code has a digit or an underscore."""
    plain = _plain(text)
    found = dict.fromkeys(
        code
        for code in map(_plain, written)
        if len(code) <= MAX_CODE_CHARS
        and re.search(r"[\d_]", code)
        and re.search(rf"(?<![A-Za-z0-9_-]){re.escape(code)}(?![A-Za-z0-9_-])", plain)
    )
    return tuple(found)[:MAX_CODES]


def _plain(text: str) -> str:
    return " ".join(compatible(visible(text)).split())

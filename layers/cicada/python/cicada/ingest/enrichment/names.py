"""The entities that a document names, by rules, by its collection's declaration, and by a model.

In scripts with capitals a name is a capitalised run of words inside a sentence that the document does not write in
lower case as well; a single word that only begins sentences is not a name. In German, which capitalises all nouns, only
runs of several words count. In Japanese a name precedes an honorific, or is a foreign one joined by ``・``; other
scripts without capitals have only the speakers of scripts. Precision counts more than recall.

A name found once is then looked for in every passage, whatever its position there.
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
from cicada.text.characters import compatible, folded, normalised, written_as
from cicada.text.detection import indexed_language
from cicada.text.languages import CAPITALISES_NOUNS
from cicada.text.names import name_words
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
"""A name may begin at every word, and at every character of a script without spaces."""
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
        # By a name's first word: each length is looked up once, however many names begin with it.
        self._lengths = {beginning: sorted(found, reverse=True) for beginning, found in lengths.items()}

    def of(self, text: str) -> tuple[str, ...]:
        """The names in a text, unique, in order; a longer one hides those inside it."""
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
    """The names in a document, from its blocks, or from its passages' ``texts`` if it is a script, which has none."""
    prose, given = _prose_and_names(document.blocks) if document.blocks else (list(texts), [])
    known = [*given, *(voice for voice in sorted(speakers) if voice.strip().casefold() not in NARRATORS)]
    found = _Evidence(prose, known).names()
    return Names(name for name in [*found, *known] if name.strip() and len(name) <= MAX_ENTITY_CHARS)


def _prose_and_names(blocks: Sequence[DocumentBlock]) -> tuple[list[str], list[str]]:
    """The texts to find names in (not headings, whose capitals tell nothing), and the cells that are names."""
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
    """Whether a cell consists of one to four capitalised words."""
    words = value.split()
    return 0 < len(words) <= 4 and all(word[0].isupper() and not any(map(str.isdigit, word)) for word in words)


class _Evidence:
    """Counts for and against each capitalised run of a document's texts."""

    def __init__(self, texts: Sequence[str], known: Sequence[str]) -> None:
        sample = normalised(" ".join(texts)[:_SAMPLE_CHARS])
        self._language = indexed_language(tokens(sample))
        self._inside: Counter[_Key] = Counter()
        self._opening: Counter[_Key] = Counter()
        self._written: defaultdict[_Key, Counter[str]] = defaultdict(Counter)
        self._small: Counter[str] = Counter()
        self._parts: Counter[str] = Counter(word for name in known for word in _key(name.split()))
        self._things: set[str] = set()  # words alone after a German article
        self._without_capitals: Counter[str] = Counter()
        reader = MentionReader(self._language)
        for text in map(without_codes, texts):
            self._small.update(word.text.casefold() for word in name_words(text) if word.text[0].islower())
            self._without_capitals.update(name for name in _HONOURED.findall(text) if name not in NOBODY)
            self._without_capitals.update(_JOINED.findall(text))
            for sentence in sentences(text):
                for mention in reader.read(sentence):
                    self._count(mention)

    def names(self) -> list[str]:
        """The names, in their most frequent spelling."""
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
        if any(map(str.isdigit, "".join(key))) or all(len(word) < 2 for word in key):
            return False
        return self._is_single_name(key) if len(key) == 1 else self._is_long_name(key)

    def _is_single_name(self, key: _Key) -> bool:
        inside, small = self._inside[key], self._small[key[0]]
        if key[0] in DESCRIBING or self._language in CAPITALISES_NOUNS or inside <= small:
            return False
        return not small or inside > 1 or bool(_ACRONYM.fullmatch(self._written[key].most_common(1)[0][0]))

    def _is_long_name(self, key: _Key) -> bool:
        if self._language in CAPITALISES_NOUNS and any(
            word.endswith(GERMAN_NOUN_ENDINGS) or word in self._things for word in key
        ):
            return False  # it contains a common noun
        small = [self._small[word] for word in key]
        if all(small) and sum(small) >= len(key) * (self._inside[key] + self._opening[key]):
            return False  # common words with capitals: a title, or a defined term
        if self._inside[key]:
            return True
        # It only begins sentences: a name if no word is ever in lower case, and it recurs or looks like a name.
        seen = self._opening[key] > 1 or self._parts[key[0]] > 0
        return not any(small) and (seen or not key[0].endswith(("ly", "ing", "ed")))


def _key(words: Iterable[str]) -> _Key:
    return tuple(word.casefold() for word in words)


def with_names(item: Indexable, declared: Sequence[str], aliases: DeclaredNames) -> Indexable:
    """A passage with declared names first, and aliases replaced by the names that they stand for."""
    found = (name for entity in item.passage.entities for name in aliases.filed_under(entity))
    names: dict[str, str] = {}
    for name in (*declared, *found):
        names.setdefault(folded(name), name)
    entities = tuple(names.values())[:MAX_ENTITIES]
    return Indexable(item.passage.model_copy(update={"entities": entities}), item.parts)


MAX_SUMMARY_CHARS = 600


def summary_of(written: str) -> str | None:
    """A summary on one line; None if it is blank."""
    return " ".join(visible(written).split())[:MAX_SUMMARY_CHARS] or None


def entities_in(text: str, written: Iterable[str]) -> tuple[str, ...]:
    """The entities that a text contains as whole words, in its spelling, unique, in the order given."""
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
    """The codes that a text contains exactly, unique; a code has a digit or an underscore."""
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

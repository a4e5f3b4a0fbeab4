"""Example questions about what a view of the index holds, made without a model.

Declared ones come first: those of a collection, or the first of each of its intentions. Others are made of the names of
episodes, speakers, documents and headings, in the language of the passages where there are words for it.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from functools import cache
from importlib.resources import files
from itertools import chain, islice, zip_longest

from cicada.corpus.passages import Passage
from cicada.index.facets import count_values
from cicada.index.loaded_index import COLLECTION, LoadedIndex
from cicada.protocol.corpus import CollectionListed, DocumentListed
from cicada.retrieval.corpus_lists import collections_of, documents_of
from cicada.text.detection import language_of

MAX_EXAMPLES = 6
MAX_COLLECTIONS = 6
"""Of a view that examples are made from: those with the most passages."""
LOOKED_AT = 12
"""Documents of a collection whose headings are looked at, from all over the first page."""
MIN_NAME_CHARS, MAX_NAME_CHARS = 4, 60
SAMPLED_PASSAGES = 8
"""Passages that show a collection's language."""

_ENGLISH = "eng"


def examples_of(view: LoadedIndex) -> tuple[str, ...]:
    """At most :data:`MAX_EXAMPLES` questions, each once. Raises IndexCorrupt or IndexUnavailable."""
    key = "examples"
    if key not in view.derived:
        largest = sorted(collections_of(view), key=lambda one: (-one.passages, one.name))[:MAX_COLLECTIONS]
        in_turn = zip_longest(*(islice(_of_collection(view, one), MAX_EXAMPLES) for one in largest if one.passages))
        found = dict.fromkeys(filter(None, chain.from_iterable(in_turn)))
        view.derived[key] = tuple(islice(found, MAX_EXAMPLES))
    examples: tuple[str, ...] = view.derived[key]
    return examples


def _of_collection(view: LoadedIndex, collection: CollectionListed) -> Iterator[str]:
    declared = view.manifest.declaration(collection.name)
    if declared is not None:
        yield from declared.examples or (one.examples[0] for one in declared.intentions if one.examples)
    words = _words()[_language(view, collection.name)]
    episodes = (words["episode"].format(name=one.name) for one in collection.episodes if one.name)
    speakers = (words["speaker"].format(name=name) for name in _speakers(view, collection.name))
    for several in zip_longest(islice(episodes, 3), islice(speakers, 3), _of_documents(view, collection, words)):
        yield from filter(None, several)


def _of_documents(view: LoadedIndex, collection: CollectionListed, words: Mapping[str, str]) -> Iterator[str]:
    """Questions about headings that only one of the documents has, and about documents without such headings."""
    if not collection.documents or collection.episodes:
        return
    documents = _spread(documents_of(view, collection.name).documents)
    common = Counter(heading.casefold() for one in documents for heading in one.sections)
    for one in filter(lambda one: _is_name(one.title, least=2), documents):
        own = (heading for heading in one.sections if common[heading.casefold()] == 1 and _is_name(heading))
        heading = next((name for name in own if name.casefold() != one.title.casefold()), None)
        if heading is None:
            yield words["document"].format(title=one.title)
        else:
            yield words["section"].format(title=one.title, name=heading)


def _spread(documents: tuple[DocumentListed, ...]) -> tuple[DocumentListed, ...]:
    return documents[:: max(1, len(documents) // LOOKED_AT)][:LOOKED_AT]


def _speakers(view: LoadedIndex, collection: str) -> Iterable[str]:
    scope = view.scope({COLLECTION: (collection,)})
    return (name for name, _ in count_values(view, scope, "speaker", 6).values if _is_name(name, least=2))


def _is_name(text: str, *, least: int = MIN_NAME_CHARS) -> bool:
    """Whether people would write it in a question: words, and no path, option or code."""
    plain = all(one.isalpha() or one.isdecimal() or one in " ’'&,:-" for one in text)
    letters = sum(one.isalpha() for one in text)
    short = 1 if not text.isascii() else least
    return plain and short <= len(text) <= MAX_NAME_CHARS and letters * 2 >= len(text)


def _language(view: LoadedIndex, collection: str) -> str:
    scope = view.scope({COLLECTION: (collection,)})
    rows = [(number, row) for number, one in enumerate(scope.segments) for row in range(min(2, one.entry.count))]
    sample: list[Passage] = view.passages(scope, rows[:SAMPLED_PASSAGES])
    language = language_of("\n".join(one.text for one in sample))
    return language if language in _words() else _ENGLISH


@cache
def _words() -> Mapping[str, Mapping[str, str]]:
    told = (files("cicada.retrieval") / "example_questions.json").read_text(encoding="utf-8")
    words: Mapping[str, Mapping[str, str]] = json.loads(told)
    return words

"""Cut a document into passages, and choose the texts that their vectors are made of.

An embedding model reads only the beginning of a long text (often 256 to 512 tokens), and one vector of many sentences
is near none of them. So a longer passage is embedded whole and by windows of whole sentences. Title and headings
precede each text, so that they find the passage as well: as a part of their own they find no more, and cost one more
text to embed. ``benchmarks/chunking.py`` measures both.
"""

from __future__ import annotations

import hashlib
import json
import math
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import accumulate

from cicada.corpus.chunking.cutting import common_path, groups_of, runs_of
from cicada.corpus.chunking.likeness import Embed, by_embedding, by_words
from cicada.corpus.chunking.options import ChunkOptions
from cicada.corpus.chunking.units import Edge, Unit, joined
from cicada.corpus.declared.declaration import SECTION
from cicada.corpus.declared.sectioning import Sectioning
from cicada.corpus.documents import METADATA_KEYS, SECTION_SEPARATOR, Document
from cicada.corpus.indexable import Indexable, WeightedText
from cicada.corpus.passages import DocumentLocator, Passage
from cicada.text.sentences import pieces, sentences
from cicada.text.tokens import estimated_tokens

WINDOW_TOKENS = 320  # target size of a window: about the 256 word pieces that small models read


def parts_of(text: str, headings: str) -> tuple[WeightedText, ...]:
    """The parts of a passage: its text, and its windows if there are several, each below the headings."""
    windows = windows_of(text)
    above = f"{headings}\n\n" if headings else ""
    return tuple(WeightedText(above + own, 1.0) for own in [text, *(windows if len(windows) > 1 else ())])


def windows_of(text: str) -> list[str]:
    """The fewest windows of whole sentences, of about equal length, since their weights are equal."""
    found = [piece for sentence in sentences(text) for piece in pieces(sentence, WINDOW_TOKENS)]
    tokens = [estimated_tokens(piece) for piece in found]
    total = sum(tokens)
    count = max(1, math.ceil(total / WINDOW_TOKENS))
    windows = [""] * count
    for piece, size, end in zip(found, tokens, accumulate(tokens), strict=True):
        middle = end - size / 2
        windows[min(int(middle * count / max(total, 1)), count - 1)] += piece
    return [window.strip() for window in windows if window.strip()]


DOC_TYPE_KEY = "doc_type"
PAGES_KEY = "pages"  # metadata key: the page range of a passage that spans pages
ID_DIGITS = 32


@dataclass(frozen=True)
class DocumentChunk:
    """A stretch of a document."""

    text: str  # the overlap with the previous chunk, then its own text
    own: str
    section: tuple[str, ...]  # the headings above all of it
    path: tuple[str, ...]  # the headings above its beginning
    pages: tuple[int, ...]  # of its own text, unique, ascending


def chunks_of(
    document: Document, options: ChunkOptions, embed: Embed | None = None, sectioning: Sectioning | None = None
) -> Iterator[DocumentChunk]:
    """Cut a document that is not a script, in order: no chunk has text of two declared sections. Raises ValueError if
    ``embed`` is needed and missing, and ModelError from it."""
    size = options.chunk_size
    for run in runs_of(document.blocks, size, *(() if sectioning is None else (sectioning.apart,))):
        leads = max(estimated_tokens(unit.lead) + 1 if unit.lead else 0 for unit in run)
        before: Sequence[Unit] = ()
        for group in groups_of(run, size - leads, _likeness(run, options, embed), options.similarity):
            own = joined(group)
            repeated = _repeated(before, group, options)
            lead = f"{group[0].lead}\n" if group[0].lead else ""
            yield DocumentChunk(
                text=lead + joined([*repeated, *group]),
                own=own,
                section=common_path([unit.section for unit in group]),
                path=group[0].section,
                pages=tuple(sorted({unit.page for unit in group if unit.page is not None})),
            )
            before = group


def passages_of(
    document: Document,
    collection: str,
    options: ChunkOptions,
    *,
    embed: Embed | None = None,
    metadata: Mapping[str, str] = {},
    sectioning: Sectioning | None = None,
) -> list[Indexable]:
    """Cut a document that is not a script into passages, in order. Raises as :func:`chunks_of`.

    A passage's id is a digest of source, section and own text (without overlap), and of how many passages before it
    have the same: an edit elsewhere in the document does not change it. ``metadata`` overrides the document's own
    (:data:`~cicada.corpus.documents.METADATA_KEYS`); ``sectioning`` adds declared sections and names.
    """
    said = {key: document.metadata[key] for key in METADATA_KEYS if key in document.metadata}
    shared = {**said, **metadata, DOC_TYPE_KEY: document.doc_type}
    seen: Counter[tuple[tuple[str, ...], str]] = Counter()
    items = []
    for chunk in chunks_of(document, options, embed, sectioning):
        key = (chunk.section, chunk.own)
        below_title = chunk.section[1:] if chunk.section[:1] == (document.title,) else chunk.section
        headings = SECTION_SEPARATOR.join(filter(None, (document.title, *below_title)))
        pages = {PAGES_KEY: f"{chunk.pages[0]}-{chunk.pages[-1]}"} if len(chunk.pages) > 1 else {}
        passage = Passage(
            id=_id(document.source, chunk, seen[key]),
            collection=collection,
            text=chunk.text,
            context=chunk.text,
            locator=DocumentLocator(
                source=document.source,
                title=document.title,
                page=chunk.pages[0] if chunk.pages else None,
                section=SECTION_SEPARATOR.join(below_title) or None,
            ),
            metadata={**shared, **pages, **({} if sectioning is None else {SECTION: sectioning.section(chunk.path)})},
            entities=() if sectioning is None else sectioning.entities(chunk.path, chunk.text),
        )
        seen[key] += 1
        items.append(Indexable(passage, parts_of(chunk.text, headings)))
    return items


def _id(source: str, chunk: DocumentChunk, earlier: int) -> str:
    # Stored and cited: a change of this format changes the id of every passage.
    written = json.dumps([source, chunk.section, chunk.own, earlier])
    return hashlib.sha256(written.encode()).hexdigest()[:ID_DIGITS]


def _likeness(run: Sequence[Unit], options: ChunkOptions, embed: Embed | None) -> Sequence[float | None]:
    if options.boundaries == "structure" or sum(unit.tokens for unit in run) <= options.chunk_size // 2:
        return [None] * len(run)
    if options.boundaries == "words":
        return by_words(run)
    if embed is None:
        raise ValueError("boundaries by embedding need an embedding model: embed is missing")
    return by_embedding(run, embed)


def _repeated(before: Sequence[Unit], group: Sequence[Unit], options: ChunkOptions) -> Sequence[Unit]:
    """The last whole sentences of the previous chunk, as many as fit into the overlap and this chunk."""
    if not group[0].prose:
        return ()
    room = min(float(options.overlap), options.chunk_size - sum(unit.tokens for unit in group))
    start = len(before)
    while start > 1 and before[start - 1].prose and before[start - 1].tokens <= room:
        start -= 1
        room -= before[start].tokens
    while start < len(before) and before[start].edge is Edge.WITHIN:
        start += 1
    return before[start:]

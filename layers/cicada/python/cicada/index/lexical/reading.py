"""The two rounds of a search: blocks of dictionaries (and lengths), then postings. What is resident is not read."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from cicada.index.lexical.constants import POSITIONS, POSTINGS, TERMS_PER_BLOCK
from cicada.index.lexical.dictionary import Entry
from cicada.index.lexical.lists import CodedList, PostingList, merged
from cicada.index.lexical.part import LexicalPart
from cicada.index.lexical.phrases import phrase_list
from cicada.index.lexical.query import Clause, Phrase, Prefix
from cicada.index.sections import Gather, Span

MAX_EXPANSIONS = 256
"""Terms that a prefix stands for at most: the first in alphabetical order, over all parts."""
_EXPANSION_BLOCKS = MAX_EXPANSIONS // TERMS_PER_BLOCK + 1

Entries = list[dict[bytes, Entry]]
"""For each part, the entries of the terms that it has."""


def read_entries(
    parts: Sequence[LexicalPart], clauses: Iterable[Clause], gather: Gather, besides: Sequence[Span]
) -> tuple[Entries, dict[bytes, list[bytes]], list[memoryview]]:
    """The first round.

    Returns:
        Entries by part; the terms that each prefix stands for; the bytes of ``besides``.
    """
    terms = dict.fromkeys(term for clause in clauses for term in _terms_of(clause))
    prefixes = dict.fromkeys(prefix for clause in clauses if isinstance(clause, Prefix) for prefix in clause.prefixes)
    entries: Entries = []
    spans = list(besides)
    asked: list[tuple[int, int, list[bytes]]] = []
    for number, part in enumerate(parts):
        known: dict[bytes, Entry] = {}
        blocks: dict[int, list[bytes]] = {}
        for term in terms:
            told, entry = part.remembered(term)
            if entry is not None:
                known[term] = entry
            elif not told and (at := part.dictionary.block_of(term)) is not None:
                blocks.setdefault(at, []).append(term)
        for prefix in prefixes:
            for at in part.dictionary.blocks_of(prefix, _EXPANSION_BLOCKS):
                blocks.setdefault(at, [])
        entries.append(known)
        for at, wanted in blocks.items():
            spans.append(part.block_span(at))
            asked.append((number, at, wanted))
    read = gather(spans) if spans else []
    expansions: list[dict[bytes, dict[bytes, Entry]]] = [{prefix: {} for prefix in prefixes} for _ in parts]
    for (number, _, wanted), data in zip(asked, read[len(besides) :], strict=True):
        part = parts[number]
        block = part.block(data)
        for term in wanted:
            entry = part.look_up(term, block)
            if entry is not None:
                entries[number][term] = entry
        for prefix in prefixes:
            for term, entry in block.starting_with(prefix):
                part.check(entry)
                expansions[number][prefix][term] = entry
    stands_for: dict[bytes, list[bytes]] = {}
    for prefix in prefixes:
        stands_for[prefix] = sorted({term for found in expansions for term in found[prefix]})[:MAX_EXPANSIONS]
        for known, found in zip(entries, expansions, strict=True):
            known.update((term, found[prefix][term]) for term in stands_for[prefix] if term in found[prefix])
    return entries, stands_for, read[: len(besides)]


def _terms_of(clause: Clause) -> Iterable[bytes]:
    if isinstance(clause, Phrase):
        return (term for _, alternatives in clause.steps for term in alternatives)
    return clause.alternatives


def read_lists(
    parts: Sequence[LexicalPart],
    entries: Entries,
    clauses: Sequence[Clause],
    stands_for: dict[bytes, list[bytes]],
    gather: Gather,
) -> list[list[PostingList | None]]:
    """The second round: for each part, the list of each clause; None where no row has it."""
    phrased = {term for clause in clauses if isinstance(clause, Phrase) for term in _terms_of(clause)}
    coded, positions = _read_postings(parts, entries, phrased, gather)
    return [
        [_list_of(clause, coded[number], positions[number], stands_for) for clause in clauses]
        for number in range(len(parts))
    ]


def _list_of(
    clause: Clause,
    coded: dict[bytes, PostingList],
    positions: dict[bytes, memoryview],
    stands_for: dict[bytes, list[bytes]],
) -> PostingList | None:
    if isinstance(clause, Phrase):
        return phrase_list(
            [
                (offset, [(coded[term], positions[term]) for term in alternatives if term in coded])
                for offset, alternatives in clause.steps
            ]
        )
    terms: Iterable[bytes] = clause.alternatives
    if isinstance(clause, Prefix):
        terms = dict.fromkeys(
            [*clause.alternatives, *(term for prefix in clause.prefixes for term in stands_for[prefix])]
        )
    return merged([coded[term] for term in terms if term in coded])


def _read_postings(
    parts: Sequence[LexicalPart], entries: Entries, phrased: set[bytes], gather: Gather
) -> tuple[list[dict[bytes, PostingList]], list[dict[bytes, memoryview]]]:
    found: list[dict[bytes, memoryview]] = [{} for _ in parts]
    positions: list[dict[bytes, memoryview]] = [{} for _ in parts]
    spans: list[Span] = []
    wanted: list[tuple[dict[bytes, memoryview], bytes]] = []
    for number, part in enumerate(parts):
        resident = part.sections.resident(POSTINGS)
        placed = part.sections.resident(POSITIONS) if phrased else None
        for term, entry in entries[number].items():
            if resident is not None:
                found[number][term] = resident[entry.postings_start : entry.postings_start + entry.postings_size]
            else:
                spans.append(part.postings_span(entry))
                wanted.append((found[number], term))
            if term not in phrased:
                continue
            if placed is not None:
                positions[number][term] = placed[entry.positions_start : entry.positions_start + entry.positions_size]
            else:
                spans.append(part.positions_span(entry))
                wanted.append((positions[number], term))
    for (where, term), data in zip(wanted, gather(spans) if spans else [], strict=True):
        where[term] = data
    coded: list[dict[bytes, PostingList]] = [
        {
            term: CodedList(found[number][term], entry.counts, part.code_width, part.frequencies, entry.bound)
            for term, entry in entries[number].items()
        }
        for number, part in enumerate(parts)
    ]
    return coded, positions

"""Where chunks end, and which runs of blocks may share one.

The edges between units are tried from the best to the worst. One becomes a cut if its stretch is still too long, and
neither side gets too short. Equally good edges are ordered by a digest of the words around them. So a cut depends only
on the text near it, and an edit changes no distant chunks (content-defined chunking: Muthitacharoen, Chen, Mazières,
"A Low-Bandwidth Network File System", 2001).
"""

from __future__ import annotations

import hashlib
from bisect import bisect_left
from collections.abc import Callable, Hashable, Iterator, Sequence
from dataclasses import dataclass
from itertools import accumulate, pairwise, takewhile, zip_longest

from cicada.corpus.chunking.units import Edge, Unit, units_of
from cicada.corpus.documents import DocumentBlock

LEAST_SHARE = 0.4  # of ``chunk_size``: the least on either side of a cut, unless there is no other edge
_Goodness = tuple[int, float, bytes]


def groups_of(
    units: Sequence[Unit], limit: int, likeness: Sequence[float | None], threshold: float
) -> list[list[Unit]]:
    """Group a run of units into as few chunks as its good edges allow.

    ``limit``: tokens of a group, and at least of any unit; ``likeness``: of each unit to what precedes it, in [0, 1] or
    None; below ``threshold`` a sentence's edge is as good as a paragraph's.
    """
    edges = [_goodness(units, at, likeness[at], threshold) for at in range(1, len(units))]
    cuts = _cuts([unit.tokens for unit in units], edges, limit, round(LEAST_SHARE * limit))
    return [list(units[start:end]) for start, end in cuts]


def least_groups(runs: Sequence[Sequence[Unit]], least: int) -> Iterator[tuple[int, int]]:
    """Group neighbouring runs, each below ``least`` tokens, to reach it: start and end of each group."""
    tokens = [sum(unit.tokens for unit in run) for run in runs]
    edges = [(0, 0.0, _digest(before[-1].text, after[0].text)) for before, after in pairwise(runs)]
    return _cuts(tokens, edges, 0, least)


def _goodness(units: Sequence[Unit], at: int, likeness: float | None, threshold: float) -> _Goodness:
    edge = units[at].edge
    alike = threshold if likeness is None else likeness
    if edge is Edge.SENTENCE and alike < threshold:
        edge = Edge.BLOCK
    return edge, -alike, _digest(units[at - 1].text, units[at].text)


def _digest(before: str, after: str) -> bytes:
    return hashlib.blake2b(f"{before}\0{after}".encode("utf-8", "surrogatepass"), digest_size=8).digest()


def _cuts(tokens: Sequence[float], edges: Sequence[_Goodness], limit: int, least: int) -> Iterator[tuple[int, int]]:
    """Stretches of at most ``limit`` tokens, and at least ``least`` if the edges allow both."""
    before = [0, *accumulate(tokens)]
    cuts = sorted({0, len(tokens)})
    best_first = sorted(range(1, len(tokens)), key=lambda at: edges[at - 1], reverse=True)
    for smallest in (least, 0) if limit else (least,):  # without a limit, cut only where both sides reach ``least``
        for at in best_first:
            place = bisect_left(cuts, at)
            start, end = before[cuts[place - 1]], before[cuts[place]]
            fair = before[at] - start >= smallest and end - before[at] >= smallest
            if end - start > limit and fair and cuts[place] != at:
                cuts.insert(place, at)
    yield from pairwise(cuts)


SMALL_SHARE = 1 / 8  # of ``chunk_size``: smaller sections share a chunk with small neighbours

Apart = Callable[[tuple[str, ...]], Hashable]
"""A key of a path of headings: only texts with equal keys may share a chunk."""


@dataclass(frozen=True)
class _Section:
    path: tuple[str, ...]
    above: Sequence[DocumentBlock]  # headings without text of their own; the path has them
    blocks: Sequence[DocumentBlock]
    body: Sequence[Unit]  # without its heading, which the path has


def runs_of(blocks: Sequence[DocumentBlock], limit: int, apart: Apart = lambda _path: None) -> Iterator[Sequence[Unit]]:
    """The runs of a document, in order: no chunk has units of two.

    A heading begins a run, and is in the ``section`` of the units below it. It stays in the text if nothing is below
    it, or if small sections share a run: neighbours without a higher heading between them. A record is its own run.
    """
    least = round(limit * SMALL_SHARE)
    small: list[_Section] = []
    level = 0
    for section in _sections(blocks, limit):
        fits = section.blocks[0].kind != "record" and sum(unit.tokens for unit in section.body) < least
        shared = small and _belongs(section, small[0], level) and apart(section.path) == apart(small[0].path)
        if small and not (fits and shared):
            yield from _together(small, limit, least)
            small = []
        if fits:
            level = min(level, len(section.path)) if small else len(section.path)
            small.append(section)
        else:
            yield section.body
    yield from _together(small, limit, least)


def common_path(paths: Sequence[tuple[str, ...]]) -> tuple[str, ...]:
    """The headings that several sections have in common."""
    levels = takewhile(lambda names: len(set(names)) == 1, zip(*paths, strict=False))
    return tuple(names[0] for names in levels)


def _sections(blocks: Sequence[DocumentBlock], limit: int) -> Iterator[_Section]:
    groups: list[list[DocumentBlock]] = []
    for block in blocks:
        begins = block.kind in ("heading", "record") or not groups or block.section != groups[-1][0].section
        if begins or groups[-1][0].kind == "record":
            groups.append([])
        groups[-1].append(block)
    above: list[DocumentBlock] = []
    for group, following in zip_longest(groups, groups[1:]):
        path = group[0].section
        told = group[0].kind == "heading" and path[-1:] == (group[0].text,)
        below = group[1:]
        if not below and told and following and following[0].section[: len(path)] == path != following[0].section:
            above += group
            continue
        yield _Section(path, above, group, units_of(below if told and below else group, limit))
        above = []


def _belongs(section: _Section, first: _Section, level: int) -> bool:
    """Whether no heading of a higher level than those of the sections so far is between."""
    above = max(level - 1, 0)
    return len(section.path) >= level and section.path[:above] == first.path[:above]


def _together(small: Sequence[_Section], limit: int, least: int) -> Iterator[Sequence[Unit]]:
    for start, end in least_groups([section.body for section in small], least):
        shared = small[start:end]
        yield shared[0].body if len(shared) == 1 else units_of([*_blocks(shared)], limit)


def _blocks(shared: Sequence[_Section]) -> Iterator[DocumentBlock]:
    """The blocks of sections that share a run, with the headings that their common path lacks."""
    common = common_path([section.path for section in shared])
    for section in shared:
        yield from (heading for heading in section.above if heading.section != common[: len(heading.section)])
        yield from section.blocks

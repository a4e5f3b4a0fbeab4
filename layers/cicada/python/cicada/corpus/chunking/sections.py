"""Runs of blocks that may share a chunk: a section each, and small neighbouring sections together."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterator, Sequence
from dataclasses import dataclass
from itertools import takewhile, zip_longest

from cicada.corpus.chunking.cutting import least_groups
from cicada.corpus.chunking.units import Unit, units_of
from cicada.corpus.documents import Block

SMALL_SHARE = 1 / 8
"""Of ``chunk_size``: a section below it shares its chunk with small neighbours."""

Apart = Callable[[tuple[str, ...]], Hashable]
"""What the texts below two paths of headings must have in common to share a chunk."""


def _alike(_path: tuple[str, ...]) -> Hashable:
    return None


@dataclass(frozen=True)
class _Section:
    path: tuple[str, ...]
    above: Sequence[Block]
    """Headings with nothing of their own, which its path tells."""
    blocks: Sequence[Block]
    body: Sequence[Unit]
    """Without its heading, which its path tells."""


def runs_of(blocks: Sequence[Block], limit: int, apart: Apart = _alike) -> Iterator[Sequence[Unit]]:
    """The runs of a document, in order: no chunk has units of two.

    A heading begins a run, and is told by the ``section`` of the units below it. It stays in the text where nothing is
    below it, and where small sections share a run. Those are neighbours, and no heading between two of them is of a
    higher level than theirs. A record is a run by itself, and what ``apart`` tells apart is not in one run.
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
    """The headings above all of several sections."""
    levels = takewhile(lambda names: len(set(names)) == 1, zip(*paths, strict=False))
    return tuple(names[0] for names in levels)


def _sections(blocks: Sequence[Block], limit: int) -> Iterator[_Section]:
    groups: list[list[Block]] = []
    for block in blocks:
        begins = block.kind in ("heading", "record") or not groups or block.section != groups[-1][0].section
        if begins or groups[-1][0].kind == "record":
            groups.append([])
        groups[-1].append(block)
    above: list[Block] = []
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
    """Whether no heading stands between that is of a higher level than those of the sections so far."""
    above = max(level - 1, 0)
    return len(section.path) >= level and section.path[:above] == first.path[:above]


def _together(small: Sequence[_Section], limit: int, least: int) -> Iterator[Sequence[Unit]]:
    for start, end in least_groups([section.body for section in small], least):
        shared = small[start:end]
        yield shared[0].body if len(shared) == 1 else units_of([*_blocks(shared)], limit)


def _blocks(shared: Sequence[_Section]) -> Iterator[Block]:
    """The blocks of sections that share a run, with every heading that the path above all of them does not tell."""
    common = common_path([section.path for section in shared])
    for section in shared:
        yield from (heading for heading in section.above if heading.section != common[: len(heading.section)])
        yield from section.blocks

"""The declared section of a passage, and the entities that headings and records name."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Hashable, Mapping, Sequence
from fnmatch import translate
from functools import lru_cache
from typing import Self

from cicada.corpus.declared.declaration import OTHER_SECTION, CollectionDeclaration, NamesDeclared, Pattern, Word
from cicada.corpus.declared.naming import DeclaredNames
from cicada.corpus.documents import SECTION_SEPARATOR, DocumentBlock
from cicada.corpus.passages import CorpusModel

NAME_FIELDS = ("name", "title")  # a record's name is the first of these fields that it has
_RECORDS = ("record", "row")

Path = tuple[str, ...]


class SectionPatterns(CorpusModel):
    """The patterns of a section."""

    name: Word
    headings: tuple[Pattern, ...]
    sources: tuple[Pattern, ...]


class SectionRules(CorpusModel):
    """The part of a declaration that passages depend on: they are prepared again only when it changes."""

    sections: tuple[SectionPatterns, ...]
    names: NamesDeclared

    @classmethod
    def of(cls, declaration: CollectionDeclaration) -> Self:
        """The rules of a collection."""
        sections = (
            SectionPatterns(name=one.name, headings=one.headings, sources=one.sources) for one in declaration.sections
        )
        return cls(sections=tuple(sections), names=declaration.names)

    def digest(self) -> str:
        """Identifies the rules in stored state: 32 hexadecimal digits."""
        return hashlib.sha256(self.model_dump_json(by_alias=True).encode()).hexdigest()[:32]


class Sectioning:
    """The sections of one document; a script has no blocks."""

    def __init__(self, rules: SectionRules, source: str, title: str, blocks: Sequence[DocumentBlock] = ()) -> None:
        self._rules = rules
        self._source = source
        self._title = title
        self._known: dict[Path, tuple[str, int]] = {}
        self._naming = frozenset(rules.names.headings)
        self._named_at, named = self._read(blocks)
        self.names = DeclaredNames(rules.names.aliases, named)  # declared, and of the document's headings and records

    def section(self, path: Path) -> str:
        """The section of the text under these headings, outermost first."""
        return self._placed(path)[0]

    def apart(self, path: Path) -> Hashable:
        """A key: texts share a passage only if theirs are equal. In a section of names every heading has its own."""
        section = self.section(path)
        return section, path if section in self._naming else None

    def entities(self, path: Path, text: str) -> tuple[str, ...]:
        """The entities of a passage under these headings: first its subject, then those in its text; unique."""
        about = self._named_at.get(path)
        names = () if about is None else self.names.filed_under(about)
        return tuple(dict.fromkeys((*names, *self.names.of(text))))

    def _read(self, blocks: Sequence[DocumentBlock]) -> tuple[Mapping[Path, str], list[str]]:
        """The names in the headings and records of sections of names: by path, and all."""
        at: dict[Path, str] = {}
        rows: list[str] = []
        if not self._naming:
            return at, rows
        paths = dict.fromkeys(block.section for block in blocks)
        above = {path[:depth] for path in paths for depth in range(len(path))}
        for block in blocks:
            path = block.section
            section, fitted = self._placed(path)
            if section not in self._naming:
                continue
            if block.kind in _RECORDS:
                name = record_name({name.casefold(): value for name, value in block.fields})
                if name is not None:
                    rows.append(name)
                    if path and name.startswith(path[-1]):
                        at[path] = name
            elif len(path) > fitted and path not in above:
                at[path] = path[-1]
        return at, [*at.values(), *rows]

    def _placed(self, path: Path) -> tuple[str, int]:
        """The section, and how many of the headings its pattern needed to match."""
        if path not in self._known:
            self._known[path] = self._find(path)
        return self._known[path]

    def _find(self, path: Path) -> tuple[str, int]:
        title = 1 if path[:1] == (self._title,) else 0
        for section in self._rules.sections:
            for pattern in section.headings:
                for start in range(title + 1):
                    for end in range(min(start + 1, len(path)), len(path) + 1):
                        if _compiled(pattern).fullmatch(SECTION_SEPARATOR.join(path[start:end])):
                            return section.name, end
            if any(_compiled(pattern).fullmatch(self._source) for pattern in section.sources):
                return section.name, title
        return OTHER_SECTION, len(path)


def record_name(fields: Mapping[str, object]) -> str | None:
    """The name of a record, if it has one."""
    found = (fields.get(field) for field in NAME_FIELDS)
    return next((name for name in found if isinstance(name, str) and name.strip()), None)


@lru_cache(maxsize=1024)
def _compiled(pattern: str) -> re.Pattern[str]:
    """A pattern of ``*`` and ``?`` for whole texts, in any case; a bracket is a bracket."""
    return re.compile(translate(pattern.replace("[", "[[]")), re.IGNORECASE)

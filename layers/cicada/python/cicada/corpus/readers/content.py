"""What a format's reader gives: a document without its name."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from cicada.corpus.documents import Block, DocType


@dataclass(frozen=True)
class Content:
    """The content of one file."""

    doc_type: DocType
    blocks: tuple[Block, ...]
    title: str | None = None
    """What the file gives as its title; None where it gives none."""
    pages: int | None = None
    metadata: Mapping[str, str] = field(default_factory=dict)
    notes: tuple[str, ...] = ()

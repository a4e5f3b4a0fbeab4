"""Limits for one untrusted document."""

from __future__ import annotations

from dataclasses import dataclass

MIB = 2**20


@dataclass(frozen=True)
class ReadLimits:
    """The limits of reading one document; errors name the one that is reached."""

    max_bytes: int = 64 * MIB  # of the file
    max_unpacked_bytes: int = 256 * MIB  # of all members of an archive; of one stream of a PDF a quarter
    max_members: int = 10_000  # of a compressed file
    max_pages: int = 2_000
    max_blocks: int = 200_000  # paragraphs, rows, records and so on
    max_fields: int = 2_000  # of one row or record
    max_elements: int = 1_000_000  # of one XML part of a DOCX; a book of 500 pages has about 300,000
    max_text_chars: int = 20_000_000  # of all blocks together
    max_depth: int = 64
    """Of nested JSON values, a PDF's page tree, Markdown's quotes and lists; times four for elements of a DOCX."""
    memory_bytes: int = 1024 * MIB
    """Address space of the reading process, including about 60 MiB for the interpreter and libraries."""
    cpu_s: float = 120.0  # seconds of a processor
    wall_s: float = 180.0  # seconds by the clock

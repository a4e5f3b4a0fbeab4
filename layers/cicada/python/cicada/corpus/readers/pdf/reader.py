"""Read PDF files by page."""

from __future__ import annotations

import io
import logging
import re
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

from cicada.corpus.readers.blocks import Blocks, Content, bounded_metadata, one_line
from cicada.corpus.readers.limits import ReadLimits
from cicada.corpus.readers.pdf.layout import Bookmark, add_pages
from cicada.corpus.readers.pdf.lines import TextLine, lines_of
from cicada.errors import DocumentBroken, DocumentEncrypted, DocumentTooLarge, DocumentWithoutText

if TYPE_CHECKING:
    from pypdf import PdfReader

_PROPERTIES = {"/Author": "author", "/Subject": "subject", "/Keywords": "keywords"}
_CREATED = re.compile(r"D:(\d{4})(\d{2})(\d{2})")
_NO_TITLE = re.compile(r"untitled|microsoft \w+ - |.*\.(?:docx?|indd|tex|dvi|odt|pptx?|xlsx?|qxd)$", re.IGNORECASE)
"""Titles that programs write by default."""
_TOLD_PAGES = 20


def read_pdf(data: bytes, limits: ReadLimits) -> Content:
    """The text of each page, with its number. Restrictions without a password to open the document do not matter.

    Raises DocumentBroken, DocumentEncrypted if a password is needed, DocumentTooLarge for a limit of ours or of pypdf,
    and DocumentWithoutText for a scan.
    """
    from pypdf import PdfReader, apply_configuration
    from pypdf.errors import DependencyError, FileNotDecryptedError, LimitReachedError, PyPdfError

    logging.getLogger("pypdf").setLevel(logging.CRITICAL)  # it logs every repair
    stream_bytes = limits.max_unpacked_bytes // 4
    try:
        with apply_configuration(
            zlib_maximum_output_length=stream_bytes,
            lzw_maximum_output_length=stream_bytes,
            run_length_maximum_output_length=stream_bytes,
            array_based_stream_maximum_output_length=stream_bytes,
            stream_decoding_work_maximum_length=limits.max_unpacked_bytes,
            page_tree_maximum_depth=limits.max_depth,
            outline_maximum_depth=limits.max_depth,
            jbig2dec_binary=None,  # never start another program
        ):
            return _read(PdfReader(io.BytesIO(data)), limits)
    except (FileNotDecryptedError, DependencyError):
        raise DocumentEncrypted("is password-protected") from None
    except LimitReachedError as error:
        raise DocumentTooLarge(f"exceeds a limit of the PDF parser: {_sentence(error)}") from None
    except RecursionError:
        raise DocumentTooLarge("is nested too deeply (max_depth)") from None
    except PyPdfError as error:
        raise DocumentBroken(f"cannot parse this PDF: {_sentence(error)}") from None


def _read(reader: PdfReader, limits: ReadLimits) -> Content:
    from pypdf.errors import FileNotDecryptedError, LimitReachedError

    count = len(reader.pages)
    if count > limits.max_pages:
        raise DocumentTooLarge(f"has {count:,} pages, more than {limits.max_pages:,} (max_pages)")
    if not count:
        raise DocumentBroken("has no pages")
    pages: list[list[TextLine]] = []
    broken: list[int] = []
    for number in range(count):
        try:
            pages.append(lines_of(reader.pages[number]))
        except (LimitReachedError, FileNotDecryptedError, RecursionError, MemoryError):
            raise
        except Exception:  # libraries fail in many ways for broken files: skip the page
            pages.append([])
            broken.append(number + 1)
    if len(broken) == count:
        raise DocumentBroken("cannot parse any of its pages")
    blank = [number for number, lines in enumerate(pages, start=1) if not lines and number not in broken]
    if len(blank) + len(broken) == count:
        raise DocumentWithoutText("contains no text: it is a scan, or empty")
    blocks = Blocks(limits)
    left_out = add_pages(blocks, pages, list(_bookmarks(reader, count)))
    title, metadata = _properties(reader)
    return Content(
        "pdf",
        blocks.all(),
        title=title or blocks.first_heading(),
        pages=count,
        metadata=bounded_metadata(metadata),
        notes=tuple(_notes(blank, broken, left_out=left_out)),
    )


def _bookmarks(reader: PdfReader, pages: int) -> Iterator[Bookmark]:
    from pypdf.errors import LimitReachedError

    try:
        waiting: list[tuple[Any, int]] = [(entry, 1) for entry in reversed(reader.outline)]
        while waiting:
            entry, level = waiting.pop()
            if isinstance(entry, list):
                waiting += [(below, level + 1) for below in reversed(entry)]
                continue
            page = reader.get_destination_page_number(entry)
            if page is not None and 0 <= page < pages and (title := one_line(str(entry.title or ""))):
                yield Bookmark(title, level, page + 1)
    except (LimitReachedError, MemoryError):
        raise
    except Exception:  # a broken outline only costs headings
        return


def _properties(reader: PdfReader) -> tuple[str | None, dict[str, str | None]]:
    from pypdf.errors import LimitReachedError

    try:
        found = {name: str(value) for name, value in (reader.metadata or {}).items() if isinstance(value, str)}
    except (LimitReachedError, MemoryError):
        raise
    except Exception:
        return None, {}
    title = one_line(found.get("/Title", ""))
    properties: dict[str, str | None] = {name: found.get(key) for key, name in _PROPERTIES.items()}
    if created := _CREATED.match(found.get("/CreationDate", "")):
        properties["created"] = "-".join(created.groups())
    return (None if _NO_TITLE.match(title) else title or None), properties


def _notes(blank: list[int], broken: list[int], *, left_out: bool) -> Iterator[str]:
    if blank:
        yield f"no text on page {_listed(blank)}: blank, or scanned"
    if broken:
        yield f"damaged and left out: page {_listed(broken)}"
    if left_out:
        yield "running heads and page numbers were left out"


def _listed(pages: list[int]) -> str:
    told = ", ".join(map(str, pages[:_TOLD_PAGES]))
    return told if len(pages) <= _TOLD_PAGES else f"{told} and {len(pages) - _TOLD_PAGES} more"


def _sentence(error: Exception) -> str:
    return one_line(str(error))[:200] or type(error).__name__

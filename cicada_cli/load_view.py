"""The reports of ``cicada load`` and ``cicada unload`` as text and JSON."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from cicada_cli.output import complain
from cicada_cli.text import clipped, counted, one_line

if TYPE_CHECKING:
    from cicada.index.compaction import Compacted
    from cicada.ingest.contracts import IngestReport
    from cicada.ingest.estimating import LoadEstimate
    from cicada.ingest.scripts import LoadReport

SHOWN_SOURCES = 20
"""Maximum number of documents in a report as text; ``--json`` lists all."""
MESSAGE_CHARS = 300


def plain_script(report: LoadReport, compacted: Compacted | None) -> dict[str, str | int | bool]:
    """The report on a script as JSON data."""
    told: dict[str, str | int | bool] = {
        "collection": report.collection,
        "files": report.files,
        "messages": report.messages,
        "episodes": len(report.episodes),
        "passages": report.written.passages,
        "added": report.written.added,
        "removed": report.written.removed,
        "embedded": report.written.embedded,
        "segments": report.written.segments - (compacted.merged - compacted.segments if compacted else 0),
        "version": compacted.version if compacted else report.written.version,
        "published": report.written.published,
        "compacted": compacted is not None,
    }
    return told | ({"undeclared": True} if report.undeclared else {})


def words_of_script(report: LoadReport, compacted: Compacted | None, took_s: float) -> str:
    """The report on a script as text."""
    what = (
        f"{counted(report.messages, 'message')} of {counted(len(report.episodes), 'episode')} "
        f"from {counted(report.files, 'file')}"
    )
    written = report.written
    version = compacted.version if compacted else written.version
    if not written.published:
        return f"{report.collection}: {what} already indexed.\nCurrent version: {version}."
    lines = [
        f"{report.collection}: indexed {what} ({counted(written.passages, 'passage')}, {written.added:,} new or "
        f"changed, {written.embedded:,} embedded) in {took_s:.1f} s."
    ]
    if report.undeclared:
        lines.append(words_of_undeclared(report.collection))
    return "\n".join([*lines, f"Current version: {version}."])


def plain_ingest(report: IngestReport, compacted: Compacted | None) -> dict[str, Any]:
    """The report on documents as JSON data."""
    told = report.model_dump(mode="json", by_alias=True)
    return told | {"version": compacted.version if compacted else report.version, "compacted": compacted is not None}


def words_of_ingest(report: IngestReport, compacted: Compacted | None, took_s: float) -> str:
    """The report on documents as text."""
    version = compacted.version if compacted else report.version
    lines = []
    if report.loaded:
        unchanged = f", {report.unchanged:,} unchanged" if report.unchanged else ""
        lines.append(
            f"{report.collection}: indexed {counted(report.loaded, 'document')}{unchanged} "
            f"({counted(report.added, 'new passage')}, {report.deleted:,} removed; "
            f"{counted(report.embedded, 'text')} embedded) in {took_s:.1f} s{_price(report.cost_usd)}."
        )
    if report.removed:
        lines.append(f"Removed: {_names(report.removed)}.")
    lines += [f"{one_line(source)}: {one_line(note)}" for source, notes in report.notes.items() for note in notes][
        :SHOWN_SOURCES
    ]
    if report.sections:
        lines.append(_words_of_sections(report.sections))
    if report.undeclared:
        lines.append(words_of_undeclared(report.collection))
    lines.append(f"The collection has {counted(report.passages, 'passage')}.")
    if version:
        lines.append(f"Current version: {version}.")
    return "\n".join(lines)


def words_of_undeclared(collection: str) -> str:
    """That a collection lost its declaration."""
    return f"{collection} has no declaration now: all of it is searched, with the deployment's default readers."


def tell_quarantined(report: IngestReport) -> None:
    """List quarantined documents and the reasons on standard error."""
    if not report.quarantined:
        return
    complain(f"could not load {counted(len(report.quarantined), 'document')}:")
    for one in report.quarantined[:SHOWN_SOURCES]:
        complain(f"  {one_line(one.source)}: {clipped(one_line(one.message), MESSAGE_CHARS)} ({one.code})")
    if len(report.quarantined) > SHOWN_SOURCES:
        complain(f"  and {len(report.quarantined) - SHOWN_SOURCES:,} more; --json lists all")


def plain_estimate(estimate: LoadEstimate) -> dict[str, Any]:
    """An estimate as JSON data."""
    sections = {"sections": dict(estimate.sections)} if estimate.sections else {}
    return sections | {
        "documents": estimate.documents,
        "prepared": estimate.prepared,
        "refused": estimate.refused,
        "passages": estimate.passages,
        "embeddingTokens": estimate.embedding_tokens,
        "embeddingUsd": estimate.embedding_usd,
        "enrichmentCalls": estimate.enrichment_calls,
        "enrichmentUsd": estimate.enrichment_usd,
        "costUsd": estimate.cost_usd,
    }


def words_of_estimate(estimate: LoadEstimate) -> str:
    """An estimate as text."""
    usd = estimate.cost_usd
    told = (
        f"{counted(estimate.documents, 'document')} to prepare: {counted(estimate.passages, 'passage')}, "
        f"{estimate.embedding_tokens:,} tokens to embed, {counted(estimate.enrichment_calls, 'call')} to enrich, "
        f"{'price unknown' if usd is None else f'about ${usd:.4f} at most'}."
    )
    if estimate.prepared:
        told += f" {counted(estimate.prepared, 'document')} already prepared."
    if estimate.refused:
        told += f" {counted(estimate.refused, 'document')} cannot be loaded."
    if estimate.sections:
        told += f"\n{_words_of_sections(estimate.sections)}"
    return told


def _words_of_sections(sections: Mapping[str, int]) -> str:
    """Passages by section. Sections without passages are listed apart, because their patterns may be wrong."""
    told = ", ".join(f"{name} {count:,}" for name, count in sections.items() if count)
    empty = ", ".join(name for name, count in sections.items() if not count)
    return f"Passages by section: {told or 'none'}." + (f" Empty sections: {empty}." if empty else "")


def _price(cost_usd: float | None) -> str:
    return "" if cost_usd is None else f", about ${cost_usd:.4f}"


def _names(sources: Sequence[str]) -> str:
    shown = ", ".join(one_line(source) for source in sources[:SHOWN_SOURCES])
    more = len(sources) - SHOWN_SOURCES
    return f"{shown} and {more:,} more" if more > 0 else shown

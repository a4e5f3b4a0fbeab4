"""Candidates as the documents of a response."""

from __future__ import annotations

from cicada.corpus.passages import DocumentLocator
from cicada.retrieval.pipelines.api import DocumentMetadata, RetrievedDocument
from cicada.retrieval.pipelines.state import SOURCE, WORKFLOW_ID, Candidate

DOC_TYPE = "doc_type"
"""The key of a passage's metadata that names its document's format."""
SCRIPT = "script"
UNKNOWN = "unknown"
"""The format of a passage that was loaded without one."""
_OWN_FIELDS = frozenset({WORKFLOW_ID, DOC_TYPE, SOURCE})


def document_of(candidate: Candidate, *, with_captions: bool = True) -> RetrievedDocument:
    """A candidate as the response shows it."""
    passage, locator = candidate.passage, candidate.passage.locator
    title, doc_type = locator.label(), SCRIPT
    if isinstance(locator, DocumentLocator):
        title, doc_type = locator.title or locator.source, passage.metadata.get(DOC_TYPE, UNKNOWN)
    return RetrievedDocument(
        id=passage.id,
        title=title,
        content=passage.text,
        doc_type=doc_type,
        score=_share(candidate.score),
        reranker_score=None if candidate.reranker_score is None else _share(candidate.reranker_score),
        rerank_score=None if candidate.rerank_score is None else _share(candidate.rerank_score),
        metadata=_metadata(candidate, with_captions=with_captions),
    )


def _metadata(candidate: Candidate, *, with_captions: bool) -> DocumentMetadata:
    passage, locator = candidate.passage, candidate.passage.locator
    if isinstance(locator, DocumentLocator):
        source, page, section = locator.source, locator.page, locator.section
    else:
        source, page = passage.metadata.get(SOURCE, locator.episode_id), None
        section = f"{locator.episode_name} > {locator.chapter_id}"
    return DocumentMetadata(
        source=source,
        page=page,
        chunk_id=passage.id,
        summary=passage.summary,
        entities=passage.entities,
        entity_codes=passage.codes,
        captions=(candidate.captions or ()) if with_captions else (),
        workflow_id=passage.metadata.get(WORKFLOW_ID),
        collection=passage.collection,
        section=section,
        extra={key: value for key, value in passage.metadata.items() if key not in _OWN_FIELDS},
    )


def _share(score: float) -> float:
    return round(min(1.0, max(0.0, score)), 6)

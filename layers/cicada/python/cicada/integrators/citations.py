"""An answer's citations, resolved and checked: ``extract_citations``."""

from __future__ import annotations

from cicada.citations.extract import ExtractCitationsRequest, ExtractedCitations, extract_citations
from cicada.errors import RetrievalInvalid
from cicada.retrieval.pipelines.api import ErrorBody


class CitationsResponse(ExtractedCitations):
    """What an answer cites, and what of it holds."""

    success: bool = True
    error: ErrorBody | None = None


def extract(request: ExtractCitationsRequest) -> CitationsResponse:
    """Resolve and check every marker of an answer; raises RetrievalInvalid if two passages have one number."""
    try:
        found = extract_citations(request.answer, request.passages)
    except ValueError as error:
        raise RetrievalInvalid(f"passages: {error}") from None
    return CitationsResponse(success=True, **dict(found))

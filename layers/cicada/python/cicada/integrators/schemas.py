"""The functions' contracts as JSON Schema: ``python -m cicada.integrators.schemas FOLDER`` writes them."""

from __future__ import annotations

import json
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from pydantic import BaseModel

from cicada.citations.extract import ExtractCitationsRequest
from cicada.integrators.calling import FailedCall
from cicada.integrators.citations import CitationsResponse
from cicada.integrators.documents import IndexDocumentRequest, IndexDocumentResponse, SummaryRequest, SummaryResponse
from cicada.integrators.entities import FacetsRequest, FacetsResponse, GraphRequest, GraphResponse
from cicada.integrators.sql_schema import SchemaRequest, SchemaResponse
from cicada.retrieval.pipelines.api import RetrieveRequest, RetrieveResponse


@dataclass(frozen=True)
class Contract:
    """A function's request and response."""

    request: type[BaseModel]
    response: type[BaseModel]
    fails_whole: bool = False  # a call that fails midway returns a whole response with ``success`` false


CONTRACTS: Mapping[str, Contract] = {
    "retrieve": Contract(RetrieveRequest, RetrieveResponse, fails_whole=True),
    "index_document": Contract(IndexDocumentRequest, IndexDocumentResponse),
    "get_document_summary": Contract(SummaryRequest, SummaryResponse),
    "extract_citations": Contract(ExtractCitationsRequest, CitationsResponse),
    "graph_query": Contract(GraphRequest, GraphResponse),
    "facets": Contract(FacetsRequest, FacetsResponse),
    "enrich_schema": Contract(SchemaRequest, SchemaResponse),
}


def schema_of(name: str) -> dict[str, Any]:
    """One function's contract: JSON Schemas (2020-12) of its request, response and failure."""
    contract = CONTRACTS[name]
    failure = FailedCall.model_json_schema(mode="serialization")
    if contract.fails_whole:
        failure["description"] = "A failure alone or, of a call that failed under way, a whole response."
        del failure["additionalProperties"]
    return {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "title": name,
        "request": contract.request.model_json_schema(mode="validation"),
        "response": contract.response.model_json_schema(mode="serialization"),
        "failure": failure,
    }


def written(name: str) -> str:
    """The text of a contract's file."""
    return json.dumps(schema_of(name), indent=1, ensure_ascii=False, sort_keys=True) + "\n"


def main(argv: Sequence[str] | None = None) -> int:
    """Write every contract into a folder."""
    (folder,) = map(Path, sys.argv[1:] if argv is None else argv)
    folder.mkdir(parents=True, exist_ok=True)
    for name in CONTRACTS:
        (folder / f"{name}.json").write_text(written(name), encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main())

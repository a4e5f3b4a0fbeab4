"""Amazon Kendra as far as Cicada calls it, Retrieve, and what fills an index to try that: BatchPutDocument.

A stand-in that is kinder than AWS is a defect. What AWS does, and where each line is tested
(``tests/wire/test_kendra_standin.py``, by a boto3 client):

=====  ===========================================================================================================
line   what AWS does, and this does too
=====  ===========================================================================================================
K01    Requests are JSON 1.1 with ``X-Amz-Target: AWSKendraFrontendService.<Operation>``; an error has ``__type`` and
       ``Message``; every response has an ``x-amzn-RequestId``.
K02    A request without a signature is refused. The signature itself is not checked.
K03    Members that break the service's model, and an index id of another length than 36, are a ValidationException.
K04    An unknown index is a ResourceNotFoundException.
K05    Retrieve returns passages of at most 200 words, several of one document too, with document id, title, URI and
       attributes; the results' ids differ from query to query.
K06    Of the query 30 words are looked at, stop words and punctuation not counted.
K07    Pages hold 10 results unless told; of more than 100 asked for, 100 come; all pages together hold 100.
K08    A filter is one condition at each level: EqualsTo, ContainsAll and ContainsAny (of lists), the four comparisons
       (of numbers and dates), AndAllFilters, OrAllFilters, NotFilter.
K09    A filter over an attribute that the index does not have, or with a value of another type, is a
       ValidationException.
K10    Each result has a confidence bucket, for English alone: NOT_AVAILABLE for other languages.
K11    RequestedDocumentAttributes limits which attributes come.
K12    BatchPutDocument takes at most 10 documents, and tells those that failed; custom attributes must have been
       declared with UpdateIndex.
K13    Filters lie at most two deep in each other and ten side by side; a list of strings has at most ten.
K14    A ``UserContext`` of a user and groups hides the documents whose access control list allows none of them, or
       denies one. A document without a list is everybody's; without a context everything is shown, as in an index
       whose policy is ATTRIBUTE_FILTER.
=====  ===========================================================================================================

Not served: data sources, S3 paths, tokens and data source groups in a ``UserContext``, relevance tuning, Query,
spelling and synonyms. Chosen here: the ranking (BM25), the buckets' bounds, where a document is cut.

Fault switches (``cicada_local.faults``; ``operation`` limits each to one operation):

``kendra.throttle``   ThrottlingException, ``message``
``kendra.error``      ``exception`` (code), ``status``, ``message``; 500 InternalServerException unless told
``kendra.slow``       ``delay_ms`` before the answer
"""

from __future__ import annotations

import asyncio
import base64
import binascii
import logging
import threading
import uuid
from collections.abc import Callable, Iterable, Mapping
from typing import Any

from cicada_local.faults import Faults
from cicada_local.json_service import Answer, JsonService
from cicada_local.kendra.attributes import RESERVED, Value, read_attribute, read_filter, write_attribute
from cicada_local.kendra.errors import KendraError, NotFound, Throttled, Unsigned, ValidationFailed
from cicada_local.kendra.passages import Document, confidence, cut, query_words, rank

logger = logging.getLogger(__name__)

DEFAULT_PAGE, MAX_RESULTS, MAX_BATCH = 10, 100, 10
LOCAL_INDEX_ID = "00000000-0000-0000-0000-000000000000"
"""The index that the local cloud has."""


class _Index:
    """Documents by id, and the attributes that they may have."""

    def __init__(self) -> None:
        self.documents: dict[str, Document] = {}
        self.types: dict[str, str] = dict(RESERVED)


class Kendra(JsonService):
    """The service, with some empty indexes."""

    name, prefix, signed_for = "kendra", "AWSKendraFrontendService.", "kendra"
    failed = KendraError("An internal server error occurred")
    unsigned, invalid = Unsigned, ValidationFailed

    def __init__(self, faults: Faults, index_ids: Iterable[str] = (LOCAL_INDEX_ID,)) -> None:
        super().__init__()
        self._faults = faults
        self._indexes = {id: _Index() for id in index_ids}
        self._lock = threading.Lock()
        self._operations: dict[str, Callable[[_Index, Mapping[str, Any]], Answer]] = {
            "Retrieve": self._retrieve,
            "BatchPutDocument": self._put,
            "BatchDeleteDocument": self._delete,
            "UpdateIndex": self._update,
        }

    async def answer(self, operation: str, body: bytes) -> Answer:
        """See the base."""
        if operation not in self._operations:
            raise ValidationFailed(f"{operation} is not served here")
        await self._fail(operation)
        return await asyncio.to_thread(self._call, operation, self.read(operation, body))

    async def _fail(self, name: str) -> None:
        slow = self._faults.take("kendra.slow", operation=name)
        if slow is not None:
            await asyncio.sleep(float(slow.get("delay_ms", 1000)) / 1000)
        if (throttle := self._faults.take("kendra.throttle", operation=name)) is not None:
            raise Throttled(throttle.get("message", "Rate exceeded"))
        if (error := self._faults.take("kendra.error", operation=name)) is not None:
            code = error.get("exception", "InternalServerException")
            raise KendraError(error.get("message", "Injected."), code=code, status=int(error.get("status", 500)))

    def _call(self, name: str, asked: Mapping[str, Any]) -> Answer:
        id = asked["Id" if name == "UpdateIndex" else "IndexId"]
        with self._lock:
            index = self._indexes.get(id)
            if index is None:
                raise NotFound(f"The specified index could not be found: {id}")
            return self._operations[name](index, asked)

    # --- operations ---

    def _retrieve(self, index: _Index, asked: Mapping[str, Any]) -> Answer:
        where = asked.get("AttributeFilter")
        passes = read_filter(where, index.types) if where is not None else None
        asker = _principals(asked.get("UserContext"))
        readable = [one for one in index.documents.values() if one.shown_to(asker)]
        documents = [one for one in readable if passes is None or passes(one.attributes)]
        page, size = asked.get("PageNumber", 1), min(MAX_RESULTS, asked.get("PageSize", DEFAULT_PAGE))
        if page < 1 or size < 1:
            raise ValidationFailed("PageNumber and PageSize must be at least 1")
        ranked = rank(documents, query_words(asked["QueryText"]))[:MAX_RESULTS]
        query_id = str(uuid.uuid4())
        requested = asked.get("RequestedDocumentAttributes")
        items = []
        for found in ranked[(page - 1) * size : page * size]:
            document = found.document
            item: Answer = {
                "Id": f"{query_id}-{uuid.uuid4()}",
                "DocumentId": document.id,
                "DocumentTitle": document.title,
                "Content": found.text,
                "DocumentAttributes": [
                    write_attribute(key, value, index.types)
                    for key, value in document.attributes.items()
                    if requested is None or key in requested
                ],
                "ScoreAttributes": {"ScoreConfidence": confidence(found)},
            }
            if "_source_uri" in document.attributes:
                item["DocumentURI"] = document.attributes["_source_uri"]
            items.append(item)
        return {"QueryId": query_id, "ResultItems": items}

    @staticmethod
    def _put(index: _Index, asked: Mapping[str, Any]) -> Answer:
        failed = []
        for document in asked["Documents"]:
            try:
                index.documents[document["Id"]] = _read_document(document, index.types)
            except ValidationFailed as error:
                failed.append({"Id": document["Id"], "ErrorCode": "InvalidRequest", "ErrorMessage": str(error)})
        return {"FailedDocuments": failed}

    @staticmethod
    def _delete(index: _Index, asked: Mapping[str, Any]) -> Answer:
        for id in asked["DocumentIdList"]:
            index.documents.pop(id, None)
        return {"FailedDocuments": []}

    @staticmethod
    def _update(index: _Index, asked: Mapping[str, Any]) -> Answer:
        for one in asked.get("DocumentMetadataConfigurationUpdates", []):
            if one["Name"].startswith("_") and one["Name"] not in RESERVED:
                raise ValidationFailed(f"{one['Name']}: only reserved fields begin with an underscore")
            index.types[one["Name"]] = one["Type"]
        return {}


def _read_document(document: Mapping[str, Any], types: Mapping[str, str]) -> Document:
    """Read a document. Raises ValidationFailed."""
    if document.get("Blob") is None:
        raise ValidationFailed("Only documents with a Blob are served here")
    try:
        text = base64.b64decode(document["Blob"], validate=True).decode()
    except (binascii.Error, UnicodeDecodeError) as error:
        raise ValidationFailed("The document's Blob is not base64 of UTF-8") from error
    attributes: dict[str, Value] = dict(read_attribute(one, types) for one in document.get("Attributes", ()))
    title = document.get("Title") or attributes.get("_document_title") or ""
    entries = document.get("AccessControlList", ())
    allowed, denied = (
        frozenset((one["Type"], one["Name"]) for one in entries if one["Access"] == access)
        for access in ("ALLOW", "DENY")
    )
    return Document(document["Id"], str(title), cut(text), attributes, allowed, denied)


def _principals(context: Mapping[str, Any] | None) -> frozenset[tuple[str, str]] | None:
    """The user and the groups of a context; None without one. Raises ValidationFailed."""
    if context is None:
        return None
    if context.get("Token") or context.get("DataSourceGroups"):
        raise ValidationFailed("Only UserId and Groups are served here")
    users = [("USER", context["UserId"])] if context.get("UserId") else []
    return frozenset([*users, *(("GROUP", name) for name in context.get("Groups") or ())])

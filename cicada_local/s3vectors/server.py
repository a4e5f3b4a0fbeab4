"""Amazon S3 Vectors as far as Cicada calls it: buckets, indexes, vectors, and QueryVectors by vectors, words, or both.

A stand-in that is kinder than AWS is a defect. What AWS does, and where each line is tested
(``tests/wire/test_s3vectors_standin.py``, by a boto3 client):

=====  ===========================================================================================================
line   what AWS does, and this does too
=====  ===========================================================================================================
V01    Requests are POSTs of JSON to ``/<Operation>``; an error's code is in ``x-amzn-ErrorType``, its message in the
       body; every response has an ``x-amzn-RequestId``.
V02    A request without a signature is refused (403). The signature itself is not checked.
V03    Members that break the service's model (missing, unknown, too long, out of range) are a ValidationException with
       a ``fieldList`` that names each.
V04    An index is named by its ARN, or by its bucket's name and its own: never by both, never by half.
V05    An unknown bucket or index is a NotFoundException (404), a name that is taken a ConflictException (409).
V06    A vector has the index's dimension, finite float32 numbers, and with the cosine metric not all zeros.
V07    Metadata has at most 50 keys, 2,048 filterable bytes, 40 KB in all, and values that are strings, numbers,
       booleans or lists of these; PutVectors is refused as a whole, with ``Invalid record for key '…': …``.
V08    PutVectors takes 1 to 500 vectors and overwrites; DeleteVectors 1 to 500 keys, unknown ones too; GetVectors 1
       to 100 and leaves out what is not there.
V09    A request is at most 20 MiB.
V10    ListVectors pages, by 1,000 or by 1 MB of what it looked at, whichever comes first, and lists in up to 16
       segments that are disjoint and together whole.
V11    Writes beyond 2,500 vectors or 1,000 requests a second and index are a TooManyRequestsException (429).
V12    QueryVectors with a vector ranks by distance: 1 - cosine, or the squared euclidean one.
V13    With ``queryTexts`` alone it ranks by BM25; the scores come when asked for.
V14    With both it fuses the rankings by reciprocal rank: ``fused`` scores, and ``vectorDistance`` for what the vector
       search matched.
V15    topK is 1 to 100; more results than a page holds come with a ``nextToken``, which belongs to its request.
V16    A filter is applied before ranking: ``$eq`` (of a list: any element), ``$ne``, ``$gt``, ``$gte``, ``$lt``,
       ``$lte``, ``$in``, ``$nin``, ``$exists``, ``$startsWith``, ``$and``, ``$or``; at most 100 constraints.
V17    A filter over a non-filterable key, or that is malformed, is a ValidationException.
V18    Non-filterable keys are chosen when an index is created, and can be searchable all the same; searchable keys are
       added and deleted later, and serve queries once their analyzer is ``ACTIVE``.
V19    ``queryTexts`` for a key that is not searchable, or not yet, or on an index in CLASSIC mode, are refused.
V20    An index gets its bucket's default mode; UpdateIndexMode brings it to ENHANCED, and none back to CLASSIC that was
       not in a bucket from before 2026-09-30.
V21    Writes are strongly consistent: a query sees what was written before it.
=====  ===========================================================================================================

Not served: tags, bucket policies, encryption (accepted, does nothing), IAM (that s3vectors:GetVectors is allowed where
AWS asks for it is tested over the templates). Not known of AWS, and chosen here: the page size of QueryVectors, the
constants of BM25 and of the fusion, the analyzers (all languages alike), the exact bytes of metadata.

Fault switches (``cicada_local.faults``; ``operation`` limits each to one operation):

``s3vectors.throttle``   429, ``message``
``s3vectors.error``      ``exception`` (code), ``status``, ``message``; 503 ServiceUnavailableException unless told
``s3vectors.slow``       ``delay_ms`` before the answer
"""

from __future__ import annotations

import asyncio
import json
import logging
import uuid
from typing import Any

from aiohttp import web

from cicada_local import service_model
from cicada_local.faults import Faults
from cicada_local.s3vectors.errors import S3VectorsError, TooManyRequests, Unsigned, ValidationFailed
from cicada_local.s3vectors.operations import Operations
from cicada_local.s3vectors.store import VectorStore

logger = logging.getLogger(__name__)

MAX_REQUEST_BYTES = 20 * 2**20


class S3Vectors:
    """The service."""

    def __init__(self, store: VectorStore, faults: Faults, **limits: Any) -> None:
        """Serve a store.

        Args:
            store: what there is.
            faults: may make it fail.
            limits: in place of the service's own, see :class:`cicada_local.s3vectors.operations.Operations`.
        """
        self.store = store
        self._faults = faults
        self._model = service_model.load("s3vectors")
        self._operations = Operations(store, **limits)

    def add_routes(self, app: web.Application) -> None:
        """Serve every operation that the service's model has at a path of its own; the others are refused."""
        for name in self._model.operation_names:
            http = self._model.operation_model(name).http
            if "{" not in http["requestUri"]:
                app.router.add_route(http["method"], http["requestUri"], self._handler(name))

    def _handler(self, name: str) -> Any:
        async def handle(request: web.Request) -> web.Response:
            try:
                return await self._answer(name, request)
            except S3VectorsError as error:
                return error.response()
            except (web.HTTPException, asyncio.CancelledError):
                raise
            except Exception:  # as AWS tells of a bug of its own
                logger.exception("s3vectors stand-in: %s failed", name)
                return S3VectorsError("An internal server error occurred").response()

        return handle

    async def _answer(self, name: str, request: web.Request) -> web.Response:
        if "/s3vectors/aws4_request" not in request.headers.get("Authorization", ""):
            raise Unsigned("Access Denied")
        body = await request.read()
        await self._fail(name)
        if len(body) > MAX_REQUEST_BYTES:
            raise ValidationFailed(f"Request payload must have at most {MAX_REQUEST_BYTES} bytes")
        asked = self._read(name, body)
        answer = await asyncio.to_thread(self._operations.call, name, asked)
        return web.json_response(answer, headers={"x-amzn-RequestId": str(uuid.uuid4())})

    def _read(self, name: str, body: bytes) -> dict[str, Any]:
        try:
            asked = json.loads(body or b"{}")
        except ValueError as error:
            raise ValidationFailed("Request body is not valid JSON") from error
        found = list(service_model.problems(self._model.operation_model(name).input_shape, asked))
        if found:
            told = "; ".join(f"Value at '{one.path}' failed to satisfy constraint: {one.message}" for one in found)
            plural = "s" if len(found) > 1 else ""
            raise ValidationFailed(f"{len(found)} validation error{plural} detected. {told}", found)
        return {key: value for key, value in asked.items() if value is not None}

    async def _fail(self, name: str) -> None:
        slow = self._faults.take("s3vectors.slow", operation=name)
        if slow is not None:
            await asyncio.sleep(float(slow.get("delay_ms", 1000)) / 1000)
        if (throttle := self._faults.take("s3vectors.throttle", operation=name)) is not None:
            raise TooManyRequests(throttle.get("message", "Rate exceeded"))
        if (error := self._faults.take("s3vectors.error", operation=name)) is not None:
            code = error.get("exception", "ServiceUnavailableException")
            message = error.get("message", "Currently unable to handle the request")
            raise S3VectorsError(message, code=code, status=int(error.get("status", 503)))

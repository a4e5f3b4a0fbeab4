"""The files as they were uploaded, for whoever reads a passage of them."""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Any
from urllib.parse import quote

from botocore.config import Config
from botocore.exceptions import BotoCoreError, ClientError

from cicada.ingest.incoming.places import collection_and_source, folder
from cicada.protocol.corpus import OriginalFile

logger = logging.getLogger(__name__)

LINK_S = 300
"""How long a link can be used. Whoever has it can download the file."""
PARALLEL_LOOKS = 8
LINK_CONFIG = Config(
    signature_version="s3v4",
    connect_timeout=1,
    read_timeout=2,
    retries={"mode": "standard", "total_max_attempts": 2},
    max_pool_connections=PARALLEL_LOOKS,
)
"""For the S3 client; timeouts in seconds."""


class S3Originals:
    """The files below ``incoming/`` of the bucket: see :class:`cicada.answering.corpus_api.Originals`."""

    def __init__(self, client: Any, bucket: str, *, now_s: Callable[[], float] = time.time) -> None:
        """``client``: of S3, made with :data:`LINK_CONFIG`."""
        self._client = client
        self._bucket = bucket
        self._now_s = now_s

    def kept(self, collection: str, sources: Sequence[str]) -> frozenset[str]:
        """See the port: one request a source, some at a time."""
        if not sources:
            return frozenset()
        with ThreadPoolExecutor(min(PARALLEL_LOOKS, len(sources)), thread_name_prefix="originals") as pool:
            found = list(pool.map(lambda source: self._has(collection, source), sources))
        return frozenset(source for source, kept in zip(sources, found, strict=True) if kept)

    def link(self, collection: str, source: str) -> OriginalFile | None:
        """See the port. The link downloads the file: no browser shows it as a page of the bucket's origin."""
        if not self._has(collection, source):
            return None
        name = quote(source.rpartition("/")[2], safe="")
        url = self._client.generate_presigned_url(
            "get_object",
            Params={
                "Bucket": self._bucket,
                "Key": folder(collection) + source,
                "ResponseContentDisposition": f"attachment; filename*=UTF-8''{name}",
            },
            ExpiresIn=LINK_S,
        )
        return OriginalFile(url=url, expires_at_ms=int((self._now_s() + LINK_S) * 1000))

    def _has(self, collection: str, source: str) -> bool:
        key = folder(collection) + source
        if collection_and_source(key) != (collection, source):
            return False
        try:
            self._client.head_object(Bucket=self._bucket, Key=key)
        except ClientError as error:
            if error.response["ResponseMetadata"]["HTTPStatusCode"] != 404:
                logger.warning("could not look up an original file", extra={"why": str(error)})
            return False
        except BotoCoreError as error:
            logger.warning("could not look up an original file", extra={"why": str(error)})
            return False
        return True

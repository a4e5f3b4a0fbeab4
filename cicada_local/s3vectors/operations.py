"""The operations of Amazon S3 Vectors, on requests that fit its model."""

from __future__ import annotations

import base64
import hashlib
import json
import re
import time
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

from cicada_local.s3vectors.errors import NotFound, ValidationFailed
from cicada_local.s3vectors.limits import REQUESTS_A_SECOND, VECTORS_A_SECOND, WriteRate
from cicada_local.s3vectors.metadata import check_metadata, read_filter
from cicada_local.s3vectors.ranking import rank
from cicada_local.s3vectors.store import Index, Stored, Vector, VectorStore, bucket_arn, index_arn

MAX_TOP_K = 100
QUERY_PAGE = 50
"""Results on a page of QueryVectors."""
LIST_PAGE, LIST_PAGE_BYTES = 500, 2**20
NAMES_PAGE = 500
CLASSIC_UNTIL_S = 1790726400.0
"""2026-09-30: indexes of buckets made before may be in CLASSIC mode."""

_NAME = re.compile(r"[a-z0-9][a-z0-9.-]{1,61}[a-z0-9]")

Answer = dict[str, Any]


class Operations:
    """What each operation does."""

    def __init__(
        self,
        store: VectorStore,
        *,
        clock: Callable[[], float] = time.time,
        requests_a_second: int = REQUESTS_A_SECOND,
        vectors_a_second: int = VECTORS_A_SECOND,
        query_page: int = QUERY_PAGE,
        backfill_s: float = 0.5,
    ) -> None:
        """Wire them.

        Args:
            store: what there is.
            clock: seconds since the epoch.
            requests_a_second: writing requests that an index takes.
            vectors_a_second: vectors that it takes.
            query_page: results on a page of QueryVectors.
            backfill_s: how long an analyzer that is added later is ``BUILDING``.
        """
        self._store = store
        self._clock = clock
        self._limits = {"requests_a_second": requests_a_second, "vectors_a_second": vectors_a_second}
        self._query_page = query_page
        self._backfill_s = backfill_s
        self._rates: dict[str, WriteRate] = {}
        self._operations: dict[str, Callable[[Mapping[str, Any]], Answer]] = {
            "CreateVectorBucket": self._create_bucket,
            "GetVectorBucket": self._get_bucket,
            "ListVectorBuckets": self._list_buckets,
            "DeleteVectorBucket": self._delete_bucket,
            "PutVectorBucketDefaultIndexMode": self._put_default_mode,
            "CreateIndex": self._create_index,
            "GetIndex": self._get_index,
            "ListIndexes": self._list_indexes,
            "DeleteIndex": self._delete_index,
            "UpdateIndexMode": self._update_mode,
            "UpdateMetadataConfiguration": self._update_configuration,
            "PutVectors": self._put_vectors,
            "GetVectors": self._get_vectors,
            "DeleteVectors": self._delete_vectors,
            "ListVectors": self._list_vectors,
            "QueryVectors": self._query_vectors,
        }

    def call(self, name: str, asked: Mapping[str, Any]) -> Answer:
        """Carry out an operation. Raises S3VectorsError."""
        operation = self._operations.get(name)
        if operation is None:
            raise ValidationFailed(f"{name} is not served here")
        with self._store.lock:
            return operation(asked)

    # --- buckets ---

    def _create_bucket(self, asked: Mapping[str, Any]) -> Answer:
        name = _checked_name(asked["vectorBucketName"], "vectorBucketName")
        return {"vectorBucketArn": self._store.create_bucket(name, **_encryption(asked))}

    def _get_bucket(self, asked: Mapping[str, Any]) -> Answer:
        name = _bucket_name(asked)
        return {"vectorBucket": {**self._summary(name), **self._store.bucket(name)}}

    def _list_buckets(self, asked: Mapping[str, Any]) -> Answer:
        names = [name for name in self._store.bucket_names() if name.startswith(asked.get("prefix", ""))]
        return _page(names, asked, NAMES_PAGE, "vectorBuckets", self._summary)

    def _summary(self, name: str) -> Answer:
        created = self._store.bucket(name)["creationTime"]
        return {"vectorBucketName": name, "vectorBucketArn": bucket_arn(name), "creationTime": created}

    def _delete_bucket(self, asked: Mapping[str, Any]) -> Answer:
        self._store.delete_bucket(_bucket_name(asked))
        return {}

    def _put_default_mode(self, asked: Mapping[str, Any]) -> Answer:
        name = _bucket_name(asked)
        _check_mode(asked["defaultIndexMode"], self._store.bucket(name))
        self._store.change_bucket(name, defaultIndexMode=asked["defaultIndexMode"])
        return {}

    # --- indexes ---

    def _create_index(self, asked: Mapping[str, Any]) -> Answer:
        configuration = dict(asked.get("metadataConfiguration", {}))
        configuration["textSearchConfigurations"] = _searchable(configuration.get("textSearchConfigurations", []))
        index = self._store.create_index(
            _bucket_name(asked),
            _checked_name(asked["indexName"], "indexName"),
            {
                "dataType": asked["dataType"],
                "dimension": asked["dimension"],
                "distanceMetric": asked["distanceMetric"],
                "metadataConfiguration": configuration,
                **_encryption(asked),
            },
        )
        return {"indexArn": index.arn}

    def _get_index(self, asked: Mapping[str, Any]) -> Answer:
        index = self._index(asked)
        configuration = dict(index.description["metadataConfiguration"])
        configuration["textSearchConfigurations"] = [
            {**one, "status": "BUILDING" if self._is_building(index, one["metadataKey"]) else "ACTIVE"}
            for one in index.searched
        ]
        return {"index": {**_names(index), **index.description, "metadataConfiguration": configuration}}

    def _list_indexes(self, asked: Mapping[str, Any]) -> Answer:
        bucket = _bucket_name(asked)
        self._store.bucket(bucket)

        def summary(name: str) -> Answer:
            index = self._store.index(index_arn(bucket, name))
            return {**_names(index), "creationTime": index.description["creationTime"]}

        names = [name for name in self._store.index_names(bucket) if name.startswith(asked.get("prefix", ""))]
        return _page(names, asked, NAMES_PAGE, "indexes", summary)

    def _delete_index(self, asked: Mapping[str, Any]) -> Answer:
        self._store.delete_index(_index_arn(asked))
        return {}

    def _update_mode(self, asked: Mapping[str, Any]) -> Answer:
        index = self._index(asked)
        _check_mode(asked["indexMode"], self._store.bucket(_names(index)["vectorBucketName"]))
        index.description["indexMode"] = asked["indexMode"]
        self._store.save_description(index)
        return {}

    def _update_configuration(self, asked: Mapping[str, Any]) -> Answer:
        index = self._index(asked)
        if ("add" in asked) == ("delete" in asked):
            raise ValidationFailed("Specify either add or delete, but not both")
        if index.description["indexMode"] != "ENHANCED":
            raise ValidationFailed("Text search configurations require an index in ENHANCED mode")
        if "add" in asked:
            added = _searchable(asked["add"].get("textSearchConfigurations", []), index.searched)
            index.searched.extend(added)
            for one in added:
                index.building_until_s[one["metadataKey"]] = self._clock() + self._backfill_s
        else:
            gone = {one["metadataKey"] for one in asked["delete"].get("textSearchConfigurations", [])}
            index.searched[:] = [one for one in index.searched if one["metadataKey"] not in gone]
        index.index_words()
        self._store.save_description(index)
        return {"indexArn": index.arn}

    def _is_building(self, index: Index, key: str) -> bool:
        return self._clock() < index.building_until_s.get(key, 0.0)

    # --- vectors ---

    def _put_vectors(self, asked: Mapping[str, Any]) -> Answer:
        index = self._index(asked)
        vectors: dict[str, Stored] = {}
        for one in asked["vectors"]:
            key = one["key"]
            if key in vectors:
                raise ValidationFailed(f"Invalid record for key '{key}': the key is given twice")
            vector = _vector(index, one["data"], f"record for key '{key}'")
            check_metadata(key, one.get("metadata", {}), index.non_filterable)
            vectors[key] = Stored(vector, one.get("metadata", {}))
        self._rate(index).take(len(vectors))
        self._store.put(index, list(vectors.items()))
        return {}

    def _get_vectors(self, asked: Mapping[str, Any]) -> Answer:
        index = self._index(asked)
        return {"vectors": [_described(index, key, asked) for key in asked["keys"] if key in index.vectors]}

    def _delete_vectors(self, asked: Mapping[str, Any]) -> Answer:
        index = self._index(asked)
        self._rate(index).take(len(asked["keys"]))
        self._store.delete(index, asked["keys"])
        return {}

    def _list_vectors(self, asked: Mapping[str, Any]) -> Answer:
        index = self._index(asked)
        count, segment = asked.get("segmentCount"), asked.get("segmentIndex")
        if (count is None) != (segment is None) or (count is not None and segment >= count):
            raise ValidationFailed("segmentIndex must be given with segmentCount, and be less than it")
        keys = sorted(key for key in index.vectors if count is None or _segment_of(key, count) == segment)
        after = _read_token(asked, ("segmentCount", "segmentIndex"))
        keys = [key for key in keys if after is None or key > after]
        most, size_bytes, taken = asked.get("maxResults", LIST_PAGE), 0, 0
        while taken < min(most, len(keys)) and size_bytes < LIST_PAGE_BYTES:
            stored = index.vectors[keys[taken]]
            size_bytes += stored.vector.nbytes + len(json.dumps(stored.metadata))
            taken += 1
        answer: Answer = {"vectors": [_described(index, key, asked) for key in keys[:taken]]}
        if taken < len(keys):
            answer["nextToken"] = _token(keys[taken - 1], asked, ("segmentCount", "segmentIndex"))
        return answer

    def _query_vectors(self, asked: Mapping[str, Any]) -> Answer:
        index = self._index(asked)
        texts = {one["metadataKey"]: one["text"] for one in asked.get("queryTexts", [])}
        self._check_query(index, asked, texts)
        vector = _vector(index, asked["queryVector"], "query vector") if "queryVector" in asked else None
        passes = read_filter(asked["filter"], index.non_filterable) if "filter" in asked else None
        ranked = rank(index, vector=vector, texts=texts, passes=passes, top_k=asked["topK"])
        names = ("queryVector", "queryTexts", "topK", "filter", "queryMode")
        start = int(_read_token(asked, names) or 0)
        page = ranked[start : start + self._query_page]
        answer: Answer = {"vectors": [], "distanceMetric": index.metric}
        for one in page:
            told: Answer = {"key": one.key}
            if asked.get("returnDistance") and one.distance is not None:
                told["distance"] = one.distance
            if asked.get("returnScores") and texts:
                told["scores"] = one.scores()
            if asked.get("returnMetadata"):
                told["metadata"] = index.vectors[one.key].metadata
            answer["vectors"].append(told)
        if start + len(page) < len(ranked):
            answer["nextToken"] = _token(str(start + len(page)), asked, names)
        return answer

    def _check_query(self, index: Index, asked: Mapping[str, Any], texts: Mapping[str, str]) -> None:
        if "queryVector" not in asked and not texts:
            raise ValidationFailed("A request must include queryVector, queryTexts, or both")
        if len(texts) < len(asked.get("queryTexts", [])):
            raise ValidationFailed("Each queryTexts entry must target a distinct searchable metadata key")
        if asked["topK"] > MAX_TOP_K:
            raise ValidationFailed(f"topK must be less than or equal to {MAX_TOP_K}")
        mode = index.description["indexMode"]
        if asked.get("queryMode") == "CLASSIC" and mode == "ENHANCED":
            raise ValidationFailed("queryMode CLASSIC is not supported for an index in ENHANCED mode")
        if texts and mode != "ENHANCED":
            raise ValidationFailed("Full-text search requires an index in ENHANCED mode")
        for key in texts:
            if key not in index.words:
                raise ValidationFailed(f"Metadata key '{key}' is not full-text searchable")
            if self._is_building(index, key):
                raise ValidationFailed(f"The text search configuration of '{key}' is not active yet")

    def _rate(self, index: Index) -> WriteRate:
        return self._rates.setdefault(index.arn, WriteRate(self._clock, **self._limits))

    def _index(self, asked: Mapping[str, Any]) -> Index:
        arn = _index_arn(asked)
        self._store.bucket(arn.split(":bucket/", 1)[1].split("/")[0])
        return self._store.index(arn)


def _bucket_name(asked: Mapping[str, Any]) -> str:
    if ("vectorBucketName" in asked) == ("vectorBucketArn" in asked):
        raise ValidationFailed("Must specify either vectorBucketName or vectorBucketArn but not both")
    return str(asked.get("vectorBucketName") or asked["vectorBucketArn"].split(":bucket/", 1)[1])


def _index_arn(asked: Mapping[str, Any]) -> str:
    named = {"vectorBucketName", "indexName"} & asked.keys()
    if ("indexArn" in asked) == bool(named) or len(named) == 1:
        raise ValidationFailed("Must specify either indexArn or both vectorBucketName and indexName")
    if named:
        return index_arn(asked["vectorBucketName"], asked["indexName"])
    arn = str(asked["indexArn"])
    bucket, name = arn.split(":bucket/", 1)[1].split("/index/")
    if arn != index_arn(bucket, name):
        raise NotFound("The specified index could not be found")
    return arn


def _names(index: Index) -> dict[str, str]:
    bucket, name = index.arn.split(":bucket/", 1)[1].split("/index/")
    return {"vectorBucketName": bucket, "indexName": name, "indexArn": index.arn}


def _checked_name(name: str, member: str) -> str:
    if not _NAME.fullmatch(name):
        raise ValidationFailed(f"Invalid {member}: 3 to 63 lower-case letters, digits, hyphens and dots")
    return name


def _check_mode(mode: str, bucket: Mapping[str, Any]) -> None:
    if mode == "CLASSIC" and bucket["creationTime"] >= CLASSIC_UNTIL_S:
        raise ValidationFailed("CLASSIC is not supported for vector buckets created on or after September 30, 2026")


def _encryption(asked: Mapping[str, Any]) -> Answer:
    return {"encryptionConfiguration": asked.get("encryptionConfiguration", {"sseType": "AES256"})}


def _searchable(asked: Sequence[Mapping[str, Any]], there: Sequence[Mapping[str, Any]] = ()) -> list[dict[str, Any]]:
    """Checked text search configurations, without what only responses carry."""
    keys = [one["metadataKey"] for one in (*there, *asked)]
    if len(set(keys)) < len(keys):
        raise ValidationFailed("Specify no more than one text search configuration for each metadata key")
    if len(keys) > 10:
        raise ValidationFailed("At most 10 metadata keys can be full-text searchable")
    return [{name: one[name] for name in ("metadataKey", "language") if name in one} for one in asked]


def _vector(index: Index, data: Mapping[str, Any], what: str) -> Vector:
    numbers = data.get("float32", [])
    if len(numbers) != index.dimension:
        raise ValidationFailed(
            f"Invalid {what}: vector must have length {index.dimension}, but has length {len(numbers)}"
        )
    with np.errstate(over="ignore"):
        vector = np.array(numbers, dtype=np.float32)
    if not np.isfinite(vector).all():
        raise ValidationFailed(f"Invalid {what}: vector must contain valid float32 values")
    if index.metric == "cosine" and not vector.any():
        raise ValidationFailed(f"Invalid {what}: zero vectors are not allowed with the cosine distance metric")
    return vector


def _described(index: Index, key: str, asked: Mapping[str, Any]) -> Answer:
    told: Answer = {"key": key}
    if asked.get("returnData"):
        told["data"] = {"float32": index.vectors[key].vector.tolist()}
    if asked.get("returnMetadata"):
        told["metadata"] = index.vectors[key].metadata
    return told


def _segment_of(key: str, count: int) -> int:
    return int.from_bytes(hashlib.sha256(key.encode()).digest()[:4], "big") % count


def _page(
    names: Sequence[str], asked: Mapping[str, Any], most: int, member: str, describe: Callable[[str], Answer]
) -> Answer:
    after = _read_token(asked, ("prefix",))
    left = [name for name in names if after is None or name > after]
    taken = left[: asked.get("maxResults", most)]
    answer: Answer = {member: [describe(name) for name in taken]}
    if len(taken) < len(left):
        answer["nextToken"] = _token(taken[-1], asked, ("prefix",))
    return answer


def _token(place: str, asked: Mapping[str, Any], members: Sequence[str]) -> str:
    document = json.dumps([place, _fingerprint(asked, members)])
    return base64.urlsafe_b64encode(document.encode()).decode()


def _read_token(asked: Mapping[str, Any], members: Sequence[str]) -> str | None:
    """Where the page before ended. Raises ValidationFailed for a token of another request."""
    if "nextToken" not in asked:
        return None
    try:
        place, fingerprint = json.loads(base64.urlsafe_b64decode(asked["nextToken"]))
    except ValueError:
        place, fingerprint = "", None
    if fingerprint != _fingerprint(asked, members):
        raise ValidationFailed("Invalid nextToken")
    return str(place)


def _fingerprint(asked: Mapping[str, Any], members: Sequence[str]) -> str:
    named = {name: asked.get(name) for name in members}
    return hashlib.sha256(json.dumps(named, sort_keys=True).encode()).hexdigest()[:16]

"""What buckets and tables hold survives a restart: moto keeps it in memory, this keeps a copy of it on disk.

The copy is by stack and logical id, for a new deployment gives new names. It follows the requests that change
something, so a save costs what has changed and not what there is. Of a versioned bucket the current versions are kept.
"""

from __future__ import annotations

import datetime
import json
import logging
import threading
import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any

from cicada_local import deployed
from cicada_local.calls import Call
from cicada_local.cloudformation.storage import BUCKET, TABLES
from cicada_local.motoserver import MotoServer
from cicada_local.places import ACCOUNT_ID, REGION
from cicada_local.state_store import AttributeValues, Place, StateStore, StoredObject

logger = logging.getLogger(__name__)

_DYNAMODB = "DynamoDB_20120810"
_READ_AT_ONCE = 100  # keys a BatchGetItem
_WRITTEN_AT_ONCE = 25  # items a BatchWriteItem
_TIME_TO_LIVE_REACH_S = 5 * 365 * 24 * 3600  # an older time than this is taken for a mistake, as by DynamoDB
_STATEMENTS = frozenset({"ExecuteStatement", "BatchExecuteStatement", "ExecuteTransaction"})
_OBJECT_CHANGES = frozenset(
    {
        "CompleteMultipartUpload",
        "CopyObject",
        "DeleteObject",
        "DeleteObjects",
        "DeleteObjectTagging",
        "PutObject",
        "PutObjectTagging",
    }
)
_OBJECT_ATTRIBUTES = (
    "checksum_algorithm",
    "checksum_value",
    "checksum_type",
    "checksum_parts",
    "website_redirect_location",
    "encryption",
    "kms_key_id",
    "bucket_key_enabled",
)


class Keeper:
    """Follows what changes in the deployed buckets and tables, saves it, and puts it back."""

    def __init__(self, store: StateStore, moto: MotoServer, *, clock: Callable[[], float] = time.time) -> None:
        """Keep moto's state in a store.

        Args:
            store: the copy.
            moto: the original.
            clock: seconds since the epoch, to tell which items have outlived their time to live.
        """
        self._store = store
        self._moto = moto
        self._clock = clock
        self._lock = threading.Lock()
        self._saving = threading.Lock()
        self._keys: dict[str, dict[str, AttributeValues]] = {}
        """Changed items of each table: their keys by the keys' text."""
        self._whole: set[str] = set()
        """Tables of which anything may have changed."""
        self._buckets: set[str] = set()
        self._restored = False

    def changed(self, call: Call, body: bytes, status: int) -> None:
        """Take note of an answered request; returns at once."""
        if status >= 300:
            return
        if call.service == "s3" and call.operation in _OBJECT_CHANGES:
            with self._lock:
                self._buckets.add(call.resource.split("/")[0])
        elif call.service == "dynamodb":
            self._changed_items(call.operation, body)

    def save(self) -> None:
        """Write what has changed since the last save; nothing before :meth:`restore` was called."""
        if not self._restored:
            return
        with self._saving:
            with self._lock:
                keys, whole, buckets = self._keys, self._whole, self._buckets
                self._keys, self._whole, self._buckets = {}, set(), set()
            try:
                self._write(keys, whole, buckets)
            except BaseException:
                with self._lock:
                    for table, changed in keys.items():
                        self._keys.setdefault(table, {}).update(changed)
                    self._whole |= whole
                    self._buckets |= buckets
                raise

    def _write(self, keys: dict[str, dict[str, AttributeValues]], whole: set[str], buckets: set[str]) -> None:
        places = {name: place for place, _, name in _places()}
        for table in whole & places.keys():
            self._store.replace_items(places[table], self._all_items(table))
        for table, changed in keys.items():
            if table in places and table not in whole:
                self._store.write_items(places[table], self._current_items(table, list(changed.values())))
        for bucket in buckets & places.keys():
            self._save_objects(places[bucket], bucket)

    def restore(self) -> None:
        """Put what was saved into the buckets and tables of the present deployment, and begin to follow changes."""
        for place, kind, name in _places():
            if kind == BUCKET:
                self._restore_objects(place, name)
            else:
                self._restore_items(place, name)
        self._restored = True

    # --- items ---

    def _changed_items(self, operation: str, body: bytes) -> None:
        if operation in _STATEMENTS:
            with self._lock:
                self._whole.update(name for _, kind, name in _places() if kind in TABLES)
            return
        touched = [(table, self._key_of(table, values)) for table, values in _touched(operation, body)]
        with self._lock:
            for table, key in touched:
                self._keys.setdefault(table, {})[json.dumps(key, sort_keys=True)] = key

    def _key_of(self, table: str, values: AttributeValues) -> AttributeValues:
        names = _table(table).table_key_attrs
        return {name: values[name] for name in names}

    def _current_items(
        self, table: str, keys: list[AttributeValues]
    ) -> Iterator[tuple[AttributeValues, AttributeValues | None]]:
        for start in range(0, len(keys), _READ_AT_ONCE):
            wanted = keys[start : start + _READ_AT_ONCE]
            found = {}
            while wanted:
                request = {"RequestItems": {table: {"Keys": wanted, "ConsistentRead": True}}}
                answer = self._moto.call_json("dynamodb", f"{_DYNAMODB}.BatchGetItem", request)
                for item in answer["Responses"].get(table, []):
                    found[json.dumps(self._key_of(table, item), sort_keys=True)] = item
                wanted = answer.get("UnprocessedKeys", {}).get(table, {}).get("Keys", [])
            for key in keys[start : start + _READ_AT_ONCE]:
                yield key, found.get(json.dumps(key, sort_keys=True))

    def _all_items(self, table: str) -> Iterator[tuple[AttributeValues, AttributeValues]]:
        request: dict[str, Any] = {"TableName": table, "ConsistentRead": True}
        while True:
            answer = self._moto.call_json("dynamodb", f"{_DYNAMODB}.Scan", request)
            for item in answer["Items"]:
                yield self._key_of(table, item), item
            if "LastEvaluatedKey" not in answer:
                return
            request["ExclusiveStartKey"] = answer["LastEvaluatedKey"]

    def _restore_items(self, place: Place, table: str) -> None:
        items = [item for item in self._store.items(place) if not self._outlived(table, item)]
        for start in range(0, len(items), _WRITTEN_AT_ONCE):
            puts = [{"PutRequest": {"Item": item}} for item in items[start : start + _WRITTEN_AT_ONCE]]
            self._moto.call_json("dynamodb", f"{_DYNAMODB}.BatchWriteItem", {"RequestItems": {table: puts}})
        self._store.replace_items(place, ((self._key_of(table, item), item) for item in items))

    def _outlived(self, table: str, item: AttributeValues) -> bool:
        """Whether DynamoDB would have deleted the item, or be about to."""
        ttl = _table(table).ttl
        value = item.get(ttl.get("AttributeName", ""), {}).get("N")
        if ttl["TimeToLiveStatus"] != "ENABLED" or value is None:
            return False
        now = self._clock()
        return now - _TIME_TO_LIVE_REACH_S < float(value) < now

    # --- objects ---

    def _save_objects(self, place: Place, bucket: str) -> None:
        saved = self._store.object_stamps(place)
        with self._moto.lock("s3"):
            current = {key: version for key, version in _bucket(bucket).keys.items() if hasattr(version, "value")}
            changed = [_stored(version) for key, version in current.items() if saved.get(key) != _stamp(version)]
        self._store.write_objects(place, changed, saved.keys() - current.keys())

    def _restore_objects(self, place: Place, bucket: str) -> None:
        with self._moto.lock("s3"):
            for stored in self._store.objects(place):
                _put_back(bucket, stored)


def _places() -> list[tuple[Place, str, str]]:
    """The deployed buckets and tables: where each is declared, its type, its physical id.

    Without the buckets of distributions: what a deployment has just uploaded is not to be replaced by what was saved.
    """
    left_out = deployed.origin_buckets()
    return [
        (Place(stack.name, resource.logical_resource_id), resource.cf_resource_type, resource.physical_resource_id)
        for stack in deployed.stacks()
        for resource in list(
            stack.resource_map._parsed_resources.values()
        )  # the map itself would create what is missing
        if getattr(resource, "cf_resource_type", None) in (BUCKET, *TABLES)
        and resource.physical_resource_id not in left_out
    ]


def _touched(operation: str, body: bytes) -> Iterable[tuple[str, AttributeValues]]:
    """The tables, and in each an item or a key, that a successful write has changed."""
    if operation == "PutItem":
        request = json.loads(body)
        yield _table_name(request["TableName"]), request["Item"]
    elif operation in ("UpdateItem", "DeleteItem"):
        request = json.loads(body)
        yield _table_name(request["TableName"]), request["Key"]
    elif operation == "BatchWriteItem":
        for table, writes in json.loads(body)["RequestItems"].items():
            for write in writes:
                yield _table_name(table), _written(write)
    elif operation == "TransactWriteItems":
        for action in json.loads(body)["TransactItems"]:
            for kind, write in action.items():
                if kind != "ConditionCheck":
                    yield _table_name(write["TableName"]), write["Item"] if kind == "Put" else write["Key"]


def _written(write: Mapping[str, Any]) -> AttributeValues:
    values: AttributeValues = write["PutRequest"]["Item"] if "PutRequest" in write else write["DeleteRequest"]["Key"]
    return values


def _table_name(name_or_arn: str) -> str:
    return name_or_arn.rpartition("/")[2]


def _table(name: str) -> Any:
    from moto.dynamodb.models import dynamodb_backends

    return dynamodb_backends[ACCOUNT_ID][REGION].get_table(name)


def _bucket(name: str) -> Any:
    from moto.s3.models import s3_backends

    return s3_backends[ACCOUNT_ID]["aws"].get_bucket(name)


def _tags(version: Any) -> dict[str, str]:
    from moto.s3.models import s3_backends

    tags: dict[str, str] = s3_backends[ACCOUNT_ID]["aws"].tagger.get_tag_dict_for_resource(version.arn)
    return tags


def _stamp(version: Any) -> str:
    return json.dumps(
        [version.version_id, version.etag, version.last_modified.isoformat(), sorted(_tags(version).items())]
    )


def _stored(version: Any) -> StoredObject:
    attributes = {
        "etag": version.etag.strip('"'),
        "version_id": version.version_id,
        "last_modified": version.last_modified.isoformat(),
        "storage": version.storage_class,
        "metadata": dict(version.metadata),
        "tags": _tags(version),
        **{name: getattr(version, name) for name in _OBJECT_ATTRIBUTES},
    }
    return StoredObject(version.name, _stamp(version), version.value, attributes)


def _put_back(bucket: str, stored: StoredObject) -> None:
    """Make moto's object anew as it was: the API would give it another version, entity tag and time."""
    from moto.s3.models import FakeKey, s3_backends

    into = _bucket(bucket)
    attributes = stored.attributes
    version = FakeKey(
        name=stored.key,
        value=stored.body,
        account_id=ACCOUNT_ID,
        region_name=REGION,
        storage=attributes["storage"],
        etag=attributes["etag"],
        is_versioned=into.is_versioned,
        version_id=attributes["version_id"],
        bucket_name=bucket,
    )
    version.last_modified = datetime.datetime.fromisoformat(attributes["last_modified"])
    version.metadata.clear()
    version.set_metadata(dict(attributes["metadata"]))
    for name in _OBJECT_ATTRIBUTES:
        setattr(version, name, attributes[name])
    into.keys.setlist(stored.key, [version])
    if attributes["tags"]:
        tags = [{"Key": key, "Value": value} for key, value in attributes["tags"].items()]
        s3_backends[ACCOUNT_ID]["aws"].tagger.tag_resource(version.arn, tags)

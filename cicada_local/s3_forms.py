"""Forms that upload an object to S3 (POST Object), checked as S3 checks them: fields, signature, policy, digest.

moto stores whatever a form holds. Sources: Amazon S3 API reference, "POST Object", "Creating an HTML form (using AWS
Signature Version 4)", "POST policy", "Calculating a signature"; Amazon S3 User Guide, "Error responses". Without I/O.
"""

from __future__ import annotations

import base64
import binascii
import hashlib
import hmac
import json
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

from aiohttp import web
from werkzeug.exceptions import HTTPException
from werkzeug.http import parse_options_header
from werkzeug.sansio.multipart import Data, Epilogue, Field, File, MultipartDecoder

MAX_FIELDS_BYTES = 20_000  # of all fields before the file
_MAX_PARTS = 100
_ALGORITHM = "AWS4-HMAC-SHA256"
_UNCHECKED = frozenset({"policy", "x-amz-signature", "file"})  # need no condition; nor what begins with x-ignore-
_CHECKSUM = "x-amz-checksum-sha256"
_STORED = ("content-type", "x-amz-checksum-sha256")  # fields that are stored with the object, beside x-amz-meta-…
_KNOWN = frozenset(
    {
        *("key", "policy", "x-amz-algorithm", "x-amz-credential", "x-amz-date", "x-amz-security-token"),
        *("x-amz-signature", "x-amz-checksum-algorithm", "success_action_status", *_STORED),
    }
)


class FormRefused(Exception):
    """S3 refuses a form."""

    def __init__(self, status: int, code: str, message: str) -> None:
        super().__init__(message)
        self.status = status
        self.code = code


@dataclass(frozen=True)
class UploadForm:
    """A form, taken apart."""

    bucket: str
    fields: Mapping[str, str]
    """By name in lower case; what comes after the file is left out, as in S3."""
    body: bytes
    """The file."""

    @property
    def key(self) -> str:
        """Of the object."""
        return self.fields["key"]

    @property
    def access_key(self) -> str:
        """Of whoever signed the form."""
        return self.fields["x-amz-credential"].partition("/")[0]

    @property
    def token(self) -> str | None:
        """Of temporary credentials."""
        return self.fields.get("x-amz-security-token")

    def stored_headers(self) -> dict[str, str]:
        """What a PutObject of the same object would have as headers."""
        return {name: value for name, value in self.fields.items() if name in _STORED or name.startswith("x-amz-meta-")}


def is_upload(request: web.BaseRequest) -> bool:
    """Whether a request is a form for a bucket, or a browser's question whether it may send one."""
    if "/" in request.path[1:].removesuffix("/") or len(request.path) < 2:
        return False
    asks = request.method == "OPTIONS" and "Access-Control-Request-Method" in request.headers
    return asks or (request.method == "POST" and _is_multipart(request.headers))


def _is_multipart(headers: Mapping[str, str]) -> bool:
    return headers.get("Content-Type", "").lower().startswith("multipart/form-data")


def read_form(bucket: str, content_type: str, data: bytes) -> UploadForm:
    """Take a request's body apart. Raises FormRefused."""
    fields: dict[str, str] = {}
    file: tuple[str, bytes] | None = None
    try:
        for part, content in _parts(content_type, data):
            if part.name.lower() == "file":
                file = part.filename if isinstance(part, File) else "", content
                break
            fields.setdefault(part.name.lower(), content.decode())
    except (KeyError, ValueError, HTTPException) as error:
        raise FormRefused(400, "MalformedPOSTRequest", "The body of your POST request is not well-formed.") from error
    if file is None:
        raise FormRefused(400, "InvalidArgument", "POST requires exactly one file upload per request.")
    if sum(len(name) + len(value.encode()) for name, value in fields.items()) > MAX_FIELDS_BYTES:
        told = "Your POST request fields preceding the upload file were too large."
        raise FormRefused(400, "MaxPostPreDataLengthExceeded", told)
    if not fields.get("key"):
        raise FormRefused(400, "InvalidArgument", "Bucket POST must contain a field named 'key'.")
    filename, body = file
    fields["key"] = fields["key"].replace("${filename}", filename.replace("\\", "/").rpartition("/")[2])
    unknown = {name for name in fields if not name.startswith(("x-amz-meta-", "x-ignore-"))} - _KNOWN
    if unknown:
        told = f"The local cloud simulates no form with {', '.join(sorted(unknown))}."
        raise FormRefused(501, "NotImplemented", told)
    return UploadForm(bucket, fields, body)


def _parts(content_type: str, data: bytes) -> Iterator[tuple[Field | File, bytes]]:
    _, options = parse_options_header(content_type)
    decoder = MultipartDecoder(options["boundary"].encode(), max_parts=_MAX_PARTS)
    decoder.receive_data(data)
    decoder.receive_data(None)
    part: Field | File | None = None
    gathered = bytearray()
    while not isinstance(event := decoder.next_event(), Epilogue):
        if isinstance(event, Field | File):
            part, gathered = event, bytearray()
        elif isinstance(event, Data) and part is not None:
            gathered += event.data
            if not event.more_data:
                yield part, bytes(gathered)


def check_form(form: UploadForm, secret_of: Callable[[str], str | None], now: datetime) -> None:
    """Refuse a form that its policy does not allow. Raises FormRefused.

    Args:
        form: the form.
        secret_of: the secret of an access key; None for an unknown one.
        now: the time, in UTC.
    """
    if "policy" not in form.fields:  # an anonymous one: the buckets are private
        raise FormRefused(403, "AccessDenied", "Access Denied")
    for name in ("x-amz-algorithm", "x-amz-credential", "x-amz-date", "x-amz-signature"):
        if name not in form.fields:
            raise FormRefused(400, "InvalidArgument", f"Bucket POST must contain a field named '{name}'.")
    _check_signature(form, secret_of)
    policy = _policy(form.fields["policy"])
    expiration = _time(policy.get("expiration"))
    conditions = policy.get("conditions")
    if expiration is None or not isinstance(conditions, list):
        raise FormRefused(400, "InvalidPolicyDocument", "Invalid Policy: Invalid JSON.")
    if expiration <= now:
        raise FormRefused(403, "AccessDenied", "Invalid according to Policy: Policy expired.")
    _check_conditions(form, conditions)
    _check_digest(form)


def _check_signature(form: UploadForm, secret_of: Callable[[str], str | None]) -> None:
    secret = secret_of(form.access_key)
    if secret is None:
        told = "The AWS Access Key Id you provided does not exist in our records."
        raise FormRefused(403, "InvalidAccessKeyId", told)
    scope = form.fields["x-amz-credential"].split("/")[1:]
    right = len(scope) == 4 and scope[2:] == ["s3", "aws4_request"] and form.fields["x-amz-algorithm"] == _ALGORITHM
    key = f"AWS4{secret}".encode()
    for part in scope:
        key = hmac.digest(key, part.encode(), "sha256")
    expected = hmac.new(key, form.fields["policy"].encode(), "sha256").hexdigest()
    if not (right and hmac.compare_digest(expected, form.fields["x-amz-signature"])):
        told = "The request signature we calculated does not match the signature you provided."
        raise FormRefused(403, "SignatureDoesNotMatch", told)


def _policy(text: str) -> Mapping[str, Any]:
    try:
        policy = json.loads(base64.b64decode(text, validate=True))
    except (ValueError, binascii.Error):
        policy = None
    if not isinstance(policy, dict):
        raise FormRefused(400, "InvalidPolicyDocument", "Invalid Policy: Invalid JSON.")
    return policy


def _time(told: object) -> datetime | None:
    try:
        return datetime.fromisoformat(str(told)).astimezone(UTC)
    except ValueError:
        return None


def _check_conditions(form: UploadForm, conditions: list[Any]) -> None:
    given = {"bucket": form.bucket, **form.fields}
    named: set[str] = set()
    for condition in conditions:
        operator, name, value = _condition(condition)
        if operator == "content-length-range":
            _check_size(len(form.body), name, value)
            continue
        name = str(name).removeprefix("$").lower()
        named.add(name)
        found = given.get(name, "")
        holds = found.startswith(str(value)) if operator == "starts-with" else found == str(value)
        if not holds:
            told = json.dumps([operator, f"${name}", value])
            raise FormRefused(403, "AccessDenied", f"Invalid according to Policy: Policy Condition failed: {told}")
    for name in form.fields:
        if name not in named | _UNCHECKED and not name.startswith("x-ignore-"):
            raise FormRefused(403, "AccessDenied", f"Invalid according to Policy: Extra input fields: {name}")


def _condition(condition: Any) -> tuple[str, Any, Any]:
    match condition:
        case dict() if len(condition) == 1:
            ((name, value),) = condition.items()
            return "eq", name, value
        case ["eq" | "starts-with" | "content-length-range" as operator, name, value]:
            return operator, name, value
        case _:
            raise FormRefused(400, "InvalidPolicyDocument", "Invalid Policy: Invalid condition.")


def _check_size(size: int, least: Any, most: Any) -> None:
    if size < int(least):
        told = "Your proposed upload is smaller than the minimum allowed size"
        raise FormRefused(400, "EntityTooSmall", told)
    if size > int(most):
        raise FormRefused(400, "EntityTooLarge", "Your proposed upload exceeds the maximum allowed size")


def _check_digest(form: UploadForm) -> None:
    told = form.fields.get(_CHECKSUM)
    if told is None:
        return
    if len(told) != 44:
        raise FormRefused(400, "InvalidRequest", f"Value for {_CHECKSUM} header is invalid.")
    if told != base64.b64encode(hashlib.sha256(form.body).digest()).decode():
        raise FormRefused(400, "BadDigest", "The SHA256 you specified did not match the calculated checksum.")

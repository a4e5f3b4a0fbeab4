"""What the errors of OpenAI-compatible endpoints mean.

Only the status is common to all servers. Bodies differ: OpenAI's ``{"error": {"message", "type", "code", "param"}}``,
the same without the outer object, a plain sentence, or a validator's list. No body is logged unfiltered: servers quote
the refused key, and the prompt, in any field.
"""

from __future__ import annotations

import email.utils
import json
import math
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from http import HTTPStatus
from typing import Any

from cicada.errors import AnswerBlocked, AnswerMalformed, ContextTooLarge, ModelBusy, ModelRefused, ModelUnavailable
from cicada.models.failure import Failure

MAX_MESSAGE_CHARS = 300
_QUOTED_CHARS = 16
"""A message that repeats so many characters of what was sent is not logged."""
_CODE = re.compile(r"[A-Za-z0-9_.-]{1,64}")
"""A kind of error; anything else in a code's place is free text."""

_CONTEXT = re.compile(
    r"context[ _]?(length|window|size)|maximum context|prompt is too long|input is too long|too many (input )?tokens",
    re.IGNORECASE,
)
_BLOCKED_CODES = frozenset({"content_filter", "content_policy_violation", "content_filtered"})
_SPENT_CODES = frozenset({"insufficient_quota", "billing_hard_limit_reached", "billing_not_active"})
_MALFORMED_CODES = frozenset({"json_validate_failed"})
_BUSY = re.compile(r"rate.?limit|overloaded|too.?many.?requests", re.IGNORECASE)
_BROKEN = re.compile(r"server.?error|internal|api_error|unavailable|timeout", re.IGNORECASE)
_LATE = frozenset({HTTPStatus.REQUEST_TIMEOUT, HTTPStatus.CONFLICT, HTTPStatus.TOO_EARLY})
_INVALID = frozenset({HTTPStatus.BAD_REQUEST, HTTPStatus.UNPROCESSABLE_ENTITY})
_NO_KEY = frozenset({HTTPStatus.UNAUTHORIZED, HTTPStatus.FORBIDDEN})


@dataclass(frozen=True)
class Complaint:
    """A server's error; absent parts are empty."""

    message: str = ""
    type: str = ""
    code: str = ""
    param: str = ""

    @property
    def all_words(self) -> str:
        """For a search."""
        return " ".join((self.code, self.type, self.param, self.message))


class EndpointFault(Exception):
    """An endpoint's error, instead of a stream or within one. ``str(fault)`` is safe to log."""

    def __init__(
        self, status: int, complaint: Complaint, retry_after_s: float | None = None, *, sent: Sequence[str]
    ) -> None:
        """``status`` is 0 for an error in a stream without one; ``sent``, the prompt and the key, is never repeated."""
        super().__init__(f"the endpoint answers {status or 'in its stream'}{_told(status, complaint, sent)}")
        self.status = status
        self.complaint = complaint
        self.retry_after_s = retry_after_s


def read_complaint(body: bytes) -> Complaint:
    """The body of an error, as far as it is one."""
    try:
        content = json.loads(body)
    except (ValueError, RecursionError):
        return Complaint()
    return complaint_in(content)


def complaint_in(content: object) -> Complaint:
    """The error in a body, or in a chunk of a stream."""
    if not isinstance(content, Mapping):
        return Complaint()
    inner = content.get("error")
    if isinstance(inner, str):
        return Complaint(message=_word(inner), code=_word(content.get("code")))
    found: Mapping[str, Any] = inner if isinstance(inner, Mapping) else content
    detail = found.get("detail")
    if isinstance(detail, list) and detail and isinstance(detail[0], Mapping):  # FastAPI's validator
        place = detail[0].get("loc")
        param = _word(place[-1]) if isinstance(place, list) and place else ""
        return Complaint(_word(detail[0].get("msg")), _word(detail[0].get("type")), "", param)
    message = found.get("message") or detail
    return Complaint(_word(message), _word(found.get("type")), _word(found.get("code")), _word(found.get("param")))


def _word(value: object) -> str:
    return str(value)[:2000] if isinstance(value, (str, int)) else ""


def status_in(complaint: Complaint) -> int:
    """The HTTP status that an error within a stream names as its code; 0 if it names none."""
    return int(complaint.code) if complaint.code.isdecimal() and len(complaint.code) == 3 else 0


def read_retry_after(headers: Mapping[str, str], *, now_s: float) -> float | None:
    """The wait that a response asks for, in seconds, if any; ``now_s`` are epoch seconds, for a date."""
    for name, unit_s in (("retry-after-ms", 0.001), ("retry-after", 1.0)):
        value = headers.get(name)
        if value is None:
            continue
        try:
            seconds = float(value) * unit_s
        except ValueError:
            try:
                seconds = email.utils.parsedate_to_datetime(value).timestamp() - now_s
            except (ValueError, TypeError):
                continue
        if math.isfinite(seconds):
            return max(0.0, seconds)
    return None


def read_fault(fault: EndpointFault) -> Failure | None:
    """What a fault means for the call; None for an error in a stream of unknown kind."""
    status = fault.status
    # A refused request costs nothing; in a stream, only a throttle is a refusal.
    free = status == HTTPStatus.SERVICE_UNAVAILABLE or (
        HTTPStatus.BAD_REQUEST <= status < HTTPStatus.INTERNAL_SERVER_ERROR and status not in _LATE
    )
    failure = _by_code(fault, free) or _by_status(fault, free)
    if failure is not None or not status:
        return failure
    return Failure(ModelRefused(str(fault)), retry=False, invalid=status in _INVALID, free=free)


def _by_code(fault: EndpointFault, free: bool) -> Failure | None:
    """The final failures: a filter, malformed output, a spent quota, a refused key, a prompt that is too long."""
    said, status, told = fault.complaint, fault.status, str(fault)
    if said.code in _BLOCKED_CODES:
        return Failure(AnswerBlocked(told), retry=False, free=free)
    if said.code in _MALFORMED_CODES:
        return Failure(AnswerMalformed(told), retry=False)
    if {said.code, said.type} & _SPENT_CODES:
        return Failure(ModelBusy(told), retry=False, free=True)
    if status in _NO_KEY:
        return Failure(ModelRefused(told), retry=False, free=free)
    if status == HTTPStatus.REQUEST_ENTITY_TOO_LARGE or (status in {*_INVALID, 0} and _CONTEXT.search(said.all_words)):
        return Failure(ContextTooLarge(told), retry=False, free=free)
    return None


def _by_status(fault: EndpointFault, free: bool) -> Failure | None:
    """The failures that a retry can help: a throttle, and an endpoint that does not work."""
    status, wait_s = fault.status, fault.retry_after_s
    words = "" if status else f"{fault.complaint.code} {fault.complaint.type}"  # in a stream, words stand for a status
    if status == HTTPStatus.TOO_MANY_REQUESTS or _BUSY.search(words):
        return Failure(ModelBusy(str(fault)), retry=True, retry_after_s=wait_s, free=True)
    if status >= HTTPStatus.INTERNAL_SERVER_ERROR or status in _LATE or _BROKEN.search(words):
        return Failure(ModelUnavailable(str(fault)), retry=True, retry_after_s=wait_s, free=free)
    return None


def _told(status: int, complaint: Complaint, sent: Sequence[str]) -> str:
    """A server's codes and words for the log, unless they repeat what was sent."""
    codes = "/".join(part for part in (complaint.type, complaint.code) if _CODE.fullmatch(part))
    codes = f" ({codes})" if codes and not _quotes(codes, sent) else ""
    message = " ".join(complaint.message[:MAX_MESSAGE_CHARS].split())
    if not message or status in _NO_KEY or _quotes(message, sent):
        return codes
    return f"{codes}: {message}"


def _quotes(message: str, sent: Sequence[str]) -> bool:
    flat = [" ".join(text.split()) for text in sent]
    if any(text and text in message for text in flat):
        return True
    windows = (message[start : start + _QUOTED_CHARS] for start in range(max(0, len(message) - _QUOTED_CHARS + 1)))
    return any(window in text for window in windows for text in flat)

"""What an OpenAI-compatible endpoint's refusals mean, whoever wrote the server.

Only the status is common to all. Bodies differ: OpenAI's ``{"error": {"message", "type", "code", "param"}}``, the same
without the outer object, a plain sentence, or a list of what a validator found. No body is logged as it is: servers
quote the key that they refuse, and the prompt, in any of its fields.
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
"""So many characters in a row of what was sent, and the words around them are not told."""
_CODE = re.compile(r"[A-Za-z0-9_.-]{1,64}")
"""What servers call a kind of error; anything else in a code's place is a text of theirs."""

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
    """What a server says is wrong; each is empty where it says nothing."""

    message: str = ""
    type: str = ""
    code: str = ""
    param: str = ""

    @property
    def all_words(self) -> str:
        """For a search."""
        return " ".join((self.code, self.type, self.param, self.message))


class EndpointFault(Exception):
    """The endpoint answered with an error, instead of a stream or within one.

    ``str(fault)`` may be logged: it repeats nothing of what was sent.
    """

    def __init__(
        self, status: int, complaint: Complaint, retry_after_s: float | None = None, *, sent: Sequence[str]
    ) -> None:
        """Take the answer.

        Args:
            status: HTTP's; 0 for an error within a stream that names none.
            sent: texts that must not be repeated: the prompt's, and the key.
        """
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
    """How long a response asks to be left alone, in seconds; None if it does not say.

    Args:
        now_s: epoch seconds, for a date.
    """
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
    """What a fault means for the call; None for an error in a stream that says nothing of its kind."""
    said, status = fault.complaint, fault.status
    told = str(fault)
    # What is turned away is not worked on; in a stream, only a throttle is that.
    free = status == HTTPStatus.SERVICE_UNAVAILABLE or (
        HTTPStatus.BAD_REQUEST <= status < HTTPStatus.INTERNAL_SERVER_ERROR and status not in _LATE
    )
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
    words = f"{said.code} {said.type}"
    if status == HTTPStatus.TOO_MANY_REQUESTS or (not status and _BUSY.search(words)):
        return Failure(ModelBusy(told), retry=True, retry_after_s=fault.retry_after_s, free=True)
    if status >= HTTPStatus.INTERNAL_SERVER_ERROR or status in _LATE or (not status and _BROKEN.search(words)):
        return Failure(ModelUnavailable(told), retry=True, retry_after_s=fault.retry_after_s, free=free)
    if not status:
        return None
    return Failure(ModelRefused(told), retry=False, invalid=status in _INVALID, free=free)


def _told(status: int, complaint: Complaint, sent: Sequence[str]) -> str:
    """What a server says, for the log: its codes and its words, unless they repeat what was sent to it."""
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

"""Whether a request was signed at about the present time, as AWS demands of each.

Source: AWS General Reference, "Troubleshoot Signature Version 4": five minutes; Amazon S3 User Guide, "Error responses"
(``RequestTimeTooSkewed``): fifteen.
"""

from __future__ import annotations

from collections.abc import Mapping
from datetime import UTC, datetime, timedelta

_HEADER = "X-Amz-Date"
_FORMAT = "%Y%m%dT%H%M%SZ"
_MINUTES, _S3_MINUTES = 5, 15


def wrong_time(service: str, headers: Mapping[str, str], now: datetime) -> str | None:
    """What AWS says of a request that was signed too early or too late; None if it was not, or tells no time.

    Args:
        service: the called one's name in boto3.
        headers: the request's.
        now: the time, in UTC.
    """
    told = headers.get(_HEADER, "")
    try:
        signed = datetime.strptime(told, _FORMAT).replace(tzinfo=UTC)
    except ValueError:
        return None
    minutes = _S3_MINUTES if service == "s3" else _MINUTES
    margin = timedelta(minutes=minutes)
    if abs(signed - now) <= margin:
        return None
    if service == "s3":
        return "The difference between the request time and the current time is too large."
    late = signed < now
    bound, sign = (now - margin, "-") if late else (now + margin, "+")
    wrong = "Signature expired" if late else "Signature not yet current"
    relation = "now earlier" if late else "still later"
    return f"{wrong}: {told} is {relation} than {bound:{_FORMAT}} ({now:{_FORMAT}} {sign} {minutes} min.)"

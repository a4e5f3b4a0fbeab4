"""Errors as CloudWatch Logs sends them: JSON with ``__type`` and ``message``."""

from __future__ import annotations

from cicada_local.service_errors import AwsJsonError


class LogsError(AwsJsonError):
    """An error response."""

    code = "ServiceUnavailableException"


class Malformed(LogsError):
    """The query cannot be read."""

    code, status = "MalformedQueryException", 400


class InvalidParameter(LogsError):
    """The request breaks the API's rules."""

    code, status = "InvalidParameterException", 400


class NotFound(LogsError):
    """No such log group, or no such query."""

    code, status = "ResourceNotFoundException", 400


class Throttled(LogsError):
    """Too many requests a second."""

    code, status = "ThrottlingException", 400


class LimitExceeded(LogsError):
    """Too many queries run at once."""

    code, status = "LimitExceededException", 400


class Unsigned(LogsError):
    """The request carries no signature of this service's."""

    code, status = "MissingAuthenticationTokenException", 400

"""Errors as Amazon Kendra sends them: JSON with ``__type`` and ``Message``."""

from __future__ import annotations

from cicada_local.service_errors import AwsJsonError


class KendraError(AwsJsonError):
    """An error response."""

    message_member = "Message"


class ValidationFailed(KendraError):
    """The request breaks the API's rules."""

    code, status = "ValidationException", 400


class NotFound(KendraError):
    """No such index."""

    code, status = "ResourceNotFoundException", 400


class Throttled(KendraError):
    """More queries than the index has capacity for."""

    code, status = "ThrottlingException", 400


class Unsigned(KendraError):
    """The request carries no signature of this service's."""

    code, status = "MissingAuthenticationTokenException", 400

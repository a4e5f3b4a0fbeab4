"""Errors as CloudWatch sends them in AWS JSON, with the query protocol's code beside them."""

from __future__ import annotations

from aiohttp import web

from cicada_local.service_errors import AwsJsonError


class CloudWatchError(AwsJsonError):
    """An error response."""

    code, shape = "InternalServiceError", "InternalServiceFault"
    """What clients see, and the name in the service's model."""

    def type(self) -> str:
        """See the base."""
        return self.shape

    def response(self) -> web.Response:
        """See the base."""
        response = super().response()
        response.headers["x-amzn-query-error"] = f"{self.code};{'Sender' if self.status < 500 else 'Receiver'}"
        return response


class ValidationError(CloudWatchError):
    """The request breaks the API's rules."""

    code, shape, status = "ValidationError", "ValidationException", 400


class InvalidParameterValue(CloudWatchError):
    """A member's value cannot be used."""

    code, shape, status = "InvalidParameterValue", "InvalidParameterValueException", 400


class InvalidParameterCombination(CloudWatchError):
    """Members that exclude each other."""

    code, shape, status = "InvalidParameterCombination", "InvalidParameterCombinationException", 400


class InvalidNextToken(CloudWatchError):
    """A page's token that was not given out."""

    code, shape, status = "InvalidNextToken", "InvalidNextToken", 400


class DashboardInvalid(CloudWatchError):
    """A dashboard's body that cannot be shown."""

    code, shape, status = "InvalidParameterInput", "DashboardInvalidInputError", 400


class DashboardNotFound(CloudWatchError):
    """No such dashboard."""

    code, shape, status = "ResourceNotFound", "DashboardNotFoundError", 404


class NotFound(CloudWatchError):
    """No such alarm."""

    code, shape, status = "ResourceNotFound", "ResourceNotFound", 404


class Throttled(CloudWatchError):
    """Too many requests a second."""

    code, shape, status = "Throttling", "ThrottlingException", 400


class Unsigned(CloudWatchError):
    """The request carries no signature of this service's."""

    code, shape, status = "MissingAuthenticationToken", "MissingAuthenticationTokenException", 403

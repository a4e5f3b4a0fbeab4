"""Errors with the protocol's stable codes, as hosts and their models read them."""

from __future__ import annotations

from dataclasses import dataclass

from cicada import errors as codes
from cicada_client import (
    AnswerFailed,
    ClientError,
    ConnectionLost,
    ConnectionRefused,
    InvalidQuestion,
    NotSignedIn,
    RequestRefused,
    Unauthorized,
)
from cicada_client.connection import TransportClosed

_NOT_OFFERED = "This Cicada server does not offer this: it is older than the MCP server."


@dataclass(frozen=True)
class Failure:
    """Why a tool or a resource gave nothing."""

    code: str
    message: str
    retryable: bool = False

    def __str__(self) -> str:
        """For models and people."""
        return f"{self.message} ({self.code})"

    @classmethod
    def of(cls, error: ClientError | TransportClosed) -> Failure:
        """From an error of the client."""
        match error:
            case AnswerFailed():
                return cls(error.code, error.message, error.retryable)
            case RequestRefused(code=codes.UnknownAction.code):
                return cls(error.code, _NOT_OFFERED)
            case RequestRefused():
                detail = f": {error.detail}" if error.detail else ""
                return cls(error.code, f"{error.message}{detail}", error.limit is not None)
            case InvalidQuestion():
                return cls(codes.InvalidMessage.code, str(error))
            case Unauthorized() | NotSignedIn():
                return cls(codes.Unauthorized.code, f"Not signed in: {error}")
            case ConnectionRefused():
                return cls("connection_refused", f"The deployment refuses the connection: {error}")
            case ConnectionLost() | TransportClosed():
                return cls("connection_lost", f"The deployment cannot be reached: {error}", retryable=True)
        return cls(codes.CicadaError.code, codes.CicadaError.told)

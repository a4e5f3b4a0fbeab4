"""boto3 clients that answer what a test says, each answer held to the service's own model by botocore's Stubber."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import boto3
from botocore import xform_name
from botocore.config import Config
from botocore.stub import Stubber

from cicada_cli.doctor.calls import AwsCalls

REGION = "us-east-1"


@dataclass(frozen=True)
class Refusal:
    """An error answer."""

    code: str
    message: str = ""
    status: int = 400


DENIED = Refusal("AccessDeniedException", "User: arn:aws:iam::1:user/x is not authorized to perform: it", 403)
THROTTLED = Refusal("ThrottlingException", "Rate exceeded", 429)
EXPIRED = Refusal("ExpiredTokenException", "The security token included in the request is expired", 403)

Step = tuple[str, Mapping[str, Any] | Refusal]
"""An operation as ``service.Operation``, and what it answers."""


class StubbedAws(AwsCalls):
    """Answers the calls of a test in their order; any other call fails."""

    def __init__(self, *steps: Step) -> None:
        session = boto3.Session("key", "secret", region_name=REGION)
        self._stubbers: dict[str, Stubber] = {}
        clients: dict[str, Any] = {}
        for name, answer in steps:
            service, _, operation = name.partition(".")
            if service not in clients:
                clients[service] = session.client(service, config=Config(retries={"total_max_attempts": 1}))
                self._stubbers[service] = Stubber(clients[service])
                self._stubbers[service].activate()
            method = xform_name(operation)
            if isinstance(answer, Refusal):
                self._stubbers[service].add_client_error(method, answer.code, answer.message, answer.status)
            else:
                self._stubbers[service].add_response(method, dict(answer))
        super().__init__(clients.__getitem__)

    def assert_asked_all(self) -> None:
        """Every answer was fetched."""
        for stubber in self._stubbers.values():
            stubber.assert_no_pending_responses()

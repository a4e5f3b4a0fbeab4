"""Client request tokens of DynamoDB transactions: a transaction that is sent again is applied once.

boto3 gives every ``TransactWriteItems`` a token of its own and repeats it when it retries, for example after an answer
that got lost. moto does not look at it.

Source: Amazon DynamoDB API reference, TransactWriteItems, ``ClientRequestToken``: valid for ten minutes.
"""

from __future__ import annotations

import json
import time
from collections import OrderedDict
from collections.abc import Callable

from aiohttp import web

from cicada_local.calls import Call

VALID_S = 600.0

_MISMATCH = "com.amazonaws.dynamodb.v20120810#IdempotentParameterMismatchException"


class Transactions:
    """Remembers the transactions that went through."""

    def __init__(self, *, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._done: OrderedDict[str, tuple[float, dict[str, object]]] = OrderedDict()

    def repeated(self, call: Call, body: bytes) -> web.Response | None:
        """What to answer to a transaction that went through before; None for every other request."""
        if (call.service, call.operation) != ("dynamodb", "TransactWriteItems"):
            return None
        self._forget()
        request = json.loads(body)
        known = self._done.get(request.get("ClientRequestToken", ""))
        if known is None:
            return None
        if known[1] != request:
            message = "The request token was used before with other parameters."
            return _answer(400, {"__type": _MISMATCH, "message": message})
        return _answer(200, {})

    def went_through(self, call: Call, body: bytes, status: int) -> None:
        """Take note of an answered request."""
        if (call.service, call.operation, status) == ("dynamodb", "TransactWriteItems", 200):
            request = json.loads(body)
            if "ClientRequestToken" in request:
                self._done[request["ClientRequestToken"]] = (self._clock(), request)

    def _forget(self) -> None:
        while self._done and self._clock() - next(iter(self._done.values()))[0] > VALID_S:
            self._done.popitem(last=False)


def _answer(status: int, document: dict[str, str]) -> web.Response:
    return web.Response(status=status, text=json.dumps(document), content_type="application/x-amz-json-1.0")

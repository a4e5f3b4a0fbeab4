"""The one address of the local cloud: every AWS service, the WebSocket gateway, the page, and the control endpoints."""

from __future__ import annotations

import logging
import time
from collections.abc import Callable
from dataclasses import replace
from datetime import UTC, datetime
from typing import Protocol

from aiohttp import web

from cicada_local import service_faults
from cicada_local.calls import Call, CallLog, identify, identify_by_path
from cicada_local.cloudfront.server import CloudFront
from cicada_local.faults import Faults
from cicada_local.idempotency import Transactions
from cicada_local.motoserver import MotoServer
from cicada_local.permissions import Enforcement, Principals
from cicada_local.permissions.principals import Principal, TokenInvalid
from cicada_local.permissions.refusals import s3_error, token_invalid, wrongly_signed
from cicada_local.permissions.signing_time import wrong_time
from cicada_local.s3_forms import is_upload
from cicada_local.s3_links import LinkRefused, check_link, is_link
from cicada_local.s3_uploads import FormUploads
from cicada_local.senders import CONTROL_PREFIX, SOCKET_PREFIX, Handler, Senders

logger = logging.getLogger(__name__)

_CALL = web.RequestKey("call", Call)


class Service(Protocol):
    """A stand-in that serves some paths itself."""

    def add_routes(self, app: web.Application) -> None:
        """Add its routes, and whatever it does when the app closes."""
        ...


class Front:
    """Sends each request to the service that it is meant for, if its caller's policies allow it; counts it, and makes
    moto's services fail on demand."""

    def __init__(
        self,
        moto: MotoServer,
        page: CloudFront,
        *,
        faults: Faults,
        calls: CallLog,
        principals: Principals,
        answered: Callable[[Call, bytes, int], None] = lambda *_: None,
        observed: Callable[[Call, web.StreamResponse, float], None] = lambda *_: None,
        origin_on_aws: Callable[[str], str] = lambda origin: origin,
    ) -> None:
        """Serve moto and the page.

        Args:
            moto: answers what no other service does.
            page: what browsers get.
            faults: may make moto's services fail.
            calls: counts.
            principals: who may call what.
            answered: is told of each request that moto has answered: call, body and status.
            observed: is told of each call of an AWS service, its response, and the seconds that it took.
            origin_on_aws: the origin of a page as buckets' rules name it.
        """
        self._moto = moto
        self._page = page
        self._faults = faults
        self._calls = calls
        self._principals = principals
        self._permissions = Enforcement(principals)
        self._answered = answered
        self._observed = observed
        self._transactions = Transactions()
        self._uploads = FormUploads(
            moto,
            calls=calls,
            principals=principals,
            permissions=self._permissions,
            answered=answered,
            origin_on_aws=origin_on_aws,
        )

    def application(self, *services: Service) -> web.Application:
        """The application: the services' own routes first, then the page, then moto."""
        senders = Senders(self._page.serves)
        app = web.Application(client_max_size=0, middlewares=[senders.check, self._count])
        for service in services:
            service.add_routes(app)
        app.router.add_route("*", "/{path:.*}", self._serve)
        return app

    @web.middleware
    async def _count(self, request: web.Request, handler: Handler) -> web.StreamResponse:
        if not self._is_aws(request):
            return await handler(request)
        if is_upload(request):
            return await self._uploads.answer(request)
        call = identify_by_path(request.method, request.raw_path, request.headers)
        if call is None:
            call = identify(request.method, request.raw_path, request.headers, await request.read())
        principal: Principal | None = None
        refused: web.Response | None = None
        try:
            principal = self._permissions.identify(call, request.headers, request.query)
        except TokenInvalid as error:
            refused = token_invalid(call.service, error)
        refused = self._wrongly_signed(call, request) or refused
        if principal is not None:
            call = replace(call, caller=principal.name)
        entry = self._calls.begin(call)
        request[_CALL] = call
        status = 500
        began = time.monotonic()
        try:
            if refused is not None:
                response: web.StreamResponse = refused
            elif principal is None:
                response = await handler(request)
            else:
                response = await self._permissions.guard(principal, call, request, handler)
            status = response.status
            self._observed(call, response, time.monotonic() - began)
        except web.HTTPException as refused:
            status = refused.status
            raise
        finally:
            self._calls.end(entry, status)
        return response

    def _wrongly_signed(self, call: Call, request: web.Request) -> web.Response | None:
        now = datetime.now(UTC)
        untimely = wrong_time(call.service, request.headers, now)
        if untimely is not None:
            return wrongly_signed(call.service, untimely)
        if is_link(request):
            try:
                check_link(request.raw_path, request.host, self._principals.secret_of, now)
            except LinkRefused as refused:
                return s3_error(403, refused.code, str(refused))
        return None

    def _is_aws(self, request: web.Request) -> bool:
        path = request.path
        if path.startswith(CONTROL_PREFIX):
            return False
        if path.startswith(SOCKET_PREFIX) and "/@connections/" not in path:
            return False
        return not self._page.serves(request)

    async def _serve(self, request: web.Request) -> web.StreamResponse:
        call = request.get(_CALL)
        if call is None:
            if not self._page.serves(request):
                raise web.HTTPNotFound
            return await self._page.answer(request)
        body = await request.read()
        refused = await service_faults.refusal(self._faults, call)
        if refused is not None:
            return refused
        lost = service_faults.loses_start(self._faults, call)
        if lost is not None:
            return lost
        repeated = self._transactions.repeated(call, body)
        if repeated is not None:
            return repeated
        loses = service_faults.loses_answer(self._faults, call)
        if service_faults.starts_twice(self._faults, call):
            await self._moto.answer(request, body, call.service)
        response = await self._moto.answer(request, body, call.service)
        self._transactions.went_through(call, body, response.status)
        self._answered(call, body, response.status)
        if loses and request.transport is not None:
            request.transport.abort()
        return response

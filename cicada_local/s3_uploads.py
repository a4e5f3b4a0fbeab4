"""Serves S3's uploads by form: to browsers whose page the bucket's rules allow, and to programs."""

from __future__ import annotations

from collections.abc import Callable
from datetime import UTC, datetime
from http import HTTPStatus
from urllib.parse import quote, unquote

from aiohttp import web

from cicada_local.calls import Call, CallLog
from cicada_local.motoserver import MotoServer
from cicada_local.permissions import Enforcement, Principals
from cicada_local.permissions.principals import TokenInvalid
from cicada_local.permissions.refusals import s3_error, token_invalid
from cicada_local.s3_cross_origin import allowed, response_headers, rules_of
from cicada_local.s3_forms import FormRefused, UploadForm, check_form, read_form

_NOT_ALLOWED = "CORSResponse: This CORS request is not allowed."
_NOT_ENABLED = "CORSResponse: CORS is not enabled for this bucket."


class FormUploads:
    """Answers such requests."""

    def __init__(
        self,
        moto: MotoServer,
        *,
        calls: CallLog,
        principals: Principals,
        permissions: Enforcement,
        answered: Callable[[Call, bytes, int], None],
        origin_on_aws: Callable[[str], str] = lambda origin: origin,
    ) -> None:
        """Serve the buckets of moto.

        Args:
            moto: stores the objects.
            calls: counts.
            principals: who may have signed a form.
            permissions: what they may do.
            answered: is told of each object that was stored.
            origin_on_aws: the origin of a page as the bucket's rules name it.
        """
        self._moto = moto
        self._calls = calls
        self._principals = principals
        self._permissions = permissions
        self._answered = answered
        self._origin_on_aws = origin_on_aws

    async def answer(self, request: web.Request) -> web.Response:
        """Store a form's object, or tell a browser whether it may send one."""
        bucket = unquote(request.path).strip("/")
        if request.method == "OPTIONS":
            return self._preflight(bucket, request)
        entry = self._calls.begin(Call("s3", "PostObject", bucket))
        status = 500
        try:
            response = await self._stored(bucket, request)
            status = response.status
        finally:
            self._calls.end(entry, status)
        origin = request.headers.get("Origin")
        if origin is not None:
            rule = allowed(rules_of(bucket), self._origin_on_aws(origin), "POST")
            response.headers.update({} if rule is None else response_headers(rule, origin))
        return response

    async def _stored(self, bucket: str, request: web.Request) -> web.Response:
        try:
            form = read_form(bucket, request.headers["Content-Type"], await request.read())
            check_form(form, self._principals.secret_of, datetime.now(UTC))
            principal = self._principals.find(form.access_key, form.token)
        except FormRefused as refused:
            return s3_error(refused.status, refused.code, str(refused))
        except TokenInvalid as error:
            return token_invalid("s3", error)
        call = Call("s3", "PutObject", f"{bucket}/{form.key}", "" if principal is None else principal.name)
        denied = None if principal is None else self._permissions.refusal(principal, call, _path(form))
        if denied is not None:
            return denied
        reply = await self._moto.put_object(_path(form), form.body, form.stored_headers())
        self._answered(call, form.body, reply.status)
        if reply.status != HTTPStatus.OK:
            return web.Response(status=reply.status, body=reply.body, content_type="application/xml")
        status = int(form.fields.get("success_action_status", "204"))
        headers = {"ETag": dict(reply.headers).get("ETag", ""), "Location": f"{request.url.origin()}{_path(form)}"}
        return web.Response(status=status if status == HTTPStatus.OK else HTTPStatus.NO_CONTENT, headers=headers)

    def _preflight(self, bucket: str, request: web.Request) -> web.Response:
        origin, method = request.headers.get("Origin", ""), request.headers["Access-Control-Request-Method"]
        asked = request.headers.get("Access-Control-Request-Headers", "")
        names = [name.strip() for name in asked.split(",") if name.strip()]
        rules = rules_of(bucket)
        rule = allowed(rules, self._origin_on_aws(origin), method, names)
        if rule is None:
            return s3_error(403, "AccessForbidden", _NOT_ALLOWED if rules else _NOT_ENABLED)
        return web.Response(status=200, headers=response_headers(rule, origin, names))


def _path(form: UploadForm) -> str:
    return f"/{form.bucket}/{quote(form.key)}"

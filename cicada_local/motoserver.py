"""moto behind the front server: its WSGI application, called in this process, one request of a service at a time.

moto reads, checks and writes its tables in separate steps, so two requests at once could both pass a condition of which
only one may. AWS's conditional writes are atomic, so each service's requests are handled one after another here. That
does not hold up the services that call each other: moto does so in process, or by HTTP from a thread of its own.
"""

from __future__ import annotations

import asyncio
import io
import json
import logging
import os
import sys
import threading
from collections import defaultdict
from collections.abc import Iterable, Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import Any
from urllib.parse import unquote_to_bytes
from xml.sax.saxutils import escape

from aiohttp import web
from multidict import CIMultiDict

from cicada_local.permissions import Principals
from cicada_local.places import REGION

logger = logging.getLogger(__name__)

_THREADS = 16
_NOT_PASSED_ON = frozenset({"connection", "keep-alive", "transfer-encoding", "content-length", "date", "server"})
_BODILESS = frozenset({204, 304})


@dataclass(frozen=True)
class Reply:
    """What moto answered."""

    status: int
    headers: list[tuple[str, str]]
    body: bytes


class ServiceRefused(Exception):
    """A service answered a call of the local cloud's own with an error."""


class MotoServer:
    """moto's services, with the Step Functions interpreter switched on."""

    def __init__(self, port: int, principals: Principals) -> None:
        """Load moto.

        Args:
            port: where the front server listens: the interpreter invokes functions by HTTP at ``localhost:<port>``.
            principals: issues the credentials with which it does so.
        """
        os.environ["MOTO_PORT"] = str(port)
        from moto.core.config import default_user_config
        from moto.moto_server.werkzeug_app import create_backend_app

        from cicada_local import cloudformation, interpreter, moto_speed

        default_user_config["stepfunctions"] = {"execute_state_machine": True}
        interpreter.install(principals)
        moto_speed.install()
        cloudformation.register()
        self._dispatcher = moto_speed.Dispatcher(create_backend_app)
        self._locks: defaultdict[str, threading.Lock] = defaultdict(threading.Lock)
        self._threads = ThreadPoolExecutor(_THREADS, thread_name_prefix="moto")

    async def answer(self, request: web.Request, body: bytes, service: str) -> web.Response:
        """Answer one request of an AWS service.

        Args:
            request: as it came in; its host header is what moto sees.
            body: its body, read.
            service: whose turn is awaited, for example ``dynamodb``.
        """
        environ = environ_of(request, body)
        reply = await asyncio.get_running_loop().run_in_executor(self._threads, self._answer, environ, service)
        headers = CIMultiDict((name, value) for name, value in reply.headers if _is_passed_on(name))
        if request.method == "HEAD":
            headers["Content-Length"] = CIMultiDict(reply.headers).get("Content-Length", str(len(reply.body)))
            return web.Response(status=reply.status, headers=headers)
        body_out = None if reply.status in _BODILESS else reply.body
        return web.Response(status=reply.status, headers=headers, body=body_out)

    def lock(self, service: str) -> threading.Lock:
        """What is held while a service answers: hold it to look at its tables or buckets at rest."""
        return self._locks[service]

    def call_json(self, service: str, target: str, payload: Mapping[str, Any]) -> dict[str, Any]:
        """Call a JSON service without the front server, and so uncounted and without faults.

        Args:
            service: its name, for example ``dynamodb``.
            target: the ``X-Amz-Target``, for example ``DynamoDB_20120810.GetItem``.
            payload: the request as plain data.

        Raises:
            ServiceRefused: the service answered with an error.
        """
        body = json.dumps(payload).encode()
        scope = f"{REGION}/{service}/aws4_request"
        reply = self._answer(
            {
                **_bare_environ("POST", "/", body),
                "HTTP_HOST": "localhost",
                "HTTP_X_AMZ_TARGET": target,
                "HTTP_AUTHORIZATION": f"AWS4-HMAC-SHA256 Credential=local/20260101/{scope}, Signature=0",
                "CONTENT_TYPE": "application/x-amz-json-1.0",
            },
            service,
        )
        answer: dict[str, Any] = json.loads(reply.body or b"{}")
        if reply.status >= 400:
            raise ServiceRefused(f"{target}: {answer.get('__type', reply.status)}: {answer.get('message', '')}")
        return answer

    async def put_object(self, path: str, body: bytes, headers: Mapping[str, str]) -> Reply:
        """Store an object, whose checks were made: ``path`` is quoted, of bucket and key."""
        scope = f"{REGION}/s3/aws4_request"
        environ = {
            **_bare_environ("PUT", path, body),
            "HTTP_HOST": "localhost",
            "HTTP_AUTHORIZATION": f"AWS4-HMAC-SHA256 Credential=local/20260101/{scope}, Signature=0",
            **{environ_key(name): value for name, value in headers.items()},
        }
        return await asyncio.get_running_loop().run_in_executor(self._threads, self._answer, environ, "s3")

    @staticmethod
    def forget_instances() -> None:
        """Empty moto's list of every object that it ever made, for which nothing here has a use."""
        import moto.core.base_backend

        core: Any = moto.core.base_backend
        for models in core.model_data.values():
            for model in models.values():
                model.instances_tracked.clear()

    def close(self) -> None:
        """Let go of the threads; a request under way is not waited for."""
        self._threads.shutdown(wait=False, cancel_futures=True)

    def _answer(self, environ: dict[str, Any], service: str) -> Reply:
        with self._locks[service]:
            try:
                return call_wsgi(self._dispatcher.get_application(environ), environ)
            except Exception as error:
                logger.exception("moto failed on %s %s", environ["REQUEST_METHOD"], environ["REQUEST_URI"])
                return _failed(error, environ)


def _is_passed_on(name: str) -> bool:
    """Whether a header of moto's answer is handed on: not those of the hop, nor those that let any page read it."""
    name = name.lower()
    return name not in _NOT_PASSED_ON and not name.startswith("access-control-")


def environ_key(name: str) -> str:
    """The name of a header in a WSGI environment."""
    key = name.upper().replace("-", "_")
    return key if key in ("CONTENT_TYPE", "CONTENT_LENGTH") else f"HTTP_{key}"


def environ_of(request: web.Request, body: bytes) -> dict[str, Any]:
    """The WSGI environment (PEP 3333) of a request whose body has been read."""
    from moto.core.request import (
        PRESERVED_HEADER_NAMES_ENVIRON_KEY,
        environ_key_for_header,
        should_preserve_original_header_name,
    )

    environ = _bare_environ(request.method, request.raw_path, body)
    preserved: dict[str, str] = {}
    for name, value in request.headers.items():
        key = environ_key_for_header(name)
        if key in ("CONTENT_LENGTH", "HTTP_TRANSFER_ENCODING"):
            continue
        if should_preserve_original_header_name(name):
            preserved[key] = name  # S3 metadata may have underscores, which WSGI cannot tell from dashes
        environ[key] = f"{environ[key]},{value}" if key in environ else value
    environ[PRESERVED_HEADER_NAMES_ENVIRON_KEY] = preserved
    return environ


def _bare_environ(method: str, raw_path: str, body: bytes) -> dict[str, Any]:
    path, _, query = raw_path.partition("?")
    return {
        "REQUEST_METHOD": method,
        "SCRIPT_NAME": "",
        "PATH_INFO": unquote_to_bytes(path).decode("latin-1"),
        "QUERY_STRING": query,
        "REQUEST_URI": raw_path,
        "RAW_URI": raw_path,
        "SERVER_NAME": "localhost",
        "SERVER_PORT": os.environ["MOTO_PORT"],
        "SERVER_PROTOCOL": "HTTP/1.1",
        "REMOTE_ADDR": "127.0.0.1",
        "CONTENT_LENGTH": str(len(body)),
        "wsgi.version": (1, 0),
        "wsgi.url_scheme": "http",
        "wsgi.input": io.BytesIO(body),
        "wsgi.errors": sys.stderr,
        "wsgi.multithread": True,
        "wsgi.multiprocess": False,
        "wsgi.run_once": False,
    }


def call_wsgi(application: Any, environ: dict[str, Any]) -> Reply:
    """Call a WSGI application and gather its answer."""
    started: list[tuple[str, list[tuple[str, str]]]] = []
    written = io.BytesIO()

    def start_response(status: str, headers: list[tuple[str, str]], _exc_info: Any = None) -> Any:
        started[:] = [(status, headers)]
        return written.write

    parts: Iterable[bytes] = application(environ, start_response)
    try:
        for part in parts:
            written.write(part)
    finally:
        close = getattr(parts, "close", None)
        if close is not None:
            close()
    status, headers = started[0]
    return Reply(int(status.split(" ", 1)[0]), headers, written.getvalue())


def _failed(error: Exception, environ: dict[str, Any]) -> Reply:
    """An error that moto let through, in a form that the caller's SDK can read.

    A template that moto cannot deploy is told as the caller's fault, for a server's fault would be retried.
    """
    message = f"{type(error).__name__}: {error}"
    if "HTTP_X_AMZ_TARGET" in environ:
        text = json.dumps({"__type": "InternalFailure", "message": message})
        return Reply(500, [("Content-Type", "application/x-amz-json-1.0")], text.encode())
    deploying = "/cloudformation/" in environ.get("HTTP_AUTHORIZATION", "")
    status, code = (400, "ValidationError") if deploying else (500, "InternalFailure")
    told = f"<Type>Sender</Type><Code>{code}</Code><Message>{escape(message)}</Message>"
    text = f"<ErrorResponse><Error>{told}</Error></ErrorResponse>"
    return Reply(status, [("Content-Type", "text/xml")], text.encode())

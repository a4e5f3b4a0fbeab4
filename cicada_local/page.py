"""The web page, and the little that it needs to know of the deployment."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any
from urllib.parse import unquote

from aiohttp import web

_CONFIG_PATH = "/config.json"
_HEADERS_FILE = "headers.json"


def page_headers(folder: Path, api: str) -> dict[str, str]:
    """The headers that every host of the page has to send, from the page's own list of them.

    Args:
        folder: the page's.
        api: the origin of the WebSocket, such as ``wss://abc.execute-api.eu-central-1.amazonaws.com``.
    """
    file = folder / _HEADERS_FILE
    told: dict[str, str] = json.loads(file.read_text(encoding="utf-8")) if file.exists() else {}
    return {name: value.replace("{api}", api).replace(" ;", ";") for name, value in told.items()}


class Page:
    """Serves the files of one folder to browsers, beside the AWS APIs of the same address."""

    def __init__(self, folder: Path, config: Callable[[], Mapping[str, Any] | None], *, api: str = "") -> None:
        """Serve a folder.

        Args:
            folder: holds ``index.html``, what that loads, and ``headers.json``.
            config: what the page is told of the deployment, as plain data; None while there is none.
            api: the origin of the WebSocket, the only one beside its own that the page may speak to.
        """
        self._folder = folder.resolve()
        self._config = config
        self._headers = {"Cache-Control": "no-cache", **page_headers(self._folder, api)}

    def serves(self, request: web.Request) -> bool:
        """Whether this is a browser's request for the page: a read that is not signed, of a file that there is."""
        if request.method not in ("GET", "HEAD") or "Authorization" in request.headers:
            return False
        return request.path == _CONFIG_PATH or self._file(request.path) is not None

    async def answer(self, request: web.Request) -> web.StreamResponse:
        """The file, or the configuration."""
        if request.path == _CONFIG_PATH:
            return self._configuration()
        file = self._file(request.path)
        if file is None:
            raise web.HTTPNotFound
        return web.FileResponse(file, headers=self._headers)

    def _configuration(self) -> web.Response:
        config = self._config()
        if config is None:
            return web.json_response(
                {"error": "The stacks are still being deployed."}, status=503, headers=self._headers
            )
        return web.json_response(config, headers=self._headers)

    def _file(self, path: str) -> Path | None:
        try:
            file = (self._folder / unquote(path).lstrip("/")).resolve()
            if file == self._folder:
                file = file / "index.html"
            return file if file.is_file() and file.is_relative_to(self._folder) else None
        except (OSError, ValueError):  # no file can be called so: a key of S3 can
            return None

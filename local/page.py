"""The web page, and the little that it needs to know of the deployment."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any
from urllib.parse import unquote

from aiohttp import web

_CONFIG_PATH = "/config.json"
_NOT_CACHED = {"Cache-Control": "no-cache"}


class Page:
    """Serves the files of one folder to browsers, beside the AWS APIs of the same address."""

    def __init__(self, folder: Path, config: Callable[[], Mapping[str, Any] | None]) -> None:
        """Serve a folder.

        Args:
            folder: holds ``index.html`` and what that loads.
            config: what the page is told of the deployment, as plain data; None while there is none.
        """
        self._folder = folder.resolve()
        self._config = config

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
        return web.FileResponse(file, headers=_NOT_CACHED)

    def _configuration(self) -> web.Response:
        config = self._config()
        if config is None:
            return web.json_response({"error": "The stacks are still being deployed."}, status=503, headers=_NOT_CACHED)
        return web.json_response(config, headers=_NOT_CACHED)

    def _file(self, path: str) -> Path | None:
        file = (self._folder / unquote(path).lstrip("/")).resolve()
        if file == self._folder:
            file = file / "index.html"
        return file if file.is_file() and file.is_relative_to(self._folder) else None

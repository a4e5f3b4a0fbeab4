"""The web page, and the little that it needs to know of the deployment."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from urllib.parse import unquote

from aiohttp import web

_CONFIG_PATH = "/config.json"
_NOT_CACHED = {"Cache-Control": "no-cache"}


class Page:
    """Serves the files of one folder to browsers, beside the AWS APIs of the same address."""

    def __init__(self, folder: Path, *, websocket_url: Callable[[], str | None], examples: Sequence[str] = ()) -> None:
        """Serve a folder.

        Args:
            folder: holds ``index.html`` and what that loads.
            websocket_url: the deployed API's address; None while nothing is deployed.
            examples: questions that the page offers.
        """
        self._folder = folder.resolve()
        self._websocket_url = websocket_url
        self._examples = list(examples)

    def serves(self, request: web.Request) -> bool:
        """Whether this is a browser's request for the page: a read that is not signed, of a file that there is."""
        if request.method not in ("GET", "HEAD") or "Authorization" in request.headers:
            return False
        return request.path == _CONFIG_PATH or self._file(request.path) is not None

    async def answer(self, request: web.Request) -> web.StreamResponse:
        """The file, or the configuration."""
        if request.path == _CONFIG_PATH:
            return self._config()
        file = self._file(request.path)
        if file is None:
            raise web.HTTPNotFound
        return web.FileResponse(file, headers=_NOT_CACHED)

    def _config(self) -> web.Response:
        url = self._websocket_url()
        if url is None:
            return web.json_response({"error": "The stacks are still being deployed."}, status=503, headers=_NOT_CACHED)
        return web.json_response({"webSocketUrl": url, "examples": self._examples}, headers=_NOT_CACHED)

    def _file(self, path: str) -> Path | None:
        file = (self._folder / unquote(path).lstrip("/")).resolve()
        if file == self._folder:
            file = file / "index.html"
        return file if file.is_file() and file.is_relative_to(self._folder) else None

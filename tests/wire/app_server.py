"""An aiohttp application in a thread, on a port of its own."""

import asyncio
import ssl
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress

from aiohttp import web

_CLEANUP_S = 10.0


@contextmanager
def serving_app(app: web.Application, *, tls: ssl.SSLContext | None = None) -> Iterator[str]:
    """Serve it as long as the context lasts, over TLS if there is a context for that; gives its address."""

    async def start() -> web.AppRunner:
        runner = web.AppRunner(app, access_log=None, shutdown_timeout=0.1)
        await runner.setup()
        await web.TCPSite(runner, "127.0.0.1", 0, ssl_context=tls).start()
        return runner

    loop = asyncio.new_event_loop()
    runner = loop.run_until_complete(start())
    thread = threading.Thread(target=loop.run_forever, daemon=True)
    thread.start()
    try:
        yield f"{'http' if tls is None else 'https'}://127.0.0.1:{runner.addresses[0][1]}"
    finally:
        with suppress(TimeoutError):  # of a handler that sleeps on
            asyncio.run_coroutine_threadsafe(runner.cleanup(), loop).result(_CLEANUP_S)
        loop.call_soon_threadsafe(loop.stop)
        thread.join(_CLEANUP_S)
        loop.close()

"""``python -m cicada_http.bridge``: serve the ASGI application that ``_HANDLER`` names."""

from __future__ import annotations

import asyncio
import importlib
import io
import os
import sys
import traceback

from cicada_http.bridge.exchange import App
from cicada_http.bridge.runtime_api import Failure, RuntimeApi, RuntimeApiFailed
from cicada_http.bridge.serving import serve


def load(handler: str) -> App:
    """The application that ``<module>.<name>`` names; slashes in it part folders, as for Lambda's own client."""
    module, _, name = handler.replace("/", ".").rpartition(".")
    found: App = getattr(importlib.import_module(module), name)
    return found


async def main() -> int:
    """Serve until the environment ends; the process's exit status."""
    api = RuntimeApi(os.environ["AWS_LAMBDA_RUNTIME_API"])
    try:
        app = load(os.environ["_HANDLER"])
        await serve(app, api)
    except RuntimeApiFailed as error:
        print(f"the Runtime API ended: {error}", file=sys.stderr)
    except Exception as error:
        traceback.print_exc()
        await api.fail_start(Failure(f"Runtime.{type(error).__name__}", "The application did not start."))
    return 1


if __name__ == "__main__":
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(line_buffering=True)  # Lambda freezes the process between invocations
    sys.exit(asyncio.run(main()))

"""``python -m cicada_local.bedrock``: the Bedrock stand-in alone, for programs that need its embedding model only.

Listens on a free port of this machine and tells it as a line of JSON on standard output: ``{"endpointUrl": …}``. Ends
when its standard input does: with the program that started it.
"""

from __future__ import annotations

import asyncio
import json
import os
import sys
from collections.abc import Sequence

from cicada_local.places import ONE_MATH_THREAD, Places

HOST = "127.0.0.1"


def main() -> int:
    """Serve until standard input ends."""
    os.environ.update(ONE_MATH_THREAD)  # before numpy is imported
    asyncio.run(_serve())
    return 0


async def _serve() -> None:
    from aiohttp import web

    from cicada_local.bedrock.answerer import ExtractiveAnswerer
    from cicada_local.bedrock.minilm import CachedEmbedder
    from cicada_local.bedrock.server import add_routes
    from cicada_local.faults import Faults
    from cicada_local.senders import programs_only

    embedder = CachedEmbedder(Places.default().embeddings)

    def embed(texts: Sequence[str]) -> list[list[float]]:
        vectors: list[list[float]] = embedder.embed(texts).tolist()
        return vectors

    app = web.Application(middlewares=[programs_only])
    answerer = ExtractiveAnswerer(embedder)
    add_routes(app, answer=answerer.answer, fill=answerer.fill, embed=embed, rank=answerer.rank, faults=Faults())
    runner = web.AppRunner(app, access_log=None)
    await runner.setup()
    try:
        site = web.TCPSite(runner, HOST, 0)
        await site.start()
        port = runner.addresses[0][1]
        print(json.dumps({"endpointUrl": f"http://{HOST}:{port}"}), flush=True)
        await asyncio.to_thread(sys.stdin.buffer.read)
    finally:
        await runner.cleanup()
        embedder.close()


if __name__ == "__main__":
    sys.exit(main())

"""``cicada mcp``: the MCP server over standard input and output, for hosts that start it as a program."""

from __future__ import annotations

import argparse
import asyncio
import os
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from cicada_cli.context import deployment_of
from cicada_cli.credentials import token_source
from cicada_cli.deployment import CHAT
from cicada_cli.exits import Exit, UsageError
from cicada_cli.grammar import Commands
from cicada_cli.shared_options import add_connection
from cicada_client import CicadaClient, TokenProvider


def add_mcp(commands: Commands) -> None:
    """Add the command."""
    parser = commands.add_parser(
        "mcp",
        help="serve the corpus to an MCP host",
        description="Serve the corpus to a host of the Model Context Protocol over standard input and output. "
        "The host starts this command, and ends it by closing its standard input.",
        examples=("cicada mcp", "cicada mcp --page https://corpus.example.org"),
    )
    add_connection(parser)
    parser.set_defaults(run=_mcp)


def _mcp(args: argparse.Namespace) -> Exit:
    deployment = deployment_of(args, CHAT)
    return serve(deployment.url, token_source(args.token, args.token_file, os.environ, deployment))


def serve(url: str, token: str | TokenProvider | None) -> Exit:
    """Serve until standard input is closed. Raises UsageError without the extra ``mcp``."""
    try:
        from cicada_mcp.server import create_server
    except ModuleNotFoundError as error:
        if error.name is None or error.name.startswith("cicada"):
            raise
        raise UsageError("the MCP server needs the extra mcp: pip install '.[mcp]' in Cicada's repository") from error

    async def run() -> None:
        async with CicadaClient(url, token=token) as client:

            @asynccontextmanager
            async def shared(_: str | None) -> AsyncIterator[CicadaClient]:
                yield client

            await create_server(shared).run_stdio_async()

    asyncio.run(run())
    return Exit.DONE

"""The commands by name, without what each of them imports: a command's module is imported when it is typed.

To add a command, add a line to :data:`GROUPS`. It names the function that adds the command's parser, whose default
``run`` takes the parsed arguments and returns the exit status.
"""

from __future__ import annotations

import argparse
from functools import cache
from importlib import import_module
from typing import NamedTuple

from cicada import __version__
from cicada_cli.grammar import Parser


class Command(NamedTuple):
    """A command."""

    name: str
    summary: str
    """What it does, in a few words."""
    adder: str
    """The function that adds its parser: module and name."""


GROUPS: dict[str, tuple[Command, ...]] = {
    "Ask": (
        Command("status", "check the deployment", "cicada_cli.status:add_status"),
        Command("ask", "ask one question", "cicada_cli.ask:add_ask"),
        Command("chat", "ask one question after another", "cicada_cli.chat:add_chat"),
        Command("search", "find passages, without an answer", "cicada_cli.search:add_search"),
        Command("collections", "show what the corpus holds", "cicada_cli.collection_list:add_collections"),
        Command("profile", "manage profiles of characters, places, theories", "cicada_cli.profiles:add_profile"),
    ),
    "Sign in": (
        Command("login", "sign in", "cicada_cli.login:add_login"),
        Command("logout", "sign out", "cicada_cli.login:add_logout"),
        Command("whoami", "show who is signed in", "cicada_cli.login:add_whoami"),
    ),
    "Load documents": (
        Command("load", "load documents or a script", "cicada_cli.load:add_load"),
        Command("unload", "delete documents", "cicada_cli.load:add_unload"),
        Command("ingest", "process uploaded documents, show reports", "cicada_cli.ingest:add_ingest"),
    ),
    "Operate": (
        Command("doctor", "check an AWS account and a deployment", "cicada_cli.doctor.command:add_doctor"),
        Command("trace", "show a request's timeline", "cicada_cli.trace:add_trace"),
        Command("feedback", "list and count ratings of answers", "cicada_cli.feedback:add_feedback"),
        Command("breakers", "list circuit breakers, close one", "cicada_cli.breakers:add_breakers"),
        Command("index", "manage index versions", "cicada_cli.upkeep:add_index"),
        Command("restore", "restore the index or the table", "cicada_cli.restore:add_restore"),
        Command("engine", "load a managed search engine", "cicada_cli.engine:add_engine"),
        Command("audit", "list administrative changes", "cicada_cli.audit:add_audit"),
    ),
    "Manage users": (
        Command("users", "add, list and remove users", "cicada_cli.users:add_users"),
        Command("user", "export or erase a user's data", "cicada_cli.personal_data:add_user"),
        Command("usage", "show what was used", "cicada_cli.usage:add_usage"),
        Command("limits", "show or change limits on use", "cicada_cli.limits:add_limits"),
    ),
    "Develop": (
        Command("retrieve", "run a retrieval pipeline", "cicada_cli.retrieve:add_retrieve"),
        Command("mcp", "serve the corpus to an MCP host", "cicada_cli.mcp:add_mcp"),
        Command("eval", "measure retrieval and answers", "cicada_cli.evaluate:add_eval"),
    ),
    "Command line": (
        Command("completion", "print a completion script for your shell", "cicada_cli.completion:add_completion"),
        Command("help", "show a command's help", "cicada_cli.overview:add_help"),
    ),
}
"""All commands, in the order of the overview."""
COMMANDS = {command.name: command for group in GROUPS.values() for command in group}
PROG = "cicada"
DESCRIPTION = "Ask a corpus questions and get streamed, cited answers."


@cache
def parser_of(*names: str) -> Parser:
    """The parser of the command line with these commands only."""
    parser = Parser(prog=PROG, description=DESCRIPTION)
    parser.add_argument("--version", action="version", version=f"%(prog)s {__version__}")
    commands = parser.add_subparsers(dest="command", required=True, metavar="COMMAND")
    for name in names:
        module, _, adder = COMMANDS[name].adder.partition(":")
        getattr(import_module(module), adder)(commands)
    return parser


def build_parser() -> argparse.ArgumentParser:
    """The parser of the whole command line."""
    return parser_of(*COMMANDS)

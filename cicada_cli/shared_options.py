"""Options that several commands share."""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from pathlib import Path

from cicada_cli import argument_types
from cicada_cli.deployment import DEFAULT_STACK_PREFIX


def add_scope(parser: argparse.ArgumentParser) -> None:
    """Which part of the corpus a question searches, and how many passages."""
    add_filter(parser, "--episode", "search this episode")
    add_filter(parser, "--collection", "search this collection")
    add_filter(parser, "--document", "search the document with this source")
    add_filter(parser, "--section", "search below this heading, such as 'Setup > Locks'")
    parser.add_argument(
        "--top-k", type=argument_types.top_k, metavar="N", help="passages to retrieve (default: the deployment's)"
    )


def add_filter(parser: argparse.ArgumentParser, option: str, told: str) -> None:
    """An option that narrows a search and can be repeated."""
    metavar = option.removeprefix("--").rpartition("-")[2].upper()
    parser.add_argument(
        option, action="append", default=[], metavar=metavar, help=f"{told}; can be repeated (default: all)"
    )


def add_since(parser: argparse.ArgumentParser, default: str) -> None:
    """How far back a command looks."""
    parser.add_argument(
        "--since",
        type=argument_types.duration,
        default=default,
        metavar="DURATION",
        help="how far back to look: 30m, 24h, 7d (default: %(default)s)",
    )


def add_json(parser: argparse.ArgumentParser, told: str = "print a JSON object") -> None:
    """Output for programs."""
    parser.add_argument("--json", action="store_true", help=told)


def add_json_lines(parser: argparse.ArgumentParser) -> None:
    """Output for programs, of a command that lists something."""
    add_json(parser, "print one JSON object per line")


def add_metadata(parser: argparse.ArgumentParser) -> None:
    """Filters by metadata."""
    parser.add_argument(
        "--metadata",
        type=argument_types.metadata,
        action="append",
        default=[],
        metavar="KEY=VALUE",
        help="search passages with this metadata; can be repeated: values of the same key are alternatives",
    )


def add_groups(parser: argparse.ArgumentParser) -> None:
    """Whose rights a search has."""
    parser.add_argument(
        "--groups",
        type=argument_types.groups,
        metavar="NAMES",
        help="search as a member of these groups, separated by commas; '' for no group (default: search everything)",
    )
    add_access(parser)


def as_whom(args: argparse.Namespace, needs: Sequence[str]) -> tuple[str, ...]:
    """What a search must know of the deployment: with ``--groups``, the settings of access too."""
    return tuple(needs) if args.groups is None else (*needs, "access")


def add_access(parser: argparse._ActionsContainer) -> None:
    """The deployment's settings of access, where its stacks are not asked."""
    parser.add_argument(
        "--access", metavar="JSON", help="the setting `access` of the deployment (CICADA_ACCESS); {} if it has none"
    )


def add_connection(parser: argparse.ArgumentParser) -> None:
    """How a command connects to the deployment."""
    group = parser.add_argument_group("connection")
    group.add_argument("--url", help="WebSocket URL of the deployment (CICADA_URL)")
    group.add_argument("--page", metavar="URL", help="web page of the deployment, which names the URL (CICADA_PAGE)")
    token = group.add_mutually_exclusive_group()
    token.add_argument("--token", help="access token (CICADA_TOKEN, which the process list does not show)")
    token.add_argument("--token-file", type=Path, metavar="FILE", help="file with the token, read at every connection")
    add_aws(group)


def add_bucket(group: argparse._ActionsContainer, holds: str = "the index") -> None:
    """The deployment's bucket."""
    group.add_argument("--bucket", metavar="NAME", help=f"bucket with {holds} (CICADA_INDEX_BUCKET)")


def add_table(group: argparse._ActionsContainer) -> None:
    """The deployment's table."""
    group.add_argument("--table", metavar="NAME", help="table of requests (CICADA_REQUESTS_TABLE)")


def add_index(parser: argparse.ArgumentParser) -> None:
    """How a command that loads or searches finds the index."""
    group = parser.add_argument_group("deployment")
    add_bucket(group)
    group.add_argument("--embedding-model", metavar="ID", help="embedding model (CICADA_EMBEDDING_MODEL_ID)")
    group.add_argument(
        "--dimensions", type=int, metavar="N", help="length of the embedding vectors (CICADA_EMBEDDING_DIMENSIONS)"
    )
    add_aws(group)


def add_aws(group: argparse._ArgumentGroup) -> None:
    """Which AWS account and Region to look for the deployment in."""
    group.add_argument("--aws-profile", metavar="NAME", help="profile of your AWS configuration (AWS_PROFILE)")
    group.add_argument("--region", metavar="NAME", help="AWS Region (AWS_REGION)")
    group.add_argument("--endpoint-url", metavar="URL", help="AWS endpoint (AWS_ENDPOINT_URL)")
    group.add_argument(
        "--stack-prefix",
        metavar="NAME",
        help=f"prefix of the stack names (CICADA_STACK_PREFIX; default: {DEFAULT_STACK_PREFIX})",
    )

"""Options that several commands share."""

from __future__ import annotations

import argparse
from pathlib import Path

from cicada_cli import argument_types
from cicada_cli.deployment import DEFAULT_STACK_PREFIX


def add_scope(parser: argparse.ArgumentParser) -> None:
    """What of the corpus a question searches, and how much."""
    add_filter(parser, "--episode", "search only this episode")
    add_filter(parser, "--collection", "search only this collection")
    parser.add_argument(
        "--top-k", type=argument_types.top_k, metavar="N", help="passages to retrieve (default: the deployment's)"
    )


def add_filter(parser: argparse.ArgumentParser, option: str, told: str) -> None:
    """An option that narrows the search, and can be repeated."""
    parser.add_argument(option, action="append", default=[], help=f"{told}; can be repeated (default: all)")


def add_since(parser: argparse.ArgumentParser, default: str) -> None:
    """How old the things may be that a command lists."""
    parser.add_argument(
        "--since",
        type=argument_types.duration,
        default=default,
        metavar="DURATION",
        help="how far back to look: 30m, 24h, 7d (default: %(default)s)",
    )


def add_metadata(parser: argparse.ArgumentParser) -> None:
    """Passages by their metadata."""
    parser.add_argument(
        "--metadata",
        type=argument_types.metadata,
        action="append",
        default=[],
        metavar="KEY=VALUE",
        help="only passages with this metadata, source among it; the values of a repeated key are alternatives",
    )


def add_groups(parser: argparse.ArgumentParser) -> None:
    """As whom a command searches."""
    parser.add_argument(
        "--groups",
        type=argument_types.groups,
        metavar="NAMES",
        help="search what members of these groups may read, with commas between; '' for members of none (default: all)",
    )
    add_access(parser)


def add_access(parser: argparse._ActionsContainer) -> None:
    """The deployment's settings of access, where its stacks are not asked."""
    parser.add_argument(
        "--access", metavar="JSON", help="the deployment's settings `access` (CICADA_ACCESS); {} without any"
    )


def add_connection(parser: argparse.ArgumentParser) -> None:
    """How a command that asks reaches the deployment."""
    group = parser.add_argument_group("connection")
    group.add_argument("--url", help="the deployment's WebSocket URL (CICADA_URL)")
    group.add_argument("--page", metavar="URL", help="the deployment's page, which names the URL (CICADA_PAGE)")
    token = group.add_mutually_exclusive_group()
    token.add_argument(
        "--token", help="the token to connect with (CICADA_TOKEN); others can see it in the list of processes"
    )
    token.add_argument("--token-file", type=Path, metavar="FILE", help="a file that holds it, read at every connection")
    add_aws(group)


def add_index(parser: argparse.ArgumentParser) -> None:
    """How a command that loads or searches finds the deployment's index."""
    group = parser.add_argument_group("deployment")
    group.add_argument("--bucket", help="the bucket that holds the index (CICADA_INDEX_BUCKET)")
    group.add_argument(
        "--embedding-model", metavar="ID", help="the model that it is embedded with (CICADA_EMBEDDING_MODEL_ID)"
    )
    group.add_argument(
        "--dimensions", type=int, metavar="N", help="the length of its vectors (CICADA_EMBEDDING_DIMENSIONS)"
    )
    add_aws(group)


def add_aws(group: argparse._ArgumentGroup) -> None:
    """Which AWS account and Region the deployment is looked for in."""
    group.add_argument("--profile", help="AWS profile of the account to look for the deployment in (AWS_PROFILE)")
    group.add_argument("--region", help="AWS region of the deployment (AWS_REGION)")
    group.add_argument("--endpoint-url", metavar="URL", help="AWS endpoint URL (AWS_ENDPOINT_URL)")
    group.add_argument(
        "--stack-prefix",
        metavar="PREFIX",
        help=f"prefix of the deployment's stack names (CICADA_STACK_PREFIX; default: {DEFAULT_STACK_PREFIX})",
    )

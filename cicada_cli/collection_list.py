"""``cicada collections``: show what the corpus holds."""

from __future__ import annotations

import argparse
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

from cicada_cli.collection_rules import NEEDS, collection_rules
from cicada_cli.context import deployment_of, session_of
from cicada_cli.deployment import Deployment
from cicada_cli.exits import Exit, UsageError, exit_of
from cicada_cli.grammar import Commands
from cicada_cli.near_names import unknown_name
from cicada_cli.output import complain, console, note, say_json, show_list, show_rows
from cicada_cli.shared_options import add_access, add_bucket, add_connection, add_json_lines
from cicada_cli.text import counted

if TYPE_CHECKING:
    from rich.console import Console

    from cicada.protocol.corpus import CollectionListed, Collections
    from cicada_cli.session import ClientSession

COLUMNS = ("collection", "passages", "documents", "episodes", "title")
PARTS = ("kind", "name", "passages", "title")
UNKNOWN_ACTION = "unknown_action"
"""The code with which a server of an earlier release answers."""
EMPTY = "You can read no passages. If nothing is loaded, `cicada load PATH` loads documents."


def add_collections(commands: Commands) -> None:
    """Add the command's parser."""
    parser = commands.add_parser(
        "collections",
        help="show what the corpus holds",
        description="Show the collections that you may read, and example questions; or the parts of one collection.",
        examples=(
            "cicada collections",
            "cicada collections script      # episodes and sections of one collection",
            "cicada collections --rules     # from the bucket: who may read each collection",
        ),
    )
    parser.add_argument("collection", nargs="?", metavar="COLLECTION", help="show the parts of this collection")
    parser.add_argument("--rules", action="store_true", help="list the collections of the bucket and their readers")
    add_json_lines(parser)
    add_connection(parser)
    group = parser.add_argument_group("with --rules")
    add_bucket(group)
    add_access(group)
    parser.set_defaults(run=_collections)


def _collections(args: argparse.Namespace) -> Exit:
    from cicada_cli.aws import DeploymentNotFound
    from cicada_client import ClientError

    if args.rules or args.bucket or args.access:
        return _rules(args, deployment_of(args, NEEDS))
    try:
        with session_of(args) as session:
            found = read_collections(session)
    except DeploymentNotFound:
        try:
            return _rules(args, deployment_of(args, NEEDS))  # there may be a bucket without a WebSocket URL
        except DeploymentNotFound:
            pass
        raise
    except ClientError as error:
        complain(str(error))
        return exit_of(error)
    if found is None:
        complain("this server does not list its collections: it is of an earlier release (unknown_action)")
        return Exit.FAILED
    return show_collections(found, args.collection, as_json=args.json, out=console())


def _rules(args: argparse.Namespace, deployment: Deployment) -> Exit:
    if args.collection:
        raise UsageError("a collection cannot be combined with --rules, --bucket or --access")
    return collection_rules(deployment, as_json=args.json, out=console())


def read_collections(session: ClientSession) -> Collections | None:
    """What the user may read; None if the server is too old to list it.

    Raises:
        ClientError: the deployment did not answer, or refused.
    """
    from cicada_client import RequestRefused

    try:
        return session.collections()
    except RequestRefused as error:
        if error.code == UNKNOWN_ACTION:
            return None
        raise


def show_collections(found: Collections, name: str | None, *, as_json: bool, out: Console) -> Exit:
    """Show all collections, or the parts of one."""
    if name is not None:
        return _show_parts(found, name, as_json=as_json, out=out)
    show_list(
        COLUMNS,
        found.collections,
        row=lambda one: (one.name, f"{one.passages}", f"{one.documents}", f"{_episodes(one)}", one.title or ""),
        data=_data,
        as_json=as_json,
        out=out,
        numbers=COLUMNS[1:4],
        empty=EMPTY,
    )
    if found.examples and out.is_terminal and not as_json:
        note("\nYou can ask, for example:")
        for question in found.examples:
            note(f"  {question}")
    return Exit.DONE


def _show_parts(found: Collections, name: str, *, as_json: bool, out: Console) -> Exit:
    known = {one.name: one for one in found.collections}
    if name not in known:
        complain(unknown_name("collection", name, known))
        return Exit.USAGE
    one = known[name]
    if as_json:
        say_json(_data(one))
        return Exit.DONE
    if one.description and out.is_terminal:
        note(one.description)
    show_rows(PARTS, _parts(one), out, numbers=("passages",))
    more = one.more_episodes + one.more_sections
    if more:
        note(f"{counted(more, 'other episode or section', 'other episodes or sections')} not listed")
    return Exit.DONE


def _parts(one: CollectionListed) -> Iterator[tuple[str, ...]]:
    for episode in one.episodes:
        yield "episode", episode.id, f"{episode.passages}", episode.name or ""
    for section in one.sections:
        yield "section", section.path, f"{section.passages}", ""


def _episodes(one: CollectionListed) -> int:
    return len(one.episodes) + one.more_episodes


def _data(one: CollectionListed) -> dict[str, Any]:
    return one.model_dump(mode="json", by_alias=True)

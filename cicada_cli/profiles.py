"""``cicada profile``: what a user keeps of characters, locations, episodes, fragment groups and theories."""

from __future__ import annotations

import argparse
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, get_args

from rich.console import Console

from cicada.errors import ProfileUnknown
from cicada.profiles.record import Kind
from cicada.profiles.rules import is_profile_id, name_key
from cicada.retrieval.entity_paths import closest_names
from cicada_cli import profiles_view as view
from cicada_cli.exits import Exit, exit_of
from cicada_cli.output import complain, say, say_json
from cicada_cli.session import ClientSession
from cicada_client import ClientError, RequestRefused

MOST_SUGGESTED = 3
"""Names that are told where nothing has the one that was given."""
Command = Callable[[argparse.Namespace], Exit]


@dataclass(frozen=True)
class Meant:
    """Which profile is meant: by its id, or by its name and, where several have it, its kind."""

    id: str | None = None
    name: str | None = None
    kind: Kind | None = None


def add_profile(
    commands: argparse._SubParsersAction[argparse.ArgumentParser],
    run: Command,
    add_connection: Callable[[argparse.ArgumentParser], None],
) -> None:
    """Add the command and its own commands to the grammar; ``run`` carries them out."""
    parser = commands.add_parser(
        "profile",
        help="manage your profiles",
        description="Manage your profiles of characters, locations, episodes, fragment groups and theories.",
    )
    actions = parser.add_subparsers(dest="profile_command", required=True, metavar="COMMAND")

    listing = actions.add_parser("list", help="list them", description="List your profiles.")
    _add_kind(listing, "only of this kind")

    showing = actions.add_parser("show", help="show one", description="Show a profile with what supports each fact.")
    _add_meant(showing)

    creating = actions.add_parser("create", help="make one", description="Make a profile.")
    creating.add_argument("of_kind", metavar="KIND", choices=get_args(Kind), help=", ".join(get_args(Kind)))
    creating.add_argument("name", metavar="NAME", help="1 to 80 characters; one profile of a kind has it")
    _add_facts(creating, "*")
    _add_statement(creating)

    setting = actions.add_parser("set", help="set facts of one", description="Set facts of a profile.")
    _add_meant(setting)
    _add_facts(setting, "*")
    _add_statement(setting)
    _add_version(setting)

    unsetting = actions.add_parser("unset", help="remove facts of one", description="Remove facts of a profile.")
    _add_meant(unsetting)
    unsetting.add_argument("fields", nargs="+", metavar="FIELD", help="the fact's name")
    _add_version(unsetting)

    undoing = actions.add_parser("undo", help="take back a change", description="Take back a change of a profile.")
    _add_meant(undoing)
    undoing.add_argument(
        "--version", type=_version, metavar="N", help="the version that the change made (default: the newest)"
    )

    deleting = actions.add_parser("delete", help="delete one", description="Delete a profile with its history.")
    _add_meant(deleting)
    _add_version(deleting)

    history = actions.add_parser("history", help="what changed in one", description="Show what changed in a profile.")
    _add_meant(history)

    actions.add_parser(
        "export", help="all of them as JSON", description="Write all profiles with their history as JSON."
    )

    for name, command in actions.choices.items():
        if name not in ("export", "delete"):
            command.add_argument("--json", action="store_true", help="the result as JSON")
        add_connection(command)
        command.set_defaults(run=run)


def profile(session: ClientSession, args: argparse.Namespace, out: Console) -> Exit:
    """Carry out one of the commands."""
    command: str = args.profile_command
    try:
        match command:
            case "list":
                heads = session.profiles(lambda profiles: profiles.list(args.kind))
                view.show_list(heads, out, as_json=args.json)
            case "show":
                meant = _meant(args)
                shown = session.profiles(lambda profiles: profiles.show(**vars(meant)))
                view.show_profile(shown, out, as_json=args.json)
            case "create":
                _create(session, args, out)
            case "set" | "unset":
                _change(session, args, out)
            case "undo":
                _undo(session, args, out)
            case "delete":
                found = session.profiles(lambda profiles: profiles.show(**vars(_meant(args))))
                version = args.version or found.version
                session.profiles(lambda profiles: profiles.delete(found.id, version))
                say(f"{found.kind} {view.told(found.name)} is deleted, with its history.")
            case "history":
                meant = _meant(args)
                history = session.profiles(lambda profiles: profiles.history(**vars(meant)))
                view.show_history(history, out, as_json=args.json)
            case "export":
                exported = session.profiles(lambda profiles: profiles.export())
                say_json({"profiles": exported}, readable=True, indent=2)
    except ClientError as error:
        complain(f"{error}{_closest(session, args) if _is_unknown(error) else ''}")
        return exit_of(error)
    return Exit.DONE


def _create(session: ClientSession, args: argparse.Namespace, out: Console) -> None:
    made = session.profiles(
        lambda profiles: profiles.create(
            args.of_kind, args.name, dict(args.facts), statement=args.statement, episodes=args.episode
        )
    )
    view.show_profile(made, out, as_json=args.json)


def _change(session: ClientSession, args: argparse.Namespace, out: Console) -> None:
    """Set or remove facts: of the version that was named, or of the one that stands now."""
    meant = _meant(args)
    found = session.profiles(lambda profiles: profiles.show(**vars(meant)))
    given = vars(args)
    statement, episodes = given.get("statement"), given.get("episode") or ()
    if statement is None and episodes and found.theory is not None:
        statement = found.theory.statement
    elif statement is not None and not episodes and found.theory is not None:
        episodes = found.theory.episodes
    changed = session.profiles(
        lambda profiles: profiles.update(
            found.id,
            args.version or found.version,
            dict(given.get("facts", ())),
            remove=given.get("fields", ()),
            statement=statement,
            episodes=episodes,
        )
    )
    view.show_profile(changed, out, as_json=args.json)


def _undo(session: ClientSession, args: argparse.Namespace, out: Console) -> None:
    found = session.profiles(lambda profiles: profiles.show(**vars(_meant(args))))
    restored = session.profiles(lambda profiles: profiles.undo(found.id, args.version or found.version))
    if restored is None:
        say(f"{found.kind} {view.told(found.name)} is gone: the change had created it.")
    else:
        view.show_profile(restored, out, as_json=args.json)


def _is_unknown(error: ClientError) -> bool:
    return isinstance(error, RequestRefused) and error.code == ProfileUnknown.code


def _closest(session: ClientSession, args: argparse.Namespace) -> str:
    """The names that are most like one that nothing has; empty where there is none, or they cannot be had."""
    try:
        heads = session.profiles(lambda profiles: profiles.list(args.kind))
    except ClientError:
        return ""
    names = {head.name.casefold(): head.name for head in heads}
    closest = [view.told(names[name]) for name in closest_names(args.which.casefold(), names, MOST_SUGGESTED)]
    return f" Did you mean {' or '.join(closest)}?" if closest else ""


def _meant(args: argparse.Namespace) -> Meant:
    if is_profile_id(args.which):
        return Meant(id=args.which)
    return Meant(name=args.which, kind=args.kind)


def fact(text: str) -> tuple[str, str]:
    """``FIELD=VALUE`` as its two parts."""
    field, separator, value = text.partition("=")
    if field.strip() and separator and value.strip():
        return field.strip(), value.strip()
    raise argparse.ArgumentTypeError("must be a field and its value: FIELD=VALUE")


class _Facts(argparse.Action):
    """Keeps the facts; one field has one value."""

    def __call__(
        self, _parser: argparse.ArgumentParser, namespace: argparse.Namespace, values: Any, _option: str | None = None
    ) -> None:
        fields = [name_key(field) for field, _ in values]
        twice = next((field for field, _ in values if fields.count(name_key(field)) > 1), None)
        if twice is not None:
            raise argparse.ArgumentError(self, f"has the field {twice} more than once")
        setattr(namespace, self.dest, values)


def _version(text: str) -> int:
    if text.isascii() and text.isdigit() and int(text):
        return int(text)
    raise argparse.ArgumentTypeError("must be a version: 1 or more")


def _add_meant(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("which", metavar="NAME", help="its name, whatever the case, or its id")
    _add_kind(parser, "of this kind, where several have the name")


def _add_kind(parser: argparse.ArgumentParser, text: str) -> None:
    parser.add_argument("--kind", choices=get_args(Kind), help=text)


def _add_facts(parser: argparse.ArgumentParser, count: str) -> None:
    parser.add_argument("facts", nargs=count, type=fact, action=_Facts, metavar="FIELD=VALUE", help="a fact")


def _add_statement(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--statement", metavar="TEXT", help="what a theory says; its evidence and verdict go with the old"
    )
    parser.add_argument(
        "--episode", action="append", default=[], metavar="EPISODE", help="a theory is about it; can be repeated"
    )


def _add_version(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--version", type=_version, metavar="N", help="only if this version stands (default: any)")

"""``cicada profile``: manage a user's profiles of characters, locations, episodes, fragment groups and theories."""

from __future__ import annotations

import argparse
from dataclasses import dataclass
from typing import Any, get_args

from rich.console import Console

from cicada.errors import ProfileUnknown
from cicada.profiles.record import Kind
from cicada.profiles.rules import is_profile_id, name_key
from cicada.protocol.profiles import ProfileShown
from cicada_cli import profiles_view as view
from cicada_cli.context import session_of
from cicada_cli.exits import Exit, exit_of
from cicada_cli.grammar import Commands
from cicada_cli.near_names import did_you_mean
from cicada_cli.output import complain, console, say, say_json
from cicada_cli.session import ClientSession
from cicada_cli.shared_options import add_connection, add_json, add_json_lines
from cicada_client import ClientError, RequestRefused


@dataclass(frozen=True)
class Meant:
    """The profile that a command names: by id, or by name and, if several profiles have it, kind."""

    id: str | None = None
    name: str | None = None
    kind: Kind | None = None


def add_profile(commands: Commands) -> None:
    """Add the command's parsers."""
    parser = commands.add_parser(
        "profile",
        help="manage profiles of characters, places, theories",
        description="Manage your profiles of characters, locations, episodes, fragment groups and theories.",
        examples=("cicada profile list", 'cicada profile show "Tamsin Oake"'),
    )
    actions = parser.add_subparsers(dest="profile_command", required=True, metavar="COMMAND")

    listing = actions.add_parser(
        "list",
        help="list your profiles",
        description="List your profiles.",
        examples=("cicada profile list --kind character",),
    )
    _add_kind(listing, "list this kind only")

    showing = actions.add_parser(
        "show",
        help="show a profile",
        description="Show a profile with the evidence of each fact.",
        examples=('cicada profile show "Tamsin Oake"',),
    )
    _add_meant(showing)

    creating = actions.add_parser(
        "create",
        help="create a profile",
        description="Create a profile.",
        examples=(
            'cicada profile create character "Tamsin Oake" occupation="copy-reader" room="the attic"',
            'cicada profile create theory "Bell" --statement "Tamsin rang the bell" --episode ep1',
        ),
    )
    creating.add_argument("of_kind", metavar="KIND", choices=get_args(Kind), help=f"one of {', '.join(get_args(Kind))}")
    creating.add_argument("name", metavar="NAME", help="1 to 80 characters, unique among profiles of the kind")
    _add_facts(creating, "*")
    _add_statement(creating)

    setting = actions.add_parser(
        "set",
        help="set facts of a profile",
        description="Set facts of a profile.",
        examples=('cicada profile set "Tamsin Oake" room="the cellar"',),
    )
    _add_meant(setting)
    _add_facts(setting, "*")
    _add_statement(setting)
    _add_version(setting)

    unsetting = actions.add_parser(
        "unset",
        help="remove facts of a profile",
        description="Remove facts of a profile.",
        examples=('cicada profile unset "Tamsin Oake" room',),
    )
    _add_meant(unsetting)
    unsetting.add_argument("fields", nargs="+", metavar="FIELD", help="name of the fact")
    _add_version(unsetting)

    undoing = actions.add_parser(
        "undo",
        help="undo a change",
        description="Undo a change of a profile.",
        examples=('cicada profile undo "Tamsin Oake"',),
    )
    _add_meant(undoing)
    undoing.add_argument(
        "--version", type=_version, metavar="N", help="the version that the change created (default: the newest)"
    )

    deleting = actions.add_parser(
        "delete",
        help="delete a profile",
        description="Delete a profile with its history.",
        examples=('cicada profile delete "Tamsin Oake"',),
    )
    _add_meant(deleting)
    _add_version(deleting)

    history = actions.add_parser(
        "history",
        help="show the changes of a profile",
        description="Show the changes of a profile, newest first.",
        examples=('cicada profile history "Tamsin Oake"',),
    )
    _add_meant(history)

    actions.add_parser(
        "export",
        help="write all profiles as JSON",
        description="Write all profiles with their history as a JSON object.",
        examples=("cicada profile export > profiles.json",),
    )

    for name, command in actions.choices.items():
        if name != "export":
            (add_json_lines if name in ("list", "history") else add_json)(command)
        add_connection(command)
        command.set_defaults(run=_profile)


def _profile(args: argparse.Namespace) -> Exit:
    with session_of(args) as session:
        return profile(session, args, console())


def profile(session: ClientSession, args: argparse.Namespace, out: Console) -> Exit:
    """Run one of the commands."""
    command: str = args.profile_command
    try:
        match command:
            case "list":
                heads = session.profiles(lambda profiles: profiles.list(args.kind))
                view.show_profiles(heads, out, as_json=args.json)
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
                _say_deleted(found, version, as_json=args.json)
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


def _say_deleted(found: ProfileShown, version: int, *, as_json: bool) -> None:
    if as_json:
        told = {"id": found.id, "kind": found.kind, "name": found.name, "version": version}
        say_json({"deleted": told}, readable=True)
    else:
        say(f"Deleted {found.kind} {view.told(found.name)} and its history.")


def _create(session: ClientSession, args: argparse.Namespace, out: Console) -> None:
    made = session.profiles(
        lambda profiles: profiles.create(
            args.of_kind, args.name, dict(args.facts), statement=args.statement, episodes=args.episode
        )
    )
    view.show_profile(made, out, as_json=args.json)


def _change(session: ClientSession, args: argparse.Namespace, out: Console) -> None:
    """Set or remove facts of the named version, or of the current one."""
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
        say(f"Deleted {found.kind} {view.told(found.name)}: the undone change had created it.")
    else:
        view.show_profile(restored, out, as_json=args.json)


def _is_unknown(error: ClientError) -> bool:
    return isinstance(error, RequestRefused) and error.code == ProfileUnknown.code


def _closest(session: ClientSession, args: argparse.Namespace) -> str:
    """Suggests the names most like an unknown one; empty if none is near or they cannot be listed."""
    try:
        heads = session.profiles(lambda profiles: profiles.list(args.kind))
    except ClientError:
        return ""
    return did_you_mean(args.which, [head.name for head in heads])


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
    """Stores the facts; each field can be given once."""

    def __call__(
        self, _parser: argparse.ArgumentParser, namespace: argparse.Namespace, values: Any, _option: str | None = None
    ) -> None:
        fields = [name_key(field) for field, _ in values]
        twice = next((field for field, _ in values if fields.count(name_key(field)) > 1), None)
        if twice is not None:
            raise argparse.ArgumentError(self, f"field {twice} is given more than once")
        setattr(namespace, self.dest, values)


def _version(text: str) -> int:
    if text.isascii() and text.isdigit() and int(text):
        return int(text)
    raise argparse.ArgumentTypeError("must be a version, 1 or more")


def _add_meant(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("which", metavar="NAME", help="name of the profile in any case, or its id")
    _add_kind(parser, "the kind, if several profiles have the name")


def _add_kind(parser: argparse.ArgumentParser, text: str) -> None:
    parser.add_argument("--kind", choices=get_args(Kind), help=text)


def _add_facts(parser: argparse.ArgumentParser, count: str) -> None:
    parser.add_argument(
        "facts", nargs=count, type=fact, action=_Facts, metavar="FIELD=VALUE", help="a fact; can be repeated"
    )


def _add_statement(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--statement", metavar="TEXT", help="statement of a theory; a new one removes evidence and verdict"
    )
    parser.add_argument(
        "--episode", action="append", default=[], metavar="EPISODE", help="episode of a theory; can be repeated"
    )


def _add_version(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--version", type=_version, metavar="N", help="change this version only (default: any)")

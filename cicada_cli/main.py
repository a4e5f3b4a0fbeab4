"""The command ``cicada``."""

from __future__ import annotations

import argparse
import contextlib
import io
import logging
import os
import sys
import traceback
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import get_args

from cicada import __version__
from cicada.defaults import DEFAULT_MIN_SCORE, DEFAULT_TOP_K
from cicada.retrieval.ports import Filters, SearchMode, SearchQuery
from cicada.rights import EVERYTHING
from cicada_cli import (
    administration,
    argument_types,
    audit,
    breakers,
    collection_list,
    engine,
    ingest,
    personal_data,
    profiles,
    restore,
    retrieve,
    upkeep,
)
from cicada_cli.ask import QuestionScope, ask
from cicada_cli.aws import Aws
from cicada_cli.chat import Chat, history_file, remembered_lines
from cicada_cli.credentials import token_source
from cicada_cli.deployment import (
    CHAT,
    INDEX,
    LOGIN,
    STACKS,
    Deployment,
    DeploymentChoice,
    discover,
)
from cicada_cli.doctor import command as doctors
from cicada_cli.evaluate import evaluate
from cicada_cli.evaluate_citations import evaluate_citations
from cicada_cli.evaluate_options import EvaluateOptions, add_arguments
from cicada_cli.exits import Exit, UsageError
from cicada_cli.limits import add_limits
from cicada_cli.load import load, unload
from cicada_cli.load_options import LoadOptions, add_load, add_unload
from cicada_cli.login import add_login, login, logout, store_of_user, whoami
from cicada_cli.output import Notes, Parser, complain, console
from cicada_cli.search import search
from cicada_cli.session import ClientSession
from cicada_cli.shared_options import (
    add_aws,
    add_connection,
    add_filter,
    add_groups,
    add_index,
    add_metadata,
    add_scope,
)
from cicada_cli.text import clipped, one_line
from cicada_cli.trace import add_trace, canonical, trace
from cicada_cli.usage import add_usage
from cicada_cli.users import add_users
from cicada_cli.views import view_for

TRACEBACK_VARIABLE = "CICADA_TRACEBACK"
MAX_UNFORESEEN_CHARS = 300


def main(argv: Sequence[str] | None = None) -> int:
    """Parse the command line, do it, and return the exit status: see :class:`cicada_cli.exits.Exit`."""
    for name in ("cicada", "cicada_client"):  # what a command has to say, it says itself
        logging.getLogger(name).addHandler(logging.NullHandler())
    logging.lastResort = Notes(logging.WARNING)
    if isinstance(sys.stdout, io.TextIOWrapper):  # a terminal may not have every letter of a name
        sys.stdout.reconfigure(errors="backslashreplace")
    try:
        args = build_parser().parse_args(argv)
        run: Callable[[argparse.Namespace], Exit] = args.run
        return run(args)
    except UsageError as error:
        complain(str(error))
        return Exit.USAGE
    except KeyboardInterrupt:
        return Exit.INTERRUPTED
    except BrokenPipeError:  # whoever read the output has gone; the interpreter must not try to flush it either
        with contextlib.suppress(OSError, ValueError):
            os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return Exit.FAILED
    except Exception as error:  # a traceback would print as it is what names, services and files hold
        complain(unforeseen(error))
        return Exit.FAILED


def unforeseen(error: Exception) -> str:
    """A failure that no command expects: in a line, or with its traceback where :data:`TRACEBACK_VARIABLE` is set."""
    if os.environ.get(TRACEBACK_VARIABLE):
        return "".join(traceback.format_exception(error))
    told = clipped(one_line(str(error)), MAX_UNFORESEEN_CHARS)
    return f"{type(error).__name__}: {told} (unexpected: {TRACEBACK_VARIABLE}=1 shows where it comes from)"


def build_parser() -> argparse.ArgumentParser:
    """The command line's grammar."""
    parser: argparse.ArgumentParser = Parser(
        prog="cicada", description="Ask a corpus questions, and get streamed, cited answers."
    )
    parser.add_argument("--version", action="version", version=f"%(prog)s {__version__}")
    commands = parser.add_subparsers(dest="command", required=True, metavar="COMMAND")

    asking = commands.add_parser("ask", help="ask one question", description="Ask one question.")
    asking.add_argument("question", help="1 to 4,000 characters; - reads it from standard input")
    add_scope(asking)
    asking.add_argument(
        "--json", action="store_true", help="print only events to standard output, one JSON object per line"
    )
    asking.add_argument("--no-sources", action="store_true", help="omit the list of sources")
    add_connection(asking)
    asking.set_defaults(run=_ask)

    chatting = commands.add_parser("chat", help="ask one question after another", description="Ask interactively.")
    add_scope(chatting)
    add_connection(chatting)
    chatting.set_defaults(run=_chat)

    add_users(commands, _administrative)
    add_usage(commands, _administrative)
    add_limits(commands, _administrative)
    personal_data.add_user(commands, _administrative)
    add_login(commands, {"login": _login, "logout": _logout, "whoami": _whoami}, add_aws)

    add_load(commands, _load, add_index)
    add_unload(commands, _unload, add_index)

    searching = commands.add_parser("search", help="search without an answer", description="Search the index.")
    searching.add_argument("query", help="what to look for")
    add_filter(searching, "--episode", "only this episode")
    add_filter(searching, "--speaker", "only what this character says")
    add_filter(searching, "--collection", "only this collection")
    add_metadata(searching)
    add_groups(searching)
    searching.add_argument(
        "--mode",
        choices=get_args(SearchMode),
        default="hybrid",
        help="hybrid, vector only, or lexical only (default: %(default)s)",
    )
    searching.add_argument(
        "--top-k",
        type=argument_types.top_k,
        default=DEFAULT_TOP_K,
        metavar="N",
        help="hits at most (default: %(default)s)",
    )
    searching.add_argument(
        "--min-score",
        type=argument_types.share,
        default=DEFAULT_MIN_SCORE,
        metavar="SCORE",
        help="only hits with at least this score, 0 to 1 (default: %(default)s)",
    )
    searching.add_argument("--json", action="store_true", help="the hits as a JSON object")
    add_index(searching)
    searching.set_defaults(run=_search)

    collection_list.add_collections(commands, _collections)
    retrieve.add_retrieve(commands, _retrieve, add_filter, add_metadata, add_index)

    evaluating = commands.add_parser(
        "eval",
        help="measure retrieval and answers",
        description="Measure retrieval or answers on judged sets, compare, and gate.",
    )
    add_arguments(evaluating)
    add_index(evaluating)
    evaluating.set_defaults(run=_evaluate)
    upkeep.add_index(commands, _upkeep_runs())
    restore.add_restore(commands, _administrative)
    engine.add_engine(commands, _load_engine, add_aws)
    ingest.add_ingest(commands, _ingest_report, _ingest_run, add_aws)
    add_trace(commands, _trace)
    breakers.add_breakers(commands, _breakers, add_aws)
    audit.add_audit(commands, _audit, add_aws)
    profiles.add_profile(commands, _profile, add_connection)
    doctors.add_doctor(commands, _doctor, add_connection)
    return parser


def _ask(args: argparse.Namespace) -> Exit:
    question = sys.stdin.read().strip() if args.question == "-" else args.question
    view = view_for(console(), as_json=args.json, sources=not args.no_sources)
    with _session(args) as session:
        read = input if sys.stdin.isatty() and args.question != "-" else None
        return ask(session, question, _scope(args), view, read=read)


def _chat(args: argparse.Namespace) -> Exit:
    with _session(args) as session, remembered_lines(history_file(os.environ)):
        return Chat(session, console(), _scope(args)).run(input)


def _profile(args: argparse.Namespace) -> Exit:
    with _session(args) as session:
        return profiles.profile(session, args, console())


def _administrative(command: administration.Command, needs: Sequence[str]) -> administration.Run:
    def run(args: argparse.Namespace) -> Exit:
        deployment = _deployment(args, needs)
        return administration.guarded(lambda: command(args, deployment))

    return run


def _login(args: argparse.Namespace) -> Exit:
    return login(_deployment(args, LOGIN), store_of_user(), browser=not args.no_browser)


def _logout(args: argparse.Namespace) -> Exit:
    return logout(_deployment(args, CHAT).url, store_of_user(), forget=args.forget)


def _whoami(args: argparse.Namespace) -> Exit:
    return whoami(_deployment(args, CHAT).url, store_of_user(), as_json=args.json)


def _doctor(args: argparse.Namespace) -> Exit:
    return doctors.doctor(
        _deployment(args, doctors.NEEDS),
        stage=args.stage,
        prefix=args.stack_prefix,
        settings=args.settings,
        with_question=not args.no_question,
        token=args.token,
        token_file=args.token_file,
        as_json=args.json,
    )


def _load(args: argparse.Namespace) -> Exit:
    asked = LoadOptions.of(args)
    return load(_deployment(args, INDEX), asked, err=console(stderr=True))


def _unload(args: argparse.Namespace) -> Exit:
    deployment = _deployment(args, INDEX)
    return unload(deployment, args.sources, args.collection, as_json=args.json, err=console(stderr=True))


def _search(args: argparse.Namespace) -> Exit:
    wanted: dict[str, tuple[str, ...]] = {}
    for key, value in args.metadata:
        wanted[key] = (*wanted.get(key, ()), value)
    filters = Filters(tuple(args.collection), tuple(args.episode), tuple(args.speaker), wanted)
    query = SearchQuery(args.query, filters, args.top_k, args.min_score, args.mode, readable=EVERYTHING)
    return search(_deployment(args, _as_whom(args)), query, groups=args.groups, as_json=args.json, out=console())


def _retrieve(args: argparse.Namespace) -> Exit:
    request = retrieve.request_of(args)
    deployment = _deployment(args, _as_whom(args))
    return retrieve.retrieve(deployment, request, groups=args.groups, as_json=args.json, out=console())


def _as_whom(args: argparse.Namespace) -> tuple[str, ...]:
    """What a search needs to know of the deployment: also its settings of access, if it is made for some groups."""
    return INDEX if args.groups is None else (*INDEX, "access")


def _collections(args: argparse.Namespace) -> Exit:
    return collection_list.collections(_deployment(args, collection_list.NEEDS), as_json=args.json, out=console())


def _evaluate(args: argparse.Namespace) -> Exit:
    aws = Aws(args.profile, args.region, args.endpoint_url)
    if args.citations:
        return evaluate_citations(args.citations, args.judge, args.endpoints, aws, out=console())
    asked = EvaluateOptions.of(args, aws, __version__)
    return evaluate(asked, lambda: _deployment(args, INDEX), out=console(), err=console(stderr=True))


def _load_engine(args: argparse.Namespace) -> Exit:
    deployment = _deployment(args, engine.NEEDS)
    return engine.load(deployment, language=args.language, as_json=args.json, err=console(stderr=True))


def _trace(args: argparse.Namespace) -> Exit:
    request_id = canonical(args.request_id)
    deployment = _deployment(args, STACKS)
    return trace(
        deployment,
        request_id,
        asker=args.asker,
        since_s=args.since,
        every_line=args.every_line,
        as_json=args.json,
        out=console(),
    )


def _breakers(args: argparse.Namespace) -> Exit:
    if (args.action == "close") != (args.name is not None):
        raise UsageError("a name is required: cicada breakers close NAME")
    deployment = _deployment(args, breakers.NEEDS)
    return breakers.close(deployment, args.name) if args.name else breakers.listed(deployment, as_json=args.json)


def _upkeep_runs() -> dict[str, Callable[[argparse.Namespace], Exit]]:
    return {
        "versions": _versions,
        "rollback": _rollback,
        "compact": _compact,
        "collect": _collect,
        "check": _check,
        "partial": _partial,
    }


def _versions(args: argparse.Namespace) -> Exit:
    return upkeep.versions(_deployment(args, upkeep.NEEDS), limit=args.limit, as_json=args.json)


def _ingest_report(args: argparse.Namespace) -> Exit:
    return ingest.report(_deployment(args, ingest.REPORT_NEEDS), args.collection, args.of_run, as_json=args.json)


def _ingest_run(args: argparse.Namespace) -> Exit:
    deployment = _deployment(args, ingest.RUN_NEEDS)
    return ingest.run(deployment, args.collection, wait=not args.no_wait, as_json=args.json)


def _audit(args: argparse.Namespace) -> Exit:
    deployment = _deployment(args, audit.NEEDS)
    return audit.audit(deployment, since_s=args.since, actions=args.action, as_json=args.json, out=console())


def _rollback(args: argparse.Namespace) -> Exit:
    return upkeep.rollback(_deployment(args, upkeep.NEEDS), args.version)


def _compact(args: argparse.Namespace) -> Exit:
    return upkeep.compact(_deployment(args, upkeep.NEEDS), collection=args.collection, err=console(stderr=True))


def _collect(args: argparse.Namespace) -> Exit:
    deployment = _deployment(args, upkeep.NEEDS)
    return upkeep.collect(deployment, keep_versions=args.keep_versions, err=console(stderr=True))


def _check(args: argparse.Namespace) -> Exit:
    return upkeep.check(_deployment(args, upkeep.NEEDS), as_json=args.json, err=console(stderr=True))


def _partial(args: argparse.Namespace) -> Exit:
    return upkeep.allow_partial(_deployment(args, upkeep.NEEDS), allowed=args.partial == "allow")


@contextlib.contextmanager
def _session(args: argparse.Namespace) -> Iterator[ClientSession]:
    deployment = _deployment(args, CHAT)
    token = token_source(args.token, args.token_file, os.environ, deployment)
    with ClientSession(deployment.url, token) as session:
        yield session


def _scope(args: argparse.Namespace) -> QuestionScope:
    return QuestionScope(tuple(args.collection), tuple(args.episode), args.top_k)


def _deployment(args: argparse.Namespace, needs: Sequence[str]) -> Deployment:
    given = vars(args)
    choice = DeploymentChoice(
        url=given.get("url"),
        page=given.get("page"),
        issuer=given.get("issuer"),
        client_id=given.get("client_id"),
        scopes=given.get("scopes"),
        bucket=given.get("bucket"),
        embedding_model_id=given.get("embedding_model"),
        embedding_dimensions=given.get("dimensions"),
        vector_index_arn=given.get("vector_index"),
        requests_table=given.get("table"),
        user_pool_id=given.get("user_pool"),
        ingest_machine_arn=given.get("ingest_machine"),
        reranker_model_id=given.get("reranker"),
        expansion_model_id=given.get("expansion_model"),
        access=given.get("access"),
        profile=args.profile,
        region=args.region,
        endpoint_url=args.endpoint_url,
        stack_prefix=args.stack_prefix,
    )
    return discover(choice, needs, environ=os.environ, cwd=Path.cwd())

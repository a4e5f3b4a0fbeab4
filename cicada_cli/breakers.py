"""``cicada breakers``: list the circuit breakers of the workers, and close one."""

from __future__ import annotations

import argparse
import time
from collections.abc import Callable
from dataclasses import asdict
from datetime import UTC, datetime
from typing import TYPE_CHECKING

from pydantic.alias_generators import to_camel

from cicada_cli.context import deployment_of
from cicada_cli.deployment import Deployment
from cicada_cli.exits import Exit, UsageError
from cicada_cli.grammar import Commands
from cicada_cli.near_names import unknown_name
from cicada_cli.output import complain, console, say, show_list
from cicada_cli.shared_options import add_aws, add_json_lines, add_table
from cicada_cli.text import counted, one_line

if TYPE_CHECKING:
    from cicada.breakers.decide import BreakerState
    from cicada.breakers.ports import BreakerStore

NEEDS = ("requests_table",)
"""Values of the deployment that the command needs."""
COLUMNS = ("breaker", "state", "details")
TRIES = 5
"""Attempts to close a breaker that workers keep changing."""


def add_breakers(commands: Commands) -> None:
    """Add the command's parser."""
    parser = commands.add_parser(
        "breakers",
        help="list circuit breakers, close one",
        description="List the circuit breakers with recent failures, or close one.",
        examples=("cicada breakers", "cicada breakers close model:amazon.nova-lite-v1:0"),
    )
    parser.add_argument(
        "action", nargs="?", choices=("list", "close"), default="list", metavar="ACTION", help="list (default) or close"
    )
    parser.add_argument("name", nargs="?", metavar="NAME", help="the breaker to close")
    add_json_lines(parser)
    group = parser.add_argument_group("deployment")
    add_table(group)
    add_aws(group)
    parser.set_defaults(run=_breakers)


def _breakers(args: argparse.Namespace) -> Exit:
    if (args.action == "close") != (args.name is not None):
        raise UsageError("missing the name of a breaker: cicada breakers close NAME")
    deployment = deployment_of(args, NEEDS)
    return close(deployment, args.name) if args.name else listed(deployment, as_json=args.json)


def listed(deployment: Deployment, *, as_json: bool, now_s: Callable[[], float] = time.time) -> Exit:
    """List the breakers with recent failures."""
    from cicada.delivery.ports import StoreFault

    now = now_s()
    try:
        states = read_states(deployment, now)
    except StoreFault as fault:
        complain(f"cannot read the breakers: {fault}")
        return Exit.FAILED
    show_list(
        COLUMNS,
        states,
        row=lambda state: (state.name, state.stage.replace("_", " "), state_words(state, now)),
        data=lambda state: {to_camel(name): value for name, value in asdict(state).items()},
        as_json=as_json,
        out=console(),
        empty="All breakers are closed, without recent failures.",
    )
    return Exit.DONE


def read_states(deployment: Deployment, now_s: float) -> list[BreakerState]:
    """The breakers with recent failures, by name.

    Raises:
        StoreFault: the table could not be read.
    """
    from cicada.breakers.decide import Policy, state_of

    found = store_of(deployment).read()
    return [state_of(name, breaker, int(now_s * 1000), Policy()) for name, breaker in sorted(found.items())]


def close(deployment: Deployment, name: str, *, now_s: Callable[[], float] = time.time) -> Exit:
    """Close a breaker in any state."""
    from cicada.breakers.decide import Breaker
    from cicada.breakers.ports import Overtaken
    from cicada.delivery.ports import StoreFault

    store = store_of(deployment)
    try:
        known = store.read()
        breaker = known.get(name)
        if breaker is None:
            complain(f"{unknown_name('breaker', name, known)} `cicada breakers` lists those with recent failures.")
            return Exit.USAGE
        for _ in range(TRIES):
            try:
                store.swap(name, breaker, Breaker(revision=max(breaker.revision + 1, int(now_s() * 1000))))
            except Overtaken as overtaken:
                breaker = overtaken.stored
                continue
            say(f"Closed {one_line(name)}. All workers call it again within seconds.")
            return Exit.DONE
    except StoreFault as fault:
        complain(f"cannot close the breaker: {fault}")
        return Exit.FAILED
    complain(f"breaker {one_line(name)} keeps changing. Run the same command again")
    return Exit.FAILED


def store_of(deployment: Deployment) -> BreakerStore:
    """The deployment's store of breakers."""
    from botocore.config import Config

    from cicada.breakers.dynamodb import DynamoDbBreakerStore

    config = Config(connect_timeout=3, read_timeout=5, retries={"mode": "standard", "total_max_attempts": 3})
    return DynamoDbBreakerStore(deployment.aws.client("dynamodb", config), deployment.requests_table)


def state_words(state: BreakerState, now_s: float) -> str:
    """What an operator should know of a breaker's state."""
    if state.open_since_s is None:
        return counted(state.recent_failures, "recent failure")
    told = [f"since {_instant(state.open_since_s)}", f"opened {counted(state.openings, 'time')}"]
    if state.cause:
        told.append(f"cause {one_line(state.cause)}")
    if state.probing:
        told.append("probe in progress")
    elif state.retry_at_s is not None:
        left_s = state.retry_at_s - now_s
        told.append(f"next probe in {left_s:.0f} s" if left_s > 0 else "next call is a probe")
    return ", ".join(told)


def _instant(epoch_s: float) -> str:
    return datetime.fromtimestamp(epoch_s, UTC).isoformat(timespec="seconds")

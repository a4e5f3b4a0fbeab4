"""``cicada breakers``: what the workers take for broken, and closing it by hand."""

from __future__ import annotations

import argparse
import time
from collections.abc import Callable
from dataclasses import asdict
from datetime import UTC, datetime
from typing import TYPE_CHECKING

from pydantic.alias_generators import to_camel

from cicada_cli.deployment import Deployment
from cicada_cli.exits import Exit
from cicada_cli.output import complain, say, say_json
from cicada_cli.text import counted, one_line

if TYPE_CHECKING:
    from cicada.breakers.decide import BreakerState
    from cicada.breakers.ports import BreakerStore

NEEDS = ("requests_table",)
"""What these commands must know of the deployment."""
TRIES = 5
"""How often a breaker that workers keep changing is tried to be closed."""


def add_breakers(
    commands: argparse._SubParsersAction[argparse.ArgumentParser],
    run: Callable[[argparse.Namespace], Exit],
    add_aws: Callable[[argparse._ArgumentGroup], None],
) -> None:
    """Add the command to the grammar; ``run`` carries it out."""
    parser = commands.add_parser(
        "breakers",
        help="list circuit breakers",
        description="List the circuit breakers with recent failures, or close one.",
    )
    parser.add_argument(
        "action", nargs="?", choices=("list", "close"), default="list", help="what to do (default: %(default)s)"
    )
    parser.add_argument("name", nargs="?", metavar="NAME", help="the breaker to close; see the list")
    parser.add_argument("--json", action="store_true", help="one JSON object per line and breaker")
    parser.set_defaults(run=run)
    group = parser.add_argument_group("deployment")
    group.add_argument("--table", metavar="NAME", help="the table of requests (CICADA_REQUESTS_TABLE)")
    add_aws(group)


def listed(deployment: Deployment, *, as_json: bool, now_s: Callable[[], float] = time.time) -> Exit:
    """List the breakers that have had a failure of late."""
    from cicada.breakers.decide import Policy, state_of
    from cicada.delivery.ports import StoreFault

    now_ms = int(now_s() * 1000)
    try:
        found = store_of(deployment).read()
    except StoreFault as fault:
        complain(f"the breakers could not be read: {fault}")
        return Exit.FAILED
    states = [state_of(name, breaker, now_ms, Policy()) for name, breaker in sorted(found.items())]
    if as_json:
        for state in states:
            say_json({to_camel(name): value for name, value in asdict(state).items()})
        return Exit.DONE
    for state in states:
        say(_line(state, now_s()))
    if not states:
        say("No call has failed of late: every breaker is closed.")
    return Exit.DONE


def close(deployment: Deployment, name: str, *, now_s: Callable[[], float] = time.time) -> Exit:
    """Close a breaker, whatever its state."""
    from cicada.breakers.decide import Breaker
    from cicada.breakers.ports import Overtaken
    from cicada.delivery.ports import StoreFault

    store = store_of(deployment)
    try:
        breaker = store.read().get(name)
        if breaker is None:
            complain(f"there is no breaker {one_line(name)} that has had a failure; `cicada breakers` lists them")
            return Exit.FAILED
        for _ in range(TRIES):
            try:
                store.swap(name, breaker, Breaker(revision=max(breaker.revision + 1, int(now_s() * 1000))))
            except Overtaken as overtaken:
                breaker = overtaken.stored
                continue
            say(f"{one_line(name)} is closed: calls go again, within seconds in every worker.")
            return Exit.DONE
    except StoreFault as fault:
        complain(f"the breaker could not be closed: {fault}")
        return Exit.FAILED
    complain(f"the breaker {one_line(name)} keeps changing: try again")
    return Exit.FAILED


def store_of(deployment: Deployment) -> BreakerStore:
    """The breakers that a deployment's workers share."""
    from botocore.config import Config

    from cicada.breakers.dynamodb import DynamoDbBreakerStore

    config = Config(connect_timeout=3, read_timeout=5, retries={"mode": "standard", "total_max_attempts": 3})
    return DynamoDbBreakerStore(deployment.aws.client("dynamodb", config), deployment.requests_table)


def _line(state: BreakerState, now_s: float) -> str:
    """A breaker as a line, separated by tabs: name, state, and what is to be known of that."""
    if state.open_since_s is None:
        return "\t".join((one_line(state.name), "closed", f"{counted(state.recent_failures, 'failure')} of late"))
    told = [f"since {_instant(state.open_since_s)}", f"opened {counted(state.openings, 'time')}"]
    if state.cause:
        told.append(f"by {one_line(state.cause)}")
    if state.probing:
        told.append("a probe is under way")
    elif state.retry_at_s is not None:
        left_s = state.retry_at_s - now_s
        told.append(f"next probe in {left_s:.0f} s" if left_s > 0 else "the next call probes it")
    return "\t".join((one_line(state.name), state.stage.replace("_", " "), ", ".join(told)))


def _instant(epoch_s: float) -> str:
    return datetime.fromtimestamp(epoch_s, UTC).isoformat(timespec="seconds")

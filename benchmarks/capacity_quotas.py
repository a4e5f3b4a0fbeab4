"""From the units of one answer to quotas, places and money at a number of simultaneous answers: arithmetic alone."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass

from benchmarks.capacity_facts import Facts, Habits
from benchmarks.capacity_units import Units
from cicada.breakers.registry import QUIET_S
from cicada.delivery.dynamodb import OPEN_PARTITIONS
from cicada.index.access_rules import PAUSE_S
from cicada.index.reader import LONGEST_INTERVAL_S, REFRESH_INTERVAL_S
from cicada.models.ports import Usage
from cicada.models.prices import cost
from cicada.usage.accounts import HOLD_S, POOL_SHARDS

MAX_TOKENS = 2048
"""What a call reserves for its answer: the setting ``models.maxTokens``."""
EMBEDDED_TOKENS = 30
"""Of a question, about."""
POOLED_WRITES = 4
"""Write units of a question and its settlement on the item of one pool, where limits of a group or the deployment are
set: two transactions."""
DAY_S = 24 * 3600
EVERYDAY_METRICS = 9


@dataclass(frozen=True)
class Design:
    """What of the design decides how hot a place is."""

    open_partitions: int = OPEN_PARTITIONS
    pool_shards: int = POOL_SHARDS
    limits_held_s: float | None = HOLD_S
    """None: every question reads the limits."""
    breakers_read_s: float = QUIET_S
    version_looked_for_s: float = REFRESH_INTERVAL_S
    version_spared_s: float = LONGEST_INTERVAL_S
    """While the store refuses reads for their rate."""
    rules_spared_s: float | None = sum(PAUSE_S) / 2
    """The same of the rules; None: each answer reads them whatever the store says."""


TODAY = Design()
BEFORE = Design(limits_held_s=None, breakers_read_s=3.0, version_spared_s=REFRESH_INTERVAL_S, rules_spared_s=None)
"""Before this was reckoned: the open questions of 4 partitions, whatever the setting."""


@dataclass(frozen=True)
class Load:
    """Simultaneous answers, and what follows from them."""

    answers: float
    unit: Units
    habits: Habits

    @property
    def a_second(self) -> float:
        """Answers that begin, and end, in a second."""
        return self.answers / self.unit.seconds

    @property
    def sockets(self) -> float:
        """People connected: each asks once in a while."""
        return max(self.answers, self.a_second * self.habits.asks_every_s)

    @property
    def connects_a_second(self) -> float:
        """New sockets."""
        return self.sockets / self.habits.stays_s

    def environments(self, function: str) -> float:
        """Environments of a function that are busy."""
        return self.a_second * self.unit.billed_s.get(function, 0.0)


DEMANDS: Mapping[str, Callable[[Load], float]] = {
    "concurrency": lambda load: sum(load.environments(function) for function in load.unit.billed_s),
    "gateway": lambda load: load.a_second * (load.unit.posts + 1) + load.connects_a_second,
    "connections": lambda load: load.connects_a_second,
    "starts": lambda load: load.a_second,
    "tokens": lambda load: (
        60 * load.a_second * (load.unit.input_tokens + load.unit.output_tokens)
        + load.answers * max(0.0, MAX_TOKENS - load.unit.output_tokens)
    ),
    "embeddings": lambda load: 60 * load.a_second * load.unit.calls.get("bedrock-runtime.InvokeModel", 0.0),
    "tableWrites": lambda load: load.a_second * load.unit.of_table("write"),
    "tableReads": lambda load: load.a_second * load.unit.of_table("read"),
}
"""What a load needs of each quota."""
ARITHMETIC: Mapping[str, str] = {
    "concurrency": "answers a second × billed seconds of all functions",
    "gateway": "answers a second × (posts + the question) + new connections",
    "connections": "people connected / how long they stay",
    "starts": "answers a second",
    "tokens": "60 × answers a second × (tokens read + written) + what calls under way have reserved beyond that",
    "embeddings": "60 × answers a second × questions embedded",
    "tableWrites": "answers a second × write units",
    "tableReads": "answers a second × read units",
}


@dataclass(frozen=True)
class Place:
    """A partition or an object that many answers share, and that nobody can have more of."""

    name: str
    limiter: str
    """Of :class:`Facts`."""
    demand: Callable[[Load, Design], float]
    """A second, on the busiest of its copies."""
    only_if: str = ""
    """A setting without which it is not used."""
    spared: Callable[[Load, Design], float] | None = None
    """The demand once the place has refused calls; as before where it is None."""


def _open_index(load: Load, design: Design) -> float:
    return load.a_second * load.unit.units.get("write index of open requests", 0.0) / design.open_partitions


def _shared_items(load: Load, design: Design) -> float:
    if design.limits_held_s is None:
        return load.a_second
    return min(load.a_second, load.environments("MessageProcessor") / design.limits_held_s)


def _version(load: Load, every_s: float) -> float:
    return min(load.a_second, load.environments("Answer") / every_s)


def _rules(load: Load, design: Design) -> float:
    if design.rules_spared_s is None:
        return load.a_second
    return min(load.a_second, load.environments("Answer") / design.rules_spared_s)


def _breakers(load: Load, design: Design) -> float:
    return min(load.a_second, load.environments("Answer") / design.breakers_read_s) / 2


ONE_REQUEST = "one request's partition"
PLACES: tuple[Place, ...] = (
    Place("a partition of the index of open requests", "partitionWrites", _open_index),
    Place("the deployment's limits", "partitionReads", _shared_items),
    Place("the breakers", "partitionReads", _breakers),
    Place(
        "the current version (`current.json`)",
        "objectGets",
        lambda load, design: _version(load, design.version_looked_for_s),
        spared=lambda load, design: _version(load, design.version_spared_s),
    ),
    Place("the rules of access (`access.json`)", "objectGets", lambda load, _: load.a_second, spared=_rules),
    Place(
        "one request's partition", "partitionWrites", lambda load, _: load.unit.of_table("write") / load.unit.seconds
    ),
    Place(
        "a shard of a pool: writes",
        "partitionWrites",
        lambda load, design: load.a_second * POOLED_WRITES / design.pool_shards,
        "usageLimits.deployment",
    ),
    Place("a shard of a pool: reads", "partitionReads", _shared_items, "usageLimits.deployment"),
    Place(
        "the answers kept for everybody",
        "partitionWrites",
        lambda load, _: load.a_second * load.unit.units.get("write cache", 0.0),
        "cache.sharing: deployment",
    ),
)


def binds_at(limit: float, demand: Callable[[float], float]) -> float:
    """At how many simultaneous answers a demand meets a limit; demands grow with them, some of them bent."""
    low, high = 0.0, 1.0
    while demand(high) < limit:
        low, high = high, high * 2
        if high > 1e9:
            return float("inf")
    for _ in range(60):
        middle = (low + high) / 2
        low, high = (middle, high) if demand(middle) < limit else (low, middle)
    return high


def money(unit: Units, facts: Facts, habits: Habits, share_direct: float = 0.0) -> dict[str, tuple[str, float]]:
    """What one answer costs in US dollars, by service, with the arithmetic."""
    usd = facts.usd
    tokens = Usage(round(unit.input_tokens), round(unit.output_tokens))
    model = facts.models["direct" if share_direct == 1 else "write"]
    written = cost(model, tokens)
    embedded = unit.calls.get("bedrock-runtime.InvokeModel", 0.0)
    question = cost(facts.models["embed"], Usage(EMBEDDED_TOKENS, 0))
    assert written is not None
    assert question is not None
    gb_s, invocations = sum(unit.gb_s.values()), sum(unit.invocations.values())
    writes = sum(units for name, units in unit.units.items() if name.startswith("write"))
    reads = sum(units for name, units in unit.units.items() if name.startswith("read"))
    gets = sum(count for name, count in unit.calls.items() if name.startswith("s3.GetObject"))
    messages = unit.posts + 2
    return {
        "Bedrock": (
            f"{unit.input_tokens:,.0f} tokens read and {unit.output_tokens:,.0f} written by {model}",
            written.usd + embedded * question.usd,
        ),
        "Lambda": (
            f"{gb_s:.2f} GB-s, {invocations:.1f} invocations",
            gb_s * usd("lambdaGbS") + invocations * usd("lambdaRequest"),
        ),
        "DynamoDB": (f"{writes:.1f} write units, {reads:.1f} read units", writes * usd("write") + reads * usd("read")),
        "API Gateway": (
            f"{messages:.1f} messages, {habits.asks_every_s / 60:.1f} connection-minutes",
            messages * usd("message") + habits.asks_every_s / 60 * usd("connectionMinute"),
        ),
        "Step Functions": (
            f"an execution of {unit.seconds:.1f} s",
            usd("expressStart") + unit.seconds * 64 / 1024 * usd("expressGbS"),
        ),
        "S3": (f"{gets:.1f} GETs", gets * usd("get")),
        "CloudWatch": (f"{unit.log_bytes / 1024:.1f} KiB of lines", unit.log_bytes / 1e9 * usd("logGb")),
    }

"""Quotas and money at 100 to 100,000 simultaneous answers, from the measured units of one answer.

Answers of each route are measured over the local cloud (:mod:`benchmarks.capacity_units`), multiplied
(:mod:`benchmarks.capacity_quotas`) and sent against AWS's limiters (:mod:`benchmarks.capacity_simulation`). Quotas and
prices, with their sources, are in ``capacity_facts.json``.

    python -m benchmarks.capacity             # measure, print
    python -m benchmarks.capacity --kept      # from the kept figures, without the local cloud
    python -m benchmarks.capacity --write     # measure, keep the figures, write docs/capacity.md
"""

from __future__ import annotations

import argparse
import math
import sys
import tempfile
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path

from benchmarks.capacity_facts import Facts, Habits, facts
from benchmarks.capacity_quotas import (
    ARITHMETIC,
    BEFORE,
    DAY_S,
    DEMANDS,
    EVERYDAY_METRICS,
    PLACES,
    TODAY,
    Design,
    Load,
    Place,
    binds_at,
    money,
)
from benchmarks.capacity_simulation import Outcome, Simulation
from benchmarks.capacity_units import ROUTES, Units, keep, load, measured
from benchmarks.dynamodb_units import VARIABLE, UnitMeter
from benchmarks.local_cloud import plain_cloud

DOCUMENT = Path(__file__).parents[1] / "docs" / "capacity.md"
BEGIN, END = "<!-- made by benchmarks.capacity -->", "<!-- end -->"
SIZES = (100, 1_000, 10_000)
SIMULATED = 100_000
SPARE = 1.5
"""How much more than the need is asked for: load is uneven, and quotas are raised within days."""
SEED = 20_261_125
RAISED = replace(TODAY, open_partitions=256, pool_shards=256)
"""For the simulated size: the settings ``recovery.openPartitions`` and ``usageLimits.poolShards``."""


def report(routes: Mapping[str, Units], known: Facts, habits: Habits) -> str:
    """All tables, as Markdown."""
    mean = Units.mean([routes[route] for route, _ in habits.mix], [share for _, share in habits.mix])
    parts = (
        _units(routes, mean),
        _needs(mean, known, habits),
        _places(mean, known, habits),
        _money(mean, known, habits),
        _simulated(mean, known, habits),
    )
    return "\n\n".join("\n".join(part) for part in parts)


def _units(routes: Mapping[str, Units], mean: Units) -> Iterator[str]:
    yield "### One answer"
    yield ""
    columns = {**routes, "mean": mean}
    yield "| | " + " | ".join(columns) + " |"
    yield "| --- |" + " ---: |" * len(columns)

    def row(name: str, *values: float, digits: int = 1) -> str:
        return f"| {name} | " + " | ".join(f"{value:,.{digits}f}" for value in values) + " |"

    every = columns.values()
    yield row("seconds", *(units.seconds for units in every))
    yield row("posts to connections", *(units.posts for units in every))
    yield row("tokens read", *(units.input_tokens for units in every), digits=0)
    yield row("tokens written", *(units.output_tokens for units in every), digits=0)
    yield row("Lambda, GB-s", *(sum(units.gb_s.values()) for units in every), digits=2)
    for function in sorted(mean.billed_s):
        yield row(f"- `{function}`, billed s", *(units.billed_s.get(function, 0.0) for units in every), digits=2)
    for place in sorted(mean.units):
        kind, _, name = place.partition(" ")
        yield row(f"DynamoDB, {kind} units: {name}", *(units.units.get(place, 0.0) for units in every))
    for call in sorted(mean.calls):
        if not call.startswith(("lambda.", "apigateway")):
            yield row(f"`{call}`", *(units.calls.get(call, 0.0) for units in every))
    yield row("log lines, KiB", *(units.log_bytes / 1024 for units in every))


def _needs(mean: Units, known: Facts, habits: Habits) -> Iterator[str]:
    yield "### Quotas"
    yield ""
    at = [Load(size, mean, habits) for size in SIZES]
    first = at[0]
    yield (
        f"{first.answers:,.0f} simultaneous answers of {mean.seconds:.1f} s are {first.a_second:,.1f} a second; "
        f"with a question every {habits.asks_every_s:.0f} s, {first.sockets:,.0f} people are connected, and "
        f"{first.connects_a_second:.1f} connect a second."
    )
    yield ""
    yield "| quota | default | binds at | " + " | ".join(f"need at {size:,}" for size in SIZES) + " | to ask for |"
    yield "| --- | ---: | ---: |" + " ---: |" * len(SIZES) + " --- |"
    rows = []
    for name, demand in DEMANDS.items():
        quota = known.quotas[name]
        binds = binds_at(quota.default, _at(demand, mean, habits)) if quota.default else float("inf")
        needs = " | ".join(f"{demand(load):,.0f}" for load in at)
        asked = [
            f"{size:,}: {_rounded(SPARE * demand(load)):,.0f}"
            for size, load in zip(SIZES, at, strict=True)
            if quota.default is None or demand(load) * SPARE > quota.default
        ]
        default = f"{quota.default:,.0f}" if quota.default else "your own"
        told = "; ".join(asked) or "nothing"
        rows.append((binds, f"| {quota.name}, {quota.unit} | {default} | {_size(binds)} | {needs} | {told} |"))
    yield from (row for _, row in sorted(rows))
    yield ""
    yield f"Ask for {SPARE} times the need. How each need is reckoned, where the default is from, and where to ask:"
    yield ""
    yield "| quota | need | default from | where to ask |"
    yield "| --- | --- | --- | --- |"
    for name in DEMANDS:
        quota = known.quotas[name]
        yield f"| {quota.name} | {ARITHMETIC[name]} | {quota.source} | {quota.ask} |"


def _at(demand: Callable[[Load], float], mean: Units, habits: Habits) -> Callable[[float], float]:
    return lambda answers: demand(Load(answers, mean, habits))


def _places(mean: Units, known: Facts, habits: Habits) -> Iterator[str]:
    yield "### Places that nobody can have more of"
    yield ""
    every = (*SIZES, SIMULATED)
    yield (
        "| partition, item or object | a second at most | hot at | before | "
        + " | ".join(f"load at {size:,}" for size in every)
        + " | used |"
    )
    yield "| --- | ---: | ---: | ---: |" + " ---: |" * len(every) + " --- |"
    for place in PLACES:
        ceiling = known.ceiling(place.limiter)
        loads = " | ".join(f"{place.demand(Load(size, mean, habits), TODAY) / ceiling:.0%}" for size in every)
        hot = " | ".join(_hot(place, design, ceiling, mean, habits) for design in (TODAY, BEFORE))
        used = f"with `{place.only_if}`" if place.only_if else "always"
        yield f"| {place.name} | {ceiling:,.0f} | {hot} | {loads} | {used} |"
    yield ""
    yield (
        f"With `recovery.openPartitions` at {RAISED.open_partitions}, the index of open requests is hot at "
        + _size(
            binds_at(
                known.ceiling("partitionWrites"),
                lambda answers: PLACES[0].demand(Load(answers, mean, habits), RAISED),
            )
        )
        + "."
    )


def _hot(place: Place, design: Design, ceiling: float, mean: Units, habits: Habits) -> str:
    demand = place.spared or place.demand
    return _size(binds_at(ceiling, lambda answers: demand(Load(answers, mean, habits), design)))


def _money(mean: Units, known: Facts, habits: Habits) -> Iterator[str]:
    yield "### Money"
    yield ""
    yield f"List prices of {known.region}, without free tiers. A day has 24 hours of that load, a month 30 such days."
    yield ""
    yield "| | one answer | USD of 1,000 answers | " + " | ".join(f"a day at {size:,}" for size in SIZES) + " |"
    yield "| --- | --- | ---: |" + " ---: |" * len(SIZES)
    costs = money(mean, known, habits)
    a_day = [Load(size, mean, habits).a_second * DAY_S for size in SIZES]
    for service, (told, usd) in costs.items():
        days = " | ".join(f"{usd * answers:,.0f}" for answers in a_day)
        yield f"| {service} | {told} | {1000 * usd:.4f} | {days} |"
    total = sum(usd for _, usd in costs.values())
    yield f"| **all** | | **{1000 * total:.4f}** | " + " | ".join(f"{total * answers:,.0f}" for answers in a_day) + " |"
    yield "| a month | | | " + " | ".join(f"{30 * total * answers:,.0f}" for answers in a_day) + " |"
    yield ""
    metrics = EVERYDAY_METRICS * known.usd("metricMonth")
    yield f"Besides, {EVERYDAY_METRICS} custom metrics: {metrics:.2f} USD a month at any load (the first ten are free)."
    yield ""
    yield "| price | USD | source |"
    yield "| --- | --- | --- |"
    for price in known.prices.values():
        yield f"| {price.unit} | {f'{price.usd:.10f}'.rstrip('0')} | {price.source} |"


def _simulated(mean: Units, known: Facts, habits: Habits) -> Iterator[str]:
    yield f"### {SIMULATED:,} simultaneous answers, simulated"
    yield ""
    defaults = {name: quota.default or 0.0 for name, quota in known.quotas.items()}
    at = Load(SIMULATED, mean, habits)
    asked = {name: max(defaults[name], SPARE * demand(at)) for name, demand in DEMANDS.items()}
    asked["warmWrites"] = SPARE * DEMANDS["tableWrites"](at)
    runs = (
        ("default quotas", defaults, TODAY),
        ("quotas as asked for, as it was before", asked, BEFORE),
        ("quotas as asked for, both settings 256", asked, RAISED),
    )
    outcomes = [{one.name: one for one in _run(mean, known, habits, design, quotas)} for _, quotas, design in runs]
    yield "| limiter | asked, a second | " + " | ".join(f"{name}: refused, lost" for name, _, _ in runs) + " |"
    yield "| --- | ---: |" + " ---: |" * len(runs)
    for name in outcomes[-1]:
        cells = " | ".join(_outcome(outcome[name]) for outcome in outcomes)
        yield f"| {name} | {outcomes[-1][name].peak:,.0f} | {cells} |"


def _run(mean: Units, known: Facts, habits: Habits, design: Design, quotas: Mapping[str, float]) -> Sequence[Outcome]:
    used = ("usageLimits.deployment",)
    return Simulation(SIMULATED, mean, known, habits, design, seed=SEED, quotas=quotas, used=used).run()


def _outcome(one: Outcome) -> str:
    return f"{one.refused:.0%}, {one.lost:.0%}" if one.refused >= 0.0005 else "–"


def _size(answers: float) -> str:
    return f"{_rounded(answers, down=True):,.0f}" if answers < 1e9 else "never"


def _rounded(value: float, *, down: bool = False) -> float:
    """To two digits."""
    if value < 10:
        return value if down else float(math.ceil(value))
    step = 10.0 ** (len(str(int(value))) - 2)
    return (math.floor(value / step) if down else math.ceil(value / step)) * step


def written(text: str) -> str:
    """The documentation with these tables."""
    before = DOCUMENT.read_text(encoding="utf-8")
    head, rest = before.split(BEGIN)[0], before.split(END)[1]
    return f"{head}{BEGIN}\n{text}\n{END}{rest}"


def main(argv: list[str] | None = None) -> int:
    """Print the tables."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--kept", action="store_true", help="use the kept figures, measure nothing")
    parser.add_argument("--write", action="store_true", help="keep the figures and write docs/capacity.md")
    parser.add_argument("--check", action="store_true", help="whether docs/capacity.md holds these tables")
    parser.add_argument("--answers", type=int, default=2, help="measured answers a route (default: %(default)s)")
    args = parser.parse_args(argv)
    if args.kept:
        routes = load()
    else:
        meter = UnitMeter()
        with tempfile.TemporaryDirectory() as home, plain_cloud(Path(home), {VARIABLE: meter.url}) as cloud:
            routes = measured(cloud, meter, args.answers)
        meter.close()
    if args.write and not args.kept:
        keep(routes)
        routes = load()
    text = report({route: routes[route] for route in ROUTES}, facts(), Habits())
    if args.write:
        DOCUMENT.write_text(written(text), encoding="utf-8")
    print(text)
    if args.check:
        same = DOCUMENT.read_text(encoding="utf-8") == written(text)
        print(f"\n{DOCUMENT.name} is {'up to date' if same else 'outdated: run with --kept --write'}")
        return 0 if same else 1
    return 0


if __name__ == "__main__":
    sys.exit(main())

"""A picture of the dashboard over made-up figures: what 300 users see while a model is throttled.

``python -m benchmarks.dashboard_example docs/images/dashboard.svg``

The dashboard and the alarms are those of the synthesised template. The local cloud's CloudWatch evaluates the alarms
and answers the widgets' queries. The figures are drawn from a seed, so that the picture is the same each time.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import tempfile
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from random import Random
from typing import Any
from uuid import UUID

from benchmarks.dashboard_data import collect, widget_metrics
from benchmarks.dashboard_picture import render
from cicada.metrics import (
    ANSWER_LATENCY,
    ANSWERS_COMPLETE,
    ANSWERS_FELL_BACK,
    ATTEMPTS_FAILED,
    BREAKER_OPENED,
    CACHE_HITS,
    CONNECTIONS_REFUSED,
    COST_USD,
    DOCUMENTS_QUARANTINED,
    FIRST_CHUNK,
    FRAMES_REFUSED,
    LIMITS_REACHED,
    NAMESPACE,
    QUESTIONS,
    REQUESTS_FAILED,
    REQUESTS_RECOVERED,
)
from cicada_local.cloudwatch import CloudWatch, Metric, MetricClock, MetricStore
from cicada_local.faults import Faults
from cicada_local.places import REGION
from stacks.findings import flat
from stacks.queries import FALLBACKS, SPENDING, VERSIONS

SEED = 16
MINUTE_S, DAY_S = 60, 86_400
BEGINS = 1_795_255_200  # 2026-11-21 10:00 UTC
SHOWN_MINUTES = 33
ALARMS_BEGIN_MINUTES = 5
"""So long before, the alarms are deployed. Those over more than a day are evaluated on the hour."""

USERS, THINKING_S = 300, 60.0
ASKING = (3 * MINUTE_S, 33 * MINUTE_S)
"""When the users ask, in seconds from the beginning of what is shown."""
THROTTLED = (17 * MINUTE_S, 24 * MINUTE_S)
"""When the large model refuses most calls."""
BREAKER_AFTER_S = 40
"""The model's circuit breaker opens so long after that, and closes with the end of it."""
REFUSED_SHARE, UNANSWERED_SHARE, HIT_SHARE, SMALL_TALK_SHARE = 0.9, 0.02, 0.12, 0.06

LARGE, SMALL = "us.amazon.nova-lite-v1:0", "us.amazon.nova-micro-v1:0"
CALL_USD = {LARGE: 0.00042, SMALL: 0.00009}
CALL_TOKENS = {LARGE: (5_600, 240), SMALL: (900, 120)}
DAYS_BEFORE, UPKEEP_DAYS = 13, 3
OLD, NEW, PUBLISHED_S = 41, 42, 9 * MINUTE_S
"""Versions of the index, and when the new one is published."""


class Account:
    """The local cloud's CloudWatch with a deployment's dashboard and alarms, a hand on its clock, and its client."""

    def __init__(self, template: Mapping[str, Any], now: float) -> None:
        """Deploy the template of the stack that has them."""
        self._now = now
        self._store = MetricStore(MetricClock(now=lambda: self._now))
        self._cloudwatch = CloudWatch(self._store, Faults())
        references = {"<AWS::Region>": REGION}
        for id, alarm in _of_type(template, "AWS::CloudWatch::Alarm"):
            put = self._cloudwatch.alarms.put({**_flattened(alarm), "AlarmActions": []})
            references[f"<{id}.Arn>"] = put.arn
        ((_, dashboard),) = _of_type(template, "AWS::CloudWatch::Dashboard")
        self.dashboard, body = flat(dashboard["DashboardName"]), flat(dashboard["DashboardBody"])
        for reference, value in references.items():
            self.dashboard, body = self.dashboard.replace(reference, value), body.replace(reference, value)
        self._cloudwatch.dashboards.put(self.dashboard, body, now)
        self.places: dict[str, int] = {}
        """Widgets by their title."""
        self._metrics: dict[str, Metric] = {}
        for place, widget in enumerate(json.loads(body)["widgets"]):
            self.places[widget["properties"].get("title", "")] = place
            for (namespace, name, *rest), options in _named(widget):
                found = Metric.of(namespace, name, dict(zip(rest[::2], rest[1::2], strict=True)))
                self._metrics[name if namespace == NAMESPACE else options["label"]] = found

    def record(self, metric: str, at: float, *values: float) -> None:
        """Take in values of a metric of the dashboard: one's own by its name, another by its label."""
        self._store.record(self._metrics[metric], *values, at=at)

    def pass_time(self, until: float) -> None:
        """Evaluate the alarms at the end of each minute."""
        while self._now < until:
            self._now += MINUTE_S
            self._cloudwatch.alarms.evaluate_due(self._now)

    def get_dashboard(self, **asked: Any) -> dict[str, Any]:
        """As boto3's client has it."""
        return self._answer("GetDashboard", asked)

    def describe_alarms(self, **asked: Any) -> dict[str, Any]:
        """As boto3's client has it."""
        return self._answer("DescribeAlarms", asked)

    def get_metric_data(self, **asked: Any) -> dict[str, Any]:
        """As boto3's client has it."""
        times = {name: asked[name].timestamp() for name in ("StartTime", "EndTime")}
        answer = self._answer("GetMetricData", {**asked, **times})
        for result in answer["MetricDataResults"]:
            result["Timestamps"] = [datetime.fromtimestamp(at, UTC) for at in result["Timestamps"]]
        return answer

    def _answer(self, operation: str, asked: Mapping[str, Any]) -> dict[str, Any]:
        answer: dict[str, Any] = asyncio.run(self._cloudwatch.answer(operation, json.dumps(asked).encode()))
        return answer


def _named(widget: Mapping[str, Any]) -> Iterator[tuple[list[str], Mapping[str, Any]]]:
    if widget["type"] == "metric":
        yield from ((named, options) for named, options in widget_metrics(widget) if named)


def _of_type(template: Mapping[str, Any], kind: str) -> Iterator[tuple[str, dict[str, Any]]]:
    for id, resource in template["Resources"].items():
        if resource["Type"] == kind:
            yield id, resource["Properties"]


def _flattened(value: Any) -> Any:
    """A resource's properties as the API gets them; a reference as the name of what it refers to."""
    if isinstance(value, list):
        return [_flattened(each) for each in value]
    if not isinstance(value, dict):
        return value
    if len(value) == 1 and next(iter(value)).startswith(("Fn::", "Ref")):
        return flat(value)
    return {key: _flattened(inner) for key, inner in value.items()}


@dataclass
class Answer:
    """What became of a question."""

    strategy: str | None
    """None for no answer at all."""
    first_text_s: float
    took_s: float
    failed: tuple[str, ...] = ()


@dataclass
class LoadRun:
    """Users who ask, read and ask again, and what it leaves in an account's metrics."""

    account: Account
    chance: Random
    fallbacks: Counter[tuple[str, ...]] = field(default_factory=Counter)
    calls: Counter[tuple[str, str]] = field(default_factory=Counter)
    searches: Counter[int] = field(default_factory=Counter)
    working: Counter[int] = field(default_factory=Counter)
    """Answers that are written at once, by the second."""

    def take_place(self) -> None:
        """Let all users ask."""
        for _ in range(USERS):
            asks_s = ASKING[0] + self.chance.uniform(0, 4 * MINUTE_S)
            self._record("connects", asks_s, 1)
            while asks_s < ASKING[1]:
                asks_s += self._ask(asks_s) + self.chance.expovariate(1 / THINKING_S)
        for second, answers in self.working.items():
            self._record("running in the account", second, answers + 2)
        self._record(BREAKER_OPENED.name, THROTTLED[0] + BREAKER_AFTER_S, 1)

    def _record(self, metric: str, at_s: float, *values: float) -> None:
        self.account.record(metric, BEGINS + at_s, *values)

    def _ask(self, at_s: float) -> float:
        """One question; how long it took."""
        self._record("messages", at_s, 1)
        self._record(QUESTIONS.name, at_s, 1)
        answer = self._answer(at_s)
        for second in range(int(at_s), int(at_s + answer.took_s) + 1):
            self.working[second] += 1
        ended_s = at_s + answer.took_s
        faults = [one for one in answer.failed if not one.endswith("cache_miss")]
        if faults:
            self._record(ATTEMPTS_FAILED.name, ended_s, *[1] * len(faults))
        if answer.strategy is None:
            self._record(REQUESTS_FAILED.name, ended_s, 1)
            return answer.took_s
        self._record(ANSWERS_COMPLETE.name, ended_s, 1)
        self._record(ANSWERS_FELL_BACK.name, ended_s, float(bool(faults)))
        self._record(FIRST_CHUNK.name, ended_s, 1000 * answer.first_text_s)
        self._record(ANSWER_LATENCY.name, ended_s, 1000 * answer.took_s)
        if faults:
            self.fallbacks[(*answer.failed, *[""] * (3 - len(answer.failed)), answer.strategy)] += 1
        return answer.took_s

    def _answer(self, at_s: float) -> Answer:
        if self.chance.random() < SMALL_TALK_SHARE:
            self._call(at_s, SMALL, "answer")
            return Answer("direct", self._around(0.6), self._around(1.4))
        strategy = "hybrid" if self.chance.random() < 0.3 else "rag"
        self.searches[NEW if at_s > PUBLISHED_S else OLD] += 1
        hit = self.chance.random() < HIT_SHARE
        self._record(CACHE_HITS.name, at_s, float(hit))
        if hit:
            return Answer(strategy, self._around(0.4), self._around(0.6))
        if THROTTLED[0] <= at_s < THROTTLED[1] and self.chance.random() < REFUSED_SHARE:
            return self._refused(at_s, ["hybrid", "rag"] if strategy == "hybrid" else ["rag"])
        self._call(at_s, LARGE, "answer")
        self._call(at_s, SMALL, "citations")
        first_text_s = self._around(1.4)
        return Answer(strategy, first_text_s, first_text_s + self._around(3.2))

    def _refused(self, at_s: float, strategies: Sequence[str]) -> Answer:
        """Where the model refuses, each strategy that needs it fails: slowly, until its breaker opens."""
        is_open = at_s > THROTTLED[0] + BREAKER_AFTER_S
        waited_s = 0.0
        for _ in strategies:
            waited_s += 0.05 if is_open else self._around(4.0)
            if not is_open or self.chance.random() < 0.03:
                self._record(LARGE, at_s, *[1] * 3)
        code = "dependency_down" if is_open else "model_busy"
        failed = (*(f"{one}: {code}" for one in strategies), "cag: cache_miss")
        if self.chance.random() < UNANSWERED_SHARE:
            return Answer(None, 0, waited_s + self._around(2.0), failed)
        self._call(at_s, SMALL, "answer")
        first_text_s = waited_s + self._around(0.8)
        return Answer("direct", first_text_s, first_text_s + self._around(1.2), failed)

    def _call(self, at_s: float, model: str, purpose: str) -> None:
        self.calls[model, purpose] += 1
        self._record(COST_USD.name, at_s, CALL_USD[model])

    def _around(self, median: float) -> float:
        return median * self.chance.lognormvariate(0, 0.35)

    def rows(self) -> dict[str, list[dict[str, str]]]:
        """The rows of the log widgets, by the query's name."""
        fallbacks = [
            {"failed.0": first, "failed.1": second, "failed.2": third, "answered_by": strategy}
            | {"answers": str(answers), "example": str(UUID(int=self.chance.getrandbits(128), version=4))}
            for (first, second, third, strategy), answers in self.fallbacks.most_common()
        ]
        spending = [
            {"model_id": model, "purpose": purpose, "usd": f"{calls * CALL_USD[model]:.4f}", "model_calls": str(calls)}
            | {"tokens_in": str(calls * CALL_TOKENS[model][0]), "tokens_out": str(calls * CALL_TOKENS[model][1])}
            | {"requests": str(calls)}
            for (model, purpose), calls in sorted(self.calls.items())
        ]
        versions = [
            {"index_version": str(version), "engine": "shards", "searches": str(self.searches[version])}
            | {"passages": f"{found:.1f}", "p95_ms": str(p95_ms), "last_at": f"2026-11-21 {last_at}.000"}
            for version, found, p95_ms, last_at in ((NEW, 7.8, 38, "10:32:58"), (OLD, 7.7, 36, "10:09:03"))
        ]
        return {FALLBACKS.name: fallbacks, SPENDING.name: spending, VERSIONS.name: versions}


def _ordinary(account: Account, chance: Random) -> None:
    """What lies before and beside the users' questions."""
    for day in range(1, DAYS_BEFORE + 1):
        account.record(COST_USD.name, BEGINS - day * DAY_S, chance.uniform(1.5, 4.5))
    for at in range(BEGINS - UPKEEP_DAYS * DAY_S, BEGINS + SHOWN_MINUTES * MINUTE_S, 2 * MINUTE_S):
        account.record("recovery sweep", at, 1)
        account.record("failed sweeps", at, 0)
    for day in range(UPKEEP_DAYS):
        at = BEGINS - day * DAY_S - 6 * 3600
        account.record("index maintenance", at, 1)
        account.record("failed maintenance", at, 0)
    for minute in range(SHOWN_MINUTES):
        at = BEGINS + minute * MINUTE_S
        account.record("throttled answers", at, 0)
        account.record("throttled frames", at, 0)
        account.record("integration errors", at, 0)
    for name, minutes in {
        LIMITS_REACHED.name: (8, 9, 13),
        FRAMES_REFUSED.name: (19,),
        CONNECTIONS_REFUSED.name: (6, 6, 8),
        REQUESTS_RECOVERED.name: (12,),
        DOCUMENTS_QUARANTINED.name: (9,),
        "client errors": (6, 6, 8),
    }.items():
        for minute in minutes:
            account.record(name, BEGINS + minute * MINUTE_S, 1)


def example(template: Mapping[str, Any]) -> dict[str, Any]:
    """The dashboard of a stack's template with figures, as :mod:`benchmarks.dashboard_data` describes it."""
    account = Account(template, BEGINS - ALARMS_BEGIN_MINUTES * MINUTE_S)
    chance = Random(SEED)
    _ordinary(account, chance)
    run = LoadRun(account, chance)
    run.take_place()
    ends = BEGINS + SHOWN_MINUTES * MINUTE_S
    account.pass_time(ends)
    logs = {account.places[name]: rows for name, rows in run.rows().items()}
    window = datetime.fromtimestamp(BEGINS, UTC), datetime.fromtimestamp(ends, UTC)
    return collect(account, account.dashboard, *window, logs=logs, period_s=MINUTE_S)


def main(argv: Sequence[str] | None = None) -> int:
    """Draw the picture."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.dashboard_example", description=__doc__)
    parser.add_argument("picture", type=Path, help="the SVG to write")
    args = parser.parse_args(argv)
    args.picture.write_text(render(example(gateway_template())), encoding="utf-8")
    return 0


def gateway_template() -> dict[str, Any]:
    """The Gateway stack's template, by the settings of cdk.json with alarms."""
    from aws_cdk import App

    from stacks.app import add_stacks
    from stacks.context import parse

    context = json.loads(Path("cdk.json").read_text(encoding="utf-8"))["context"]
    settings = parse({**context["cicada"], "alarmEmail": "operator@example.org"}, source="cdk.json")
    with tempfile.TemporaryDirectory() as folder:
        app = App(context={**context, "aws:cdk:disable-asset-staging": True}, outdir=folder)
        add_stacks(app, settings)
        template: dict[str, Any] = app.synth().get_stack_by_name(f"{settings.stack_prefix}-Gateway").template
    return template


if __name__ == "__main__":
    raise SystemExit(main())

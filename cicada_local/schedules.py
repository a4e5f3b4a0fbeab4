"""EventBridge's schedules: the deployed rules that have one invoke their functions when they are due.

A rule is noticed within a second of its deployment, and a rate is due one period later for the first time. What was
missed while the laptop slept is made up for by one run, and the rhythm stays. Runs are asynchronous invocations, as
EventBridge's are: what the function service does with failed and throttled ones holds for them.
"""

from __future__ import annotations

import asyncio
import json
import logging
import uuid
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

from cicada_local.functions import LambdaApiError, Permits, permit_all
from cicada_local.places import ACCOUNT_ID, REGION
from cicada_local.rule_targets import Invoke, RuleTargets, Target
from cicada_local.schedule_expressions import ScheduleInvalid, parse_schedule

logger = logging.getLogger(__name__)

TICK_S = 1.0
"""How often is looked what is due; EventBridge's own precision is a minute."""


@dataclass(frozen=True)
class ScheduledRule:
    """An enabled rule with a schedule."""

    name: str
    arn: str
    expression: str
    targets: tuple[Target, ...]


class _Expressions:
    """Stands for moto's patterns of expressions, which let through what EventBridge refuses."""

    @staticmethod
    def match(expression: str) -> bool:
        try:
            parse_schedule(expression)
        except ScheduleInvalid as error:
            logger.warning("%s", error)
            return False
        return True


def install() -> None:
    """Let moto's EventBridge, and so the deployment of a rule, refuse the expressions that EventBridge refuses."""
    from moto.events.models import EventsBackend

    strict: Any = _Expressions()
    EventsBackend._CRON_REGEX = EventsBackend._RATE_REGEX = strict


def deployed_rules() -> list[ScheduledRule]:
    """The enabled rules with a schedule that are deployed now. Targets that are no functions are left out."""
    from moto.events.models import events_backends

    bus = events_backends[ACCOUNT_ID][REGION].event_buses["default"]  # the only one that takes schedules
    return [
        ScheduledRule(rule.name, rule.arn, rule.scheduled_expression, tuple(_functions_among(rule.targets)))
        for rule in list(bus.rules.values())
        if rule.scheduled_expression and rule.state == "ENABLED"
    ]


def _functions_among(targets: Iterable[dict[str, Any]]) -> Iterable[Target]:
    return (Target.of(target) for target in targets if ":lambda:" in target["Arn"])


class Schedules:
    """Runs what is due. All methods belong to one event loop."""

    def __init__(
        self,
        rules: Callable[[], list[ScheduledRule]],
        invoke: Invoke,
        *,
        now: Callable[[], datetime] = lambda: datetime.now(UTC),
        permits: Permits = permit_all,
        targets: RuleTargets | None = None,
    ) -> None:
        """Nothing runs before :meth:`run`.

        Args:
            rules: the rules as they stand now.
            invoke: invokes a function.
            now: the time, with its zone.
            permits: whether a function's policy lets a rule invoke it, when it is fired out of turn.
            targets: hands events on to functions.
        """
        self._targets = targets or RuleTargets(invoke, permits=permits)
        self._permits = permits
        self._rules = rules
        self._invoke = invoke
        self._now = now
        self._due: dict[tuple[str, str], datetime | None] = {}
        """By a rule's ARN and its expression: a changed expression begins anew."""

    async def run(self) -> None:
        """Run what is due when it is due, until cancelled."""
        while True:
            try:
                await self.run_due()
            except Exception:
                logger.exception("the schedules could not be run")
            await asyncio.sleep(TICK_S)

    async def run_due(self) -> None:
        """Take note of new rules, and run each rule that has become due, once."""
        now = self._now()
        for rule, due in self._watched(now):
            if due is not None and due <= now:
                self._due[rule.arn, rule.expression] = self._next(rule, due, now)
                for target in rule.targets:
                    await self._targets.deliver(rule.arn, target, _event(rule, target, due))

    async def fire(self, name: str) -> list[dict[str, Any]] | None:
        """Run a rule now, out of turn, and wait for its functions.

        Returns:
            For each target, the ``function`` and its ``result`` or ``error``; None if there is no such rule.
        """
        rule = next((rule for rule in self._rules() if rule.name == name), None)
        return None if rule is None else [await self._outcome(rule, target) for target in rule.targets]

    def describe(self) -> list[dict[str, Any]]:
        """Each rule, and when it is due next, as plain data."""
        return [
            {
                "name": rule.name,
                "expression": rule.expression,
                "functions": [_function_name(target) for target in rule.targets],
                "due": None if due is None else due.isoformat(timespec="seconds"),
            }
            for rule, due in self._watched(self._now())
        ]

    def _watched(self, now: datetime) -> list[tuple[ScheduledRule, datetime | None]]:
        """The rules, and when each is due; what is new begins now, and what is gone is forgotten."""
        rules = self._rules()
        self._due = {
            key: self._due[key] if key in self._due else parse_schedule(rule.expression).after(now)
            for rule in rules
            for key in [(rule.arn, rule.expression)]
        }
        return [(rule, self._due[rule.arn, rule.expression]) for rule in rules]

    @staticmethod
    def _next(rule: ScheduledRule, due: datetime, now: datetime) -> datetime | None:
        schedule = parse_schedule(rule.expression)
        following: datetime | None = due
        while following is not None and following <= now:
            following = schedule.after(following)
        return following

    async def _outcome(self, rule: ScheduledRule, target: Target) -> dict[str, Any]:
        told: dict[str, Any] = {"function": _function_name(target)}
        if not self._permits(target.function_arn, rule.arn):
            return told | {"error": {"errorType": "AccessDenied", "errorMessage": f"{rule.arn} may not invoke it"}}
        payload = _event(rule, target, self._now())
        try:
            result = await self._invoke(target.function_arn, payload, invocation_type="RequestResponse")
        except LambdaApiError as error:
            return told | {"error": {"errorType": type(error).__name__, "errorMessage": str(error)}}
        return told | {"error" if result.function_error else "result": json.loads(result.payload or b"null")}


def _function_name(target: Target) -> str:
    return target.function_arn.split(":function:")[-1]


def _event(rule: ScheduledRule, target: Target, due: datetime) -> bytes:
    """What a target gets. Source: AWS Lambda developer guide, "Invoke a Lambda function on a schedule"."""
    if target.input is not None:
        return target.input.encode()
    event = {
        "version": "0",
        "id": str(uuid.uuid4()),
        "detail-type": "Scheduled Event",
        "source": "aws.events",
        "account": ACCOUNT_ID,
        "time": due.astimezone(UTC).strftime("%Y-%m-%dT%H:%M:%SZ"),
        "region": REGION,
        "resources": [rule.arn],
        "detail": {},
    }
    return json.dumps(event).encode()

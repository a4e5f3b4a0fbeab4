"""Alarms: evaluated at the end of each minute, with their history and their actions.

Source: Amazon CloudWatch User Guide, "Alarm evaluation" and "Configuring how CloudWatch alarms treat missing data".
"""

from __future__ import annotations

import json
from collections import deque
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any

from cicada_local.cloudwatch.alarm_config import AlarmConfig, interval_s, read_alarm
from cicada_local.cloudwatch.clock import MINUTE_S
from cicada_local.cloudwatch.errors import NotFound
from cicada_local.cloudwatch.expressions import ExpressionInvalid
from cicada_local.cloudwatch.metrics import MetricStore
from cicada_local.cloudwatch.queries import evaluate_queries
from cicada_local.places import ACCOUNT_ID, REGION

OK, ALARM, INSUFFICIENT = "OK", "ALARM", "INSUFFICIENT_DATA"
KEPT_HISTORY = 1000
FURTHER_PERIODS = 2
"""Periods that are read beyond those that are evaluated, to make up for missing values. AWS's example has five for
three; the number for other alarms is not published."""
CATCH_UP_MINUTES = 60
"""So many minutes are made up for, when the evaluation was held up."""
_ACTIONS = {OK: "OKActions", ALARM: "AlarmActions", INSUFFICIENT: "InsufficientDataActions"}

Points = Sequence[tuple[int, float | None]]
"""Values by the beginning of their period, oldest first; None where there is none."""
Act = Callable[["Alarm", str, str], str | None]
"""Carries out an action of an alarm that was in an old state; what went wrong, if anything."""


@dataclass
class HistoryItem:
    """Something that happened to an alarm."""

    alarm: str
    kind: str
    at: float
    summary: str
    data: Mapping[str, Any]


@dataclass
class Alarm:
    """An alarm and its state."""

    config: AlarmConfig
    arn: str
    configured_at: float
    state: str = INSUFFICIENT
    reason: str = "Unchecked: Initial alarm creation"
    reason_data: Mapping[str, Any] = field(default_factory=dict)
    updated_at: float = 0.0
    transitioned_at: float = 0.0
    evaluation_error: bool = False


class Alarms:
    """The alarms of an account. All methods but :meth:`put` and :meth:`delete` belong to one thread."""

    def __init__(self, store: MetricStore, act: Act) -> None:
        """Watch nothing yet.

        Args:
            store: has the metrics.
            act: carries out actions.
        """
        self._store = store
        self._act = act
        self._alarms: dict[str, Alarm] = {}
        self._history: deque[HistoryItem] = deque(maxlen=KEPT_HISTORY)
        self._evaluated = int(store.clock.now() // MINUTE_S) * MINUTE_S

    def put(self, asked: Mapping[str, Any]) -> Alarm:
        """Create an alarm, or change one, whose state stays.

        Raises:
            CloudWatchError: CloudWatch would refuse it.
        """
        config = read_alarm(asked)
        now = self._store.clock.now()
        arn = f"arn:aws:cloudwatch:{REGION}:{ACCOUNT_ID}:alarm:{config.name}"
        alarm = self._alarms.get(config.name)
        if alarm is None:
            alarm = self._alarms[config.name] = Alarm(config, arn, now, updated_at=now, transitioned_at=now)
            done = "created"
        else:
            alarm.config, alarm.configured_at = config, now
            done = "updated"
        self._note(alarm, "ConfigurationUpdate", f'Alarm "{config.name}" {done}', {"type": done.title()})
        return alarm

    def delete(self, name: str) -> None:
        """Forget an alarm.

        Raises:
            NotFound: there is none.
        """
        if self._alarms.pop(name, None) is None:
            raise NotFound(f"No alarm {name}")

    def forget(self, name: str) -> None:
        """Delete an alarm, if it is there."""
        self._alarms.pop(name, None)

    def all(self) -> list[Alarm]:
        """By name."""
        return sorted(self._alarms.values(), key=lambda alarm: alarm.config.name)

    def history(self) -> list[HistoryItem]:
        """What happened, oldest first."""
        return list(self._history)

    def evaluate_due(self, now: float) -> None:
        """Evaluate each alarm at the end of each minute that has passed since the last time."""
        latest = int(now // MINUTE_S) * MINUTE_S
        first = max(self._evaluated + MINUTE_S, latest - CATCH_UP_MINUTES * MINUTE_S)
        for at in range(first, latest + 1, MINUTE_S):
            for alarm in self.all():
                if at % interval_s(alarm.config) == 0:
                    self._evaluate(alarm, at)
        self._evaluated = max(latest, self._evaluated)

    def set_state(self, name: str, state: str, reason: str, data: Mapping[str, Any]) -> None:
        """Set an alarm's state until its next evaluation.

        Raises:
            NotFound: there is no such alarm.
        """
        if name not in self._alarms:
            raise NotFound(f"No alarm {name}")
        self._change(self._alarms[name], state, reason, data, self._store.clock.now())

    def _evaluate(self, alarm: Alarm, at: int) -> None:
        config = alarm.config
        starts = range(at - (config.periods + FURTHER_PERIODS) * config.period_s, at, config.period_s)
        try:
            series = evaluate_queries(self._store, config.queries, starts.start, at)[config.watched]
            alarm.evaluation_error = False
        except ExpressionInvalid as error:
            alarm.evaluation_error = True
            self._change(alarm, INSUFFICIENT, str(error), {}, at)
            return
        points: Points = [(start, series.get(start)) for start in starts]
        state = next_state(config, points)
        if state is None or state == alarm.state:
            alarm.updated_at = at if state is None else alarm.updated_at
            return
        self._change(alarm, state, _reason(config, points, alarm.state, state), _reason_data(config, points, at), at)

    def _change(self, alarm: Alarm, state: str, reason: str, data: Mapping[str, Any], at: float) -> None:
        if state == alarm.state:
            return
        old = {"stateValue": alarm.state, "stateReason": alarm.reason, "stateReasonData": dict(alarm.reason_data)}
        before, alarm.state = alarm.state, state
        alarm.reason, alarm.reason_data = reason, data
        alarm.updated_at = alarm.transitioned_at = at
        new = {"stateValue": state, "stateReason": reason, "stateReasonData": dict(data)}
        summary = f"Alarm updated from {before} to {state}"
        self._note(alarm, "StateUpdate", summary, {"oldState": old, "newState": new}, at)
        if not alarm.config.asked.get("ActionsEnabled", True):
            return
        for action in alarm.config.asked.get(_ACTIONS[state], ()):
            failure = self._act(alarm, action, before)
            done = f"Successfully executed action {action}"
            summary = done if failure is None else f"Failed to execute action {action}. Received error: {failure}"
            data = {"actionState": "Failed" if failure else "Succeeded", "stateUpdateTimestamp": round(at * 1000)}
            self._note(alarm, "Action", summary[:255], {**data, "notificationResource": action, "error": failure}, at)

    def _note(self, alarm: Alarm, kind: str, summary: str, data: Mapping[str, Any], at: float | None = None) -> None:
        when = self._store.clock.now() if at is None else at
        told = {"version": "1.0", **{name: value for name, value in data.items() if value is not None}}
        self._history.append(HistoryItem(alarm.config.name, kind, when, summary, told))


def next_state(config: AlarmConfig, points: Points) -> str | None:
    """The state that an alarm is in after an evaluation; None for the one that it was in.

    Args:
        config: the alarm's.
        points: of its evaluation range, which is longer than its evaluation periods.
    """
    known = [value for _, value in points if value is not None]
    if len(known) >= config.periods:
        breaching = sum(config.breaches(value) for value in known[-config.periods :])
        return ALARM if breaching >= config.to_alarm else OK
    breaching = sum(map(config.breaches, known))
    if config.missing == "breaching":
        return ALARM if breaching + config.periods - len(known) >= config.to_alarm else OK
    if breaching >= config.to_alarm:
        return ALARM
    if config.missing == "notBreaching":
        return OK
    if not known:
        return INSUFFICIENT if config.missing == "missing" else None
    if breaching < len(known):
        return OK
    return ALARM if config.missing == "missing" and _breached_long_ago(config, points) else None


def _breached_long_ago(config: AlarmConfig, points: Points) -> bool:
    """Whether the oldest breaching value is as old as the periods that must breach; those after it breach or miss."""
    ages = [len(points) - place for place, (_, value) in enumerate(points) if value is not None]
    return max(ages) >= config.to_alarm


_SIGNS = {
    "GreaterThanOrEqualToThreshold": "greater than or equal to",
    "GreaterThanThreshold": "greater than",
    "LessThanThreshold": "less than",
    "LessThanOrEqualToThreshold": "less than or equal to",
}


def _reason(config: AlarmConfig, points: Points, before: str, state: str) -> str:
    """The sentence that AWS tells of a change."""
    recent = [(at, value) for at, value in points if value is not None][-config.periods :][::-1]
    if state == INSUFFICIENT:
        return f"Insufficient Data: {config.periods} datapoint{_s(config.periods)} {_were(config.periods)} unknown."
    if not recent:
        treated = {"breaching": "Breaching", "notBreaching": "NonBreaching"}.get(config.missing, config.missing)
        return (
            f"Threshold Crossed: no datapoints were received for {config.periods} period{_s(config.periods)} and "
            f"{config.periods} missing datapoint{_s(config.periods)} {_were(config.periods)} treated as [{treated}]."
        )
    chosen = [one for one in recent if config.breaches(one[1]) == (state == ALARM)] or recent
    told = ", ".join(f"{value!r} ({datetime.fromtimestamp(at, UTC):%d/%m/%y %H:%M:%S})" for at, value in chosen)
    least = f"minimum {config.to_alarm} datapoint{_s(config.to_alarm)} for {before} -> {state} transition"
    verb = "was" if len(chosen) == 1 else "were"
    negation = "" if state == ALARM else "not "
    return (
        f"Threshold Crossed: {len(chosen)} out of the last {config.periods} datapoint{_s(config.periods)} [{told}] "
        f"{verb} {negation}{_SIGNS[config.comparison]} the threshold ({config.threshold!r}) ({least})."
    )[:1023]


def _s(number: int) -> str:
    return "" if number == 1 else "s"


def _were(number: int) -> str:
    return "was" if number == 1 else "were"


def _reason_data(config: AlarmConfig, points: Points, at: int) -> dict[str, Any]:
    recent = points[-config.periods :]
    return {
        "version": "1.0",
        "queryDate": iso(at),
        "startDate": iso(recent[0][0]),
        "period": config.period_s,
        "recentDatapoints": [value for _, value in recent if value is not None],
        "threshold": config.threshold,
        "evaluatedDatapoints": [
            {"timestamp": iso(start), "value": value} for start, value in reversed(recent) if value is not None
        ],
    }


def iso(at: float) -> str:
    """A time as CloudWatch writes it."""
    return datetime.fromtimestamp(at, UTC).strftime("%Y-%m-%dT%H:%M:%S.%f")[:-3] + "+0000"


def notification(alarm: Alarm, before: str) -> tuple[str, str]:
    """The subject and the text that a topic gets when an alarm changes."""
    asked, config = alarm.config.asked, alarm.config
    document = {
        "AlarmName": config.name,
        "AlarmDescription": asked.get("AlarmDescription"),
        "AWSAccountId": ACCOUNT_ID,
        "AlarmConfigurationUpdatedTimestamp": iso(alarm.configured_at),
        "NewStateValue": alarm.state,
        "NewStateReason": alarm.reason,
        "StateChangeTime": iso(alarm.transitioned_at),
        "Region": "US East (N. Virginia)",
        "AlarmArn": alarm.arn,
        "OldStateValue": before,
        "OKActions": asked.get("OKActions", []),
        "AlarmActions": asked.get("AlarmActions", []),
        "InsufficientDataActions": asked.get("InsufficientDataActions", []),
        "Trigger": {
            "Period": config.period_s,
            "EvaluationPeriods": config.periods,
            "DatapointsToAlarm": config.to_alarm,
            "ComparisonOperator": config.comparison,
            "Threshold": config.threshold,
            "TreatMissingData": config.missing,
            **{name: asked[name] for name in ("MetricName", "Namespace", "Dimensions", "Metrics") if name in asked},
        },
    }
    subject = f'{alarm.state}: "{config.name}" in US East (N. Virginia)'
    return subject[:100], json.dumps(document)

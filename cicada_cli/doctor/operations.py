"""What runs and watches by itself in a deployment: the recovery sweep, and the alarms."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from datetime import UTC, datetime, timedelta
from typing import Any

from cicada_cli.doctor.calls import Calls
from cicada_cli.doctor.findings import Finding, Reporter

SWEEP_RULE = "recovery-sweep"
"""After the prefix."""
MIN_LOOK_BACK = timedelta(minutes=30)
"""Metrics come some minutes late."""
MISSED_RUNS = 5
"""As many periods without a run are too many."""
PERIOD_S = 60
PENDING = "PendingConfirmation"
"""What SNS gives in place of the ARN of a subscription that nobody has confirmed."""


def check_sweep(
    calls: Calls,
    prefix: str,
    sweep_minutes: int,
    *,
    made_at: datetime | None = None,
    now: Callable[[], datetime] = lambda: datetime.now(UTC),
) -> Iterable[Finding]:
    """Whether the recovery sweep is switched on, when it ran last, and whether its runs could be started.

    Two calls of GetMetricStatistics: 0.00002 US dollars.

    Args:
        calls: the port.
        prefix: the stacks'.
        sweep_minutes: between two runs.
        made_at: when its stack was created; None where that is not known.
        now: the time, with its zone.
    """
    name = f"{prefix}-{SWEEP_RULE}"
    report = Reporter("sweep", name)
    rule = calls("events", "DescribeRule", Name=name)
    if rule.get("State") != "ENABLED":
        yield report.problem(
            "the rule is disabled: requests with a lost worker are not recovered",
            f"aws events enable-rule --name {name}",
        )
        return
    end = now()
    look_back = max(MIN_LOOK_BACK, timedelta(minutes=MISSED_RUNS * sweep_minutes))
    runs = _sums(calls, name, "Invocations", end - look_back, end)
    failed = sum(total for _, total in _sums(calls, name, "FailedInvocations", end - look_back, end))
    if failed:
        yield report.problem(
            f"{failed:.0f} runs failed to start within {_minutes(look_back)}",
            "the function's permission for EventBridge may be missing: make deploy restores it",
        )
    elif runs:
        last = max(at for at, _ in runs)
        yield report.ok(f"every {sweep_minutes} minutes; last run {_minutes(end - last)} ago")
    elif made_at is not None and end - made_at < look_back:
        yield report.ok(f"every {sweep_minutes} minutes; no runs reported yet")
    else:
        yield report.warning(
            f"no run in the last {_minutes(look_back)}", f"check the rule {name} in the EventBridge console"
        )


def _sums(calls: Calls, rule: str, metric: str, start: datetime, end: datetime) -> list[tuple[datetime, float]]:
    """A metric's sums that are not zero, by minute."""
    found = calls(
        "cloudwatch",
        "GetMetricStatistics",
        Namespace="AWS/Events",
        MetricName=metric,
        Dimensions=[{"Name": "RuleName", "Value": rule}],
        StartTime=start,
        EndTime=end,
        Period=PERIOD_S,
        Statistics=["Sum"],
    )
    return [(point["Timestamp"], float(point["Sum"])) for point in found.get("Datapoints", ()) if point["Sum"] > 0]


def _minutes(span: timedelta) -> str:
    minutes = max(0, round(span.total_seconds() / 60))
    return "1 minute" if minutes == 1 else f"{minutes} minutes"


def check_alarms(calls: Calls, prefix: str) -> Iterable[Finding]:
    """The alarms' states, and whether the address that they are sent to has been confirmed."""
    begins = f"{prefix}-"
    alarms = list(_alarms(calls, begins))
    if not alarms:
        yield Reporter("alarms", f"{begins}*").ok("no alarms: the setting alarmEmail creates them")
        return
    ringing = [alarm for alarm in alarms if alarm["StateValue"] == "ALARM"]
    for alarm in ringing:
        yield Reporter("alarms", str(alarm["AlarmName"])).problem(
            str(alarm.get("AlarmDescription", "in alarm")), "follow its runbook"
        )
    for topic in sorted({topic for alarm in alarms for topic in alarm.get("AlarmActions", ())}):
        yield from _subscribers(calls, topic)
    if not ringing:
        yield Reporter("alarms", f"{begins}*").ok(f"{len(alarms)} alarms, none in state ALARM")


def _alarms(calls: Calls, begins: str) -> Iterator[Mapping[str, Any]]:
    """Those of one deployment: another one's prefix can begin with its prefix and a hyphen."""
    token: dict[str, str] = {}
    while True:
        page = calls("cloudwatch", "DescribeAlarms", AlarmNamePrefix=begins, AlarmTypes=["MetricAlarm"], **token)
        yield from (
            alarm for alarm in page.get("MetricAlarms", ()) if "-" not in alarm["AlarmName"].removeprefix(begins)
        )
        if not page.get("NextToken"):
            return
        token = {"NextToken": page["NextToken"]}


def _subscribers(calls: Calls, topic: str) -> Iterator[Finding]:
    found = calls("sns", "ListSubscriptionsByTopic", TopicArn=topic).get("Subscriptions", ())
    for subscription in found:
        if subscription.get("SubscriptionArn") == PENDING:
            yield Reporter("alarms", str(subscription.get("Endpoint", topic))).warning(
                "the address is not confirmed, so it gets no alarms", "follow the link in AWS's e-mail"
            )
    if not found:
        yield Reporter("alarms", topic).warning(
            "the topic of the alarms has no subscription", "subscribe an address to the topic"
        )

"""The search for requests that nobody works on: when it runs, what it may do, and what it is told."""

from __future__ import annotations

import pytest

from cicada.settings import RecoverySettings
from cicada_local.schedule_expressions import Rate, parse_schedule
from stacks.findings import flat
from tests.template.templates import Synthesis

SCHEDULED = ("index_maintenance", "recovery_sweep")


def test_it_runs_every_few_minutes(shipped: Synthesis, full: Synthesis) -> None:
    for synthesis, rate in ((shipped, "rate(2 minutes)"), (full, "rate(1 minute)")):
        rule = synthesis.rule_for("recovery_sweep").properties
        assert rule["Name"] == f"{synthesis.prefix}-recovery-sweep"
        assert (rule["ScheduleExpression"], rule["State"]) == (rate, "ENABLED")


@pytest.mark.parametrize("folder", SCHEDULED)
def test_a_rule_may_invoke_its_own_function(each: Synthesis, folder: str) -> None:
    name = f"<{each.function(folder).id}.Arn>"
    (permission,) = (
        p.properties
        for p in each.resources("AWS::Lambda::Permission")
        if flat(p.properties["FunctionName"]) == name and p.properties["Principal"] == "events.amazonaws.com"
    )
    assert permission["Action"] == "lambda:InvokeFunction"
    assert flat(permission["SourceArn"]) == f"<{each.rule_for(folder).id}.Arn>"


def test_a_run_is_not_repeated_and_with_the_defaults_ends_before_the_next(shipped: Synthesis) -> None:
    (target,) = shipped.rule_for("recovery_sweep").properties["Targets"]
    invocation = shipped.async_invocation("recovery_sweep")
    assert (invocation["MaximumRetryAttempts"], target["RetryPolicy"]["MaximumRetryAttempts"]) == (0, 0)
    schedule = parse_schedule(shipped.rule_for("recovery_sweep").properties["ScheduleExpression"])
    assert isinstance(schedule, Rate)
    timeout_s = shipped.function("recovery_sweep").properties["Timeout"]
    assert invocation["MaximumEventAgeInSeconds"] + timeout_s <= schedule.period.total_seconds()


def test_it_reads_its_settings(shipped: Synthesis, full: Synthesis) -> None:
    settings = RecoverySettings.read(shipped.environment("recovery_sweep"))
    assert settings.state_machine_arn == f"<{shipped.machine('Workflow').id}>"
    assert settings.request_time_s == 300
    assert RecoverySettings.read(full.environment("recovery_sweep")).request_time_s == 120


def test_with_a_key_of_ones_own_it_reads_the_table_under_that_key(full: Synthesis) -> None:
    assert any(action.startswith("kms:") for action, _, _ in full.permissions("RecoverySweepRole"))

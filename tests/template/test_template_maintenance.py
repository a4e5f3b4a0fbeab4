"""The upkeep of the index: when it runs, with what, and what it may do."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Any

from cicada.index.maintenance import KEEP_VERSIONS, rows_within
from cicada.index.manifest import SegmentEntry
from cicada.index.versions import GRACE_S
from cicada.settings import IndexMaintenanceSettings
from cicada_local.schedule_expressions import Rate, parse_schedule
from tests.template.templates import Synthesis

BUCKET = "arn:<AWS::Partition>:s3:::<Cicada-Data.IndexBucket>"
NEW_ACCOUNTS_MEMORY_MB = 3008


def rule_of(synthesis: Synthesis) -> Mapping[str, Any]:
    return synthesis.rule_for("index_maintenance").properties


def only(targets: Sequence[Mapping[str, Any]]) -> Mapping[str, Any]:
    (target,) = targets
    return target


def test_it_runs_once_a_day(each: Synthesis) -> None:
    rule = rule_of(each)
    assert rule["Name"] == f"{each.prefix}-index-maintenance"
    assert (rule["ScheduleExpression"], rule["State"]) == ("rate(1 day)", "ENABLED")


def test_a_run_ends_before_the_next_and_is_not_repeated(each: Synthesis) -> None:
    rule, function = rule_of(each), each.function("index_maintenance")
    invocation = each.async_invocation("index_maintenance")
    delivery = only(rule["Targets"])["RetryPolicy"]
    assert (invocation["MaximumRetryAttempts"], delivery["MaximumRetryAttempts"]) == (0, 0)
    schedule = parse_schedule(rule["ScheduleExpression"])
    assert isinstance(schedule, Rate)
    latest_end_s = invocation["MaximumEventAgeInSeconds"] + function.properties["Timeout"]
    assert latest_end_s <= schedule.period.total_seconds()
    assert delivery["MaximumEventAgeInSeconds"] <= invocation["MaximumEventAgeInSeconds"]


def test_it_has_lambdas_longest_time_and_takes_nothing_from_the_accounts_concurrency(each: Synthesis) -> None:
    function = each.function("index_maintenance").properties
    assert function["Timeout"] == 900
    assert "ReservedConcurrentExecutions" not in function


def test_its_memory_can_be_had_in_a_new_account_and_merges_segments_of_tens_of_thousands(shipped: Synthesis) -> None:
    memory_mb = shipped.function("index_maintenance").properties["MemorySize"]
    assert memory_mb <= NEW_ACCOUNTS_MEMORY_MB
    stored = SegmentEntry(
        key="s",
        collection="script",
        count=100_000,
        live=100_000,
        bytes=100_000 * 3850,
        head_bytes=1,
        sha256="0" * 64,
        tombstones=None,
    )
    assert 80_000 < rows_within(memory_mb * 2**20, [stored], 1024) < 82_000


def test_it_reads_its_settings(shipped: Synthesis) -> None:
    settings = IndexMaintenanceSettings.read(shipped.environment("index_maintenance"))
    assert settings.index_bucket == "<Cicada-Data.IndexBucket>"
    assert (settings.keep_versions, settings.garbage_grace_s) == (KEEP_VERSIONS, GRACE_S)


def test_it_may_read_write_and_delete_objects_of_the_index_and_nothing_else(shipped: Synthesis) -> None:
    may = shipped.permissions("IndexMaintenanceWorkerRole")
    (logs,) = {resource for action, resource, _ in may if action.startswith("logs:")}
    assert re.fullmatch(r"<IndexMaintenanceWorkerLogs\w+\.Arn>", logs)
    assert {(action, resource) for action, resource, _ in may} == {
        ("s3:DeleteObject", f"{BUCKET}/index/*"),
        ("s3:GetObject", f"{BUCKET}/index/*"),
        ("s3:PutObject", f"{BUCKET}/index/*"),
        ("s3:ListBucket", BUCKET),
        ("logs:CreateLogStream", logs),
        ("logs:PutLogEvents", logs),
        ("xray:PutTelemetryRecords", "*"),
        ("xray:PutTraceSegments", "*"),
    }


def test_it_lists_the_index_only_and_is_told_when_an_object_is_not_there(each: Synthesis) -> None:
    (condition,) = (
        condition
        for action, _, condition in each.permissions("IndexMaintenanceWorkerRole")
        if action == "s3:ListBucket"
    )
    assert condition == {"StringLikeIfExists": {"s3:prefix": ["index/*"]}}


def test_with_a_key_of_ones_own_it_reads_and_writes_under_that_key(full: Synthesis) -> None:
    used = {action for action, _, _ in full.permissions("IndexMaintenanceWorkerRole") if action.startswith("kms:")}
    assert used == {"kms:Decrypt", "kms:GenerateDataKey"}

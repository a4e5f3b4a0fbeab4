"""The scenes, in the order in which they are played."""

from __future__ import annotations

from collections.abc import Mapping

from tests.drills import scenes_answers as answers
from tests.drills import scenes_operation as operation
from tests.drills.scene import Scene

SCENES: tuple[Scene, ...] = (
    answers.MODEL_THROTTLED,
    answers.MODEL_AWAY,
    answers.FIRST_TEXT_SLOW,
    answers.TABLE_THROTTLED,
    answers.INDEX_DAMAGED,
    answers.WORKFLOW_REFUSED,
    answers.WORKERS_LOST,
    answers.NO_CONCURRENCY,
    operation.ISSUER_AWAY,
    operation.ROLE_CHANGED,
    operation.POSTS_REFUSED,
    operation.CLOCK_WRONG,
    operation.SWEEP_SILENT,
    operation.UPKEEP_FAILED,
    operation.MESSAGES_FAILED,
    operation.QUESTIONS_STOPPED,
    operation.POISON_UPLOAD,
    operation.UPLOAD_LOST,
)

NOT_DRILLED: Mapping[str, str] = {
    "MaintenanceSilent": "it looks back for 26 hours",
    "SpendingHigh": "it looks back for a day",
    "IngestFailed": "a run repeats what fails for many minutes before it gives up",
}
"""Alarms that no scene raises, and why."""

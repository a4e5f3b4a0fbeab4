"""Maintains the index: merges small segments, and deletes objects that no version needs."""

from __future__ import annotations

import os
from typing import Any

import boto3
from aws_lambda_powertools.utilities.typing import LambdaContext

from cicada.index.maintenance import maintain
from cicada.index.s3 import CLIENT_CONFIG, S3Store
from cicada.settings import IndexMaintenanceSettings
from cicada.telemetry import logger

settings = IndexMaintenanceSettings.read(os.environ)
store = S3Store(boto3.client("s3", config=CLIENT_CONFIG), settings.index_bucket)


@logger.inject_lambda_context(clear_state=True)
def handler(event: dict[str, Any], context: LambdaContext) -> dict[str, Any]:
    """Do the maintenance that is due. Damage fails the invocation at the end."""
    done = maintain(
        store,
        memory_bytes=int(context.memory_limit_in_mb) * 2**20,
        remaining_s=lambda: context.get_remaining_time_in_millis() / 1000,
        keep_versions=settings.keep_versions,
        grace_s=settings.garbage_grace_s,
    )
    told = {
        "merged": done.merged,
        "publications": len(done.compactions),
        "collected_objects": done.collected.objects if done.collected else 0,
        "collected_bytes": done.collected.bytes if done.collected else 0,
        "put_off": done.put_off,
        "too_large": done.too_large,
    }
    logger.info("index maintained", extra=told)
    if done.failures:
        raise done.failures[0]
    return told

"""Builds what the function ``uploads`` answers frames with."""

from __future__ import annotations

from typing import NamedTuple

import boto3

from cicada.answering.upload_api import UploadApi
from cicada.delivery.dynamodb import STORE_CONFIG
from cicada.index.access_rules import StoredAccessRules
from cicada.index.s3 import S3Store
from cicada.ingest.incoming.starting import START_CONFIG, IngestStarter
from cicada.ingest.settings import UploadSettings
from cicada.ingest.uploads.bucket import CLIENT_CONFIG, S3UploadFolders
from cicada.revocation import DynamoDbRevocations, Revocations


class Uploading(NamedTuple):
    """What answers frames."""

    api: UploadApi
    revocations: Revocations | None
    """None where nobody has a token."""


def build(settings: UploadSettings) -> Uploading:
    """Wire the function."""
    s3 = boto3.client("s3", config=CLIENT_CONFIG)
    store = S3Store(s3, settings.index_bucket)
    api = UploadApi(
        S3UploadFolders(s3, settings.index_bucket),
        store,
        StoredAccessRules(store, settings.access),
        IngestStarter(boto3.client("stepfunctions", config=START_CONFIG), settings.ingest_machine_arn),
        settings.uploaders,
        url=settings.upload_url,
        limits=settings.upload_limits,
    )
    if settings.auth == "none":
        return Uploading(api, None)
    table = boto3.client("dynamodb", config=STORE_CONFIG)
    return Uploading(api, DynamoDbRevocations(table, settings.requests_table))

"""An environment that names a deployment of its own, and nothing else of this machine's."""

import os
import uuid
from pathlib import Path

import boto3
import pytest


def empty_deployment(
    monkeypatch: pytest.MonkeyPatch, folder: Path, *, s3: str, bedrock: str, model: str, dimensions: int
) -> str:
    """Make an empty bucket, and have the environment name it and one embedding model; returns the bucket's name.

    ``s3`` and ``bedrock`` are the services' addresses; ``folder`` becomes the working directory.
    """
    for variable in list(os.environ):
        if variable.startswith(("CICADA_", "AWS_")):
            monkeypatch.delenv(variable)
    bucket = f"index-{uuid.uuid4()}"
    settings = {
        "AWS_ACCESS_KEY_ID": "test",
        "AWS_SECRET_ACCESS_KEY": "test",
        "AWS_REGION": "us-east-1",
        "AWS_DEFAULT_REGION": "us-east-1",
        "AWS_ENDPOINT_URL": s3,
        "AWS_ENDPOINT_URL_BEDROCK_RUNTIME": bedrock,
        "CICADA_INDEX_BUCKET": bucket,
        "CICADA_EMBEDDING_MODEL_ID": model,
        "CICADA_EMBEDDING_DIMENSIONS": str(dimensions),
    }
    for variable, value in settings.items():
        monkeypatch.setenv(variable, value)
    monkeypatch.chdir(folder)
    boto3.client("s3").create_bucket(Bucket=bucket)
    return bucket

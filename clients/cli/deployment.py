"""Which deployment a command speaks to.

Each value is looked for in this order, and the first that is found holds:

1. the command's options,
2. the environment: ``CICADA_URL``, ``CICADA_INDEX_BUCKET``, ``CICADA_EMBEDDING_MODEL_ID``,
   ``CICADA_EMBEDDING_DIMENSIONS``, ``CICADA_STACK_PREFIX``, and AWS's own (``AWS_PROFILE``, ``AWS_REGION``,
   ``AWS_ENDPOINT_URL``…),
3. the local cloud that runs from this folder, one above it, or the project's own,
4. the outputs of the stacks deployed in the AWS account.

The local cloud is passed over when an option or the environment names another place: a profile or stack prefix by
option, a stack prefix or another endpoint in the environment.
"""

from __future__ import annotations

import json
import socket
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

from clients.cli.exits import UsageError

if TYPE_CHECKING:
    from botocore.config import Config

DEFAULT_STACK_PREFIX = "Cicada"
LOCAL_FILE = Path(".cicada") / "deployment.json"
"""Written by the local cloud while it runs, below the project's root."""

_PROJECT_ROOT = Path(__file__).resolve().parents[2]
_PROBE_TIMEOUT_S = 0.5
_RETRIES = 3
"""Attempts at a call to CloudFormation."""


class DeploymentNotFound(UsageError):
    """Nothing says where to ask; the message says what was tried and what helps."""


@dataclass(frozen=True)
class Choice:
    """What the command line says of the deployment; None where it says nothing."""

    url: str | None = None
    bucket: str | None = None
    embedding_model_id: str | None = None
    embedding_dimensions: int | None = None
    profile: str | None = None
    region: str | None = None
    endpoint_url: str | None = None
    stack_prefix: str | None = None


@dataclass(frozen=True)
class Aws:
    """How to reach the deployment's AWS services."""

    profile: str | None = None
    region: str | None = None
    endpoint_url: str | None = None
    local: bool = False
    """The endpoint is a local cloud's: any credentials do, and none of the user's are sent to it."""

    def client(self, service: str, config: Config) -> Any:
        """A boto3 client.

        Raises:
            DeploymentNotFound: the profile does not exist, or no region is named.
        """
        import boto3
        from botocore.config import Config
        from botocore.exceptions import BotoCoreError

        keys: dict[str, Any] = {}
        if self.local:
            keys = {"aws_access_key_id": "local", "aws_secret_access_key": "local", "aws_session_token": "local"}
            config = config.merge(Config(proxies={}))
        try:
            session = boto3.Session(profile_name=None if self.local else self.profile, region_name=self.region, **keys)
            return session.client(service, endpoint_url=self.endpoint_url, config=config)
        except BotoCoreError as error:
            raise DeploymentNotFound(str(error)) from error


_OUTPUTS = {
    "WebSocketUrl": "url",
    "IndexBucket": "bucket",
    "EmbeddingModelId": "embedding_model_id",
    "EmbeddingDimensions": "embedding_dimensions",
}
_VARIABLES = {
    "CICADA_URL": "url",
    "CICADA_INDEX_BUCKET": "bucket",
    "CICADA_EMBEDDING_MODEL_ID": "embedding_model_id",
    "CICADA_EMBEDDING_DIMENSIONS": "embedding_dimensions",
}
_OPTIONS = {
    "url": "--url",
    "bucket": "--bucket",
    "embedding_model_id": "--embedding-model",
    "embedding_dimensions": "--dimensions",
}


@dataclass(frozen=True)
class Deployment:
    """Where a deployment is."""

    values: Mapping[str, str]
    aws: Aws

    @property
    def url(self) -> str:
        """Its WebSocket URL."""
        return self.values["url"]

    @property
    def bucket(self) -> str:
        """The bucket that holds the index."""
        return self.values["bucket"]

    @property
    def embedding_model_id(self) -> str:
        """The model that its index is embedded with."""
        return self.values["embedding_model_id"]

    @property
    def embedding_dimensions(self) -> int:
        """The length of its vectors."""
        told = self.values["embedding_dimensions"]
        try:
            return int(told)
        except ValueError:
            raise UsageError(f"the embedding's dimensions must be a number, not {told!r}") from None


CHAT = ("url",)
"""What asking needs."""
INDEX = ("bucket", "embedding_model_id", "embedding_dimensions")
"""What loading and searching need."""


def discover(
    choice: Choice, needs: Iterable[str], *, environ: Mapping[str, str], cwd: Path, project: Path = _PROJECT_ROOT
) -> Deployment:
    """Find the deployment.

    Args:
        choice: the command's options.
        needs: names of the values that the command cannot do without: :data:`CHAT` or :data:`INDEX`.
        environ: the environment.
        cwd: where the command was typed.
        project: the project that this command line belongs to.

    Raises:
        DeploymentNotFound: a value is missing; the message says what was tried and what helps.
        UsageError: what was found cannot be used.
    """
    values = {variable: environ[name] for name, variable in _VARIABLES.items() if environ.get(name)}
    values |= {name: str(value) for name in _OPTIONS if (value := getattr(choice, name)) is not None}
    aws = Aws(choice.profile, choice.region, choice.endpoint_url)
    missing = [name for name in needs if name not in values]
    if not missing:
        return Deployment(values, aws)

    tried: list[str] = []
    local = _local(choice, environ, [cwd, *cwd.parents, project], tried)
    if local is not None:
        return Deployment(local.values | values, local.aws) if not missing_in(local.values, missing) else local
    prefix = choice.stack_prefix or environ.get("CICADA_STACK_PREFIX") or DEFAULT_STACK_PREFIX
    outputs = _stack_outputs(aws, prefix, tried)
    if still := [name for name in missing if name not in outputs]:
        raise DeploymentNotFound(_advice(still, prefix, tried))
    return Deployment(outputs | values, aws)

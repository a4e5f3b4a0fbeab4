"""The deployment and the session that a command's options name."""

from __future__ import annotations

import argparse
import contextlib
import os
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from cicada_cli.aws import Aws
from cicada_cli.deployment import CHAT, Deployment, DeploymentChoice, discover

if TYPE_CHECKING:  # the client takes longer to import than most commands run
    from cicada_cli.session import ClientSession

_SAME_NAMES = ("url", "page", "issuer", "client_id", "scopes", "bucket", "access", "region", "endpoint_url")
"""Options that have the name of the choice's field."""
_CHOICES = {
    **{name: name for name in (*_SAME_NAMES, "stack_prefix")},
    "embedding_model": "embedding_model_id",
    "dimensions": "embedding_dimensions",
    "vector_index": "vector_index_arn",
    "table": "requests_table",
    "user_pool": "user_pool_id",
    "ingest_machine": "ingest_machine_arn",
    "reranker": "reranker_model_id",
    "expansion_model": "expansion_model_id",
    "aws_profile": "profile",
}
"""The field of :class:`DeploymentChoice` that each option fills."""


def deployment_of(args: argparse.Namespace, needs: Sequence[str]) -> Deployment:
    """The deployment that a command's options name.

    Raises:
        DeploymentNotFound, UsageError: as :func:`cicada_cli.deployment.discover`.
    """
    given = vars(args)
    choice = DeploymentChoice(**{field: given.get(option) for option, field in _CHOICES.items()})
    return discover(choice, needs, environ=os.environ, cwd=Path.cwd())


def aws_of(args: argparse.Namespace) -> Aws:
    """The AWS account that a command's options name."""
    return Aws(args.aws_profile, args.region, args.endpoint_url)


@contextlib.contextmanager
def session_of(args: argparse.Namespace) -> Iterator[ClientSession]:
    """A connection to the deployment that a command's options name, for the block.

    Raises:
        UsageError: no deployment is found, or the token cannot be read.
    """
    from cicada_cli.credentials import token_source
    from cicada_cli.session import ClientSession

    deployment = deployment_of(args, CHAT)
    token = token_source(args.token, args.token_file, os.environ, deployment)
    with ClientSession(deployment.url, token) as session:
        yield session

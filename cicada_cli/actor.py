"""The actor that audit records name for a command."""

from __future__ import annotations

from functools import lru_cache

from cicada_cli.aws import Aws
from cicada_cli.exits import UsageError


@lru_cache(maxsize=1)
def actor_of(aws: Aws) -> str:
    """The ARN of the AWS credentials in use. It needs no permission.

    Raises:
        UsageError: the call failed. Nothing is changed then, because an audit record must name its actor.
    """
    from botocore.config import Config
    from botocore.exceptions import BotoCoreError, ClientError

    config = Config(connect_timeout=3, read_timeout=5, retries={"mode": "standard", "total_max_attempts": 3})
    try:
        return str(aws.client("sts", config).get_caller_identity()["Arn"])
    except (BotoCoreError, ClientError, KeyError) as error:
        raise UsageError(
            f"nothing was changed, because the identity of the AWS credentials is unknown: {error}"
        ) from error

"""Who types a command: whom audit records name."""

from __future__ import annotations

from functools import lru_cache

from cicada_cli.aws import Aws
from cicada_cli.exits import UsageError


@lru_cache(maxsize=1)
def actor_of(aws: Aws) -> str:
    """The ARN of the AWS credentials in use, which no permission is needed to ask for.

    Raises:
        UsageError: AWS does not tell. Nothing may be changed then, for nobody could be named.
    """
    from botocore.config import Config
    from botocore.exceptions import BotoCoreError, ClientError

    config = Config(connect_timeout=3, read_timeout=5, retries={"mode": "standard", "total_max_attempts": 3})
    try:
        return str(aws.client("sts", config).get_caller_identity()["Arn"])
    except (BotoCoreError, ClientError, KeyError) as error:
        raise UsageError(f"nothing was changed: AWS does not say whose credentials these are: {error}") from error

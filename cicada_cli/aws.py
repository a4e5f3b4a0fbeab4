"""How a command reaches AWS, or the local cloud in its place."""

from __future__ import annotations

import os
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from cicada_cli.exits import UsageError

if TYPE_CHECKING:
    from botocore.config import Config

_NOTHING_OF_THE_USER = {
    "profile": (None, None, None, None),
    "config_file": (None, None, os.devnull, None),
    "credentials_file": (None, None, os.devnull, None),
}
"""Where botocore looks for the user's AWS settings, each by configuration file, environment, default and type."""


class DeploymentNotFound(UsageError):
    """Nothing says where to ask; the message says what was tried and what helps."""


@dataclass(frozen=True)
class Aws:
    """How to reach the deployment's AWS services."""

    profile: str | None = None
    region: str | None = None
    endpoint_url: str | None = None
    local: bool = False  # the endpoint is a local cloud's: any credentials do, and none of the user's are sent to it

    def client(self, service: str, config: Config) -> Any:
        """A boto3 client.

        Raises:
            DeploymentNotFound: the profile does not exist, no region is named, or the endpoint is no URL.
        """
        import boto3
        from botocore.config import Config
        from botocore.exceptions import BotoCoreError
        from botocore.session import Session

        try:
            if self.local:
                own = Session(session_vars=_NOTHING_OF_THE_USER)
                own.set_credentials("local", "local")
                session = boto3.Session(botocore_session=own, region_name=self.region)
                config = config.merge(Config(proxies={}))
            else:
                region = self.region or os.environ.get("AWS_REGION")  # boto3 itself knows AWS_DEFAULT_REGION alone
                session = boto3.Session(profile_name=self.profile, region_name=region)
            return session.client(service, endpoint_url=self.endpoint_url, config=config)
        except (BotoCoreError, ValueError) as error:
            raise DeploymentNotFound(str(error)) from error

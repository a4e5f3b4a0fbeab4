"""Clients of AWS, or of the local cloud."""

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
"""Overrides with which botocore reads none of the user's AWS settings."""


class DeploymentNotFound(UsageError):
    """No deployment was found; the message says what was tried and what helps."""


@dataclass(frozen=True)
class Aws:
    """The account, Region and endpoint of AWS clients."""

    profile: str | None = None
    region: str | None = None
    endpoint_url: str | None = None
    local: bool = False  # the local cloud: takes any credentials; the user's are not sent to it

    def client(self, service: str, config: Config) -> Any:
        """A boto3 client.

        Raises:
            DeploymentNotFound: the profile does not exist, no Region is set, or the endpoint is not a URL.
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
                region = self.region or os.environ.get("AWS_REGION")  # boto3 reads AWS_DEFAULT_REGION only
                session = boto3.Session(profile_name=self.profile, region_name=region)
            return session.client(service, endpoint_url=self.endpoint_url, config=config)
        except (BotoCoreError, ValueError) as error:
            raise DeploymentNotFound(str(error)) from error

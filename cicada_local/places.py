"""Where things lie, and the account that the local cloud plays."""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
"""The project's root."""

ACCOUNT_ID = "123456789012"
REGION = "us-east-1"

DEFAULT_PORT = 4600
PORT_VARIABLE = "CICADA_PORT"
ISSUER_PORT_VARIABLE = "CICADA_ISSUER_PORT"
"""Where users sign in; the port after :data:`PORT_VARIABLE`'s if it is not set."""
HTTP_PORT_VARIABLE = "CICADA_HTTP_PORT"
"""Where function URLs are served; the second port after :data:`PORT_VARIABLE`'s if it is not set."""

_PROXY_VARIABLES = ("NO_PROXY", "no_proxy")

ONE_MATH_THREAD = {
    "OPENBLAS_NUM_THREADS": "1",
    "OMP_NUM_THREADS": "1",
    "MKL_NUM_THREADS": "1",
    "VECLIB_MAXIMUM_THREADS": "1",
}
"""Keeps numpy from starting a thread a core for each product of small matrices: with several texts embedded at once
these wait for each other actively, and embed 2 to 10 texts a second where one thread each embeds 35 (2 busy cores)."""


@dataclass(frozen=True)
class Places:
    """The folders of one local cloud."""

    home: Path
    """Holds everything that outlives the process."""
    cache: Path
    """Holds what can be made again and may be shared by several: syntheses, the bootstrap template, embeddings."""

    @classmethod
    def default(cls) -> Places:
        """Those of ``make up``."""
        return cls(home=ROOT / ".cicada", cache=ROOT / ".cicada" / "cache")

    @property
    def state(self) -> Path:
        """The database of what the deployed buckets and tables hold."""
        return self.home / "state" / "state.sqlite3"

    @property
    def vectors(self) -> Path:
        """The database of what Amazon S3 Vectors holds."""
        return self.home / "state" / "vectors.sqlite3"

    @property
    def logs(self) -> Path:
        """Logs: the front server's, the deployment's, one a function."""
        return self.home / "logs"

    @property
    def running(self) -> Path:
        """Names the process that runs from this home, while there is one."""
        return self.home / "running.json"

    @property
    def settings(self) -> Path:
        """The settings that the running cloud was deployed with."""
        return self.home / "deployed-settings.json"

    @property
    def embeddings(self) -> Path:
        """Vectors of texts that were embedded before."""
        return self.cache / "embeddings.sqlite3"


def aws_environment(environ: Mapping[str, str], endpoint_url: str) -> dict[str, str]:
    """An environment in which the CDK and boto3 reach the local cloud and nothing else.

    The caller's own AWS settings are left out, whatever they are: profile, credentials, endpoints. What goes to this
    machine goes through no proxy.
    """
    ours = {name: value for name, value in environ.items() if not name.startswith("AWS_")}
    for name in _PROXY_VARIABLES:
        ours[name] = ",".join(filter(None, (ours.get(name), "localhost", "127.0.0.1", "::1")))
    return {
        **ours,
        "AWS_ACCESS_KEY_ID": "local",
        "AWS_SECRET_ACCESS_KEY": "local",
        "AWS_REGION": REGION,
        "AWS_DEFAULT_REGION": REGION,
        "AWS_ENDPOINT_URL": endpoint_url,
        "AWS_CONFIG_FILE": os.devnull,
        "AWS_SHARED_CREDENTIALS_FILE": os.devnull,
        "AWS_EC2_METADATA_DISABLED": "true",
    }

"""Finds the deployment of a command.

Each value is taken from the first of these that has it:

1. the command's options,
2. the environment: ``CICADA_URL``, ``CICADA_INDEX_BUCKET``, ``CICADA_EMBEDDING_MODEL_ID``,
   ``CICADA_EMBEDDING_DIMENSIONS``, ``CICADA_VECTOR_INDEX_ARN``, ``CICADA_REQUESTS_TABLE``,
   ``CICADA_INGEST_MACHINE_ARN``, ``CICADA_RERANKER_MODEL_ID``, ``CICADA_EXPANSION_MODEL_ID``,
   ``CICADA_ACCESS``, ``CICADA_STACK_PREFIX``, and AWS's own (``AWS_PROFILE``, ``AWS_REGION``, ``AWS_ENDPOINT_URL``…),
3. the deployment's page, from an option or ``CICADA_PAGE``,
4. the local cloud that runs from this folder, a folder above it, or the project's own,
5. the page of the last sign-in (``cicada login --page``),
6. the outputs of the stacks deployed in the AWS account.

The local cloud and the last sign-in are skipped if an option or the environment names another place: an AWS profile or
stack prefix by option, a stack prefix or another endpoint in the environment. The last sign-in is also skipped if any
other AWS setting names an account or Region.
"""

from __future__ import annotations

import socket
from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import urlsplit

from pydantic import BaseModel, ConfigDict, Field
from pydantic.alias_generators import to_camel

from cicada_cli.aws import Aws, DeploymentNotFound
from cicada_cli.exits import UsageError

DEFAULT_STACK_PREFIX = "Cicada"
STACK_PARTS = ("Data", "Page", "SignIn", "Answering", "Ingest", "Integrators", "Gateway")
"""Suffixes of the stack names, in the order of creation."""
DEFAULT_SCOPES = "openid email"
LOCAL_FILE = Path(".cicada") / "running.json"
"""Written by the local cloud while it runs, below the project's root."""
LOCAL_SETTINGS, LOCAL_SETTINGS_FILE = "local_settings", "deployed-settings.json"
"""The value with the path of the local cloud's settings file, and the file's name beside :data:`LOCAL_FILE`."""
LOCAL_REGION = "us-east-1"
"""The Region that the local cloud simulates."""

_PROJECT_ROOT = Path(__file__).resolve().parents[1]
_PROBE_TIMEOUT_S = 0.5
_RETRIES = 3
"""Attempts at a call to CloudFormation."""


_NAMES_OF_AWS = ("CICADA_STACK_PREFIX", "AWS_PROFILE", "AWS_REGION", "AWS_DEFAULT_REGION", "AWS_ENDPOINT_URL")
"""Variables that name an AWS account or Region."""


@dataclass(frozen=True)
class DeploymentChoice:
    """The options that name the deployment; None if not given."""

    url: str | None = None
    page: str | None = None
    issuer: str | None = None
    client_id: str | None = None
    scopes: str | None = None
    bucket: str | None = None
    embedding_model_id: str | None = None
    embedding_dimensions: int | None = None
    vector_index_arn: str | None = None
    requests_table: str | None = None
    user_pool_id: str | None = None
    ingest_machine_arn: str | None = None
    reranker_model_id: str | None = None
    expansion_model_id: str | None = None
    access: str | None = None
    profile: str | None = None
    region: str | None = None
    endpoint_url: str | None = None
    stack_prefix: str | None = None


_OUTPUTS = {
    "WebSocketUrl": "url",
    "IndexBucket": "bucket",
    "EmbeddingModelId": "embedding_model_id",
    "EmbeddingDimensions": "embedding_dimensions",
    "VectorIndexArn": "vector_index_arn",
    "RequestsTable": "requests_table",
    "IngestMachineArn": "ingest_machine_arn",
    "RerankerModelId": "reranker_model_id",
    "ExpansionModelId": "expansion_model_id",
    "Access": "access",
    "AuthMode": "auth_mode",
    "Issuer": "issuer",
    "ClientId": "client_id",
    "Scopes": "scopes",
    "UserPoolId": "user_pool_id",
    "PageUrl": "page",
    "UsageLimits": "usage_limits",
}
_VARIABLES = {
    "CICADA_URL": "url",
    "CICADA_PAGE": "page",
    "CICADA_INDEX_BUCKET": "bucket",
    "CICADA_EMBEDDING_MODEL_ID": "embedding_model_id",
    "CICADA_EMBEDDING_DIMENSIONS": "embedding_dimensions",
    "CICADA_VECTOR_INDEX_ARN": "vector_index_arn",
    "CICADA_REQUESTS_TABLE": "requests_table",
    "CICADA_INGEST_MACHINE_ARN": "ingest_machine_arn",
    "CICADA_RERANKER_MODEL_ID": "reranker_model_id",
    "CICADA_EXPANSION_MODEL_ID": "expansion_model_id",
    "CICADA_ACCESS": "access",
}
_OPTIONS = {
    "url": "--url",
    "page": "--page",
    "issuer": "--issuer",
    "client_id": "--client-id",
    "scopes": "--scopes",
    "auth_mode": "--page",
    "bucket": "--bucket",
    "embedding_model_id": "--embedding-model",
    "embedding_dimensions": "--dimensions",
    "vector_index_arn": "--vector-index",
    "requests_table": "--table",
    "user_pool_id": "--user-pool",
    "ingest_machine_arn": "--ingest-machine",
    "reranker_model_id": "--reranker",
    "expansion_model_id": "--expansion-model",
    "usage_limits": "--stack-prefix",
    "access": "--access",
}


@dataclass(frozen=True)
class Deployment:
    """Where a deployment is."""

    values: Mapping[str, str]
    aws: Aws
    stack_prefix: str | None = None
    """Prefix of its stacks; None in the local cloud, and if its stacks were not read."""
    by_page: bool = False
    """Whether it was found by its page, so that a user without AWS credentials can find it by the sign-in."""

    def known_outputs(self) -> dict[str, str]:
        """The stacks' outputs that are known without reading them."""
        return {name: self.values[value] for name, value in _OUTPUTS.items() if value in self.values}

    @property
    def url(self) -> str:
        """Its WebSocket URL."""
        return self.values["url"]

    @property
    def page(self) -> str | None:
        """Its page, if it has one."""
        return self.values.get("page")

    @property
    def wants_sign_in(self) -> bool | None:
        """Whether connections need a token; None if unknown."""
        mode = self.values.get("auth_mode")
        return None if mode is None else mode != "none"

    @property
    def issuer(self) -> str:
        """Its issuer."""
        return self.values["issuer"]

    @property
    def client_id(self) -> str:
        """Its public client at the issuer."""
        return self.values["client_id"]

    @property
    def scopes(self) -> str:
        """Scopes of a sign-in, separated by spaces."""
        return self.values.get("scopes", DEFAULT_SCOPES)

    @property
    def user_pool_id(self) -> str | None:
        """Its Cognito user pool, if it has one."""
        return self.values.get("user_pool_id")

    @property
    def usage_limits(self) -> str | None:
        """The limits of its settings as JSON; None if its stacks were not read."""
        return self.values.get("usage_limits")

    @property
    def bucket(self) -> str:
        """The bucket of the index."""
        return self.values["bucket"]

    @property
    def embedding_model_id(self) -> str:
        """The embedding model of the index."""
        return self.values["embedding_model_id"]

    @property
    def embedding_dimensions(self) -> int:
        """The length of its vectors."""
        told = self.values["embedding_dimensions"]
        try:
            return int(told)
        except ValueError:
            raise UsageError(f"invalid embedding dimensions {told!r}: must be a number") from None

    @property
    def vector_index_arn(self) -> str:
        """The Amazon S3 Vectors index, if that engine is used."""
        return self.values["vector_index_arn"]

    @property
    def requests_table(self) -> str:
        """The table of requests."""
        return self.values["requests_table"]

    @property
    def ingest_machine_arn(self) -> str:
        """The state machine that processes uploads."""
        return self.values["ingest_machine_arn"]

    @property
    def reranker_model_id(self) -> str:
        """The re-ranking model of its pipelines; empty if unknown."""
        return self.values.get("reranker_model_id", "")

    @property
    def expansion_model_id(self) -> str:
        """The model that expands queries in its pipelines; empty if unknown."""
        return self.values.get("expansion_model_id", "")

    @property
    def access(self) -> str:
        """Its setting `access` as JSON; see :class:`cicada.rights.ConfiguredAccess`."""
        return self.values["access"]


CHAT = ("url",)
"""Values that asking needs."""
LOGIN = ("url", "auth_mode")
"""Values that signing in needs; issuer and client come with the mode."""
PAGE_VALUES = frozenset(LOGIN)
"""Values that a deployment's page has."""
INDEX = ("bucket", "embedding_model_id", "embedding_dimensions")
"""Values that loading and searching need."""
STACKS: tuple[str, ...] = ()
"""For commands that read the stacks themselves: they need no value."""


def discover(
    choice: DeploymentChoice,
    needs: Collection[str],
    *,
    environ: Mapping[str, str],
    cwd: Path,
    project: Path = _PROJECT_ROOT,
) -> Deployment:
    """Find the deployment.

    Args:
        choice: the command's options.
        needs: names of the required values: :data:`CHAT`, :data:`INDEX`; or :data:`STACKS`.
        environ: the environment.
        cwd: the working directory.
        project: the checkout that this command line belongs to.

    Raises:
        DeploymentNotFound: a value is missing; the message says what was tried and what helps.
        UsageError: a value is invalid.
    """
    given = _given(choice, environ, needs)
    aws = Aws(choice.profile, choice.region, choice.endpoint_url)
    if needs and all(name in given for name in needs):
        return Deployment(given, aws, by_page="page" in given)
    tried: list[str] = []
    prefix = choice.stack_prefix or environ.get("CICADA_STACK_PREFIX") or DEFAULT_STACK_PREFIX
    local = _local_cloud(choice, environ, [cwd, *cwd.parents, project], tried)
    remembered = None if local else _last_sign_in(choice, environ, needs)
    found = local or remembered or Deployment(_stack_outputs(aws, prefix, tried) if needs else {}, aws, prefix)
    values = {**found.values, **given}
    if missing := [_OPTIONS[name] for name in needs if name not in values]:
        raise DeploymentNotFound(_advice(missing, prefix, tried))
    return Deployment(values, found.aws, found.stack_prefix, by_page=found.by_page)


def _given(choice: DeploymentChoice, environ: Mapping[str, str], needs: Collection[str]) -> dict[str, str]:
    """The values of options, environment and the named page. The page is only read if it is needed."""
    by_option = {name: str(value) for name in _OPTIONS if (value := getattr(choice, name, None)) is not None}
    if "issuer" in by_option and "client_id" in by_option:
        by_option["auth_mode"] = "oidc"
    if "user_pool_id" in by_option:
        by_option["auth_mode"] = "cognito"
    by_environment = {value: environ[variable] for variable, value in _VARIABLES.items() if environ.get(variable)}
    given = by_environment | by_option
    known = by_option if "page" in by_option else given  # a page by option takes precedence over variables
    if "page" not in given or not any(name in PAGE_VALUES and name not in known for name in needs):
        return given
    from cicada_cli.page_config import PageConfig

    told = PageConfig.read(given["page"]).values()
    return by_environment | told | by_option if "page" in by_option else told | given


def _local_cloud(
    choice: DeploymentChoice, environ: Mapping[str, str], folders: Iterable[Path], tried: list[str]
) -> Deployment | None:
    """The local cloud of the first folder that has one, unless another place is named."""
    if choice.profile or choice.stack_prefix or environ.get("CICADA_STACK_PREFIX"):
        return None
    named = choice.endpoint_url or environ.get("AWS_ENDPOINT_URL")
    for path in dict.fromkeys(folder / LOCAL_FILE for folder in folders):
        try:
            written = _LocalFile.model_validate_json(path.read_text(encoding="utf-8"))
        except FileNotFoundError:
            continue
        except (OSError, ValueError):
            tried.append(f"cannot read {path}")
            continue
        if named and named.rstrip("/") != (written.endpoint_url or "").rstrip("/"):
            continue
        if written.endpoint_url is None or written.web_socket_url is None:
            tried.append(f"the local cloud of {path} is still starting")
        elif not _listens(written.endpoint_url):
            tried.append(f"the local cloud at {written.endpoint_url} has stopped")
        else:
            values = {value: written.outputs[name] for name, value in _OUTPUTS.items() if name in written.outputs}
            values["url"] = written.web_socket_url  # the stacks' own value is an address on AWS
            values[LOCAL_SETTINGS] = str(path.parent / LOCAL_SETTINGS_FILE)
            return Deployment(values, Aws(region=LOCAL_REGION, endpoint_url=written.endpoint_url, local=True))
    return None


def _last_sign_in(choice: DeploymentChoice, environ: Mapping[str, str], needs: Collection[str]) -> Deployment | None:
    """The deployment of the last sign-in by a page, for a command that needs no other values."""
    if choice.profile or choice.region or choice.endpoint_url or choice.stack_prefix:
        return None
    if not needs or not PAGE_VALUES.issuperset(needs) or any(environ.get(name) for name in _NAMES_OF_AWS):
        return None
    from cicada_cli.page_config import PageConfig  # the client takes longer to import than most commands run
    from cicada_client.sign_in_store import SignInStore

    page, url = next(((one.page, one.url) for one in SignInStore.of_user(environ).all() if one.page), (None, ""))
    if page is None:
        return None
    values = {"url": url} if tuple(needs) == CHAT else PageConfig.read(page).values()
    return Deployment({**values, "page": page}, Aws(), by_page=True)


class _LocalFile(BaseModel):
    """The file that the local cloud writes; most fields are absent until it is ready."""

    model_config = ConfigDict(alias_generator=to_camel, extra="ignore")

    endpoint_url: str | None = None
    web_socket_url: str | None = None
    outputs: dict[str, str] = Field(default_factory=dict)


def _listens(url: str) -> bool:
    parts = urlsplit(url)
    try:
        with socket.create_connection((parts.hostname or "", parts.port or 80), timeout=_PROBE_TIMEOUT_S):
            return True
    except (OSError, ValueError):
        return False


def stack_names(prefix: str) -> frozenset[str]:
    """The names of a deployment's stacks. A longer prefix is another deployment."""
    return frozenset(f"{prefix}-{part}" for part in STACK_PARTS)


def _stack_outputs(aws: Aws, prefix: str, tried: list[str]) -> dict[str, str]:
    """The outputs of a deployment's stacks.

    Raises:
        UsageError: two stacks have different values of an output.
    """
    from botocore.config import Config
    from botocore.exceptions import BotoCoreError, ClientError
    from botocore.parsers import ResponseParserError

    found: dict[str, str] = {}
    try:
        config = Config(
            connect_timeout=3, read_timeout=10, retries={"mode": "standard", "total_max_attempts": _RETRIES}
        )
        cloudformation = aws.client("cloudformation", config)
        stacks = [
            stack
            for page in cloudformation.get_paginator("describe_stacks").paginate()
            for stack in page["Stacks"]
            if stack["StackName"] in stack_names(prefix)
        ]
    except (BotoCoreError, ClientError, ResponseParserError, DeploymentNotFound) as error:
        tried.append(f"cannot list the stacks of your AWS account: {error}")
        return {}
    for stack in stacks:
        for output in stack.get("Outputs", ()):
            name = _OUTPUTS.get(output["OutputKey"])
            if name and found.setdefault(name, output["OutputValue"]) != output["OutputValue"]:
                raise UsageError(
                    f"several stacks {prefix}-… have the output {output['OutputKey']}: set it with {_OPTIONS[name]}"
                )
    tried.append(f"{len(stacks)} stacks {prefix}-… in this AWS account and Region")
    return found


def _advice(missing: list[str], prefix: str, tried: list[str]) -> str:
    lines = [f"No deployment found (missing: {', '.join(missing)}). Do one of these:"]
    lines.append("  make up                         start one on this machine, in Cicada's repository")
    if _OPTIONS["url"] in missing:
        lines.append("  --page https://…                name the page of the deployment")
    if others := [option for option in missing if option != _OPTIONS["page"]]:
        lines.append(f"  {' … '.join(others)} …".ljust(34) + "name it")
    lines.append(f"  --aws-profile … --region …      look for the stacks {prefix}-… in an AWS account")
    lines += [f"Tried: {what.rstrip('.')}." for what in tried]
    return "\n".join(lines)

"""Which deployment a command finds, and which token it shows there."""

from __future__ import annotations

import asyncio
import json
import socket
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import boto3
import pytest
from moto import mock_aws

from cicada_cli.aws import Aws, DeploymentNotFound
from cicada_cli.credentials import token_source
from cicada_cli.deployment import CHAT, INDEX, LOCAL_FILE, Deployment, DeploymentChoice, discover
from cicada_cli.exits import UsageError

LOCAL_URL = "ws://localhost:4600/_ws/api/live"
LOCAL = {
    "pid": 4711,
    "status": "ready",
    "webSocketUrl": LOCAL_URL,
    "outputs": {
        "WebSocketUrl": "wss://api.execute-api.us-east-1.amazonaws.com/live",
        "IndexBucket": "local-bucket",
        "RequestsTable": "requests",
        "StateMachineArn": "arn:aws:states:us-east-1:123456789012:stateMachine:answer",
        "EmbeddingModelId": "local.all-minilm-l6-v2",
        "EmbeddingDimensions": "384",
    },
}
STACKS = {
    "Cicada-Gateway": {"WebSocketUrl": "wss://aws.example/live"},
    "Cicada-Data": {"IndexBucket": "aws-bucket", "EmbeddingModelId": "titan", "EmbeddingDimensions": "1024"},
    "CicadaOther-Gateway": {"WebSocketUrl": "wss://other.example/live"},
    "Cicada-Dev-Gateway": {"WebSocketUrl": "wss://dev.example/live"},
    "Cicada-Dev-Data": {"IndexBucket": "dev-bucket", "EmbeddingModelId": "titan", "EmbeddingDimensions": "256"},
    "Quite-Another": {"WebSocketUrl": "wss://another.example/live"},
}


@pytest.fixture
def listening() -> Iterator[str]:
    """The URL of something that accepts connections."""
    with socket.create_server(("127.0.0.1", 0)) as server:
        yield f"http://127.0.0.1:{server.getsockname()[1]}"


@pytest.fixture
def aws(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """An account that holds :data:`STACKS`."""
    monkeypatch.setenv("AWS_DEFAULT_REGION", "eu-central-1")
    monkeypatch.delenv("AWS_PROFILE", raising=False)
    with mock_aws():
        client = boto3.client("cloudformation")
        for name, outputs in STACKS.items():
            create(client, name, outputs)
        yield


@pytest.fixture
def no_aws(monkeypatch: pytest.MonkeyPatch) -> None:
    """Neither credentials nor a region."""
    for name in ("AWS_PROFILE", "AWS_REGION", "AWS_DEFAULT_REGION", "AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY"):
        monkeypatch.delenv(name, raising=False)
    for name in ("AWS_CONFIG_FILE", "AWS_SHARED_CREDENTIALS_FILE"):
        monkeypatch.setenv(name, "/dev/null")
    monkeypatch.setenv("AWS_EC2_METADATA_DISABLED", "true")


def create(client: Any, name: str, outputs: Mapping[str, str]) -> None:
    template = {
        "Resources": {"Topic": {"Type": "AWS::SNS::Topic"}},
        "Outputs": {key: {"Value": value} for key, value in outputs.items()},
    }
    client.create_stack(StackName=name, TemplateBody=json.dumps(template))


def local_cloud(folder: Path, endpoint_url: str) -> None:
    path = folder / LOCAL_FILE
    path.parent.mkdir(parents=True)
    path.write_text(json.dumps({**LOCAL, "endpointUrl": endpoint_url}), encoding="utf-8")


def found(
    tmp_path: Path, needs: tuple[str, ...] = CHAT, environ: Mapping[str, str] | None = None, **choice: Any
) -> Deployment:
    """What a command finds that is typed in a folder of a project."""
    cwd = tmp_path / "project" / "docs"
    cwd.mkdir(parents=True, exist_ok=True)
    return discover(DeploymentChoice(**choice), needs, environ=environ or {}, cwd=cwd, project=tmp_path / "elsewhere")


def test_an_option_holds_over_everything(tmp_path: Path, listening: str) -> None:
    local_cloud(tmp_path / "project", listening)
    deployment = found(tmp_path, environ={"CICADA_URL": "wss://environment"}, url="wss://option")
    assert deployment.url == "wss://option"


def test_the_environment_holds_over_the_local_cloud(tmp_path: Path, listening: str) -> None:
    local_cloud(tmp_path / "project", listening)
    assert found(tmp_path, environ={"CICADA_URL": "wss://environment"}).url == "wss://environment"


def test_the_local_cloud_of_a_folder_above_is_found(tmp_path: Path, listening: str) -> None:
    local_cloud(tmp_path / "project", listening)
    deployment = found(tmp_path, INDEX)
    assert (deployment.bucket, deployment.embedding_model_id, deployment.embedding_dimensions) == (
        "local-bucket",
        "local.all-minilm-l6-v2",
        384,
    )
    assert deployment.aws == Aws(region="us-east-1", endpoint_url=listening, local=True)
    assert found(tmp_path).url == LOCAL_URL


def test_the_local_cloud_of_the_command_lines_own_project_is_found_from_anywhere(
    tmp_path: Path, listening: str
) -> None:
    local_cloud(tmp_path / "elsewhere", listening)
    assert found(tmp_path).url == LOCAL_URL


def test_single_values_may_be_given_beside_a_deployment(tmp_path: Path, listening: str) -> None:
    local_cloud(tmp_path / "project", listening)
    deployment = found(tmp_path, INDEX, bucket="mine")
    assert (deployment.bucket, deployment.embedding_model_id) == ("mine", "local.all-minilm-l6-v2")
    assert deployment.aws.local


def test_the_region_of_the_environment_holds_unless_an_option_names_another(monkeypatch: pytest.MonkeyPatch) -> None:
    from botocore.config import Config

    monkeypatch.delenv("AWS_PROFILE", raising=False)
    monkeypatch.delenv("AWS_DEFAULT_REGION", raising=False)
    monkeypatch.setenv("AWS_REGION", "eu-north-1")
    assert Aws().client("s3", Config()).meta.region_name == "eu-north-1"
    assert Aws(region="us-west-2").client("s3", Config()).meta.region_name == "us-west-2"


def test_none_of_the_users_credentials_go_to_the_local_cloud(
    tmp_path: Path, listening: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    from botocore.config import Config

    monkeypatch.setenv("AWS_ACCESS_KEY_ID", "precious")
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", "precious")
    monkeypatch.setenv("AWS_PROFILE", "no-such-profile")
    local_cloud(tmp_path / "project", listening)
    client = found(tmp_path, INDEX).aws.client("s3", Config())
    assert client.meta.endpoint_url == listening
    assert client._request_signer._credentials.access_key == "local"


def test_a_local_cloud_that_has_stopped_is_passed_over_and_mentioned(tmp_path: Path, no_aws: None) -> None:
    with socket.create_server(("127.0.0.1", 0)) as server:
        url = f"http://127.0.0.1:{server.getsockname()[1]}"
    local_cloud(tmp_path / "project", url)
    with pytest.raises(DeploymentNotFound, match="has stopped"):
        found(tmp_path)


@pytest.mark.parametrize("content", ['{"pid": 4711, "status": "starting"}', "{}"])
def test_a_local_cloud_that_is_not_ready_yet_is_mentioned(tmp_path: Path, no_aws: None, content: str) -> None:
    path = tmp_path / "project" / LOCAL_FILE
    path.parent.mkdir(parents=True)
    path.write_text(content, encoding="utf-8")
    with pytest.raises(DeploymentNotFound, match="still starting"):
        found(tmp_path)


@pytest.mark.parametrize("content", ["", "[]", '{"endpointUrl": 4}'])
def test_a_local_file_that_is_damaged_is_passed_over_and_mentioned(tmp_path: Path, no_aws: None, content: str) -> None:
    path = tmp_path / "project" / LOCAL_FILE
    path.parent.mkdir(parents=True)
    path.write_text(content, encoding="utf-8")
    with pytest.raises(DeploymentNotFound, match=r"cannot read .*running\.json"):
        found(tmp_path)


@pytest.mark.usefixtures("aws")
class TestInAnAccount:
    """Where the stacks of several deployments stand."""

    def test_the_outputs_of_the_stacks_are_put_together(self, tmp_path: Path) -> None:
        deployment = found(tmp_path, (*CHAT, *INDEX))
        assert (deployment.url, deployment.bucket, deployment.embedding_dimensions) == (
            "wss://aws.example/live",
            "aws-bucket",
            1024,
        )
        assert not deployment.aws.local

    def test_another_prefix_finds_another_deployment(self, tmp_path: Path) -> None:
        assert found(tmp_path, stack_prefix="CicadaOther").url == "wss://other.example/live"
        assert found(tmp_path, environ={"CICADA_STACK_PREFIX": "CicadaOther"}).url == "wss://other.example/live"

    def test_a_deployment_whose_prefix_begins_with_anothers_is_told_apart(self, tmp_path: Path) -> None:
        assert found(tmp_path, (*CHAT, *INDEX), stack_prefix="Cicada").bucket == "aws-bucket"
        dev = found(tmp_path, (*CHAT, *INDEX), stack_prefix="Cicada-Dev")
        assert (dev.url, dev.bucket, dev.embedding_dimensions) == ("wss://dev.example/live", "dev-bucket", 256)

    def test_the_local_cloud_comes_first_unless_another_place_is_named(self, tmp_path: Path, listening: str) -> None:
        local_cloud(tmp_path / "project", listening)
        assert found(tmp_path).url == LOCAL_URL
        assert found(tmp_path, environ={"AWS_PROFILE": "work"}).url == LOCAL_URL
        assert found(tmp_path, stack_prefix="Cicada").url == "wss://aws.example/live"
        assert found(tmp_path, environ={"CICADA_STACK_PREFIX": "Cicada"}).url == "wss://aws.example/live"

    def test_an_endpoint_of_another_cloud_passes_the_local_one_over(self, tmp_path: Path, listening: str) -> None:
        local_cloud(tmp_path / "project", listening)
        assert found(tmp_path, environ={"AWS_ENDPOINT_URL": f"{listening}/"}).url == LOCAL_URL
        other = {"AWS_ENDPOINT_URL": "https://other.example"}
        assert found(tmp_path, environ=other).url == "wss://aws.example/live"

    def test_a_region_without_stacks_has_no_deployment(self, tmp_path: Path) -> None:
        with pytest.raises(DeploymentNotFound, match=r"0 stacks Cicada-… in this AWS account and Region"):
            found(tmp_path, region="us-west-2")

    def test_stacks_that_contradict_each_other_are_refused(self, tmp_path: Path) -> None:
        create(boto3.client("cloudformation"), "Cicada-Answering", {"WebSocketUrl": "wss://second.example"})
        with pytest.raises(UsageError, match="several stacks Cicada-… have the output WebSocketUrl: set it with --url"):
            found(tmp_path)


def test_where_nothing_is_found_it_says_what_helps(tmp_path: Path, no_aws: None) -> None:
    with pytest.raises(DeploymentNotFound) as failure:
        found(tmp_path, INDEX, bucket="mine")
    told = str(failure.value)
    assert "(missing: --embedding-model, --dimensions)" in told
    for remedy in ("make up", "--aws-profile", "region"):
        assert remedy in told
    assert "--page" not in told


def test_who_only_asks_is_told_of_the_page(tmp_path: Path, no_aws: None) -> None:
    with pytest.raises(DeploymentNotFound, match="--page https://") as failure:
        found(tmp_path, ("url",))
    assert "cannot list the stacks of your AWS account" in str(failure.value)


def test_a_profile_that_does_not_exist_is_named(tmp_path: Path, no_aws: None) -> None:
    with pytest.raises(DeploymentNotFound, match="nobody"):
        found(tmp_path, profile="nobody")


def test_dimensions_must_be_a_number(tmp_path: Path) -> None:
    environ = {
        "CICADA_INDEX_BUCKET": "b",
        "CICADA_EMBEDDING_MODEL_ID": "m",
        "CICADA_EMBEDDING_DIMENSIONS": "many",
    }
    with pytest.raises(UsageError, match="many"):
        _ = found(tmp_path, INDEX, environ=environ).embedding_dimensions


def test_the_token_comes_from_the_option_the_file_or_the_environment(tmp_path: Path) -> None:
    path = tmp_path / "token"
    path.write_text("from-file\n", encoding="utf-8")
    state = {"XDG_STATE_HOME": str(tmp_path)}
    environ = {"CICADA_TOKEN": "from-environment", **state}
    at = Deployment({"url": "wss://gateway.example/live"}, Aws())
    assert token_source("from-option", None, environ, at) == "from-option"
    assert token_source(None, None, environ, at) == "from-environment"
    assert token_source(None, None, state, at) is None
    source = token_source(None, path, environ, at)
    assert callable(source)
    assert asyncio.run(_get(source)) == "from-file"
    path.write_text("renewed", encoding="utf-8")
    assert asyncio.run(_get(source)) == "renewed"


async def _get(source: Any) -> str:
    return str(await source())


@pytest.mark.parametrize("content", [None, b"", b" \n", b"\xff"])
def test_a_token_file_that_holds_none_is_refused_at_once(tmp_path: Path, content: bytes | None) -> None:
    path = tmp_path / "token"
    if content is not None:
        path.write_bytes(content)
    with pytest.raises(UsageError, match="token file"):
        token_source(None, path, {}, Deployment({"url": "wss://gateway.example/live"}, Aws()))


@pytest.mark.usefixtures("aws")
def test_whoever_looks_into_the_stacks_is_told_what_they_are_named_by(tmp_path: Path) -> None:
    assert found(tmp_path, ()).stack_prefix == "Cicada"
    assert found(tmp_path, (), stack_prefix="CicadaOther").stack_prefix == "CicadaOther"


def test_whoever_needs_no_value_asks_aws_for_none(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[str] = []
    monkeypatch.setattr(Aws, "client", lambda _, service, config: asked.append(service))
    assert found(tmp_path, (), stack_prefix="Cicada").values == {}
    assert asked == []


def test_the_local_cloud_holds_no_stacks_but_its_own(tmp_path: Path, listening: str) -> None:
    local_cloud(tmp_path / "project", listening)
    deployment = found(tmp_path, ())
    assert (deployment.aws.local, deployment.stack_prefix) == (True, None)
    assert found(tmp_path, ("requests_table",)).requests_table == "requests"

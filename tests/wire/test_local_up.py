"""``make up`` from outside: a process that deploys the stacks with the CDK CLI, serves them, keeps state, and stops."""

from __future__ import annotations

import asyncio
import json
import os
import socket
import subprocess
import sys
import time
import urllib.request
from http.server import BaseHTTPRequestHandler
from pathlib import Path
from typing import Any

import pytest
from websockets.exceptions import InvalidStatus
from websockets.sync.client import connect

from cicada_local import up
from cicada_local.deploy import DeployFailed, deploy, sources_hash, synthesise
from cicada_local.loading import LoadFailed, load
from cicada_local.places import ROOT, Places
from cicada_local.progress import steps_for
from cicada_local.running import UpFailed
from cicada_local.testing import LocalCloud
from cicada_local.up import Options, read_settings
from tests.e2e.plain_client import offers
from tests.wire.announced_issuer import Issuer, serving

SCRIPT = [
    {
        "episodeId": "ep1",
        "episodeName": "The Lake",
        "chapterId": "c1",
        "messageId": f"m{n}",
        "speaker": "Aoi",
        "textENG": text,
    }
    for n, text in enumerate(["The boat was gone in the morning.", "Ren had the only key to the boathouse."])
]


@pytest.fixture
def cloud(deployed: LocalCloud) -> LocalCloud:
    return deployed


def command(*words: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-m", "cicada_local", *words],
        cwd=ROOT,
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )


def test_the_deployment_s_outputs_name_what_is_there(cloud: LocalCloud) -> None:
    assert cloud.client("s3").head_bucket(Bucket=cloud.outputs["IndexBucket"])
    assert cloud.client("dynamodb").describe_table(TableName=cloud.outputs["RequestsTable"])
    assert cloud.client("stepfunctions").describe_state_machine(stateMachineArn=cloud.outputs["StateMachineArn"])
    assert cloud.websocket_url.startswith(cloud.endpoint_url.replace("http://", "ws://") + "/_ws/")
    assert cloud.control("GET", "health")["status"] == "ready"


def test_it_says_where_to_go_and_how_long_each_step_took(cloud: LocalCloud) -> None:
    told = cloud.log()
    for words in (
        "Synthesising the stacks: done",
        "Deploying the stacks: done",
        cloud.endpoint_url,
        cloud.websocket_url,
        f"{cloud.outputs['HttpUrl']}mcp",
    ):
        assert words in told


def test_every_resource_type_of_the_stacks_is_known(cloud: LocalCloud) -> None:
    assert "Left out" not in cloud.log()


def test_a_second_one_from_the_same_home_refuses_and_says_why(cloud: LocalCloud) -> None:
    second = command("up", "--plain", "--no-load", "--port", "0", "--home", str(cloud.home))
    assert second.returncode == 1
    assert f"already runs at {cloud.endpoint_url}/ (process {cloud.pid})" in second.stderr
    assert "Traceback" not in second.stderr


def test_a_port_that_another_cicada_has_is_refused_by_name(cloud: LocalCloud, tmp_path: Path) -> None:
    port = cloud.endpoint_url.rsplit(":", 1)[1]
    second = command("up", "--plain", "--no-load", "--port", port, "--home", str(tmp_path / "other"))
    assert second.returncode == 1
    assert f"Port {port} is taken by another Cicada (process {cloud.pid})" in second.stderr
    assert "Traceback" not in second.stderr


@pytest.mark.parametrize("address", ["127.0.0.1", "::1"])
def test_a_port_that_another_program_has_is_refused_too(tmp_path: Path, address: str) -> None:
    """Under either address: a browser may ask both for localhost, and would take the other's page for ours."""
    family = socket.AF_INET6 if ":" in address else socket.AF_INET
    with socket.create_server((address, 0), family=family) as other:
        port = other.getsockname()[1]
        taken = command("up", "--plain", "--no-load", "--port", str(port), "--home", str(tmp_path / "other"))
    assert taken.returncode == 1
    assert f"Port {port} is taken by another program" in taken.stderr
    assert f"CICADA_PORT={port + 1}" in taken.stderr


@pytest.mark.parametrize(
    ("variable", "what"),
    [("CICADA_ISSUER_PORT", "users would sign in"), ("CICADA_HTTP_PORT", "MCP and the HTTP API would answer")],
)
def test_a_taken_further_port_is_told_before_anything_starts(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, variable: str, what: str
) -> None:
    with socket.create_server(("127.0.0.1", 0)) as other:
        port = other.getsockname()[1]
        monkeypatch.setenv(variable, str(port))
        taken = command("up", "--auth", "--plain", "--no-load", "--port", "0", "--home", str(tmp_path / "other"))
    assert taken.returncode == 1
    assert f"Port {port}, where {what}, is taken" in taken.stderr
    assert f"{variable}={port + 1}" in taken.stderr


@pytest.mark.parametrize(("words", "asked"), [(["AUTH=1"], True), (["AUTH=0"], False), ([], False)])
def test_make_up_asks_for_sign_in_when_it_is_told_to(words: list[str], asked: bool) -> None:
    alone = {name: value for name, value in os.environ.items() if not name.startswith("MAKE")}  # not below `make test`
    would = subprocess.run(
        ["make", "-n", "up", *words], cwd=ROOT, env=alone, capture_output=True, text=True, check=True, timeout=30
    )
    assert (would.stdout.rstrip().splitlines()[-1].endswith("cicada_local up --auth")) is asked


def test_settings_that_are_not_valid_are_told_in_the_app_s_own_words(tmp_path: Path) -> None:
    settings = tmp_path / "settings.json"
    settings.write_text(json.dumps({"local": True, "auth": {"mode": "none"}, "retentionDays": 0}))
    refused = command("up", "--plain", "--no-load", "--port", "0", "--home", str(tmp_path), "--settings", str(settings))
    assert refused.returncode == 1
    assert "retentionDays" in refused.stderr
    assert "Traceback" not in refused.stderr


class Refusing(BaseHTTPRequestHandler):
    """An AWS endpoint that lets nobody in."""

    def do_POST(self) -> None:
        self.rfile.read(int(self.headers["Content-Length"]))
        body = json.dumps({"__type": "AccessDeniedException", "message": "no entry today"}).encode()
        self.send_response(403)
        self.send_header("Content-Type", "application/x-amz-json-1.1")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_: object) -> None: ...


class Unwatched:
    """A step of which nobody looks at the progress."""

    def note(self, text: str) -> None: ...

    def count(self, done: int, total: int) -> None: ...


def test_a_deployment_that_fails_is_told_in_the_cdk_s_own_words(tmp_path: Path) -> None:
    places = Places(home=tmp_path, cache=Places.default().cache)
    assembly = asyncio.run(synthesise(read_settings(), places, Unwatched()))
    with (
        serving(Refusing) as port,
        pytest.raises(DeployFailed, match=r"(?s)The CDK says:.*no entry today.*deploy\.log"),
    ):
        asyncio.run(deploy(assembly, f"http://localhost:{port}", places, Unwatched()))
    assert "no entry today" in (places.logs / "deploy.log").read_text()


def test_a_synthesis_is_made_again_only_for_other_settings() -> None:
    settings = read_settings()
    assert sources_hash(settings) == sources_hash(dict(reversed(settings.items())))
    assert sources_hash(settings) != sources_hash({**settings, "retentionDays": 3})


def test_a_script_that_is_not_valid_is_told_in_the_loader_s_own_words(cloud: LocalCloud, tmp_path: Path) -> None:
    script = tmp_path / "script.jsonl"
    script.write_text('{"episodeId": 1}\n')
    with pytest.raises(LoadFailed, match=r"(?s)could not be loaded.*script\.jsonl"):
        asyncio.run(load([script], cloud.outputs, cloud.endpoint_url, Unwatched()))


def test_what_goes_wrong_while_loading_ends_the_start(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    async def failing(*_: object) -> None:
        raise LoadFailed("The script could not be loaded: no such episode")

    monkeypatch.setattr(up, "_serve", failing)
    with pytest.raises(UpFailed, match="no such episode"):
        asyncio.run(up.run(Options(0, Places(tmp_path, tmp_path), {}), steps_for(plain=True)))


def test_node_that_is_missing_is_asked_for(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    without = command("up", "--plain", "--no-load", "--port", "0", "--home", str(tmp_path / "home"))
    assert without.returncode == 1
    assert "Node.js is missing" in without.stderr


def page_config(cloud: LocalCloud) -> dict[str, Any]:
    """What the page is told."""
    with urllib.request.urlopen(f"{cloud.endpoint_url}/config.json", timeout=10) as answer:
        config: dict[str, Any] = json.load(answer)
    return config


def processes_of(home: Path) -> list[str]:
    """The command lines of processes that name a home."""
    found = subprocess.run(["ps", "-eo", "args"], capture_output=True, text=True, check=True).stdout.splitlines()
    return [line for line in found if str(home) in line]


def test_a_life_a_clean_stop_a_second_life_a_kill_and_a_third(tmp_path: Path) -> None:
    """State survives both ends; what was loaded is not loaded again; nothing is left running."""
    home = tmp_path / "cloud"
    script = tmp_path / "script.jsonl"
    script.write_text("".join(json.dumps(message) + "\n" for message in SCRIPT))
    item = {"pk": {"S": "r1"}, "sk": {"S": "head"}}
    cloud = LocalCloud(home, load=[script])

    cloud.start()
    assert "Left out" not in cloud.log()
    first = dict(cloud.outputs)
    assert cloud.calls()["bedrock-runtime.InvokeModel"] >= 2
    current = cloud.client("s3").get_object(Bucket=first["IndexBucket"], Key="index/current.json")
    cloud.client("dynamodb").put_item(TableName=first["RequestsTable"], Item=item)
    assert cloud.stop() == 0
    assert processes_of(home) == []

    cloud.start()
    on_this_machine = {name: cloud.outputs[name] for name in ("PageUrl", "HttpUrl")}  # at this start's ports
    assert cloud.outputs == first | on_this_machine
    assert page_config(cloud) == {"webSocketUrl": cloud.websocket_url, "episodes": [{"id": "ep1", "name": "The Lake"}]}
    assert "bedrock-runtime.InvokeModel" not in cloud.calls()
    dynamodb = cloud.client("dynamodb")
    assert dynamodb.get_item(TableName=first["RequestsTable"], Key=item)["Item"] == item
    again = cloud.client("s3").get_object(Bucket=first["IndexBucket"], Key="index/current.json")
    assert (again["ETag"], again["Body"].read()) == (current["ETag"], current["Body"].read())
    dynamodb.put_item(TableName=first["RequestsTable"], Item={**item, "pk": {"S": "r2"}})
    cloud.control("POST", "save")
    cloud.kill()

    cloud.start()
    found = cloud.client("dynamodb").scan(TableName=first["RequestsTable"])["Items"]
    assert {one["pk"]["S"] for one in found} == {"r1", "r2"}
    stopped = command("down", "--home", str(home))
    assert (stopped.returncode, stopped.stdout) == (0, "Stopped.\n")
    assert processes_of(home) == []
    assert command("down", "--home", str(home)).stdout == "Nothing runs.\n"


def test_it_stops_when_its_parent_is_gone(tmp_path: Path) -> None:
    home = tmp_path / "cloud"
    starter = (
        "import os, sys, time; from pathlib import Path; from cicada_local.testing import LocalCloud\n"
        "cloud = LocalCloud(Path(sys.argv[1]), empty=True); cloud.start(); print(cloud.pid, flush=True); os._exit(0)"
    )
    started = subprocess.run(
        [sys.executable, "-c", starter, str(home)], cwd=ROOT, capture_output=True, text=True, timeout=120, check=True
    )
    pid = int(started.stdout)
    deadline = time.monotonic() + 30
    while time.monotonic() < deadline and _lives(pid):
        time.sleep(0.1)
    assert not _lives(pid)
    assert not (home / "running.json").exists()


def _lives(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    return True


def test_connections_are_authorized_by_tokens_of_an_issuer_that_says_where_its_keys_are(
    cloud: LocalCloud, issuer: Issuer
) -> None:
    another = Issuer()

    def status(url: str, **offer: Any) -> int:
        """How an upgrade is refused."""
        with pytest.raises(InvalidStatus) as refused:
            connect(url, **offer).__enter__()
        return refused.value.response.status_code

    another.url = issuer.url
    refused = [issuer.token(aud="others"), issuer.token(exp=1), another.token(), "no.token.atall"]
    access = issuer.token(aud=None, client_id=issuer.audience, token_use="access")
    for token in (issuer.token(), access):
        with connect(cloud.websocket_url, subprotocols=offers(token)) as socket_:
            assert socket_.subprotocol == "cicada.v1"
            socket_.send(json.dumps({"action": "ping"}))
            assert json.loads(socket_.recv(20))["type"] == "pong"
            assert len(cloud.connections()) == 1
    for token in refused:
        assert status(cloud.websocket_url, subprotocols=offers(token)) == 401
    assert status(cloud.websocket_url, subprotocols=offers(issuer.token(groups=["staff"]))) == 403
    assert status(f"{cloud.websocket_url}?token={issuer.token()}") == 401
    assert set(issuer.asked) == {"/.well-known/openid-configuration", "/keys"}
    log = "".join(path.read_text() for path in cloud.logs.glob("*Authorizer*.log"))
    assert "the token is in the URL" in log
    assert "in none of auth.requiredGroups (readers)" in log

"""``make up``: from nothing to a page that answers, and back to nothing when it is told to stop."""

from __future__ import annotations

import asyncio
import contextlib
import gc
import json
import logging
import os
import re
import signal
import socket
import sys
import time
from collections.abc import Callable, Coroutine, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from cicada.models.model_ids import LOCAL_PREFIX
from cicada_local.deploy import DeployFailed, bootstrap, check_tools, deploy, synthesise
from cicada_local.loading import SAMPLE, LoadFailed, load, load_hash, sample_folders
from cicada_local.places import HTTP_PORT_VARIABLE, ISSUER_PORT_VARIABLE, ROOT, Places
from cicada_local.ports import PortTaken, listen
from cicada_local.progress import Steps
from cicada_local.running import Running, UpFailed, only_one, who_has

if TYPE_CHECKING:
    from cicada_local.cloud import Cloud

LOCAL_SETTINGS = ROOT / "cdk.local.json"
"""The deployer's settings for the local cloud."""

_POLITE = (signal.SIGTERM, signal.SIGHUP)
_WATCH_INTERVAL_S = 0.5
_LOADED, _EPISODES = "loaded", "episodes"
_SIGN_IN = (
    "Asking takes a sign-in:\n\n  name       {name}\n  password   {password}\n\n"
    "Sign in on the page, or in another terminal:  .venv/bin/cicada login\n"
)
_SAMPLE_EXAMPLES = (
    "What was served for supper in episode 2?",
    "Where was the bell's clapper hidden?",
    "What does Julian Roake do for a living?",
    "What was really in the sleeping powder?",
)


@dataclass(frozen=True)
class Options:
    """How to start."""

    port: int
    """0 takes a free one."""
    places: Places
    settings: Mapping[str, Any]
    """The deployer's settings, complete."""
    empty: bool = False
    """Whether nothing is deployed: the account is as AWS gives it, for those who deploy into it themselves."""
    load: Sequence[Path] = (SAMPLE,)
    """A script's files and folders; none to load nothing."""
    environment: Mapping[str, str] = field(default_factory=dict)
    """Further variables of every function."""
    issuer_port: int = 0
    """Of the issuer, where the settings ask for a user pool."""
    http_port: int = 0
    """Of function URLs, where the settings ask for HTTP access."""
    metric_minute_s: float = 60.0
    """Real seconds that are one of CloudWatch's minutes."""
    concurrency: int | None = None
    """Invocations of functions at once; None for what this machine bears."""
    parent: int | None = None
    """The process without which this one is to stop too."""


def with_sign_in(settings: Mapping[str, Any]) -> dict[str, Any]:
    """Settings under which users sign in, to a user pool that the stacks make."""
    return {**settings, "auth": {**settings.get("auth", {}), "mode": "cognito"}}


def with_model_server(settings: Mapping[str, Any], environ: Mapping[str, str]) -> dict[str, Any]:
    """Settings whose answers name the model that writes them: that of a model server, where one is asked for."""
    from cicada_local.bedrock.forwarding import MODEL, URL  # a web framework: only for what runs the cloud

    model = environ.get(MODEL, "").strip() if environ.get(URL, "").strip() else ""
    models = settings.get("models", {})
    if not model:
        return dict(settings)
    named = f"{LOCAL_PREFIX}{_NOT_IN_IDS.sub('-', model)}"[:MAX_MODEL_ID_CHARS]
    return {**settings, "models": {name: named if value == QUOTING else value for name, value in models.items()}}


def read_settings(path: Path = LOCAL_SETTINGS) -> dict[str, Any]:
    """The local cloud's settings.

    Raises:
        UpFailed: there is no such file, or it is no JSON object.
    """
    try:
        settings: dict[str, Any] = json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError) as error:
        raise UpFailed(f"{path}: {error}") from error
    return settings


QUOTING = "local.extractive"
"""The stand-in for a model, which quotes."""
MAX_MODEL_ID_CHARS = 256
_NOT_IN_IDS = re.compile(r"[^a-zA-Z0-9._:-]+")
SWITCH_S = 0.0005
"""How long a thread keeps the interpreter while another waits for it. The loop, which every call passes several times,
waited for Python's 5 ms again and again while threads worked on the table."""


def collect_seldom() -> None:
    """Leave out of garbage collections what is there by now, and make them rare.

    Reference counts free nearly all that a request leaves. Under load collections took a quarter of the process's time.
    """
    gc.collect()
    gc.freeze()
    gc.set_threshold(50_000, 20, 100)


async def run(options: Options, steps: Steps) -> None:
    """Start the local cloud, serve it until it is told to stop, and stop it.

    Raises:
        UpFailed: the message says why it did not start.
    """
    began = time.monotonic()
    sys.setswitchinterval(SWITCH_S)
    stop = asyncio.Event()
    with _stop_signals(stop), only_one(options.places) as running:
        try:
            await _until_stopped(stop, _serve(options, steps, stop, running, began), options.parent)
        except (DeployFailed, LoadFailed) as error:
            raise UpFailed(str(error)) from error


async def _serve(options: Options, steps: Steps, stop: asyncio.Event, running: Running, began: float) -> None:
    try:
        sockets = listen(options.port)
    except PortTaken:
        raise UpFailed(who_has(options.port)) from None
    port = sockets[0].getsockname()[1]
    issuer_sockets = _listen_for_issuer(options)
    function_url_sockets = _listen_for_function_urls(options)
    await check_tools()
    assembly = None if options.empty else asyncio.create_task(_synthesise(options, steps))
    cloud: Cloud | None = None
    try:
        with steps.step("Starting the local cloud"):
            cloud = await asyncio.to_thread(_load_cloud, port, options, stop.set)
            await cloud.start(sockets, issuer_sockets, function_url_sockets)
        if assembly is None:
            await cloud.restore()
        else:
            await _deploy(await assembly, cloud, options, steps)
        if options.load and not options.empty:
            await _load(cloud, options.load, steps)
        collect_seldom()
        cloud.ready = True
        options.places.settings.write_text(json.dumps(options.settings), encoding="utf-8")
        described = cloud.describe()
        steps.close()
        took_s = time.monotonic() - began
        if options.empty:
            steps.say(_greeting_of_nothing(described, took_s))
            cloud.deployed = partial(_tell, cloud, running)
        else:
            steps.say(_greeting(described, cloud.issuer.first_user(), took_s))
        _tell(cloud, running)  # last: who finds this cloud by it finds all that it says, and its first user
        await asyncio.Event().wait()  # the end comes as a cancellation, and once: the stopping below is not cut short
    finally:
        if assembly is not None:
            assembly.cancel()
            await asyncio.gather(assembly, return_exceptions=True)
        if cloud is not None:
            await cloud.close()
            if cloud.ready:
                steps.say("Stopped.")
        gc.freeze()  # the process ends: nothing needs to be collected
        for one in (*sockets, *issuer_sockets, *function_url_sockets):
            one.close()


def _tell(cloud: Cloud, running: Running) -> None:
    """Have the file by which commands find this cloud say what is deployed."""
    running.tell({"pid": os.getpid(), **cloud.describe()})


def _listen_for_issuer(options: Options) -> list[socket.socket]:
    auth = options.settings.get("auth")
    if not isinstance(auth, Mapping) or auth.get("mode") != "cognito":
        return []
    return _listen_further(options.issuer_port, "users would sign in", ISSUER_PORT_VARIABLE)


def _listen_for_function_urls(options: Options) -> list[socket.socket]:
    http = options.settings.get("http")
    if options.empty or not isinstance(http, Mapping) or not http.get("enabled"):
        return []
    return _listen_further(options.http_port, "MCP and the HTTP API would answer", HTTP_PORT_VARIABLE)


def _listen_further(port: int, what: str, variable: str) -> list[socket.socket]:
    try:
        return listen(port)
    except PortTaken:
        told = f"Port {port}, where {what}, is taken by another program."
        raise UpFailed(f"{told} Repeat the command with another one: {variable}={port + 1}") from None


async def _deploy(folder: Path, cloud: Cloud, options: Options, steps: Steps) -> None:
    with steps.step("Deploying the stacks") as step:
        await bootstrap(options.places, step)
        await deploy(folder, cloud.endpoint_url, options.places, step)
        step.note("putting back what was there")
        await cloud.restore()
    for kind in _not_simulated(folder):
        steps.say(f"Left out, for nothing here simulates it: {kind}")


def _load_cloud(port: int, options: Options, stop: Callable[[], None]) -> Cloud:
    """Takes a second or two, most of it for moto."""
    gc.disable()  # what gets loaded stays: looking through it for garbage takes as long again
    try:
        from cicada_local.cloud import Cloud

        return Cloud(
            port,
            options.places,
            environment=options.environment,
            stop=stop,
            metric_minute_s=options.metric_minute_s,
            concurrency=options.concurrency,
        )
    finally:
        gc.freeze()
        gc.enable()


async def _synthesise(options: Options, steps: Steps) -> Path:
    with steps.step("Synthesising the stacks") as step:
        return await synthesise(options.settings, options.places, step)


async def _load(cloud: Cloud, paths: Sequence[Path], steps: Steps) -> None:
    from cicada_local import deployed

    outputs = deployed.outputs()
    folders = sample_folders() if list(paths) == [SAMPLE] else []
    digest = load_hash([*paths, *folders], outputs)
    if cloud.marked(_LOADED) != digest:
        with steps.step("Loading the script and the campaign" if folders else "Loading the script") as step:
            episodes = await load(paths, outputs, cloud.endpoint_url, step, folders=folders)
            await asyncio.to_thread(cloud.keeper.save)
            cloud.mark(_EPISODES, json.dumps(episodes))
            cloud.mark(_LOADED, digest)
    cloud.corpus = {"episodes": json.loads(cloud.marked(_EPISODES) or "[]")}
    if list(paths) == [SAMPLE]:
        cloud.corpus["examples"] = list(_SAMPLE_EXAMPLES)


def _not_simulated(folder: Path) -> list[str]:
    from cicada_local.cloudformation import unknown_types

    templates = (json.loads(path.read_text(encoding="utf-8")) for path in sorted(folder.glob("*.template.json")))
    return sorted({kind for template in templates for kind in unknown_types(template)})


def _greeting(described: Mapping[str, Any], user: tuple[str, str] | None, took_s: float) -> str:
    sign_in = "" if user is None else _SIGN_IN.format(name=user[0], password=user[1])
    http_url = described["outputs"].get("HttpUrl")
    http = "" if http_url is None else f"  MCP        {http_url}mcp\n  HTTP API   {http_url}v1\n"
    return (
        f"\nCicada is up, after {took_s:.1f} s.\n\n"
        f"  page       {described['endpointUrl']}/\n"
        f"  WebSocket  {described['webSocketUrl']}\n"
        f"{http}\n"
        f"{sign_in}"
        f'Ask on the page, or in another terminal:  .venv/bin/cicada ask "{_SAMPLE_EXAMPLES[0]}"\n'
        f"See it fail:  curl -X PUT {described['endpointUrl']}/_cicada/faults/bedrock.cut -d '{{\"times\": 1}}'\n"
        "Ctrl-C stops it; what it holds is kept.\n"
    )


def _greeting_of_nothing(described: Mapping[str, Any], took_s: float) -> str:
    return (
        f"\nAn account with nothing in it is up, after {took_s:.1f} s, at {described['endpointUrl']}\n"
        "Ctrl-C stops it; what is deployed into it is gone then.\n"
    )


# --- stopping ---


@contextlib.contextmanager
def _stop_signals(stop: asyncio.Event) -> Iterator[None]:
    """Let Ctrl-C and a polite kill ask for the end; a second Ctrl-C is not waited for."""
    loop = asyncio.get_running_loop()

    def asked() -> None:
        stop.set()
        loop.remove_signal_handler(signal.SIGINT)

    loop.add_signal_handler(signal.SIGINT, asked)
    for number in _POLITE:
        loop.add_signal_handler(number, stop.set)
    try:
        yield
    finally:
        for number in (signal.SIGINT, *_POLITE):
            loop.remove_signal_handler(number)


async def _until_stopped(stop: asyncio.Event, serving: Coroutine[Any, Any, None], parent: int | None) -> None:
    """Run until it ends by itself; once asked to stop, cancel what is still starting."""
    task = asyncio.ensure_future(serving)
    watching = asyncio.create_task(_watch(parent, stop))
    asked = asyncio.create_task(stop.wait())
    try:
        await asyncio.wait({task, asked}, return_when=asyncio.FIRST_COMPLETED)
        if not task.done():
            task.cancel()
        with contextlib.suppress(asyncio.CancelledError):
            await task
    finally:
        for helper in (watching, asked):
            helper.cancel()


async def _watch(parent: int | None, stop: asyncio.Event) -> None:
    """Ask for the end when the parent is gone."""
    while parent is None or os.getppid() == parent:
        await asyncio.sleep(_WATCH_INTERVAL_S)
    stop.set()


def log_to(folder: Path) -> None:
    """Send this process's log, and moto's many warnings, to a file."""
    folder.mkdir(parents=True, exist_ok=True)
    logging.basicConfig(
        filename=folder / "cloud.log", level=logging.INFO, format="%(asctime)s %(levelname)s %(name)s: %(message)s"
    )
    logging.captureWarnings(capture=True)
    logging.getLogger("moto.stepfunctions").setLevel(
        logging.CRITICAL
    )  # it logs each failing state as an error of its own

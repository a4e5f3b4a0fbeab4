"""Synthesis and deployment of the stacks: the CDK app, and the real CDK CLI aimed at the local cloud.

What has not changed is not made again: a synthesis is kept by a hash of all that goes into it, the CLI's bootstrap
template by the CLI's version.
"""

from __future__ import annotations

import asyncio
import contextlib
import hashlib
import json
import os
import re
import shutil
import signal
import sys
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from cicada_local.places import ACCOUNT_ID, REGION, ROOT, Places, aws_environment
from cicada_local.progress import Step

TOOLKIT_STACK = "CDKToolkit"
"""The CDK's own stack, made by bootstrapping."""

CDK = ROOT / "node_modules" / ".bin" / "cdk"

OLDEST_NODE = 20
"""The CDK itself supports 22 and 24; 20 works, with a warning."""

_SOURCES = (
    "app.py",
    "cdk.json",
    "requirements.lock",
    "package-lock.json",
    "stacks",
    "layers",
    "lambdas",
    "packages",
    "web",
)
_NOT_SOURCES = ("__pycache__", ".DS_Store")
_KEPT_SYNTHESES = 12
_TOLD_LINES = 25
_STACK_LINE = re.compile(r"^(\S+): deploying\.\.\. (\[\d+/\d+\])")


class DeployFailed(Exception):
    """The stacks could not be deployed; the message is for the person at the terminal."""


async def check_tools() -> None:
    """Make sure that Node and the CDK CLI are there.

    Raises:
        DeployFailed: saying what is missing and what to do.
    """
    node = shutil.which("node")
    if node is None:
        raise DeployFailed(
            f"Node.js is missing: the CDK CLI needs it. Install version {OLDEST_NODE} or newer (22 or 24 are best)."
        )
    status, output = await _run([node, "--version"], env=dict(os.environ))
    found = re.match(r"v(\d+)\.", output)
    if status != 0 or found is None or int(found[1]) < OLDEST_NODE:
        raise DeployFailed(f"Node.js is too old ({output.strip()}): version {OLDEST_NODE} or newer is needed.")
    if not CDK.exists():
        raise DeployFailed("The CDK CLI is not installed: run `make setup`.")


# --- synthesis ---


def sources_hash(settings: Mapping[str, Any]) -> str:
    """A hash of all that a synthesis depends on: the app, the code that it packs, the settings, the interpreter."""
    digest = hashlib.sha256(json.dumps([sys.version_info[:2], settings], sort_keys=True).encode())
    for path in _source_files():
        digest.update(f"\0{path.relative_to(ROOT)}\0".encode())
        digest.update(hashlib.sha256(path.read_bytes()).digest())
    return digest.hexdigest()[:20]


async def synthesise(settings: Mapping[str, Any], places: Places, step: Step) -> Path:
    """Return the folder of the synthesised stacks, which is made if it is not there yet.

    Raises:
        DeployFailed: with the app's own words.
    """
    folder = places.cache / "synth" / sources_hash(settings)
    if (folder / "manifest.json").exists():
        step.note("unchanged")
        os.utime(folder)
        return folder
    step.note("the stacks or their code have changed")
    folder.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=folder.parent, prefix=".new-") as scratch:
        settings_file = Path(scratch) / "settings.json"
        settings_file.write_text(json.dumps(settings), encoding="utf-8")
        fresh = Path(scratch) / "out"
        environment = {
            **aws_environment(os.environ, "http://localhost:0"),
            "CDK_OUTDIR": str(fresh),
            "CDK_CONTEXT_JSON": json.dumps({"settings": str(settings_file)}),
            "CDK_DEFAULT_ACCOUNT": ACCOUNT_ID,
            "CDK_DEFAULT_REGION": REGION,
        }
        status, output = await _run([sys.executable, "app.py"], env=environment, step=step)
        if status != 0:
            raise DeployFailed(f"The stacks could not be synthesised:\n{_last_lines(output)}")
        with contextlib.suppress(OSError):  # another process has just made the same
            fresh.rename(folder)
    _forget_old(folder.parent)
    return folder


def _source_files() -> Iterator[Path]:
    for name in _SOURCES:
        path = ROOT / name
        found = sorted(path.rglob("*")) if path.is_dir() else [path]
        for file in found:
            if file.is_file() and not any(part in _NOT_SOURCES for part in file.parts):
                yield file


def _forget_old(folder: Path) -> None:
    by_age = sorted(
        (one for one in folder.iterdir() if not one.name.startswith(".")), key=lambda one: one.stat().st_mtime
    )
    for old in by_age[:-_KEPT_SYNTHESES]:
        shutil.rmtree(old, ignore_errors=True)


# --- deployment ---


async def bootstrap(places: Places, step: Step) -> None:
    """Create the CDK's own stack from the CLI's template, in process: the CLI would take several seconds for it.

    Raises:
        DeployFailed: the CLI does not give its template.
    """
    version = json.loads((CDK.resolve().parent.parent / "package.json").read_text(encoding="utf-8"))["version"]
    kept = places.cache / f"bootstrap-{version}.json"
    if not kept.exists():
        step.note("asking the CDK for its template")
        environment = _cli_environment("http://localhost:0")
        status, output = await _run([str(CDK), "bootstrap", "--show-template"], env=environment, cwd=CDK.parent)
        if status != 0:
            raise DeployFailed(f"The CDK did not give its bootstrap template:\n{_last_lines(output)}")
        _write_whole(kept, json.dumps(_read_template(output)))
    await asyncio.to_thread(_create_toolkit, kept.read_text(encoding="utf-8"))


async def deploy(folder: Path, endpoint_url: str, places: Places, step: Step) -> None:
    """Deploy all stacks with the CDK CLI.

    Args:
        folder: the synthesised stacks.
        endpoint_url: the local cloud's.
        places: where the CLI's output is kept.
        step: told which stack is being deployed.

    Raises:
        DeployFailed: with the CDK's own words.
    """
    command = [str(CDK), "deploy", "--all", "--app", str(folder), "--require-approval", "never", "--ci"]
    command += ["--no-notices", "--no-version-reporting", "--no-color", "--progress", "events"]
    status, output = await _run(command, env=_cli_environment(endpoint_url), step=step, log=places.logs / "deploy.log")
    if status != 0:
        raise DeployFailed(
            f"The stacks could not be deployed. The CDK says:\n{_last_lines(output)}\n"
            f"All of it is in {places.logs / 'deploy.log'}."
        )


def _cli_environment(endpoint_url: str) -> dict[str, str]:
    return {
        **aws_environment(os.environ, endpoint_url),
        "CDK_DISABLE_CLI_TELEMETRY": "true",
        "CDK_DISABLE_VERSION_CHECK": "true",
        "NODE_NO_WARNINGS": "1",
        "JSII_SILENCE_WARNING_DEPRECATED_NODE_VERSION": "1",
        "JSII_SILENCE_WARNING_END_OF_LIFE_NODE_VERSION": "1",
    }


def _read_template(output: str) -> dict[str, Any]:
    """The template in the CLI's output, which may begin with other lines."""
    from moto.cloudformation.models import Stack

    start = output.find("Description:")
    template: dict[str, Any] = Stack.parse_template(output[max(start, 0) :])
    return template


def _create_toolkit(template: str) -> None:
    from moto.cloudformation.models import cloudformation_backends

    backend = cloudformation_backends[ACCOUNT_ID][REGION]
    backend.create_stack(name=TOOLKIT_STACK, template=template, parameters={})


# --- processes ---


async def _run(
    command: Sequence[str],
    *,
    env: Mapping[str, str],
    cwd: Path = ROOT,
    step: Step | None = None,
    log: Path | None = None,
) -> tuple[int, str]:
    """Run a command to its end; its group is killed if this is cancelled.

    Returns:
        Its exit status and what it wrote.
    """
    process = await asyncio.create_subprocess_exec(
        *command,
        cwd=cwd,
        env=dict(env),
        stdin=asyncio.subprocess.DEVNULL,
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.STDOUT,
        start_new_session=True,  # Ctrl-C is for this process, which then ends that one
    )
    assert process.stdout is not None
    lines: list[str] = []
    try:
        async for raw in process.stdout:
            lines.append(raw.decode("utf-8", "replace"))
            if step is not None and (found := _STACK_LINE.match(lines[-1])):
                step.note(f"{found[1]} {found[2]}")
        status = await process.wait()
    except BaseException:
        with contextlib.suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGKILL)
        await process.wait()
        raise
    finally:
        if log is not None:
            log.parent.mkdir(parents=True, exist_ok=True)
            log.write_text("".join(lines), encoding="utf-8")
    return status, "".join(lines)


def _last_lines(output: str) -> str:
    return "\n".join(output.rstrip().splitlines()[-_TOLD_LINES:])


def _write_whole(path: Path, text: str) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.NamedTemporaryFile("w", dir=path.parent, delete=False, encoding="utf-8") as file:
        file.write(text)
    Path(file.name).replace(path)

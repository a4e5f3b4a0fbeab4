"""What is done to the cloud itself: workers killed, code deployed anew, an index published, schedules fired."""

from __future__ import annotations

import io
import os
import random
import signal
import zipfile
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from cicada_local.loading import load
from cicada_local.testing import LocalCloud
from tests.chaos.questions import SAMPLES

ROOT = Path(__file__).parents[2]
ANSWER, MESSAGES, EXHAUSTED, SWEEP = "Answer", "Message", "Exhausted", "Sweep"
"""Parts of the functions' names."""


class Untold:
    """Takes the progress of a loading, and says nothing."""

    def note(self, text: str) -> None:
        """Nothing."""

    def count(self, done: int, total: int) -> None:
        """Nothing."""


class House:
    """One local cloud, and what happens to it. Every method may block."""

    def __init__(self, cloud: LocalCloud) -> None:
        self._cloud = cloud
        self._names = _function_names(cloud)
        self._published = 0

    def name_of(self, part: str) -> str:
        """A function's name. Raises KeyError if there is none of this part, or several."""
        found = [name for name in self._names if any(part in named for named in name.split("-")[2:3])]
        if len(found) != 1:
            raise KeyError(f"{len(found)} functions are called {part}: {sorted(self._names)}")
        return found[0]

    def kill(self, part: str, rng: random.Random) -> int | None:
        """Kill one process of a function, with an invocation under way; its id, or None if none is at work.

        Between invocations a process is stopped, as Lambda freezes it: one that is not stopped is at work. It may as
        well be starting, which the workflow sees as it sees any death.
        """
        figures = self._cloud.functions().get(self.name_of(part), {})
        at_work = [pid for pid in figures.get("processes", ()) if _running(pid)]
        if not at_work:
            return None
        pid: int = rng.choice(at_work)
        try:
            os.kill(pid, signal.SIGKILL)
        except ProcessLookupError:
            return None
        return pid

    def killed(self) -> Mapping[str, int]:
        """For each function, the processes that ended in the middle of an invocation, as the service saw them."""
        return {name: int(figures["exits"]) for name, figures in self._cloud.functions().items()}

    def redeploy(self, part: str, mark: str) -> None:
        """Update a function's code, as a deployment does: the same code with another digest."""
        folder = ROOT / "lambdas" / {ANSWER: "answer", MESSAGES: "message_processor"}[part]
        packed = io.BytesIO()
        with zipfile.ZipFile(packed, "w", zipfile.ZIP_DEFLATED) as archive:
            for path in sorted(folder.rglob("*.py")):
                archive.write(path, path.relative_to(folder))
            archive.writestr("deployed.txt", mark)
        name = self.name_of(part)
        self._cloud.client("lambda").update_function_code(FunctionName=name, ZipFile=packed.getvalue())

    async def publish(self) -> None:
        """Publish a version of the index with one episode more, or one less.

        Raises:
            LoadFailed: it could not be loaded.
        """
        self._published += 1
        episodes = sorted((SAMPLES / "script").glob("episode-*.json*"))
        chosen = episodes if self._published % 2 else episodes[:-1]
        await load(chosen, self._cloud.outputs, self._cloud.endpoint_url, Untold())

    def sweep(self) -> Any:
        """Run the scheduled sweep now, and wait for what it says."""
        sweeping = self.name_of(SWEEP)
        (name,) = [rule["name"] for rule in self._cloud.control("GET", "schedules") if sweeping in rule["functions"]]
        return self._cloud.control("POST", f"schedules/{name}")

    def request_table(self) -> str:
        """The table that holds the requests."""
        (name,) = self._cloud.client("dynamodb").list_tables()["TableNames"]
        return str(name)


def _function_names(cloud: LocalCloud) -> list[str]:
    pages = cloud.client("lambda").get_paginator("list_functions").paginate()
    return [function["FunctionName"] for page in pages for function in page["Functions"]]


def _running(pid: int) -> bool:
    try:
        stat = Path(f"/proc/{pid}/stat").read_text(encoding="utf-8")
    except OSError:
        return False
    return stat.rpartition(")")[2].split()[0] not in ("T", "Z", "X")

"""The process of one execution environment: AWS's own runtime client, in surroundings like Lambda's.

Run as ``python -P worker.py <settings> <command>``. The command is what Lambda's own interpreter would get: the path
of its client, or, from a function's wrapper script, ``-m <module>``. The settings are a JSON object:

- ``handler``: the function's entry;
- ``paths``: the unpacked code and layers, in the order in which modules are looked for;
- ``installed``: the top-level modules that may come from this Python's own packages; null for all;
- ``lifeline``: a file descriptor that reaches its end when the service is gone;
- ``native_client``: false to speak to the Runtime API in Python even where the compiled client is installed;
- ``ahead_s``: how far the clock is ahead, in seconds.

Nothing of this project is imported, so that a function finds what its code, its layers and Lambda's runtime hold.
"""

import ctypes
import datetime
import importlib.machinery
import importlib.util
import json
import os
import runpy
import signal
import sys
import threading
import time
from collections.abc import Sequence
from importlib.abc import MetaPathFinder
from pathlib import Path
from types import ModuleType

PR_SET_PDEATHSIG = 1
LAYERS = "/opt/python"
"""Where Lambda unpacks the modules of layers."""


class InstalledModules(MetaPathFinder):
    """Hides this Python's own packages, apart from those that Lambda's runtime or a left-out layer would supply."""

    def __init__(self, allowed: Sequence[str], hidden: Sequence[str]) -> None:
        """``hidden``: the entries of ``sys.path`` that only ``allowed`` modules may come from."""
        self._allowed = {*allowed, *sys.stdlib_module_names, "__main__"}
        self._hidden = set(hidden)

    def find_spec(
        self, fullname: str, path: Sequence[str] | None, target: ModuleType | None = None
    ) -> importlib.machinery.ModuleSpec | None:
        """A top-level module from the function's own folders; None leaves the search to the usual finders."""
        if path is not None or fullname in self._allowed or fullname.endswith("__mypyc"):
            return None
        own = [entry for entry in sys.path if entry not in self._hidden]
        spec = importlib.machinery.PathFinder.find_spec(fullname, own, target)
        if spec is None:
            raise ModuleNotFoundError(f"No module named {fullname!r}", name=fullname)
        return spec


def die_with_the_service(lifeline: int) -> None:
    """End this process and its children when the service is gone, however it went.

    On Linux the kernel does it, even while this process is stopped. Elsewhere the kernel continues a stopped process
    group that nobody can continue any more, and then the thread sees the end of the lifeline.
    """
    signal.signal(signal.SIGHUP, signal.SIG_DFL)
    if sys.platform == "linux":
        ctypes.CDLL(None).prctl(PR_SET_PDEATHSIG, signal.SIGKILL)

    def watch() -> None:
        os.read(lifeline, 1)
        os.killpg(0, signal.SIGKILL)

    threading.Thread(target=watch, name="lifeline", daemon=True).start()


def use_python_client() -> None:
    """Stand in for ``runtime_client``, awslambdaric's compiled part, which exists for Linux only."""
    spec = importlib.util.spec_from_file_location("runtime_client", Path(__file__).with_name("runtime_client.py"))
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    sys.modules["runtime_client"] = module


def third_party_folders() -> list[str]:
    """Where this Python's own packages lie: not the standard library's folders, nor those that the function names."""
    library = str(Path(os.__file__).parent)
    kept = {library, str(Path(library, "lib-dynload")), *os.environ.get("PYTHONPATH", "").split(os.pathsep)}
    return [path for path in sys.path if path not in kept]


def put_clock_ahead(seconds: float) -> None:
    """Let the time of day be wrong in this process, for all that is imported later; what is measured stays right."""
    real_time, real_time_ns, real = time.time, time.time_ns, datetime.datetime

    class Kind(type):
        def __instancecheck__(cls, one: object) -> bool:
            return isinstance(one, real)

    class Ahead(real, metaclass=Kind):  # type: ignore[misc,valid-type] # mypy takes a variable for no class
        @classmethod
        def now(cls, tz: datetime.tzinfo | None = None) -> datetime.datetime:
            return real.now(tz) + datetime.timedelta(seconds=seconds)

        @classmethod
        def utcnow(cls) -> datetime.datetime:
            return cls.now(datetime.UTC).replace(tzinfo=None)

    datetime.datetime = Ahead  # type: ignore[misc]
    time.time = lambda: real_time() + seconds
    time.time_ns = lambda: real_time_ns() + round(seconds * 1e9)


def run(command: Sequence[str], handler: str, paths: Sequence[str]) -> None:
    """Run what Lambda's interpreter is told to, with the modules that it would find.

    Lambda's client looks into the code and the layers by itself. What a wrapper script starts in place of it looks
    where PYTHONPATH says, so that the script has to name them: ``/opt/python`` stands for the layers.
    """
    if command[0] != "-m":
        sys.path[:0] = paths
        sys.argv[:] = ["awslambdaric", handler]
        runpy.run_module("awslambdaric", run_name="__main__")
        return
    if LAYERS in os.environ.get("PYTHONPATH", "").split(os.pathsep):
        sys.path[:0] = paths[1:]
    if paths[0] in sys.path:  # first, as PYTHONPATH has it
        sys.path.insert(0, paths[0])
    sys.argv[:] = list(command[1:])
    runpy.run_module(command[1], run_name="__main__", alter_sys=True)


def main() -> None:
    """Become the function."""
    settings = json.loads(sys.argv[1])
    die_with_the_service(settings["lifeline"])
    if settings["ahead_s"]:
        put_clock_ahead(settings["ahead_s"])
    if not settings["native_client"] or importlib.util.find_spec("runtime_client") is None:
        use_python_client()
    if settings["installed"] is not None:
        sys.meta_path.insert(0, InstalledModules(settings["installed"], third_party_folders()))
    run(sys.argv[2:], settings["handler"], settings["paths"])


if __name__ == "__main__":
    main()

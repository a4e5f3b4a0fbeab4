"""The process of one execution environment: AWS's own runtime client, in surroundings like Lambda's.

Run as ``python -P worker.py <settings>``, where the settings are a JSON object:

- ``handler``: the function's entry;
- ``paths``: the unpacked code and layers, in the order in which modules are looked for;
- ``installed``: the top-level modules that may come from this Python's own packages; null for all;
- ``lifeline``: a file descriptor that reaches its end when the service is gone;
- ``native_client``: false to speak to the Runtime API in Python even where the compiled client is installed.

Nothing of this project is imported, so that a function finds what its code, its layers and Lambda's runtime hold.
"""

import ctypes
import importlib.machinery
import importlib.util
import json
import os
import runpy
import signal
import sys
import threading
from collections.abc import Sequence
from importlib.abc import MetaPathFinder
from pathlib import Path
from types import ModuleType

PR_SET_PDEATHSIG = 1


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


def main() -> None:
    """Become the function."""
    settings = json.loads(sys.argv[1])
    die_with_the_service(settings["lifeline"])
    if not settings["native_client"] or importlib.util.find_spec("runtime_client") is None:
        use_python_client()
    if settings["installed"] is not None:
        sys.meta_path.insert(0, InstalledModules(settings["installed"], third_party_folders()))
    sys.path[:0] = settings["paths"]
    sys.argv[:] = ["awslambdaric", settings["handler"]]
    runpy.run_module("awslambdaric", run_name="__main__")


if __name__ == "__main__":
    main()

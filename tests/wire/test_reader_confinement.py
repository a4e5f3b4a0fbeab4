"""Code that runs where a document is read attacks from there: what it is refused, on which kernel, as which user."""

from __future__ import annotations

import functools
import json
import os
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from cicada.corpus.readers.confinement import FILTER
from cicada.corpus.readers.sandbox import what_is_refused
from tests.support.reader_attacks import ATTACKS, CANARY, DONE

ROOT = Path(__file__).parents[2]
LINUX = sys.platform == "linux"
NEEDS_LINUX = pytest.mark.skipif(not LINUX, reason="seccomp is Linux's")
NEEDS_ROOT = pytest.mark.skipif(
    not LINUX or os.geteuid() != 0, reason="an ordinary user may be kept from other processes by the system itself"
)
NOBODY = ["--reuid=65534", "--regid=65534", "--clear-groups"]
MAY_READ = ["--inh-caps=-all,+dac_read_search", "--ambient-caps=-all,+dac_read_search"]
"""The interpreter may lie in root's folder, so the user without rights keeps the one to find and read files."""

FILTERED = dict.fromkeys(ATTACKS, "EPERM") | {
    "thread": "RuntimeError",
    "raise limit": "ValueError",
    "import module": "ModuleNotFoundError",
}
BOUNDED = {
    "fork": "EAGAIN",
    "spawn": "EAGAIN",
    "tcp": "EMFILE",
    "udp": "EMFILE",
    "unix socket": "EMFILE",
    "read file": "EMFILE",
    "list folder": "EMFILE",
    "write file": "EMFILE",
    "raise limit": "ValueError",
    "import module": "ModuleNotFoundError",
}
"""What limits alone refuse a user who is not root."""
BOUNDED_ON_LINUX = {
    "thread": "RuntimeError",
    "host environment": "EMFILE",
    "host memory file": "EMFILE",
    "own environment": "EMFILE",
    "anonymous file": "EMFILE",
    "io_uring": "EMFILE",
}
HIDDEN = dict.fromkeys(("host memory call", "child memory call", "trace host"), "EPERM")
"""What is refused beside where the kernel hides memory, though it takes no filter."""
LEFT_OPEN = (
    *("remove file", "empty file", "rename file", "make link", "change rights"),
    *("limit host", "slow host", "signal host"),
)
"""What limits do not refuse."""


@functools.cache
def _attacked(how: str, *, unprivileged: bool = False) -> Mapping[str, Any]:
    """What came of every attack, in processes of their own."""
    command = [sys.executable, "-B", "-m", "tests.support.reader_attacks", how]
    if unprivileged and os.geteuid() == 0:
        command = ["setpriv", *NOBODY, *MAY_READ, *command]
    environ = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path), "AWS_SECRET_ACCESS_KEY": CANARY}
    ended = subprocess.run(command, cwd=ROOT, env=environ, capture_output=True, text=True, timeout=120)
    assert not ended.returncode, ended.stderr
    found: Mapping[str, Any] = json.loads(ended.stdout)
    return found


@NEEDS_ROOT
@pytest.mark.parametrize("attack", ATTACKS)
def test_each_attack_works_where_nothing_is_confined(attack: str) -> None:
    assert _attacked("unconfined")["came"][attack] == DONE


@NEEDS_LINUX
@pytest.mark.parametrize("unprivileged", [False, True], ids=["this user", "unprivileged"])
@pytest.mark.parametrize("attack", ATTACKS)
def test_a_filter_refuses_every_attack(attack: str, *, unprivileged: bool) -> None:
    assert _attacked("sandboxed", unprivileged=unprivileged)["came"][attack] == FILTERED[attack]


@pytest.mark.parametrize("attack", BOUNDED | BOUNDED_ON_LINUX if LINUX else BOUNDED)
def test_where_no_filter_can_be_installed_nothing_can_be_opened_or_started(attack: str) -> None:
    came = _attacked("lambda-like" if LINUX else "sandboxed", unprivileged=True)["came"]
    assert came[attack] == (BOUNDED | BOUNDED_ON_LINUX)[attack]


@NEEDS_LINUX
@pytest.mark.parametrize("attack", ATTACKS)
def test_the_filter_is_installed_where_one_of_the_two_calls_for_it_is_refused(attack: str) -> None:
    assert _attacked("without-call", unprivileged=True)["came"][attack] == FILTERED[attack]


@NEEDS_LINUX
@pytest.mark.parametrize("attack", HIDDEN)
def test_memory_is_hidden_where_no_filter_can_be_installed_and_the_kernel_does_that(attack: str) -> None:
    found = _attacked("without-filter", unprivileged=True)
    assert found["came"][attack] == HIDDEN[attack]
    assert found["refused"][FILTER] is False
    assert found["refused"]["read_memory_of_processes"] is True


@NEEDS_LINUX
@pytest.mark.parametrize("attack", LEFT_OPEN)
def test_the_docs_say_what_limits_leave_open(attack: str) -> None:
    """docs/formats.md calls each *possible* in Lambda: where one is refused by now, say so there."""
    assert _attacked("lambda-like", unprivileged=True)["came"][attack] == DONE


@NEEDS_LINUX
def test_on_linux_the_kernel_takes_the_filter_and_all_is_refused() -> None:
    refused = what_is_refused()
    assert refused == dict.fromkeys(refused, True)
    assert FILTER in refused


@NEEDS_LINUX
def test_where_no_filter_can_be_installed_what_stays_possible_is_told() -> None:
    found = _attacked("lambda-like", unprivileged=True)
    refused, came = found["refused"], found["came"]
    assert not refused[FILTER]
    for name, attack in {
        "open_files": "read file",
        "open_connections": "tcp",
        "start_processes": "fork",
        "remove_files": "remove file",
        "signal_processes": "signal host",
        "read_memory_of_processes": "host memory call",
    }.items():
        assert refused[name] == (came[attack] != DONE)


@NEEDS_LINUX
def test_a_filter_that_is_not_taken_any_more_ends_the_process_before_it_reads() -> None:
    program = """
from cicada.corpus.readers import confinement
from cicada.corpus.readers.limits import ReadLimits
confinement.restrict = lambda: False
confinement.confine(ReadLimits(), filtered=True)
"""
    environ = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)}
    ended = subprocess.run([sys.executable, "-c", program], env=environ, capture_output=True, text=True, timeout=60)
    assert ended.returncode == 1
    assert "PermissionError" in ended.stderr


def test_an_attempt_for_which_the_system_kills_costs_the_report_no_more_than_what_follows() -> None:
    program = """
import json, os
from cicada.corpus.readers import confinement
confinement._attempts = lambda host, witness: {"one": os.getpid, "two": os.abort, "three": os.getpid}
print(json.dumps(confinement.what_is_refused()))
"""
    environ = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)}
    ended = subprocess.run([sys.executable, "-c", program], env=environ, capture_output=True, text=True, timeout=60)
    assert json.loads(ended.stdout) == {FILTER: LINUX, "one": False}

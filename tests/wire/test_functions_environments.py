"""Execution environments of the local Lambda service: real processes, from start to end."""

import json
import os
import re
import signal
import subprocess
import sys
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from pathlib import Path

import pytest
from botocore.exceptions import ClientError

from cicada_local.functions import ServiceLimits
from tests.wire.functions_cloud import ECHO, PID, ROOT, Cloud, eventually, gone, process_state, zipped


def test_a_warm_environment_serves_again(cloud: Cloud) -> None:
    cloud.deploy(PID)
    assert len({cloud.invoke()["Payload"] for _ in range(5)}) == 1
    stats = cloud.service.stats()["f"]
    assert (stats.invocations, stats.cold_starts, stats.errors) == (5, 1, 0)


def test_invocations_at_once_get_an_environment_each(cloud: Cloud, tmp_path: Path) -> None:
    cloud.deploy(
        """
        import os, pathlib, time

        def handler(event, context):
            meeting = pathlib.Path(event)
            (meeting / str(os.getpid())).touch()
            while len(list(meeting.iterdir())) < 3:
                time.sleep(0.01)
            return os.getpid()
        """
    )
    meeting = tmp_path / "meeting"
    meeting.mkdir()
    with ThreadPoolExecutor(3) as callers:
        pids = list(callers.map(lambda _: cloud.invoke(str(meeting))["Payload"], range(3)))
    assert len(set(pids)) == 3
    assert eventually(lambda: sorted(cloud.service.processes()["f"]) == sorted(pids))


def test_a_changed_function_gets_new_environments_and_the_old_ones_end(cloud: Cloud) -> None:
    cloud.deploy("import os\ndef handler(event, context): return ['old', os.getpid()]")
    _, old_pid = cloud.invoke()["Payload"]
    cloud.deploy("import os\ndef handler(event, context): return ['new', os.getpid()]")
    version, new_pid = cloud.invoke()["Payload"]
    assert version == "new"
    assert eventually(lambda: gone(old_pid))
    assert cloud.service.processes()["f"] == [new_pid]


def test_an_environment_that_becomes_stale_at_work_ends_after_it(cloud: Cloud, tmp_path: Path) -> None:
    release = tmp_path / "release"
    slow = """
        import os, pathlib, time

        def handler(event, context):
            pathlib.Path(event + ".begun").touch()
            while not os.path.exists(event):
                time.sleep(0.01)
            return os.getpid()
    """
    cloud.deploy(slow)
    with ThreadPoolExecutor(1) as caller:
        pending = caller.submit(cloud.invoke, str(release))
        eventually(Path(f"{release}.begun").exists)
        cloud.deploy(PID)
        new_pid = cloud.invoke()["Payload"]
        release.touch()
        old_pid = pending.result()["Payload"]
    assert eventually(lambda: cloud.service.processes()["f"] == [new_pid])
    assert eventually(lambda: gone(old_pid))


def test_an_idle_environment_is_reaped(start: Callable[..., Cloud]) -> None:
    cloud = start(limits=ServiceLimits(idle_s=0.05))
    cloud.deploy(PID)
    pid = cloud.invoke()["Payload"]
    assert eventually(lambda: gone(pid))
    assert eventually(lambda: cloud.service.processes()["f"] == [])
    assert cloud.invoke()["Payload"] != pid


def test_an_environment_is_frozen_between_invocations(cloud: Cloud) -> None:
    cloud.deploy(PID)
    pid = cloud.invoke()["Payload"]
    assert eventually(lambda: process_state(pid) == "T")
    assert cloud.invoke()["Payload"] == pid


def test_reserved_concurrency_bounds_a_function(cloud: Cloud, tmp_path: Path) -> None:
    release = tmp_path / "release"
    cloud.deploy(
        """
        import os, pathlib, time

        def handler(event, context):
            pathlib.Path(event + ".begun").touch()
            while not os.path.exists(event):
                time.sleep(0.01)
        """,
        reserved_concurrency=1,
    )
    with ThreadPoolExecutor(1) as caller:
        pending = caller.submit(cloud.invoke, str(release))
        eventually(Path(f"{release}.begun").exists)
        with pytest.raises(cloud.client.exceptions.TooManyRequestsException) as caught:
            cloud.invoke(str(release))
        release.touch()
        pending.result()
    assert caught.value.response["Reason"] == "ReservedFunctionConcurrentInvocationLimitExceeded"
    assert caught.value.response["ResponseMetadata"]["HTTPStatusCode"] == 429
    assert "FunctionError" not in cloud.invoke(str(release))
    assert cloud.service.stats()["f"].throttles == 1


def test_reserved_concurrency_of_zero_stops_a_function(cloud: Cloud) -> None:
    cloud.deploy(ECHO, reserved_concurrency=0)
    with pytest.raises(cloud.client.exceptions.TooManyRequestsException):
        cloud.invoke()


def test_the_service_as_a_whole_is_bounded(start: Callable[..., Cloud]) -> None:
    cloud = start(limits=ServiceLimits(max_concurrency=0))
    cloud.deploy(ECHO)
    with pytest.raises(cloud.client.exceptions.TooManyRequestsException) as caught:
        cloud.invoke()
    assert caught.value.response["Reason"] == "ConcurrentInvocationLimitExceeded"


def test_one_environment_is_started_at_a_time_and_those_that_wait_take_the_next_that_is_idle(
    start: Callable[..., Cloud],
) -> None:
    """The others are served by the first, which is warm before their turn to start comes."""
    cloud = start(limits=ServiceLimits(starts_at_once=1))
    cloud.deploy(
        """
        import os, time

        time.sleep(0.3)

        def handler(event, context):
            return os.getpid()
        """
    )
    with ThreadPoolExecutor(6) as callers:
        pids = list(callers.map(lambda _: cloud.invoke()["Payload"], range(6)))
    stats = cloud.service.stats()["f"]
    assert stats.invocations == 6
    assert len(set(pids)) <= stats.cold_starts < 6


# --- faults ---


def test_the_kill_fault_strikes_in_the_middle_of_an_invocation(cloud: Cloud, tmp_path: Path) -> None:
    cloud.deploy(
        """
        import pathlib, time

        def handler(event, context):
            pathlib.Path(event).touch()
            time.sleep(3600)
        """
    )
    cloud.deploy(ECHO, name="g")
    cloud.faults.arm("functions.kill", times=1, function="f", after_ms=300)
    assert cloud.invoke(1, name="g")["Payload"] == 1
    payload = cloud.invoke(str(tmp_path / "begun"))["Payload"]
    assert payload["errorMessage"].endswith("Runtime exited with error: signal: killed")
    assert (tmp_path / "begun").exists()
    assert cloud.faults.armed() == {}


def test_the_kill_fault_leaves_an_invocation_alone_that_ends_before(cloud: Cloud) -> None:
    cloud.deploy(PID)
    cloud.faults.arm("functions.kill", times=1, after_ms=3_600_000)
    assert cloud.invoke()["Payload"] == cloud.invoke()["Payload"]


def test_the_throttle_fault(cloud: Cloud) -> None:
    cloud.deploy(ECHO)
    cloud.faults.arm("functions.throttle", times=1, function="f")
    with pytest.raises(cloud.client.exceptions.TooManyRequestsException):
        cloud.invoke(1)
    assert cloud.invoke(1)["Payload"] == 1


def test_the_slow_start_fault_lengthens_cold_starts(cloud: Cloud) -> None:
    cloud.deploy(ECHO)
    cloud.faults.arm("functions.slow_start", function="f", delay_ms=400)
    cloud.invoke()
    cloud.invoke()
    inits = re.findall(r"Init Duration: ([\d.]+) ms", cloud.log())
    assert len(inits) == 1
    assert float(inits[0]) >= 400


# --- shutting down ---


def test_closing_leaves_no_process_behind(start: Callable[..., Cloud], tmp_path: Path) -> None:
    cloud = start()
    cloud.deploy(PID)
    cloud.deploy(
        """
        import pathlib, os, time

        def handler(event, context):
            pathlib.Path(event).write_text(str(os.getpid()))
            time.sleep(3600)
        """,
        name="busy",
    )
    idle_pid = cloud.invoke()["Payload"]
    begun = tmp_path / "begun"
    with ThreadPoolExecutor(1) as caller:
        pending = caller.submit(cloud.invoke, str(begun), "busy")
        busy_pid = int(eventually(lambda: begun.exists() and begun.read_text()))
        cloud.call(cloud.service.close())
        assert isinstance(pending.exception(), Exception)
    assert gone(idle_pid)
    assert gone(busy_pid)
    assert not list((cloud.work_dir / "environments").iterdir()), "temporary files are removed"
    with pytest.raises(ClientError) as caught:
        cloud.invoke()
    assert caught.value.response["Error"]["Code"] == "ServiceException"


PARENT = """
import asyncio, json, os, sys, time
from pathlib import Path
from cicada_local.faults import Faults
from cicada_local.functions import FunctionConfig, FunctionService

async def main(work_dir, archive):
    config = FunctionConfig("f", "arn:aws:lambda:eu-west-1:123456789012:function:f", "handler.handler",
                            Path(archive).read_bytes(), "sha", timeout_s=600.0)
    service = FunctionService({"f": config}.get, work_dir=Path(work_dir), endpoint_url="", faults=Faults(),
                              overrides=lambda config: {})
    await asyncio.gather(*(service.invoke("f", b"0.3") for _ in range(2)))
    busy = asyncio.create_task(service.invoke("f", b"3600"))
    await asyncio.sleep(0.1)
    print(json.dumps(service.processes()["f"]), flush=True)
    await busy

asyncio.run(main(*sys.argv[1:]))
"""


@pytest.mark.parametrize("how", [signal.SIGTERM, signal.SIGKILL])
def test_no_process_outlives_a_service_that_is_killed(tmp_path: Path, how: signal.Signals) -> None:
    archive = tmp_path / "code.zip"
    archive.write_bytes(zipped({"handler.py": "import time\ndef handler(event, context): time.sleep(event)"}))
    parent = subprocess.Popen(
        [sys.executable, "-c", PARENT, str(tmp_path / "work"), str(archive)],
        stdout=subprocess.PIPE,
        cwd=ROOT,
        env={**os.environ, "PYTHONPATH": str(ROOT)},
    )
    assert parent.stdout is not None
    pids = json.loads(parent.stdout.readline())
    assert len(pids) == 2, "one of them works, one is frozen"
    parent.send_signal(how)
    parent.wait()
    parent.stdout.close()
    for pid in pids:
        assert eventually(partial(gone, pid))

"""How failures of functions are told."""

import os
import re
import signal
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from pathlib import Path

import pytest

from cicada_local.functions import ServiceLimits
from tests.wire.functions_cloud import Cloud, eventually, gone, linux_only


@pytest.fixture(params=["native", "python"])
def either_client(request: pytest.FixtureRequest, start: Callable[..., Cloud]) -> Cloud:
    """awslambdaric's compiled Runtime API client, and the one for systems that it is not built for."""
    return start(native_client=request.param == "native")


def test_an_exception_is_told_as_the_runtime_tells_it(either_client: Cloud) -> None:
    either_client.deploy(
        """
        def handler(event, context):
            if event == "fail":
                raise KeyError("nobody knows")
            return event
        """
    )
    answer = either_client.invoke("fail")
    assert answer["StatusCode"] == 200
    assert answer["FunctionError"] == "Unhandled"
    assert answer["Payload"]["errorType"] == "KeyError"
    assert answer["Payload"]["errorMessage"] == "'nobody knows'"
    assert any("handler.py" in frame for frame in answer["Payload"]["stackTrace"])
    assert either_client.invoke("again")["Payload"] == "again"
    stats = either_client.service.stats()["f"]
    assert (stats.cold_starts, stats.errors) == (1, 1)


def test_a_result_that_is_no_json_is_a_marshal_error(cloud: Cloud) -> None:
    cloud.deploy("def handler(event, context): return {1, 2}")
    answer = cloud.invoke()
    assert answer["FunctionError"] == "Unhandled"
    assert answer["Payload"]["errorType"] == "Runtime.MarshalError"


def test_a_function_that_exits_is_told_by_its_status(either_client: Cloud) -> None:
    either_client.deploy("import os\ndef handler(event, context): os._exit(event)")
    answer = either_client.invoke(3)
    request_id = answer["ResponseMetadata"]["RequestId"]
    assert answer["FunctionError"] == "Unhandled"
    assert answer["Payload"] == {
        "errorType": "Runtime.ExitError",
        "errorMessage": f"RequestId: {request_id} Error: Runtime exited with error: exit status 3",
    }
    quiet = either_client.invoke(0)["Payload"]["errorMessage"]
    assert quiet.endswith("Error: Runtime exited without providing a reason")


def test_a_process_at_work_can_be_killed_by_its_function(cloud: Cloud, tmp_path: Path) -> None:
    cloud.deploy(
        """
        import pathlib, time

        def handler(event, context):
            if event:
                pathlib.Path(event).touch()
                time.sleep(3600)
            return "well"
        """
    )
    assert cloud.kill("f") == []
    assert cloud.invoke()["Payload"] == "well"
    [idle] = cloud.service.processes()["f"]
    assert cloud.kill("f") == []  # at work is none
    begun = tmp_path / "begun"
    with ThreadPoolExecutor(1) as caller:
        pending = caller.submit(cloud.invoke, str(begun))
        eventually(begun.exists)
        assert cloud.kill("f") == [idle]
        answer = pending.result()
    assert answer["Payload"]["errorType"] == "Runtime.ExitError"
    assert answer["Payload"]["errorMessage"].endswith("signal: killed")
    assert cloud.invoke()["Payload"] == "well"
    [warm] = cloud.service.processes()["f"]
    assert cloud.kill("f", idle) == []
    assert cloud.kill("f", warm) == [warm]
    eventually(lambda: gone(warm))
    assert cloud.invoke()["Payload"] == "well"


def test_a_killed_process_is_told_by_its_signal_and_replaced(cloud: Cloud, tmp_path: Path) -> None:
    cloud.deploy(
        """
        import pathlib, time

        def handler(event, context):
            if event:
                pathlib.Path(event).touch()
                time.sleep(3600)
            return "well"
        """
    )
    begun = tmp_path / "begun"
    with ThreadPoolExecutor(1) as caller:
        pending = caller.submit(cloud.invoke, str(begun))
        eventually(begun.exists)
        [pid] = cloud.service.processes()["f"]
        os.kill(pid, signal.SIGKILL)
        answer = pending.result()
    assert answer["Payload"]["errorType"] == "Runtime.ExitError"
    assert answer["Payload"]["errorMessage"].endswith("Error: Runtime exited with error: signal: killed")
    assert cloud.invoke()["Payload"] == "well"
    assert cloud.service.stats()["f"].exits == 1


def test_a_timed_out_function_is_killed_with_all_that_it_started(either_client: Cloud, tmp_path: Path) -> None:
    children = tmp_path / "children"
    either_client.deploy(
        """
        import os, pathlib, subprocess, sys, time

        def handler(event, context):
            if event:
                child = subprocess.Popen([sys.executable, "-c", "import time; time.sleep(3600)"])
                pathlib.Path(event).write_text(f"{os.getpid()} {child.pid}")
                time.sleep(3600)
            return "well"
        """,
        timeout_s=1.0,
    )
    answer = either_client.invoke(str(children))
    request_id = answer["ResponseMetadata"]["RequestId"]
    assert answer["StatusCode"] == 200
    assert answer["FunctionError"] == "Unhandled"
    assert answer["Payload"] == {
        "errorType": "Sandbox.Timedout",
        "errorMessage": f"RequestId: {request_id} Error: Task timed out after 1.00 seconds",
    }
    for pid in children.read_text().split():
        assert eventually(partial(gone, int(pid)))
    assert either_client.invoke()["Payload"] == "well"
    assert either_client.service.stats()["f"].timeouts == 1


@linux_only
def test_a_function_that_outgrows_its_memory_is_killed(cloud: Cloud) -> None:
    cloud.deploy("def handler(event, context): return len(bytearray(event << 20))", memory_mb=128)
    answer = cloud.invoke(200)
    assert answer["Payload"]["errorType"] == "Runtime.OutOfMemory"
    assert answer["Payload"]["errorMessage"].endswith("Error: Runtime exited with error: signal: killed")
    assert cloud.invoke(1)["Payload"] == 1 << 20


@pytest.mark.parametrize(
    ("source", "error_type"),
    [
        ("import nothing_of_this_name", "Runtime.ImportModuleError"),
        ("def handler(:", "Runtime.UserCodeSyntaxError"),
        ("def another(event, context): ...", "Runtime.HandlerNotFound"),
        ("raise RuntimeError('no settings')", "RuntimeError"),
    ],
)
def test_a_module_that_does_not_load_fails_the_invocation(either_client: Cloud, source: str, error_type: str) -> None:
    either_client.deploy(source)
    answer = either_client.invoke()
    assert answer["FunctionError"] == "Unhandled"
    assert answer["Payload"]["errorType"] == error_type
    assert either_client.log().count("INIT_REPORT") == 2, "an initialisation is tried twice"
    assert eventually(lambda: either_client.service.processes()["f"] == [])


def test_a_module_that_exits_fails_the_invocation(cloud: Cloud) -> None:
    cloud.deploy("import os\nos._exit(7)")
    message = cloud.invoke()["Payload"]["errorMessage"]
    assert message.endswith("Error: Runtime exited with error: exit status 7")


def test_an_initialisation_over_its_limit_is_begun_again_within_the_invocation(
    start: Callable[..., Cloud], tmp_path: Path
) -> None:
    cloud = start(limits=ServiceLimits(init_s=1.0))
    cloud.deploy(
        """
        import os, pathlib, time

        tried = pathlib.Path(os.environ["TRIED"])
        if not tried.exists():
            tried.touch()
            time.sleep(5)  # over the limit of this phase, and within that of an invocation

        def handler(event, context):
            return "in the end"
        """,
        environment={"TRIED": str(tmp_path / "tried")},
    )
    assert cloud.invoke()["Payload"] == "in the end"
    assert re.search(r"INIT_REPORT Init Duration: \d+\.\d\d ms\tPhase: init\tStatus: timeout", cloud.log())


def test_an_initialisation_that_never_ends_times_out(start: Callable[..., Cloud]) -> None:
    cloud = start(limits=ServiceLimits(init_s=0.2))
    cloud.deploy("import time\ntime.sleep(3600)", timeout_s=0.3)
    assert cloud.invoke()["Payload"]["errorType"] == "Sandbox.Timedout"


def test_a_function_whose_clock_is_wrong_tells_the_wrong_time(cloud: Cloud) -> None:
    cloud.deploy(
        """
        import datetime, time
        def handler(event, context):
            now = datetime.datetime.now(datetime.UTC)
            return {
                "times": [now.timestamp(), datetime.datetime.utcnow().replace(tzinfo=datetime.UTC).timestamp(),
                          time.time(), time.time_ns() / 1e9],
                "same": isinstance(now, datetime.datetime) and isinstance(datetime.datetime.min, datetime.datetime),
            }
        """
    )
    cloud.faults.arm("functions.clock", function="f", ahead_s=600)
    told = cloud.invoke()["Payload"]
    assert told["same"]
    assert all(540 < one - time.time() < 660 for one in told["times"])

"""The local Lambda service, called by a real boto3 client over HTTP, with real processes behind it."""

import asyncio
import base64
import hashlib
import io
import json
import os
import re
import signal
import subprocess
import sys
import textwrap
import threading
import time
import zipfile
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import boto3
import pytest
from aiohttp import web
from botocore.config import Config
from botocore.exceptions import ClientError

import local.functions
from local.faults import Faults
from local.functions import FunctionConfig, FunctionService, Layer, ServiceLimits

ROOT = Path(__file__).parents[2]
linux_only = pytest.mark.skipif(sys.platform != "linux", reason="only Linux tells a process's memory")


class Cloud:
    """A service on a port of its own, and the functions that it knows."""

    def __init__(self, work_dir: Path, **options: Any) -> None:
        self.work_dir = work_dir
        self.faults = Faults()
        self.functions: dict[str, FunctionConfig] = {}
        self.service = FunctionService(
            self.functions.get,
            work_dir=work_dir,
            endpoint_url="http://localhost:4600",
            overrides=lambda config: {"OVERRIDDEN": f"for {config.name}"},
            faults=self.faults,
            **options,
        )
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._loop.run_forever)
        self._thread.start()
        app = web.Application()
        self.service.add_routes(app)
        self._runner = web.AppRunner(app)
        self.call(self._runner.setup())
        self.call(web.TCPSite(self._runner, "127.0.0.1", 0).start())
        port = self._runner.addresses[0][1]
        self.client = boto3.client(
            "lambda",
            endpoint_url=f"http://127.0.0.1:{port}",
            region_name="eu-west-1",
            aws_access_key_id="key",
            aws_secret_access_key="secret",
            config=Config(retries={"total_max_attempts": 1}, read_timeout=60),
        )

    def call(self, work: Any) -> Any:
        return asyncio.run_coroutine_threadsafe(work, self._loop).result(60)

    def close(self) -> None:
        self.call(self._runner.cleanup())
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join()
        self._loop.close()

    def deploy(self, source: str, name: str = "f", **config: Any) -> FunctionConfig:
        archive = zipped({"handler.py": textwrap.dedent(source)})
        deployed = FunctionConfig(
            name=name,
            arn=f"arn:aws:lambda:eu-west-1:123456789012:function:{name}",
            handler="handler.handler",
            code_zip=archive,
            code_sha=base64.b64encode(hashlib.sha256(archive).digest()).decode(),
            **{"timeout_s": 30.0, "memory_mb": 256, **config},
        )
        self.functions[name] = deployed
        return deployed

    def invoke(self, event: Any = None, name: str = "f", **request: Any) -> dict[str, Any]:
        answer = self.client.invoke(FunctionName=name, Payload=json.dumps(event), **request)
        payload = answer["Payload"].read()
        return {**answer, "Payload": json.loads(payload) if payload else None}

    def log(self, name: str = "f") -> str:
        return (self.work_dir / "logs" / f"{name}.log").read_text()


def zipped(files: dict[str, str | bytes]) -> bytes:
    archive = io.BytesIO()
    with zipfile.ZipFile(archive, "w") as unfinished:
        for name, content in files.items():
            unfinished.writestr(name, content)
    return archive.getvalue()


def layer(name: str, files: dict[str, str | bytes]) -> Layer:
    archive = zipped(files)
    return Layer(name, archive, hashlib.sha256(archive).hexdigest())


def eventually(condition: Callable[[], Any]) -> Any:
    """Wait for what must come; the suite's own time-out ends it otherwise."""
    while not (result := condition()):
        time.sleep(0.01)
    return result


def process_state(pid: int) -> str:
    """The first letter of ``ps``'s state: T for stopped, Z for dead and not yet collected, nothing for gone."""
    shown = subprocess.run(["ps", "-o", "state=", "-p", str(pid)], capture_output=True, text=True)
    return shown.stdout.strip()[:1]


def gone(pid: int) -> bool:
    return process_state(pid) in ("", "Z")


@pytest.fixture
def start(tmp_path: Path) -> Iterator[Callable[..., Cloud]]:
    clouds: list[Cloud] = []

    def start_one(**options: Any) -> Cloud:
        clouds.append(Cloud(tmp_path / f"functions-{len(clouds)}", **options))
        return clouds[-1]

    yield start_one
    for cloud in clouds:
        cloud.close()


@pytest.fixture
def cloud(start: Callable[..., Cloud]) -> Cloud:
    return start()


ECHO = "def handler(event, context): return event"
PID = """
    import os

    def handler(event, context):
        return os.getpid()
"""


# --- what a function returns, and what it is told ---


def test_a_handler_gets_the_event_and_its_result_comes_back(cloud: Cloud) -> None:
    cloud.deploy(ECHO)
    answer = cloud.invoke({"question": "wer?", "ünïcode": [1, None, True]})
    assert answer["Payload"] == {"question": "wer?", "ünïcode": [1, None, True]}
    assert answer["StatusCode"] == 200
    assert answer["ExecutedVersion"] == "$LATEST"
    assert "FunctionError" not in answer


@pytest.mark.parametrize(
    ("name", "qualifier"),
    [
        ("f", None),
        ("f", "$LATEST"),
        ("f:live", None),
        ("123456789012:function:f", None),
        ("arn:aws:lambda:eu-west-1:123456789012:function:f", None),
        ("arn:aws:lambda:eu-west-1:123456789012:function:f:$LATEST", None),
    ],
)
def test_a_function_is_known_by_its_name_and_by_its_arns(cloud: Cloud, name: str, qualifier: str | None) -> None:
    cloud.deploy(ECHO)
    answer = cloud.invoke(1, name=name, **({"Qualifier": qualifier} if qualifier else {}))
    assert answer["Payload"] == 1


def test_an_empty_payload_is_an_empty_object(cloud: Cloud) -> None:
    cloud.deploy(ECHO)
    assert cloud.client.invoke(FunctionName="f")["Payload"].read() == b"{}"


def test_an_unknown_function_is_not_found(cloud: Cloud) -> None:
    with pytest.raises(cloud.client.exceptions.ResourceNotFoundException, match="Function not found") as caught:
        cloud.invoke(name="nobody")
    assert caught.value.response["ResponseMetadata"]["HTTPStatusCode"] == 404


def test_a_process_sees_its_own_variables_and_lambdas_and_nothing_of_this_machine(
    cloud: Cloud, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("SECRET_OF_THIS_MACHINE", "leaked")
    cloud.deploy(
        "import os\ndef handler(event, context): return dict(os.environ)",
        environment={"TABLE": "requests", "AWS_REGION": "not-yours-to-set", "OVERRIDDEN": "by the function"},
        runtime="python3.13",
    )
    seen = cloud.invoke()["Payload"]
    expected = {
        "TABLE": "requests",
        "OVERRIDDEN": "for f",
        "AWS_ENDPOINT_URL": "http://localhost:4600",
        "AWS_REGION": "eu-west-1",
        "AWS_DEFAULT_REGION": "eu-west-1",
        "AWS_EXECUTION_ENV": "AWS_Lambda_python3.13",
        "AWS_LAMBDA_FUNCTION_NAME": "f",
        "AWS_LAMBDA_FUNCTION_MEMORY_SIZE": "256",
        "AWS_LAMBDA_FUNCTION_VERSION": "$LATEST",
        "AWS_LAMBDA_LOG_GROUP_NAME": "/aws/lambda/f",
        "_HANDLER": "handler.handler",
        "TZ": ":UTC",
    }
    assert {name: seen.get(name) for name in expected} == expected
    assert seen["AWS_LAMBDA_LOG_STREAM_NAME"].partition("[$LATEST]")[2]
    assert seen["AWS_ACCESS_KEY_ID"] != os.environ.get("AWS_ACCESS_KEY_ID", "")
    assert "SECRET_OF_THIS_MACHINE" not in seen
    assert seen["HOME"] != os.environ["HOME"]


def test_the_context_tells_the_request_and_the_time_left(cloud: Cloud) -> None:
    cloud.deploy(
        """
        import os

        def handler(event, context):
            return {
                "request": context.aws_request_id,
                "arn": context.invoked_function_arn,
                "left_ms": context.get_remaining_time_in_millis(),
                "custom": context.client_context.custom,
                "trace": os.environ["_X_AMZN_TRACE_ID"],
                "in_its_code": os.getcwd() == os.environ["LAMBDA_TASK_ROOT"],
            }
        """,
        timeout_s=20.0,
    )
    custom = base64.b64encode(json.dumps({"custom": {"user": "beatrice"}}).encode()).decode()
    answer = cloud.invoke(ClientContext=custom)
    seen = answer["Payload"]
    assert seen["request"] == answer["ResponseMetadata"]["RequestId"]
    assert seen["arn"].endswith(":function:f")
    assert 0 < seen["left_ms"] <= 20_000
    assert seen["custom"] == {"user": "beatrice"}
    assert seen["trace"].startswith("Root=1-")
    assert seen["in_its_code"]


# --- environments ---


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


# --- failures ---


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
        assert eventually(lambda pid=pid: gone(int(pid)))
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
            time.sleep(3600)

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


# --- limits and requests ---


def test_an_event_over_six_megabytes_is_refused(cloud: Cloud) -> None:
    cloud.deploy("def handler(event, context): return len(event)")
    assert cloud.invoke("x" * (6 * 1024 * 1024 - 2))["Payload"] == 6 * 1024 * 1024 - 2
    with pytest.raises(cloud.client.exceptions.RequestTooLargeException) as caught:
        cloud.invoke("x" * (6 * 1024 * 1024))
    assert caught.value.response["ResponseMetadata"]["HTTPStatusCode"] == 413


def test_an_asynchronous_event_over_one_megabyte_is_refused(cloud: Cloud) -> None:
    cloud.deploy(ECHO)
    with pytest.raises(cloud.client.exceptions.RequestTooLargeException):
        cloud.invoke("x" * (1024 * 1024), InvocationType="Event")


def test_a_result_over_six_megabytes_is_an_error(either_client: Cloud) -> None:
    either_client.deploy("def handler(event, context): return 'x' * event")
    answer = either_client.invoke(7 * 1024 * 1024)
    assert answer["Payload"]["errorType"] == "Function.ResponseSizeTooLarge"
    assert either_client.invoke(1)["Payload"] == "x"


def test_an_event_that_is_no_json_is_refused(cloud: Cloud) -> None:
    cloud.deploy(ECHO)
    with pytest.raises(cloud.client.exceptions.InvalidRequestContentException):
        cloud.client.invoke(FunctionName="f", Payload=b"{")


def test_an_unknown_invocation_type_is_refused(cloud: Cloud) -> None:
    cloud.deploy(ECHO)
    with pytest.raises(cloud.client.exceptions.InvalidParameterValueException):
        cloud.invoke(InvocationType="Sometimes")


def test_a_dry_run_runs_nothing(cloud: Cloud) -> None:
    cloud.deploy(ECHO)
    assert cloud.invoke(InvocationType="DryRun")["StatusCode"] == 204
    assert cloud.service.processes() == {}


# --- asynchronous invocations ---

APPEND = """
    import os

    def handler(event, context):
        with open(event, "a") as file:
            file.write(context.aws_request_id + "\\n")
        if os.environ.get("FAIL"):
            raise RuntimeError("again, please")
"""


def test_an_asynchronous_event_is_accepted_and_run(cloud: Cloud, tmp_path: Path) -> None:
    cloud.deploy(APPEND)
    seen = tmp_path / "seen"
    answer = cloud.invoke(str(seen), InvocationType="Event")
    assert (answer["StatusCode"], answer["Payload"]) == (202, None)
    assert eventually(lambda: seen.exists() and seen.read_text()) == f"{answer['ResponseMetadata']['RequestId']}\n"


def test_a_failed_asynchronous_event_is_tried_three_times_under_one_request_id(
    start: Callable[..., Cloud], tmp_path: Path
) -> None:
    cloud = start(limits=ServiceLimits(event_retry_delays_s=(0.0, 0.0)))
    cloud.deploy(APPEND, environment={"FAIL": "yes"})
    seen = tmp_path / "seen"
    cloud.invoke(str(seen), InvocationType="Event")
    assert eventually(lambda: cloud.service.stats()["f"].errors == 3)
    assert len(set(seen.read_text().split())) == 1


def test_a_throttled_asynchronous_event_waits_for_its_turn(start: Callable[..., Cloud], tmp_path: Path) -> None:
    cloud = start(limits=ServiceLimits(throttle_retry_delay_s=0.01))
    cloud.deploy(APPEND, reserved_concurrency=0)
    seen = tmp_path / "seen"
    assert cloud.invoke(str(seen), InvocationType="Event")["StatusCode"] == 202
    assert eventually(lambda: cloud.service.stats()["f"].throttles > 1)
    cloud.deploy(APPEND)
    assert eventually(seen.exists)


# --- logs ---


def test_the_log_reads_like_cloudwatchs(cloud: Cloud) -> None:
    cloud.deploy(
        """
        import logging, sys
        print("while loading")

        def handler(event, context):
            print("to stdout")
            print("to stderr", file=sys.stderr)
            logging.getLogger().warning("by logging")
            sys.stdout.write("without an end")
        """
    )
    answer = cloud.invoke()
    request_id = answer["ResponseMetadata"]["RequestId"]
    lines = cloud.log().splitlines()
    stream = re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}\+00:00 \d{4}/\d\d/\d\d/\[\$LATEST\][0-9a-f]{32} (.*)")
    messages = [match[1] for line in lines if (match := stream.fullmatch(line))]
    assert messages[:3] == [
        "INIT_START Runtime Version: python3.13",
        "while loading",
        f"START RequestId: {request_id} Version: $LATEST",
    ]
    assert messages[3:5] == ["to stdout", "to stderr"]
    assert re.fullmatch(rf"\[WARNING\]\t.*Z\t{request_id}\tby logging", messages[5])
    assert messages[6] == f"END RequestId: {request_id}"
    assert re.fullmatch(
        rf"REPORT RequestId: {request_id}\tDuration: [\d.]+ ms\tBilled Duration: \d+ ms\tMemory Size: 256 MB"
        r"\tMax Memory Used: \d+ MB\tInit Duration: [\d.]+ ms",
        messages[7],
    )


def test_the_log_tells_of_a_failure(cloud: Cloud) -> None:
    cloud.deploy("import time\ndef handler(event, context): time.sleep(3600)", timeout_s=0.3)
    cloud.invoke()
    assert "Error: Task timed out after 0.30 seconds" in cloud.log()
    assert cloud.log().rstrip().endswith("\tStatus: timeout")


def test_a_caller_can_have_the_tail_of_the_log(cloud: Cloud) -> None:
    cloud.deploy("def handler(event, context): print('x' * event)")
    tail = base64.b64decode(cloud.invoke(10, LogType="Tail")["LogResult"]).decode()
    assert tail.startswith("START RequestId: ")
    assert "\nxxxxxxxxxx\n" in tail
    assert "REPORT RequestId: " in tail
    assert len(base64.b64decode(cloud.invoke(9_000, LogType="Tail")["LogResult"])) == 4096
    assert "LogResult" not in cloud.invoke(10)


def test_whoever_asked_is_told_each_line(start: Callable[..., Cloud]) -> None:
    told: list[tuple[str, str]] = []
    cloud = start(log=lambda name, line: told.append((name, line)))
    cloud.deploy("def handler(event, context): print('a line')")
    cloud.invoke()
    assert ("f", "a line") in told


# --- code and layers ---


def test_a_layers_modules_are_found_and_a_later_layer_wins(cloud: Cloud) -> None:
    cloud.deploy(
        "import fruit, only_first\ndef handler(event, context): return [fruit.NAME, only_first.NAME]",
        layers=(
            layer("first", {"python/fruit.py": "NAME = 'apple'", "python/only_first.py": "NAME = 'first'"}),
            layer("second", {"python/lib/python3.13/site-packages/fruit.py": "NAME = 'pear'"}),
        ),
    )
    assert cloud.invoke()["Payload"] == ["pear", "first"]


def test_the_functions_code_wins_over_layers_and_the_runtime(cloud: Cloud) -> None:
    cloud.deploy(
        "import fruit\ndef handler(event, context): return fruit.NAME",
        layers=(layer("fruit", {"python/fruit.py": "NAME = 'layer'"}),),
    )
    config = cloud.functions["f"]
    own = zipped(
        {"handler.py": "import fruit\ndef handler(event, context): return fruit.NAME", "fruit.py": "NAME='own'"}
    )
    cloud.functions["f"] = FunctionConfig("f", config.arn, config.handler, own, "own", config.layers, timeout_s=30.0)
    assert cloud.invoke()["Payload"] == "own"


def test_the_runtime_brings_boto3(cloud: Cloud) -> None:
    cloud.deploy("import boto3, botocore, urllib3\ndef handler(event, context): return boto3.__name__")
    assert cloud.invoke()["Payload"] == "boto3"


@pytest.mark.parametrize("module", ["pydantic", "aiohttp", "local.faults", "pytest"])
def test_what_no_layer_brings_cannot_be_imported(cloud: Cloud, module: str) -> None:
    cloud.deploy(f"import {module}\ndef handler(event, context): return 'it could'")
    payload = cloud.invoke()["Payload"]
    assert payload["errorType"] == "Runtime.ImportModuleError"
    assert f"No module named '{module.split('.')[0]}'" in payload["errorMessage"]


def test_optional_imports_see_that_a_package_is_missing(cloud: Cloud) -> None:
    cloud.deploy(
        """
        try:
            import aiohttp
        except ImportError:
            aiohttp = None

        def handler(event, context):
            return aiohttp is None
        """
    )
    assert cloud.invoke()["Payload"] is True


FOREIGN_ELF = b"\x7fELF" + bytes(14) + b"\xff\xff"


@pytest.mark.parametrize(
    "extension",
    [
        {"python/pydantic_core/_core.cpython-399-sparc-linux-gnu.so": b""},
        {"python/pydantic_core/_core.abi3.so": FOREIGN_ELF},
        {"python/pydantic.libs/libm.so": FOREIGN_ELF},
    ],
)
def test_a_layer_with_foreign_extensions_is_served_by_this_pythons_packages(
    cloud: Cloud, extension: dict[str, bytes]
) -> None:
    foreign = layer(
        "vendor",
        {
            **extension,
            "python/pydantic/__init__.py": "raise ImportError('the foreign layer was used')",
            "python/pydantic_core/__init__.py": "",
            "python/typing_extensions.py": "",
            "python/annotated_types/__init__.py": "",
            "python/typing_inspection/__init__.py": "",
        },
    )
    native = layer("own", {"python/fruit.py": "NAME = 'apple'"})
    cloud.deploy(
        """
        import fruit
        from pydantic import BaseModel

        class Question(BaseModel):
            text: str

        def handler(event, context):
            return [Question(text=event).text, fruit.NAME]
        """,
        layers=(foreign, native),
    )
    assert cloud.invoke("wer?")["Payload"] == ["wer?", "apple"]


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
from local.faults import Faults
from local.functions import FunctionConfig, FunctionService

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
        assert eventually(lambda pid=pid: gone(pid))


# --- the conformance list ---


def test_every_line_of_the_conformance_list_names_its_tests() -> None:
    listed = (Path(local.functions.__file__).with_name("CONFORMANCE.md")).read_text()
    named = re.findall(r"`(test_\w+)`", listed)
    assert len(named) > 20
    assert [name for name in named if name not in globals()] == []
    rows = [line for line in listed.split("## Known")[0].splitlines() if line.startswith("| ") and "---" not in line]
    assert [row for row in rows[1:] if "`test_" not in row] == []

"""Logs of the local Lambda service."""

import base64
import re
from collections.abc import Callable

from tests.wire.functions_cloud import Cloud


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

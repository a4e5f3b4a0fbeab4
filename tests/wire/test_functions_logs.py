"""Logs of the local Lambda service."""

import base64
import json
import re
from collections.abc import Callable

import pytest

from cicada_local.functions.log_levels import LEVELS, passes
from tests.wire.functions_cloud import ROOT, Cloud


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


LINES = """
    import json

    def tell(**line):
        print(json.dumps(line))

    def handler(event, context):
        at = "2026-11-02T16:51:31.587+00:00"
        tell(level="ERROR", timestamp=at, message="an error")
        tell(level="error", timestamp=at.replace("+00:00", "Z"), message="another")
        tell(level="INFO", timestamp=at, message="news")
        tell(level="ERROR", timestamp="2026-11-02 16:51:31,587+0000", message="at no RFC 3339 time")
        tell(level="ERROR", message="at no time")
        tell(level="LOUD", timestamp=at, message="of no level")
        tell(_aws={"CloudWatchMetrics": []}, AnswersFailed=1)
        print("no JSON")
"""


EVENTS = (
    ("INFO", "initStart"),
    ("INFO", "start"),
    ("DEBUG", "runtimeDone success"),
    ("INFO", "report success"),
    ("INFO", "start"),
    ("WARN", "runtimeDone error"),
    ("WARN", "report error"),
    ("INFO", "start"),
    ("WARN", "runtimeDone timeout"),
    ("WARN", "report timeout"),
)
"""Lambda's own lines of three invocations, with their levels."""


@pytest.mark.parametrize("level", ["DEBUG", "INFO", "WARN"])
def test_with_the_json_format_lambdas_own_lines_are_events_of_a_level(cloud: Cloud, level: str) -> None:
    source = """
        import time

        def handler(event, context):
            if event == "raise":
                raise KeyError("x")
            time.sleep(event)
    """
    cloud.deploy(source, log_level="TRACE", system_log_level=level, timeout_s=0.5)
    ids = [cloud.invoke(event)["ResponseMetadata"]["RequestId"] for event in (0, "raise", 60)]
    messages = (line.split(" ", 2)[2] for line in cloud.log().splitlines() if line.startswith("20"))
    events = [json.loads(message) for message in messages if '"platform.' in message]
    kinds = [f"{one['type'].removeprefix('platform.')} {one['record'].get('status', '')}".strip() for one in events]
    assert kinds == [kind for of, kind in EVENTS if LEVELS.index(of) >= LEVELS.index(level)]
    assert all(re.fullmatch(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z", one["time"]) for one in events)
    reports = [one["record"] for one in events if one["type"] == "platform.report"]
    assert [one["requestId"] for one in reports] == ids[-len(reports) :]
    assert all(one["metrics"]["memorySizeMB"] == 256 for one in reports)
    assert [("initDurationMs" in one["metrics"]) for one in reports] == [True, False, False][-len(reports) :]


@pytest.mark.parametrize(
    ("level", "kept"),
    [
        (None, 8),
        ("TRACE", 8),
        ("INFO", 8),
        ("WARN", 2),
        ("ERROR", 2),
        ("FATAL", 0),
    ],
)
def test_lines_below_the_functions_level_are_dropped(cloud: Cloud, level: str | None, kept: int) -> None:
    cloud.deploy(LINES, log_level=level)
    tail = base64.b64decode(cloud.invoke(LogType="Tail")["LogResult"]).decode()
    own = [line for line in tail.splitlines() if '"type": "platform.' not in line]
    written = [line for line in own if line.startswith("{") or line == "no JSON"]
    assert len(written) == kept
    assert all("error" in line or "another" in line for line in written[:2])


TELEMETRY = """
    from cicada.metrics import REQUESTS_FAILED
    from cicada.telemetry import logger, report
    import logging, os

    @logger.inject_lambda_context
    def handler(event, context):
        logging.getLogger("cicada.answering").info("news")
        logging.getLogger("cicada.answering").error("an error")
        logging.getLogger("another").warning("of another library")
        report({REQUESTS_FAILED: 1})
        if event:
            raise ValueError("at last")
"""


@pytest.mark.parametrize(("level", "news"), [("ERROR", False), ("INFO", True), ("DEBUG", True)])
def test_the_deployed_configuration_keeps_errors_and_metrics_at_every_level(
    cloud: Cloud, level: str, news: bool
) -> None:
    """``TRACE`` is what the stacks set Lambda's own level to; the deployer's level is the logger's."""
    environment = {
        "LOG_LEVEL": level,
        "POWERTOOLS_SERVICE_NAME": "cicada",
        "POWERTOOLS_METRICS_NAMESPACE": "Cicada",
        "PYTHONPATH": str(ROOT / "layers" / "cicada" / "python"),
    }
    cloud.deploy(TELEMETRY, log_level="TRACE", environment=environment)
    tail = base64.b64decode(cloud.invoke(1, LogType="Tail")["LogResult"]).decode()
    lines = [json.loads(line) for line in tail.splitlines() if line.startswith("{")]
    told = {line["message"]: line for line in lines if "message" in line}
    assert ("news" in told, "of another library" in told) == (news, news)
    assert passes(json.dumps(told["an error"]), "ERROR")
    assert any("RequestsFailed" in line and "_aws" in line for line in lines)
    assert any(line.get("errorType") == "ValueError" for line in lines)

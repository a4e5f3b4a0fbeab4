"""What functions of the local Lambda service are told, and what their callers get."""

import base64
import json
import os
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import pytest
from botocore.exceptions import ClientError

from cicada_local.cloudwatch import Metric, MetricClock, MetricStore
from cicada_local.cloudwatch.sources import LambdaMetrics
from cicada_local.functions import ServiceLimits
from cicada_local.functions.config import AsyncConfig
from tests.wire.functions_cloud import ECHO, Cloud, eventually


@pytest.fixture(params=["native", "python"])
def either_client(request: pytest.FixtureRequest, start: Callable[..., Cloud]) -> Cloud:
    """awslambdaric's compiled Runtime API client, and the one for systems that it is not built for."""
    return start(native_client=request.param == "native")


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


def test_invocations_and_throttles_are_counted(start: Callable[..., Cloud]) -> None:
    store = MetricStore(MetricClock())
    cloud = start(metrics=LambdaMetrics(store))
    cloud.deploy(ECHO)
    cloud.invoke("a")
    cloud.deploy("def handler(event, context):\n    raise ValueError(event)\n")
    cloud.invoke("b")
    cloud.faults.arm("functions.throttle", times=1)
    with pytest.raises(ClientError):
        cloud.invoke("c")
    names = ("Invocations", "Errors", "Throttles", "ConcurrentExecutions")
    start_s = int(store.clock.now() // 3600) * 3600 - 3600
    found = {}
    for name in names:
        metric = Metric.of("AWS/Lambda", name, {"FunctionName": "f"})
        (found[name],) = store.statistic(metric, "Maximum" if name == names[-1] else "Sum", [start_s], 7200).values()
    assert found == {"Invocations": 2, "Errors": 1, "Throttles": 1, "ConcurrentExecutions": 1}


class Sent:
    """Notes what is sent to queues."""

    def __init__(self) -> None:
        self.messages: list[tuple[str, str, Any, dict[str, str]]] = []
        self.refusal: str | None = None

    def __call__(self, role: str, queue: str, text: str, attributes: Mapping[str, str]) -> str | None:
        self.messages.append((role, queue, json.loads(text), dict(attributes)))
        return self.refusal


def reported(store: MetricStore) -> set[str]:
    return {metric.name for metric in store.metrics() if metric.namespace == "AWS/Lambda"}


def test_an_event_that_failed_for_good_goes_to_its_destination_and_its_dead_letters(
    start: Callable[..., Cloud], tmp_path: Path
) -> None:
    sent, store = Sent(), MetricStore(MetricClock())
    limits = ServiceLimits(event_retry_delays_s=(0.0, 0.0))
    cloud = start(limits=limits, send=sent, metrics=LambdaMetrics(store))
    configured = AsyncConfig(max_retries=1, on_failure="arn:aws:sqs:::failed", dead_letter="arn:aws:sqs:::dead")
    cloud.deploy(APPEND, environment={"FAIL": "yes"}, asynchronous=configured, role="arn:aws:iam:::role/f")
    request_id = cloud.invoke(str(tmp_path / "seen"), InvocationType="Event")["ResponseMetadata"]["RequestId"]
    assert eventually(lambda: "AsyncEventsDropped" in reported(store))
    (record, letter) = sent.messages
    assert record[:2] == ("arn:aws:iam:::role/f", "arn:aws:sqs:::failed")
    context = record[2]["requestContext"]
    assert (context["requestId"], context["condition"]) == (request_id, "RetriesExhausted")
    assert context["approximateInvokeCount"] == 2
    assert record[2]["requestPayload"] == str(tmp_path / "seen")
    assert record[2]["responseContext"]["functionError"] == "Unhandled"
    assert letter[1:3] == ("arn:aws:sqs:::dead", str(tmp_path / "seen"))
    assert letter[3]["RequestID"] == request_id


def test_an_event_that_is_too_old_is_given_up_and_a_refused_destination_is_counted(start: Callable[..., Cloud]) -> None:
    sent, store = Sent(), MetricStore(MetricClock())
    sent.refusal = "AccessDenied"
    cloud = start(limits=ServiceLimits(event_time_scale=0.0), send=sent, metrics=LambdaMetrics(store))
    cloud.deploy(APPEND, asynchronous=AsyncConfig(on_failure="arn:aws:sqs:::failed", dead_letter="arn:aws:sqs:::dead"))
    cloud.invoke("unused", InvocationType="Event")
    assert eventually(lambda: "AsyncEventsDropped" in reported(store))
    expected = {"AsyncEventsReceived", "AsyncEventsDropped", "DestinationDeliveryFailures", "DeadLetterErrors"}
    assert reported(store) == expected
    assert sent.messages[0][2]["requestContext"]["condition"] == "EventAgeExceeded"


def test_a_throttled_asynchronous_event_waits_for_its_turn(start: Callable[..., Cloud], tmp_path: Path) -> None:
    cloud = start(limits=ServiceLimits(throttle_retry_delay_s=0.01))
    cloud.deploy(APPEND, reserved_concurrency=0)
    seen = tmp_path / "seen"
    assert cloud.invoke(str(seen), InvocationType="Event")["StatusCode"] == 202
    assert eventually(lambda: cloud.service.stats()["f"].throttles > 1)
    cloud.deploy(APPEND)
    assert eventually(seen.exists)


def test_the_account_tells_its_limit_and_what_is_left_unreserved(start: Callable[..., Cloud]) -> None:
    cloud = start(limits=ServiceLimits(account_concurrency=40), reserved=lambda: 15)
    limit = cloud.client.get_account_settings()["AccountLimit"]
    assert (limit["ConcurrentExecutions"], limit["UnreservedConcurrentExecutions"]) == (40, 25)

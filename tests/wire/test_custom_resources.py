"""Custom resources on the local cloud: CloudFormation's requests, and what it takes for a response."""

from __future__ import annotations

import json
import threading
import urllib.error
import urllib.request
from collections.abc import Callable, Iterator
from typing import Any

import pytest

from tests.wire.local_services import Services, deployed_stack, outputs_of, running_services

Answer = dict[str, Any]


class Function:
    """Stands for the custom resource's function: it notes its events and answers them."""

    def __init__(self) -> None:
        self.events: list[dict[str, Any]] = []
        self.answer: Callable[[dict[str, Any]], Answer | None] = lambda _: {}
        """What is changed in a success; None for no response at all."""
        self.send: Callable[[str, bytes], None] = put

    def __call__(self, name: str, event: dict[str, Any]) -> None:
        assert name == "arn:thing"
        self.events.append(event)
        changed = self.answer(event)
        if changed is not None:
            ours = {name: event[name] for name in ("StackId", "RequestId", "LogicalResourceId")}
            response = {"Status": "SUCCESS", "PhysicalResourceId": "thing-1", **ours, **changed}
            # On AWS the function is invoked asynchronously: the request for it has its answer before.
            threading.Thread(target=self.send, args=(event["ResponseURL"], json.dumps(response).encode())).start()

    def kinds(self) -> list[str]:
        return [event["RequestType"] for event in self.events]


def put(url: str, body: bytes, content_type: str = "") -> None:
    request = urllib.request.Request(url, data=body, method="PUT", headers={"Content-Type": content_type})
    with urllib.request.urlopen(request, timeout=10):
        return


@pytest.fixture(scope="module")
def services() -> Iterator[Services]:
    with running_services() as running:
        yield running


@pytest.fixture
def function(services: Services) -> Function:
    function = services.invoke = Function()
    return function


def template(**properties: Any) -> dict[str, Any]:
    declared = {"ServiceToken": "arn:thing", "ServiceTimeout": 30, **properties}
    return {
        "Resources": {"Thing": {"Type": "Custom::Thing", "Properties": declared}},
        "Outputs": {"Id": {"Value": {"Ref": "Thing"}}},
    }


def failure(services: Services, stack: str) -> str:
    events = services.client("cloudformation").describe_stack_events(StackName=stack)["StackEvents"]
    return str(next(event["ResourceStatusReason"] for event in events if event["ResourceStatus"].endswith("_FAILED")))


def update(services: Services, stack: str, changed: dict[str, Any]) -> None:
    client = services.client("cloudformation")
    client.create_change_set(
        StackName=stack, ChangeSetName="next", ChangeSetType="UPDATE", TemplateBody=json.dumps(changed)
    )
    client.execute_change_set(StackName=stack, ChangeSetName="next")


def test_a_function_is_asked_to_create_to_update_and_to_delete(services: Services, function: Function) -> None:
    function.answer = lambda _: {"Data": {"Address": "here"}}
    declared = template(Size=3, Deep={"Whole": True, "Parts": [1.5, "a"]})
    declared["Outputs"]["Address"] = {"Value": {"Fn::GetAtt": ["Thing", "Address"]}}
    with deployed_stack(services, "custom", declared) as stack:
        assert outputs_of(stack) == {"Id": "thing-1", "Address": "here"}
        update(services, "custom", template(Size=4))
    created, updated, deleted = function.events
    assert created["ResourceProperties"] == {
        "ServiceToken": "arn:thing",
        "ServiceTimeout": "30",
        "Size": "3",
        "Deep": {"Whole": "true", "Parts": ["1.5", "a"]},
    }
    assert (created["ResourceType"], created["LogicalResourceId"]) == ("Custom::Thing", "Thing")
    assert created["StackId"] == updated["StackId"] == deleted["StackId"] == stack["StackId"]
    assert "PhysicalResourceId" not in created
    assert (updated["PhysicalResourceId"], updated["RequestType"]) == ("thing-1", "Update")
    assert (updated["OldResourceProperties"]["Size"], updated["ResourceProperties"]["Size"]) == ("3", "4")
    assert (deleted["PhysicalResourceId"], deleted["RequestType"]) == ("thing-1", "Delete")
    assert len({event["RequestId"] for event in function.events}) == 3


def test_another_physical_id_replaces_the_resource(services: Services, function: Function) -> None:
    function.answer = lambda event: {"PhysicalResourceId": f"thing-{event['ResourceProperties']['Size']}"}
    with deployed_stack(services, "custom", template(Size=1)):
        update(services, "custom", template(Size=2))
        assert function.kinds() == ["Create", "Update", "Delete"]
        assert function.events[-1]["PhysicalResourceId"] == "thing-1"


@pytest.mark.parametrize(
    ("answer", "told"),
    [
        ({"Status": "FAILED", "Reason": "no room"}, "Message returned: no room"),
        ({"Status": "DONE"}, "Status must be SUCCESS or FAILED"),
        ({"RequestId": "another"}, "RequestId must be the request's"),
        ({"PhysicalResourceId": ""}, "Invalid PhysicalResourceId"),
        ({"PhysicalResourceId": "x" * 1025}, "Invalid PhysicalResourceId"),
        ({"Data": {"Text": "x" * 4096}}, "Response object is too long."),
    ],
)
def test_a_response_that_is_none_or_tells_a_failure_fails_the_stack(
    services: Services, function: Function, answer: Answer, told: str
) -> None:
    function.answer = lambda _: answer
    with deployed_stack(services, "custom", template()) as stack:
        assert stack["StackStatus"] == "ROLLBACK_COMPLETE"
        assert told in failure(services, "custom")


def test_without_a_response_the_stack_fails_when_the_time_is_over(services: Services, function: Function) -> None:
    function.answer = lambda _: None
    with deployed_stack(services, "custom", template(ServiceTimeout=1)) as stack:
        assert stack["StackStatus"] == "ROLLBACK_COMPLETE"
        assert "did not respond within 1 s" in failure(services, "custom")


def test_the_url_takes_no_content_type_and_no_other_signature(services: Services, function: Function) -> None:
    refused: list[int] = []

    def send(url: str, body: bytes) -> None:
        for wrong_url, content_type in ((url, "application/json"), (url.partition("?")[0], ""), (f"{url}x", "")):
            with pytest.raises(urllib.error.HTTPError) as error:
                put(wrong_url, body, content_type)
            refused.append(error.value.code)
        put(url, body)

    function.send = send
    with deployed_stack(services, "custom", template()) as stack:
        assert stack["StackStatus"] == "CREATE_COMPLETE"
        assert refused == [403, 403, 403]

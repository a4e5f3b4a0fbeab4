"""The ingest workflow's definition, run by the local cloud's interpreter, and the events of S3 that start it."""

from __future__ import annotations

import json
import threading
import time
from collections.abc import Iterator, Mapping
from typing import Any

import pytest
from aiohttp import web

from cicada.ingest.incoming.run_records import Batch
from cicada_local.functions import InvokeResult
from cicada_local.object_events import ObjectEvents
from cicada_local.rule_targets import RuleTargets
from tests.wire.ingest_machine import allowed_on, ingest_machine
from tests.wire.local_services import ACCOUNT_ID, Services, deployed_stack, running_services

BUCKET = "ingest-workflow-tests"
ALLOWED = allowed_on(BUCKET)


@pytest.fixture(scope="module")
def services() -> Iterator[Services]:
    with running_services() as running:
        yield running


@pytest.fixture(scope="module")
def machine_arn(services: Services) -> Iterator[str]:
    with ingest_machine(services, BUCKET) as arn:
        yield arn


class Workers:
    """The workflow's functions: batches are prepared as ``fails`` allows."""

    def __init__(self, services: Services, *batches: list[str], gone: int = 0, needed: bool = True) -> None:
        self.seen: list[list[str]] = []
        self.finished: list[dict[str, Any]] = []
        self.planned: list[dict[str, Any]] = []
        self.errors: dict[str, list[str]] = {}
        """By document: the errors that the batches with it end with, one after another."""
        self.told: list[dict[str, Any]] = []
        """What finishing tells, one time after another."""
        self.most_at_once = 0
        self._at_once = 0
        self._lock = threading.Lock()
        self._batches = batches
        self._summary = {
            "collection": "shelf",
            "run": "r1",
            "documents": sum(map(len, batches)),
            "gone": gone,
            "batches": len(batches),
            "batchesKey": "ingests/shelf/r1/batches.json",
            "needed": needed,
        }
        items = [
            Batch.model_validate(
                {
                    "collection": "shelf",
                    "run": "r1",
                    "number": number,
                    "items": [
                        {"item": {"collection": "shelf", "source": name, "key": name, "size": 1}, "stamp": "1"}
                        for name in names
                    ],
                }
            ).model_dump(by_alias=True)
            for number, names in enumerate(batches)
        ]
        services.client("s3").put_object(Bucket=BUCKET, Key=self._summary["batchesKey"], Body=json.dumps(items))
        services.invoke = self.invoke

    def invoke(self, name: str, event: Any) -> Any:
        if name == "plan":
            self.planned.append(event)
            return self._summary
        if name == "commit":
            self.finished.append(event)
            run = {"collection": "shelf", "run": "r1", "more": False, "again": False, "waitS": 0}
            return {**run, **(self.told.pop(0) if self.told else {})}
        batch = Batch.model_validate(event)
        sources = [planned.item.source for planned in batch.items]
        with self._lock:
            self._at_once += 1
            self.most_at_once = max(self.most_at_once, self._at_once)
            self.seen.append(sources)
            error = next((self.errors[one].pop(0) for one in sources if self.errors.get(one)), None)
            self._at_once -= 1
        if error is None:
            return web.json_response(None)
        body = {"errorType": error, "errorMessage": "why"}
        return web.json_response(body, headers={"X-Amz-Function-Error": "Unhandled"})


def run(services: Services, arn: str, name: str) -> str:
    client = services.client("stepfunctions")
    told = {"collection": "shelf", "run": "r1", "startAt": "2026-01-01T00:00:00Z"}
    execution = client.start_execution(stateMachineArn=arn, name=name, input=json.dumps(told))["executionArn"]
    deadline = time.monotonic() + 60
    while time.monotonic() < deadline:
        status = str(client.describe_execution(executionArn=execution)["status"])
        if status != "RUNNING":
            return status
        time.sleep(0.05)
    raise AssertionError("the execution did not end")


def test_every_batch_is_prepared_and_then_the_run_is_finished(services: Services, machine_arn: str) -> None:
    workers = Workers(services, ["a", "b"], ["c"], ["d"])
    assert run(services, machine_arn, "all") == "SUCCEEDED"
    assert sorted(workers.seen) == [["a", "b"], ["c"], ["d"]]
    assert workers.planned == workers.finished == [{"collection": "shelf", "run": "r1"}]


def test_a_run_without_anything_to_do_ends_at_once(services: Services, machine_arn: str) -> None:
    workers = Workers(services, needed=False)
    assert run(services, machine_arn, "nothing") == "SUCCEEDED"
    assert workers.seen == []
    assert workers.finished == []


def test_a_run_that_only_deletes_prepares_nothing(services: Services, machine_arn: str) -> None:
    workers = Workers(services, gone=2)
    assert run(services, machine_arn, "deletes") == "SUCCEEDED"
    assert workers.seen == []
    assert len(workers.finished) == 1


@pytest.mark.parametrize("action", ["states:StartExecution", "s3:GetObject"])
def test_batches_need_the_roles_right_to_run_and_to_read_them(
    services: Services, machine_arn: str, action: str
) -> None:
    workers = Workers(services, ["a"])
    allow(services, {name: arn for name, arn in ALLOWED.items() if name != action})
    try:
        run(services, machine_arn, f"without-{action.split(':')[1]}")
    finally:
        allow(services, ALLOWED)
    assert len(workers.planned) == 1
    assert workers.seen == []


def allow(services: Services, allowed: Mapping[str, str | list[str]]) -> None:
    statements = [{"Effect": "Allow", "Action": action, "Resource": arn} for action, arn in allowed.items()]
    document = json.dumps({"Version": "2012-10-17", "Statement": statements})
    services.client("iam").put_role_policy(RoleName="workflow", PolicyName="allowed", PolicyDocument=document)


def test_a_batch_whose_worker_is_lost_is_prepared_again(services: Services, machine_arn: str) -> None:
    workers = Workers(services, ["a", "b"])
    workers.errors = {"a": ["Sandbox.Timedout", "Runtime.ExitError"]}
    assert run(services, machine_arn, "lost") == "SUCCEEDED"
    assert workers.seen == [["a", "b"]] * 3


def test_a_batch_that_was_given_back_goes_on(services: Services, machine_arn: str) -> None:
    workers = Workers(services, ["a", "b"])
    workers.errors = {"a": ["OutOfTime"] * 6}
    assert run(services, machine_arn, "given-back") == "SUCCEEDED"
    assert workers.seen == [["a", "b"]] * 7


def test_one_document_that_brings_its_function_down_takes_no_other_with_it(
    services: Services, machine_arn: str
) -> None:
    workers = Workers(services, ["a", "poison", "b"], ["c"])
    workers.errors = {"poison": ["Runtime.OutOfMemory"] * 100}
    assert run(services, machine_arn, "poison") == "SUCCEEDED"
    alone = [sources for sources in workers.seen if len(sources) == 1]
    assert {"a", "b", "c", "poison"} == {source for (source,) in alone}
    assert alone.count(["a"]) == alone.count(["b"]) == 1
    assert len(workers.finished) == 1


def test_what_is_left_to_commit_is_committed_by_further_steps(services: Services, machine_arn: str) -> None:
    workers = Workers(services, ["a"])
    workers.told = [{"more": True}, {"more": True}, {}]
    assert run(services, machine_arn, "more") == "SUCCEEDED"
    assert (len(workers.planned), len(workers.seen), len(workers.finished)) == (1, 1, 3)


def test_a_run_that_is_to_look_again_plans_again(services: Services, machine_arn: str) -> None:
    workers = Workers(services, ["a"])
    workers.told = [{"again": True, "waitS": 1}, {}]
    assert run(services, machine_arn, "again") == "SUCCEEDED"
    assert (len(workers.planned), len(workers.seen), len(workers.finished)) == (2, 2, 2)


def test_a_run_whose_commit_keeps_failing_fails(services: Services, machine_arn: str) -> None:
    workers = Workers(services, ["a"])

    def invoke(name: str, event: Any) -> Any:
        if name != "commit":
            return workers.invoke(name, event)
        workers.finished.append(event)
        body = {"errorType": "IndexUnavailable", "errorMessage": "why"}
        return web.json_response(body, headers={"X-Amz-Function-Error": "Unhandled"})

    services.invoke = invoke
    assert run(services, machine_arn, "fails") == "FAILED"
    assert len(workers.finished) == 5


# --- events of S3 ---


class Invoked:
    """Notes the invocations."""

    def __init__(self) -> None:
        self.events: list[tuple[str, dict[str, Any]]] = []

    async def invoke(self, name_or_arn: str, payload: bytes, *, invocation_type: str) -> InvokeResult:
        assert invocation_type == "Event"
        self.events.append((name_or_arn, json.loads(payload)))
        return InvokeResult(202, b"")

    def wait_for(self, count: int) -> list[dict[str, Any]]:
        deadline = time.monotonic() + 10
        while len(self.events) < count and time.monotonic() < deadline:
            time.sleep(0.01)
        return [event for _, event in self.events]


@pytest.fixture
def invoked(services: Services) -> Iterator[Invoked]:
    """A bucket whose events below ``incoming/`` have a function invoked."""
    told = Invoked()
    services.answered = ObjectEvents(RuleTargets(told.invoke)).answered
    pattern = {
        "source": ["aws.s3"],
        "detail-type": ["Object Created", "Object Deleted"],
        "detail": {"bucket": {"name": ["uploads-tests"]}, "object": {"key": [{"prefix": "incoming/"}]}},
    }
    template = {
        "Resources": {
            "Bucket": {
                "Type": "AWS::S3::Bucket",
                "Properties": {
                    "BucketName": "uploads-tests",
                    "VersioningConfiguration": {"Status": "Enabled"},
                    "NotificationConfiguration": {"EventBridgeConfiguration": {"EventBridgeEnabled": True}},
                },
            },
            "Rule": {
                "Type": "AWS::Events::Rule",
                "Properties": {
                    "EventPattern": pattern,
                    "State": "ENABLED",
                    "Targets": [{"Id": "t", "Arn": f"arn:aws:lambda:us-east-1:{ACCOUNT_ID}:function:start"}],
                },
            },
        }
    }
    with deployed_stack(services, "uploads", template):
        yield told
        services.answered = lambda *_: None
        s3 = services.client("s3")
        listed = s3.list_object_versions(Bucket="uploads-tests")
        for version in (*listed.get("Versions", ()), *listed.get("DeleteMarkers", ())):
            s3.delete_object(Bucket="uploads-tests", Key=version["Key"], VersionId=version["VersionId"])


def test_uploads_and_deletions_are_told_as_aws_tells_them(services: Services, invoked: Invoked) -> None:
    s3 = services.client("s3")
    s3.put_object(Bucket="uploads-tests", Key="incoming/shelf/a b.txt", Body=b"words")
    s3.delete_object(Bucket="uploads-tests", Key="incoming/shelf/a b.txt")
    created, deleted = invoked.wait_for(2)
    assert created["detail-type"] == "Object Created"
    assert created["detail"]["bucket"] == {"name": "uploads-tests"}
    assert created["detail"]["reason"] == "PutObject"
    assert created["detail"]["object"]["key"] == "incoming/shelf/a b.txt"
    assert created["detail"]["object"]["size"] == 5
    assert deleted["detail-type"] == "Object Deleted"
    assert deleted["detail"]["deletion-type"] == "Delete Marker Created"
    assert created["detail"]["object"]["sequencer"] < deleted["detail"]["object"]["sequencer"]


def test_what_no_rule_asks_for_is_told_to_nobody(services: Services, invoked: Invoked) -> None:
    s3 = services.client("s3")
    s3.put_object(Bucket="uploads-tests", Key="index/x", Body=b"x")
    s3.put_object(Bucket="uploads-tests", Key="incoming/shelf/last", Body=b"x")
    (event,) = invoked.wait_for(1)
    assert event["detail"]["object"]["key"] == "incoming/shelf/last"


def test_an_upload_in_parts_is_told_once_when_it_is_whole(services: Services, invoked: Invoked) -> None:
    s3 = services.client("s3")
    place = {"Bucket": "uploads-tests", "Key": "incoming/shelf/large"}
    upload = s3.create_multipart_upload(**place)["UploadId"]
    part = s3.upload_part(**place, UploadId=upload, PartNumber=1, Body=b"x")
    parts = {"Parts": [{"PartNumber": 1, "ETag": part["ETag"]}]}
    s3.complete_multipart_upload(**place, UploadId=upload, MultipartUpload=parts)
    events = invoked.wait_for(1)
    assert [event["detail"]["reason"] for event in events] == ["CompleteMultipartUpload"]


def test_several_deletions_in_one_call_are_told_one_by_one(services: Services, invoked: Invoked) -> None:
    keys = [{"Key": f"incoming/shelf/{name}"} for name in ("one", "two")]
    services.client("s3").delete_objects(Bucket="uploads-tests", Delete={"Objects": keys})
    events = invoked.wait_for(2)
    assert {event["detail"]["object"]["key"] for event in events} == {"incoming/shelf/one", "incoming/shelf/two"}


def test_a_call_that_s3_refuses_is_told_to_nobody(services: Services, invoked: Invoked) -> None:
    s3 = services.client("s3")
    s3.put_object(Bucket="uploads-tests", Key="incoming/shelf/once", Body=b"x")
    with pytest.raises(s3.exceptions.ClientError):
        s3.put_object(Bucket="uploads-tests", Key="incoming/shelf/once", Body=b"y", IfNoneMatch="*")
    s3.put_object(Bucket="uploads-tests", Key="incoming/shelf/last", Body=b"x")
    assert [event["detail"]["object"]["key"] for event in invoked.wait_for(2)] == [
        "incoming/shelf/once",
        "incoming/shelf/last",
    ]

"""Posts to sockets by API Gateway's management API."""

from __future__ import annotations

import boto3
import pytest
from botocore.exceptions import ConnectTimeoutError
from botocore.stub import Stubber

from cicada.delivery.connections import POST_CONFIG, ApiGatewayConnections
from cicada.delivery.ports import ConnectionBusy, ConnectionGone


@pytest.fixture
def client():
    return boto3.client(
        "apigatewaymanagementapi",
        region_name="us-east-1",
        endpoint_url="http://localhost:1",
        aws_access_key_id="test",
        aws_secret_access_key="test",
        config=POST_CONFIG,
    )


def test_a_frame_is_posted_as_utf8(client):
    with Stubber(client) as stub:
        stub.add_response("post_to_connection", {}, {"ConnectionId": "c1", "Data": '{"content":"あ"}'.encode()})
        ApiGatewayConnections(client).post("c1", '{"content":"あ"}')
        stub.assert_no_pending_responses()


@pytest.mark.parametrize(
    ("status", "code", "raised"),
    [
        (410, "GoneException", ConnectionGone),
        (429, "LimitExceededException", ConnectionBusy),
        (400, "BadRequestException", ConnectionBusy),
        (403, "ForbiddenException", ConnectionBusy),
        (413, "PayloadTooLargeException", ConnectionBusy),
        (500, "InternalServerError", ConnectionBusy),
    ],
)
def test_a_refusal_tells_a_closed_connection_from_one_that_takes_nothing_now(client, caplog, status, code, raised):
    rejected = []
    with Stubber(client) as stub:
        stub.add_client_error("post_to_connection", code, http_status_code=status)
        with pytest.raises(raised):
            ApiGatewayConnections(client, on_rejected=lambda: rejected.append(status)).post("c1", "{}")
    told = [line.dependency for line in caplog.records if getattr(line, "step", "") == "fault"]
    assert (rejected, told) == (([status], ["connections"]) if status in (400, 403) else ([], []))


def test_no_answer_is_no_closed_connection():
    class Silent:
        def post_to_connection(self, **call):
            raise ConnectTimeoutError(endpoint_url="http://localhost")

    with pytest.raises(ConnectionBusy):
        ApiGatewayConnections(Silent()).post("c1", "{}")

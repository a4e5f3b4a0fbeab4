"""The local gateway's callback API, called by boto3, and its faults."""

import http.client
import json
from collections.abc import Callable
from datetime import UTC, datetime

import pytest
from botocore.exceptions import ClientError, HTTPClientError

from cicada_local.gateway import (
    Limits,
)
from tests.wire.gateway_house import House, end_of, eventually, raw_upgrade, two_of

# --- the callback API ---


def test_posts_arrive_in_order(house: House) -> None:
    with house.open() as client:
        for number in range(50):
            house.post(house.connection_id, f"nr {number} ü")
        assert [client.recv() for _ in range(50)] == [f"nr {number} ü" for number in range(50)]


def test_a_post_that_is_no_text_arrives_as_binary(house: House) -> None:
    with house.open() as client:
        house.post(house.connection_id, b"\x00\xff")
        assert client.recv() == b"\x00\xff"


def test_a_closed_connection_is_gone(house: House) -> None:
    with house.open():
        connection_id = house.connection_id
    house.wait_for_event("disconnect")
    with pytest.raises(house.client.exceptions.GoneException) as caught:
        house.post(connection_id, "anybody?")
    assert caught.value.response["ResponseMetadata"]["HTTPStatusCode"] == 410


def test_a_connection_that_never_was_is_gone(house: House) -> None:
    with pytest.raises(house.client.exceptions.GoneException):
        house.post("L0SM9cOFvHcCIhw=", "anybody?")


def test_a_connection_of_another_api_is_gone(house: House) -> None:
    with house.open():
        other = house.callback_client("other/dev")
        with pytest.raises(other.exceptions.GoneException):
            other.post_to_connection(ConnectionId=house.connection_id, Data=b"wrong door")


@pytest.mark.parametrize("connection_id", ["nobody", "L0SM9cOFvHcCIhw", "x" * 64, "L0SM9cOFvHcC Ihw="])
def test_a_malformed_connection_id_is_a_bad_request(house: House, connection_id: str) -> None:
    with pytest.raises(ClientError) as caught:
        house.post(connection_id, "anybody?")
    assert caught.value.response["Error"]["Code"] == "BadRequestException"
    assert caught.value.response["ResponseMetadata"]["HTTPStatusCode"] == 400


def test_a_post_of_128_kib_is_taken_and_a_larger_one_is_refused(house: House) -> None:
    with house.open(max_size=None) as client:
        house.post(house.connection_id, b"x" * 131_072)
        assert len(client.recv()) == 131_072
        with pytest.raises(house.client.exceptions.PayloadTooLargeException) as caught:
            house.post(house.connection_id, b"x" * 131_073)
        assert caught.value.response["ResponseMetadata"]["HTTPStatusCode"] == 413


def test_a_post_to_an_unknown_stage_is_forbidden(house: House) -> None:
    stranger = house.callback_client("a1b2c3/prod")
    with pytest.raises(stranger.exceptions.ForbiddenException):
        stranger.post_to_connection(ConnectionId="L0SM9cOFvHcCIhw=", Data=b"x")


def test_a_post_without_a_signature_is_refused(house: House) -> None:
    connection = http.client.HTTPConnection("127.0.0.1", house.port)
    connection.request("POST", "/_ws/a1b2c3/dev/@connections/L0SM9cOFvHcCIhw%3D", b"x")
    response = connection.getresponse()
    assert response.status == 403
    assert response.headers["x-amzn-ErrorType"] == "MissingAuthenticationTokenException"
    assert set(json.loads(response.read())) == {"message", "connectionId", "requestId"}
    connection.close()


def test_a_client_that_does_not_read_makes_posts_fail_until_it_does(build: Callable[..., House]) -> None:
    house = build(Limits(send_buffer_bytes=200_000))
    slow = raw_upgrade(house, receive_buffer_bytes=4096)
    connection_id = eventually(house.control.connections)[0].connection_id
    posted: list[bytes] = []

    def post_on() -> None:
        while True:
            house.post(connection_id, b"x" * 30_000)
            posted.append(b"x" * 30_000)

    with pytest.raises(house.client.exceptions.LimitExceededException) as caught:
        post_on()
    assert caught.value.response["ResponseMetadata"]["HTTPStatusCode"] == 429
    assert house.control.connections()[0].unsent_bytes <= 200_000
    received = 0
    while received < 30_000 * len(posted):
        received += len(slow.recv(65_536))
    eventually(lambda: house.control.connections()[0].unsent_bytes == 0)
    house.post(connection_id, b"y" * 30_000)
    slow.close()


def test_a_connection_is_described(house: House) -> None:
    before = datetime.now(UTC).replace(microsecond=0)
    with house.open(user_agent_header="test/1"):
        house.post(house.connection_id, "hello")
        described = house.client.get_connection(ConnectionId=house.connection_id)
    assert before <= described["ConnectedAt"] <= described["LastActiveAt"] <= datetime.now(UTC)
    assert described["Identity"] == {"SourceIp": "127.0.0.1", "UserAgent": "test/1"}


def test_a_connection_can_be_deleted(house: House) -> None:
    with house.open() as client:
        connection_id = house.connection_id
        answer = house.client.delete_connection(ConnectionId=connection_id)
        assert answer["ResponseMetadata"]["HTTPStatusCode"] == 204
        with pytest.raises(house.client.exceptions.GoneException):
            house.client.get_connection(ConnectionId=connection_id)
        closed = end_of(client)
    assert closed is not None
    assert closed.code == 1000
    assert house.wait_for_event("disconnect")["requestContext"]["disconnectStatusCode"] == 1000


# --- faults and control ---


def test_the_gone_fault_can_be_limited_to_one_connection(house: House) -> None:
    with house.open() as one, house.open() as two:
        first, second = (info.connection_id for info in eventually(lambda: two_of(house)))
        house.faults.arm("gateway.gone", connection=first)
        with pytest.raises(house.client.exceptions.GoneException):
            house.post(first, "lost")
        house.post(second, "arrives")
        assert two.recv() == "arrives"
        house.faults.disarm()
        house.post(first, "arrives too")
        assert one.recv() == "arrives too"


def test_the_busy_fault(house: House) -> None:
    with house.open() as client:
        house.faults.arm("gateway.busy", times=1)
        with pytest.raises(house.client.exceptions.LimitExceededException):
            house.post(house.connection_id, "lost")
        house.post(house.connection_id, "arrives")
        assert client.recv() == "arrives"


def test_the_slow_fault_outlasts_a_callers_patience(house: House) -> None:
    impatient = house.callback_client(read_timeout=0.1)
    with house.open():
        house.faults.arm("gateway.slow", times=1, delay_ms=500)
        with pytest.raises(HTTPClientError):
            impatient.post_to_connection(ConnectionId=house.connection_id, Data=b"x")


def test_the_lost_acknowledgement_fault_delivers_and_does_not_say_so(house: House) -> None:
    with house.open() as client:
        house.faults.arm("gateway.lost_ack", times=1)
        with pytest.raises(HTTPClientError):
            house.post(house.connection_id, "delivered all the same")
        assert client.recv() == "delivered all the same"


def test_a_caller_that_retries_after_a_lost_acknowledgement_delivers_twice(house: House) -> None:
    retrying = house.callback_client(retries={"total_max_attempts": 2})
    with house.open() as client:
        house.faults.arm("gateway.lost_ack", times=1)
        retrying.post_to_connection(ConnectionId=house.connection_id, Data=b"again")
        assert [client.recv(), client.recv()] == ["again", "again"]


@pytest.mark.parametrize("after", [1, 3])
def test_the_drop_fault_cuts_a_connection_after_so_many_posts(house: House, after: int) -> None:
    house.faults.arm("gateway.drop", times=1, after=after)
    received: list[str] = []
    with house.open() as client:
        connection_id = house.connection_id
        for number in range(after):
            house.post(connection_id, str(number))
        assert end_of(client, received) is None, "there was no close frame"
    assert received == [str(number) for number in range(after)]
    assert house.wait_for_event("disconnect")["requestContext"]["disconnectStatusCode"] == 1006
    with pytest.raises(house.client.exceptions.GoneException):
        house.post(connection_id, "too late")
    with house.open() as client:
        for number in range(2 * after):
            house.post(house.connection_id, str(number))
        assert [client.recv() for _ in range(2 * after)] == [str(number) for number in range(2 * after)]


def test_connections_can_be_listed_and_dropped(house: House) -> None:
    with house.open() as client, house.open():
        first, second = eventually(lambda: two_of(house))
        house.post(first.connection_id, "hello")
        assert client.recv() == "hello"
        assert house.control.connections()[0].posts == 1
        assert (first.api_id, first.stage) == ("a1b2c3", "dev")
        assert house.drop(first.connection_id)
        assert end_of(client) is None, "there was no close frame"
        assert [info.connection_id for info in house.control.connections()] == [second.connection_id]
        assert not house.drop(first.connection_id)

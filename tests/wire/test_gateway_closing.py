"""How connections to the local WebSocket gateway end."""

import socket
import time
from collections.abc import Callable

import pytest
from websockets.exceptions import ConnectionClosed
from websockets.frames import Close
from websockets.sync.client import ClientConnection

from cicada_local.gateway import (
    Limits,
)
from tests.wire.gateway_house import House, echo, end_of, eventually, failing, raw_upgrade, refused


def test_a_client_that_closes_is_disconnected_with_its_code(house: House) -> None:
    with house.open() as client:
        connection_id = house.connection_id
        client.close(4001, "enough")
    event = house.wait_for_event("disconnect")
    context = event["requestContext"]
    assert (context["routeKey"], context["eventType"]) == ("$disconnect", "DISCONNECT")
    assert context["connectionId"] == connection_id
    assert (context["disconnectStatusCode"], context["disconnectReason"]) == (4001, "enough")
    assert event["isBase64Encoded"] is False
    assert house.control.connections() == []


def test_a_close_without_a_status_is_1005(house: House) -> None:
    with house.open() as client:
        client.socket.sendall(b"\x88\x80\x00\x00\x00\x00")  # an empty close frame, masked with zeros
        context = house.wait_for_event("disconnect")["requestContext"]
    assert context["disconnectStatusCode"] == 1005
    assert context["disconnectReason"] == "Client-side close frame status not set"


def test_a_lost_connection_is_1006(house: House) -> None:
    with house.open() as client:
        client.socket.shutdown(socket.SHUT_RDWR)
        context = house.wait_for_event("disconnect")["requestContext"]
    assert context["disconnectStatusCode"] == 1006


def test_a_disconnect_function_that_fails_harms_nobody(house: House) -> None:
    house.functions["disconnect"] = failing
    with house.open():
        pass
    house.wait_for_event("disconnect")
    with house.open():
        assert eventually(house.control.connections)


def test_an_idle_connection_is_closed_with_1001_whatever_it_pings(build: Callable[..., House]) -> None:
    house = build(Limits(idle_s=0.3))

    def ping_on(client: ClientConnection) -> None:
        while True:
            client.ping()
            time.sleep(0.02)

    with house.open() as client:
        with pytest.raises(ConnectionClosed):
            ping_on(client)
        assert end_of(client) == Close(1001, "Going away")
    assert house.wait_for_event("disconnect")["requestContext"]["disconnectStatusCode"] == 1001


@pytest.mark.parametrize("direction", ["in", "out"])
def test_a_message_in_either_direction_keeps_a_connection(build: Callable[..., House], direction: str) -> None:
    idle_s = 1.0
    house = build(Limits(idle_s=idle_s))

    def pause_before_the_close_s() -> float | None:
        """Talk for longer than a connection may be idle; how long nothing was said before it closed, if it did."""
        with house.open() as client:
            connection_id = house.connection_id
            last = begun = time.monotonic()
            try:
                while last < begun + 1.5 * idle_s:
                    if direction == "in":
                        client.send("here")
                    else:
                        house.post(connection_id, "there")
                        client.recv()
                    time.sleep(0.05)
                    last = time.monotonic()
                assert house.connection_id == connection_id
            except (ConnectionClosed, house.client.exceptions.GoneException):
                return time.monotonic() - last
        return None

    while (pause_s := pause_before_the_close_s()) is not None:
        assert pause_s >= 0.8 * idle_s  # the machine stood still for so long


def test_a_connection_ends_at_its_age_however_busy(build: Callable[..., House]) -> None:
    house = build(Limits(lifetime_s=0.3))
    house.functions["message"] = echo

    def talk_on(client: ClientConnection) -> None:
        while True:
            client.send("hello")
            client.recv()

    with house.open() as client:
        with pytest.raises(ConnectionClosed):
            talk_on(client)
        assert end_of(client) == Close(1001, "Going away")


def test_a_client_that_ignores_the_close_is_cut(build: Callable[..., House]) -> None:
    house = build(Limits(idle_s=0.05))
    deaf = raw_upgrade(house)
    assert deaf.recv(4096).startswith(b"HTTP/1.1 101")
    assert house.wait_for_event("disconnect")["requestContext"]["disconnectStatusCode"] == 1001
    deaf.close()


def test_a_gateway_that_closes_tells_its_clients(build: Callable[..., House]) -> None:
    house = build()
    with house.open() as client:
        house.call(house.gateway.close())
        closed = end_of(client)
    assert closed is not None
    assert closed.code == 1001
    assert refused(house)[0] == 403

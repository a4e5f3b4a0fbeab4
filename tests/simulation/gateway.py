"""API Gateway's twin: sockets, the management client under the production adapter, and the way of a client's frame."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Protocol

from botocore.exceptions import ClientError, ReadTimeoutError

from cicada.protocol.events import GatewayFault
from tests.simulation.faults import Faults
from tests.simulation.scheduler import Process, Scheduler

TOKEN_LIFE_S = 3600.0
SHORT_TOKEN_LIFE_S = 40.0
"""The most that is left of a token that expires in the middle of an answer."""
_NOT_RUN_SHARE = 0.5
"""Of the frames that the gateway fails with: for these the function does not run. For the others its reply is lost."""


GROUPS = {"mara": "readers,users", "tess": "users"}
"""Of the people's tokens."""


class Device(Protocol):
    """What sits at the far end of a socket."""

    def receive(self, frame: str) -> None:
        """Take a frame. It must not wait."""
        ...

    def closed(self, socket: Socket) -> None:
        """The socket is known to be closed."""
        ...


class Socket:
    """One connection."""

    __slots__ = ("dead_until", "device", "expires_at", "id", "open", "owner", "stuck_until")

    def __init__(self, socket_id: str, owner: str, device: Device, expires_at: int) -> None:
        self.id = socket_id
        self.owner = owner
        self.device = device
        self.expires_at = expires_at
        """When its token expires, in epoch seconds."""
        self.open = True
        self.dead_until = -1.0
        """Until then the gateway takes frames for a reader that is gone."""
        self.stuck_until = -1.0


class Gateway:
    """Sockets by id. ``shown`` hears of every frame that reaches a device, ``sent`` of every one as it sets out."""

    def __init__(
        self,
        scheduler: Scheduler,
        faults: Faults,
        world: Process,
        *,
        handle: Callable[[dict[str, Any], Callable[[str], None]], None],
        shown: Callable[[Socket, str], None],
        sent: Callable[[Socket, str], None],
        now_s: Callable[[], float],
    ) -> None:
        """``handle`` runs the message processor on an event, and calls back with its reply."""
        self.sockets: dict[str, Socket] = {}
        self._scheduler = scheduler
        self._faults = faults
        self._world = world
        self._handle = handle
        self._shown = shown
        self._sent = sent
        self._now_s = now_s
        self._frames = 0

    # --- for clients ---

    def connect(self, owner: str, device: Device) -> Socket:
        """Open a socket. ``owner``: as :attr:`cicada.identity.Caller.owner`, a tenant and a subject."""
        short = self._faults.drawn("token_expired")
        life_s = self._faults.between(0, SHORT_TOKEN_LIFE_S) if short else TOKEN_LIFE_S
        socket = Socket(f"c{len(self.sockets) + 1}", owner, device, int(self._now_s() + life_s))
        self.sockets[socket.id] = socket
        if short:
            self._scheduler.call_at(self._scheduler.now + life_s, lambda: self._expired(socket))
        return socket

    def _expired(self, socket: Socket) -> None:
        if socket.open:
            self._faults.note("token_expired")

    def close(self, socket: Socket) -> None:
        """Close a socket from the client's side; it may take the gateway a while to know."""
        if socket.open and self._faults.hit("socket_half_open"):
            socket.dead_until = self._scheduler.now + self._faults.between(1, 60)
        socket.open = False

    def send(self, socket: Socket, body: str) -> None:
        """A client's frame on its way."""
        self._frames += 1
        frame_id = f"f{self._frames}"
        faults = self._faults
        if not socket.open or faults.hit("frame_lost"):
            return
        fails = faults.hit("gateway_error")
        if fails:
            self._scheduler.call_at(self._scheduler.now + 0.01, lambda: self._deliver_own(socket, frame_id))
            if faults.between(0, 1) < _NOT_RUN_SHARE:
                return
        copies = 2 if faults.hit("frame_repeated") else 1
        for copy in range(copies):
            delay_s = 0.01 + (faults.between(0, 8) if copy else 0.0)
            self._scheduler.call_at(
                self._scheduler.now + delay_s,
                lambda: self._handle(self._event(socket, frame_id, body), reply),
            )

        def reply(frame: str) -> None:
            self._sent(socket, frame)
            if not fails and not faults.hit("reply_lost"):
                self._deliver(socket, frame)

    def _event(self, socket: Socket, frame_id: str, body: str) -> dict[str, Any]:
        tenant, subject = socket.owner.split("/")
        identity = {
            "subject": subject,
            "expires_at": str(socket.expires_at),
            "tenant": tenant,
            "groups": GROUPS.get(subject, ""),
        }
        context = {"connectionId": socket.id, "messageId": frame_id, "requestId": frame_id, "authorizer": identity}
        return {"requestContext": context, "body": body}

    # --- the management client ---

    def post_to_connection(self, *, ConnectionId: str, Data: bytes) -> None:  # noqa: N803
        """See boto3."""
        scheduler, faults = self._scheduler, self._faults
        socket = self.sockets[ConnectionId]
        self._sent(socket, Data.decode())
        scheduler.sleep(0.002 + 0.01 * scheduler.random())
        if not faults.off:
            self._fail(socket)
        if not socket.open:
            if socket.dead_until > scheduler.now:
                faults.note("socket_half_open")
                return
            raise _refusal("GoneException", 410)
        self._deliver(socket, Data.decode())
        if faults.hit("post_ack_lost"):
            scheduler.sleep(1.5)
            raise ReadTimeoutError(endpoint_url="gateway")
        scheduler.sleep(0.002 + 0.004 * scheduler.random())

    def _fail(self, socket: Socket) -> None:
        scheduler, faults = self._scheduler, self._faults
        if socket.open and faults.hit("socket_dropped"):
            socket.open = False
            scheduler.call_at(scheduler.now + faults.between(0, 20), lambda: socket.device.closed(socket))
        if faults.hit("socket_stuck"):
            socket.stuck_until = scheduler.now + faults.between(0.5, 20)
        if socket.open and socket.stuck_until > scheduler.now:
            faults.note("socket_stuck")
            raise _refusal("LimitExceededException", 429)
        if faults.hit("post_throttled"):
            raise _refusal("LimitExceededException", 429)
        if faults.hit("post_timed_out"):
            scheduler.sleep(1.5)
            raise ReadTimeoutError(endpoint_url="gateway")
        if faults.hit("post_slow"):
            scheduler.sleep(faults.between(0.1, 1.4))

    def _deliver_own(self, socket: Socket, frame_id: str) -> None:
        """An error of the gateway's own, which names no request."""
        if socket.open:
            fault = GatewayFault(message="Internal server error", connection_id=socket.id, request_id=frame_id)
            socket.device.receive(fault.model_dump_json(by_alias=True))

    def _deliver(self, socket: Socket, frame: str) -> None:
        if socket.open:
            self._shown(socket, frame)
            socket.device.receive(frame)


def _refusal(code: str, status: int) -> ClientError:
    return ClientError(
        {"Error": {"Code": code, "Message": ""}, "ResponseMetadata": {"HTTPStatusCode": status}}, "PostToConnection"
    )

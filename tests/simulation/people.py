"""The askers: devices that connect, drop, resume, cancel and ask again, and a stranger who tries another's request."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

from cicada.errors import AnswerBlocked, Unauthorized
from cicada.protocol.events import TERMINAL_TYPES
from tests.simulation.faults import Faults
from tests.simulation.gateway import Gateway, Socket
from tests.simulation.judge import Judge
from tests.simulation.records import Key
from tests.simulation.scheduler import Process, Scheduler, Task

PATIENCE_S = 8.0
"""Without a word for so long, a device asks or resumes."""
LEAST_PAUSE_S = 1.0
"""Between two resumes, where something is known to be missing."""
LONGEST_PATIENCE_S = 60.0
"""Its patience doubles up to this."""
FIRST_RESEND_S = 1.0
LONGEST_RESEND_S = 20.0
"""Bounds of the pause after an error of the gateway's own, which doubles with each."""
FINAL_REFUSALS = frozenset({"request_conflict", "request_expired", "invalid_message", "limit_reached"})


class Screen:
    """What DESIGN asks of a client: apply each seq once and in order, drop what it has, drop text at a fallback and a
    blocked end."""

    def __init__(self) -> None:
        self.seq = 0
        self.text = ""
        self.attempts: set[int] = set()
        self.withheld = False
        """No text is shown any more: what arrived early may have been withdrawn since."""
        self.chunks = 0
        """How many have been applied."""
        self.terminal: dict[str, Any] | None = None
        self._early: dict[int, dict[str, Any]] = {}

    @property
    def lacks(self) -> bool:
        """Whether something has arrived whose predecessors have not."""
        return bool(self._early)

    def take(self, event: dict[str, Any]) -> bool:
        """Take an event. Returns whether what is displayed has changed."""
        seq = event["seq"]
        if seq <= self.seq:
            return False
        self._early[seq] = event
        changed = False
        while self.seq + 1 in self._early:
            self.seq += 1
            self._apply(self._early.pop(self.seq))
            changed = True
        return changed

    def _apply(self, event: dict[str, Any]) -> None:
        kind = event["type"]
        self.withheld |= kind == "withdrawn" or event.get("code") == AnswerBlocked.code
        if kind == "fallback" or self.withheld:
            self.text, self.attempts = "", set()
        elif kind == "chunk":
            self.chunks += 1
            self.text += event["content"]
            self.attempts.add(event["attempt"])
        if kind in TERMINAL_TYPES:
            self.terminal = event


class Person:
    """One device that follows one request."""

    def __init__(
        self,
        name: str,
        key: Key,
        ask: dict[str, Any] | None,
        *,
        scheduler: Scheduler,
        faults: Faults,
        gateway: Gateway,
        judge: Judge,
        fails: Callable[[str], None],
        crashed: Callable[[str, BaseException], None],
        tell: Callable[[str, str], None],
    ) -> None:
        """``ask``: the frame that it asks with; a device without one only resumes."""
        self.name = name
        self.key = key
        self.screen = Screen()
        self.outcome: str | None = None
        """How its last resume ended."""
        self.refused: str | None = None
        """The code of the refusal that it gave up at."""
        self.gone = False
        """It will not come back."""
        self.follows: Person | None = None
        """The device that has asked, where that is another."""
        self._ask = ask
        self._scheduler = scheduler
        self._faults = faults
        self._gateway = gateway
        self._judge = judge
        self._fails = fails
        self._crashed = crashed
        self._tell = tell
        self._socket: Socket | None = None
        self._task: Task | None = None
        self._news = False
        self._spoken_at = 0.0
        self._gateway_errors = 0
        self._resumed_early = False
        """It has resumed before it knew of any event: an answer to that may come late."""

    @property
    def satisfied(self) -> bool:
        """Whether it has nothing more to wait for."""
        refused = self.refused is not None or (self.follows is not None and self.follows.refused is not None)
        return self.gone or refused or self.screen.terminal is not None

    # --- what arrives ---

    def receive(self, frame: str) -> None:
        """See :class:`tests.simulation.gateway.Device`."""
        event = json.loads(frame)
        self._tell(self.name, f"receives {frame[:160]}")
        if "type" not in event:
            self._send_again()
            return
        if event["seq"] == 0:
            self._reply(event)
        elif self.screen.take(event):
            self._judge.displays(self.key, self.screen.attempts, self.screen.text)
            if self.screen.terminal is not None:
                self._is_all_of_it(self.screen.terminal)
        self._wake()

    def closed(self, socket: Socket) -> None:
        """See :class:`tests.simulation.gateway.Device`."""
        if socket is self._socket:
            self._socket = None
            if self._faults.hit("never_resumed"):
                self.gone = True
            self._wake()

    def _reply(self, event: dict[str, Any]) -> None:
        kind = event["type"]
        if kind == "resumed":
            self.outcome = event["outcome"]
            if self.outcome == "unknown" and self.screen.seq > 0 and not self._resumed_early:
                self._fails("I3: a request whose events were shown is unknown to its own asker")
            if self.outcome == "finished" and self.screen.terminal is None and self.screen.seq < event["lastSeq"]:
                self._tell(self.name, "was told that it has all, and lacks some")
        elif kind == "error" and event["code"] == Unauthorized.code:
            self._renew()
        elif kind == "error" and event["code"] in FINAL_REFUSALS:
            self.refused = event["code"]

    def _renew(self) -> None:
        """The token has expired: leave this connection. The next one is opened with a fresh token."""
        socket, self._socket = self._socket, None
        if socket is not None:
            self._gateway.close(socket)

    def _is_all_of_it(self, terminal: dict[str, Any]) -> None:
        """I3: what is displayed at the end is what the log holds."""
        record = self._judge.records[self.key]
        if record.terminal is None or self.screen.seq != len(record.events):
            self._fails("I3: a client sees the end of a request that has not ended so")
        elif terminal["type"] == "complete":
            attempt = terminal["attempt"]
            if self.screen.text != record.text_of(attempt):
                self._fails(f"I3: {self.screen.text!r} is displayed, {record.text_of(attempt)!r} is stored")

    def _send_again(self) -> None:
        """An error of the gateway's own: it may be about what was said last, unless that is answered meanwhile."""
        seq, spoken_at = self.screen.seq, self._spoken_at
        self._gateway_errors += 1
        most_s = min(LONGEST_RESEND_S, FIRST_RESEND_S * 2 ** (self._gateway_errors - 1))

        def again() -> None:
            if not self.satisfied and (self.screen.seq, self._spoken_at) == (seq, spoken_at):
                self._speak()

        self._scheduler.call_at(self._scheduler.now + self._faults.between(most_s / 2, most_s), again)

    # --- what it does ---

    def start(self, world: Process, delay_s: float) -> None:
        """Begin, some time from now."""
        self._task = self._scheduler.spawn(world, self._live, self.name, delay_s=delay_s)

    def cancel(self) -> None:
        """Want no answer any more."""
        if not self.satisfied and self.screen.seq > 0:
            self._faults.note("cancelled")
            self._send({"action": "cancel", "requestId": self.key[1]})

    def ask_again(self) -> None:
        """Send the question once more, under the same id."""
        if self._ask is not None and not self.gone:
            self._faults.note("asked_again")
            self._send(self._ask)

    def try_out(self, action: str) -> None:
        """Act once on a request, and wait for nothing."""
        self.gone = True
        self._send({"action": action, "requestId": self.key[1]})

    def _live(self) -> None:
        try:
            self._follow()
        except Exception as error:
            self._crashed(self.name, error)
        self._task = None

    def _follow(self) -> None:
        patience_s = PATIENCE_S
        self._speak()
        while not self.satisfied:
            self._news = False
            seq = self.screen.seq
            self._scheduler.park(LEAST_PAUSE_S if self.screen.lacks else patience_s)
            if self.satisfied:
                break
            if self.screen.seq > seq:
                patience_s = PATIENCE_S
            since_spoken_s = self._scheduler.now - self._spoken_at
            if self._socket is None:
                self._scheduler.sleep(self._faults.between(LEAST_PAUSE_S, 5))
                self._speak()
            elif self._owes_a_word(since_spoken_s, patience_s):
                self._speak()
                patience_s = min(2 * patience_s, LONGEST_PATIENCE_S)

    def _owes_a_word(self, since_spoken_s: float, patience_s: float) -> bool:
        """Whether it is time to resume: something is missing, or nothing was heard for long."""
        if self.screen.lacks:
            return since_spoken_s >= LEAST_PAUSE_S
        return not self._news and since_spoken_s >= patience_s

    def _speak(self) -> None:
        """Ask, or resume where something is known of the request already."""
        self._spoken_at = self._scheduler.now
        if self._ask is not None and self.screen.seq == 0 and self.outcome in (None, "unknown"):
            self._send(self._ask)
        else:
            self._resumed_early |= self.screen.seq == 0
            self._send({"action": "resume", "requestId": self.key[1], "after": self.screen.seq})

    def _send(self, frame: dict[str, Any]) -> None:
        if self._socket is None or not self._socket.open:
            self._socket = self._gateway.connect(self.key[0], self)
        body = json.dumps(frame)
        self._tell(self.name, f"sends {body} over {self._socket.id}")
        self._gateway.send(self._socket, body)
        if self._faults.hit("socket_dropped"):
            socket = self._socket
            self._scheduler.call_at(self._scheduler.now + self._faults.between(0, 20), lambda: self._drop(socket))

    def _drop(self, socket: Socket) -> None:
        self._gateway.close(socket)
        self.closed(socket)

    def _wake(self) -> None:
        self._news = True
        if self._task is not None:
            self._scheduler.wake(self._task)

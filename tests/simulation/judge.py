"""Watches one world, and says which invariant does not hold. The numbers are those of the fault catalogue."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from typing import Any

from cicada.attempts.budgets import AGENT_CALLS_A_CALL, RequestBudget
from cicada.attempts.chain import MAX_CALLS_AN_ATTEMPT, MAX_MODEL_CALLS
from cicada.errors import Unauthorized
from cicada.protocol.events import TERMINAL_TYPES, event_frame
from cicada.semantic_cache.entries import unpack_body
from cicada.text.tokens import estimated_tokens
from tests.simulation.corpus import DIARY_LINES, Access, Index, passages
from tests.simulation.expressions import Item, plain
from tests.simulation.gateway import Socket
from tests.simulation.models import Call
from tests.simulation.records import Key, Record
from tests.simulation.scheduler import Scheduler

WITH_TEXT = frozenset({"chunk", "citations", "verdict"})
"""Events that carry text of the answer."""
STOP_WITHIN_S = 3.0
"""How long after a request's end its model may still be at work, where nothing fails: a look every half second."""


class Judge:
    """Keeps records, and ``fails`` the world where they contradict an invariant."""

    def __init__(
        self, scheduler: Scheduler, index: Index, access: Access, fails: Callable[[str], None], *, shares_answers: bool
    ) -> None:
        """``shares_answers``: whether the users of a tenant share earlier answers."""
        self.records: dict[Key, Record] = {}
        self.said: dict[str, str] = {}
        """By worker, what its strategy said."""
        self._scheduler = scheduler
        self._index = index
        self._access = access
        self._fails = fails
        self._shares_answers = shares_answers
        self._budget = RequestBudget()

    # --- the table ---

    def wrote(self, pk: str, sk: str, before: Item | None, after: Item | None) -> None:
        """A change of the table."""
        if pk.startswith("cache#") and sk.startswith("body#") and after is not None:
            self._kept(after)
        if sk != "head" or after is None:
            return
        request_id, subject = pk.split("#", 1)
        record = self.records.get((subject, request_id))
        if record is None or before is None:
            if before is not None or record is not None:
                self._fails(f"I1: request {request_id} is created twice")
            record = self.records[subject, request_id] = Record((subject, request_id), self._scheduler.now)
            record.item = after
            self._appended(record, 0, after, pk)
        elif before["last_seq"] != after["last_seq"]:
            if before["state"]["S"] != "open":
                self._fails("I1: an event is appended to a request that has ended")
            changed = [seq for seq, value in before["log"]["M"].items() if after["log"]["M"].get(seq) != value]
            self._appended(record, plain(before["last_seq"]), after, pk)
            self._replaced(record, changed, after, pk)
        elif before["log"] != after["log"] or before["state"] != after["state"]:
            self._fails("I4: a write changes the log without counting")
        record.item = after
        if plain(after.get("takeovers", {"N": "0"})) > 1:
            self._fails("I10: a request is taken up twice by itself")

    def _appended(self, record: Record, last: int, item: Item, pk: str) -> None:
        log = item["log"]["M"]
        now_last = plain(item["last_seq"])
        if sorted(map(int, log)) != list(range(1, now_last + 1)):
            self._fails(f"I4: the log's numbers are {sorted(map(int, log))}, its last is {now_last}")
            return
        for seq in range(last + 1, now_last + 1):
            value = log[str(seq)]["M"]
            body = self._body(pk, value)
            attempt = int(value["a"]["N"])
            event = json.loads(body)
            if record.terminal is not None:
                self._fails("I1: an event follows the terminal one")
            if record.attempts and attempt < record.attempts[-1]:
                self._fails("I5: an attempt writes after its successor has begun")
            if event.get("attempt", attempt) != attempt:
                self._fails(f"I5: an event of attempt {event['attempt']} stands under attempt {attempt}")
            self._may_read(record, body, item)
            record.events.append(event)
            record.attempts.append(attempt)
            record.frames[seq] = event_frame(record.key[1], seq, body)
            self._event(record, event, attempt, item)

    def _may_read(self, record: Record, text: str, item: Item) -> None:
        """I12: nothing of the diary, where its asker could not read it at any time since the question."""
        if any(line in text for line in DIARY_LINES):
            groups = tuple(json.loads(item["question"]["S"])["groups"])
            if not self._access.could_read_diary(groups, record.created_at):
                self._fails(f"I12: an asker in {groups} is shown what they may not read: {text[:200]}")

    def _body(self, pk: str, value: Item) -> str:
        """An event, from its value in a head's log."""
        return str(value["b"]["S"] if "b" in value else self.event_item(pk, value["r"]["S"]))

    def _replaced(self, record: Record, changed: list[str], item: Item, pk: str) -> None:
        """I3, B1: a blocked end, and nothing else, withdraws events: all that carry text."""
        if changed and not record.blocked:
            self._fails("I3: events that were stored have changed")
        for seq in map(int, changed):
            body = self._body(pk, item["log"]["M"][str(seq)]["M"])
            if event_frame(record.key[1], seq, body) == record.frames[seq]:  # stored elsewhere, and the same
                continue
            if json.loads(body) != {"type": "withdrawn", "attempt": record.attempts[seq - 1]}:
                self._fails(f"B1: in the place of event {seq} stands {body}")
            record.withdrawn[seq], record.frames[seq] = record.frames[seq], event_frame(record.key[1], seq, body)
            record.events[seq - 1] = json.loads(body)
        if record.blocked and any(event["type"] in WITH_TEXT for event in record.events):
            self._fails("B1: a blocked answer leaves text in its log")

    event_item: Callable[[str, str], str]
    """Reads an event that has an item of its own, by partition and sort key."""

    def _event(self, record: Record, event: dict[str, Any], attempt: int, item: Item) -> None:
        kind = event["type"]
        if kind == "attempt":
            if attempt in record.workers:
                self._fails(f"I5: attempt {attempt} begins twice")
            record.workers[attempt] = item["worker"]["S"]
            record.begun_at[attempt] = self._scheduler.now
            before = record.events[-2]
            if attempt > 1 and before["type"] != "fallback":
                self._fails("I2: an attempt begins after another without a fallback event")
            if before["type"] == "fallback" and before["to"] != event["strategy"]:
                self._fails(f"I2: a fallback to {before['to']} is followed by {event['strategy']}")
        elif kind == "chunk":
            self._is_said(record, attempt, record.text_of(attempt))
        if kind in TERMINAL_TYPES:
            record.ended_at = self._scheduler.now
            if (kind == "complete") != (item["state"]["S"] == "complete"):
                self._fails("I1: the terminal event and the state differ")
            if kind == "complete":
                self._complete(record, event, attempt)
        elif (
            item["state"]["S"] != "open"
            and record.events[-1] is event
            and len(record.events) == plain(item["last_seq"])
        ):
            self._fails("I1: a request ends without a terminal event")

    def _complete(self, record: Record, event: dict[str, Any], attempt: int) -> None:
        worker = record.workers[attempt]
        text = record.text_of(attempt)
        self._may_read(record, text, record.item)
        if text != self.said.get(worker, ""):
            self._fails(f"I3: attempt {attempt} completes with {text!r}, said was {self.said.get(worker, '')!r}")
        if any(call.text != text for call in record.judge_calls if call.process.name == worker):
            self._fails(f"I7: attempt {attempt} has its citations judged before its last text")
        mine = [call for call in record.all_calls if call.process.name == worker]
        sources = [e for e in record.events if e["type"] == "sources" and e["attempt"] == attempt]
        reused = sources[-1].get("reused") if sources else None
        if reused and reused["use"] == "answer":
            self._is_replay_of_its_scope(record, sources[-1], text)
        elif event["stopReason"] != "nothing_found":
            answer = next((call for call in reversed(mine) if call.finished), None)
            if answer is None or not text.endswith(answer.text) or not answer.text:
                self._fails(f"I3: {text!r} is completed, and no model finished so")
            elif event["answeredBy"] != "direct" and text != answer.text:
                self._fails(f"I3: {text!r} is more than the model's {answer.text!r}")
        self._citations(record, event, attempt, sources)
        path = iter(event["attempted"])
        begun = [e["strategy"] for e in record.events if e["type"] == "attempt"]
        if not all(strategy in path for strategy in begun) or event["attempted"][-1] != event["answeredBy"]:
            self._fails(f"I3: {begun} were begun, and {event['attempted']} is told")

    def _citations(self, record: Record, event: dict[str, Any], attempt: int, sources: list[dict[str, Any]]) -> None:
        """I9: what is cited was shown, by this attempt, and stands so in the version that it names."""
        shown = {source["n"]: source for source in sources[-1]["sources"]} if sources else {}
        offered = bool(sources and sources[-1]["offered"])
        cited = [e for e in record.events if e["type"] == "citations" and e["attempt"] == attempt]
        standing = 0
        for citation in (one for e in cited for one in e["citations"]):
            source = shown.get(citation["n"])
            if citation["verdict"] != "unverified":
                standing += 1
                if source is None or source["passageId"] != citation["passageId"]:
                    self._fails(f"I9: a citation of [{citation['n']}] that stands has no such source")
            elif source is None and citation.get("passageId") is not None:
                self._fails("I9: a citation of nothing names a passage")
        if bool(event["grounded"]) != bool(standing):
            self._fails("I9: an answer calls itself grounded, and no citation stands, or the reverse")
        if sources and not offered:
            version = sources[-1]["indexVersion"]
            if not self._index.was_current(version, record.begun_at[attempt]):
                self._fails(f"I9: the answer rests on version {version}, which was not current during its attempt")
            texts = {one.id: one.text for one in passages(version)}
            for source in shown.values():
                if texts.get(source["passageId"]) != source["text"]:
                    self._fails(f"I9: the source [{source['n']}] is not of version {version}")

    def _is_replay_of_its_scope(self, record: Record, sources: dict[str, Any], text: str) -> None:
        mine = self._scope(record)
        for other in self.records.values():
            if other is record:
                continue
            if other.terminal and other.terminal["type"] == "complete" and self._scope(other) == mine:
                attempt = other.attempts[-1]
                theirs = [e for e in other.events if e["type"] == "sources" and e["attempt"] == attempt]
                if (
                    other.text_of(attempt) == text
                    and other.terminal["grounded"]
                    and theirs[-1]["indexVersion"] == sources["indexVersion"]
                ):
                    return
        self._fails(f"cache: {text!r} is given again, and no grounded answer of this scope and version says so")

    def _scope(self, record: Record) -> tuple[Any, ...]:
        question = json.loads(record.item["question"]["S"])
        sharing = question["tenant"] if self._shares_answers else record.key[0]
        return (sharing, question["episodes"], question["top_k"])

    def _kept(self, item: Item) -> None:
        body = unpack_body(bytes(item["body"]["B"]))
        for record in self.records.values():
            terminal = record.terminal
            if terminal and terminal["type"] == "complete" and record.text_of(record.attempts[-1]) == body.text:
                if not terminal["grounded"]:
                    self._fails("cache: an answer is kept that is not grounded")
                return
        self._fails(f"cache: {body.text!r} is kept, and is no complete answer")

    # --- models ---

    def called(self, call: Call) -> None:
        """A request to a model goes out."""
        record = self._record_of(call)
        if record is None:
            return
        if call not in record.calls:
            record.calls.append(call)
        total = sum(one.calls for one in record.calls)
        if total > MAX_MODEL_CALLS or MAX_MODEL_CALLS > 4:
            self._fails(f"I7: {total} calls to models for one request")
        if sum(one.calls for one in record.calls if one.process is call.process) > MAX_CALLS_AN_ATTEMPT:
            self._fails("I7: an attempt calls models more often than it may")
        self._within_its_share(call)

    def judging_called(self, call: Call) -> None:
        """A request to the model that judges citations goes out: one an attempt, after all of its text."""
        record = self._record_of(call)
        if record is None:
            return
        if any(one.process is call.process for one in record.judge_calls):
            self._fails("I7: an attempt has its citations judged twice")
        record.judge_calls.append(call)
        call.text = self.said.get(call.process.name, "")
        self._within_its_share(call)

    def _within_its_share(self, call: Call) -> None:
        tokens = estimated_tokens(call.prompt.system) + estimated_tokens(call.prompt.user) + call.max_tokens
        if tokens > self._budget.tokens_a_call:
            self._fails(f"I7: a call could take {tokens} tokens of {self._budget.tokens_a_call}")

    def agent_called(self, call: Call) -> None:
        """A request to a model goes out for an agent's turn, from its attempt's token budget (two calls')."""
        record = self._record_of(call)
        if record is None:
            return
        if call not in record.agent_calls:
            record.agent_calls.append(call)
        made = sum(one.calls for one in record.agent_calls if one.process is call.process)
        if made > MAX_CALLS_AN_ATTEMPT * AGENT_CALLS_A_CALL:
            self._fails(f"I7: {made} calls to models by one run of an agent")

    def _record_of(self, call: Call) -> Record | None:
        key = call.process.about
        record = self.records.get(key) if isinstance(key, tuple) else None
        if record is None:
            self._fails("I7: a model is called for a request that does not exist")
        else:
            self._may_read(record, f"{call.prompt.system}\n{call.prompt.user}", record.item)
        return record

    # --- clients ---

    def sent(self, socket: Socket, frame: str, *, own_now_s: float) -> None:
        """A frame sets out for a device. ``own_now_s``: on the clock of the function that sends it."""
        if own_now_s >= socket.expires_at and json.loads(frame).get("code") != Unauthorized.code:
            late_s = own_now_s - socket.expires_at
            self._fails(f"I11: {frame} is sent to {socket.id} {late_s:.0f} s after its token has expired")

    def shown(self, socket: Socket, frame: str) -> None:
        """A frame reaches a device."""
        event = json.loads(frame)
        if event["seq"] == 0:
            return
        record = self.records.get((socket.owner, event["requestId"]))
        if record is None:
            self._fails(f"I8: {socket.owner} receives an event of another's request")
        elif frame not in (record.frames.get(event["seq"]), record.withdrawn.get(event["seq"])):
            self._fails(f"I6: {frame} is shown, and is not stored")

    def displays(self, key: Key, attempts: set[int], text: str) -> None:
        """A client displays this text, of these attempts."""
        if len(attempts) > 1:
            self._fails(f"I2: a client displays text of the attempts {sorted(attempts)}")
        for attempt in attempts:
            self._is_said(self.records[key], attempt, text)

    def _is_said(self, record: Record, attempt: int, text: str) -> None:
        said = self.said.get(record.workers.get(attempt, ""), "")
        if not said.startswith(text):
            self._fails(f"I2: {text!r} is no beginning of what attempt {attempt} said: {said!r}")

    # --- the end ---

    def nothing_left(self, items: Mapping[str, Mapping[str, Item]]) -> None:
        """B1: no word of a blocked answer is anywhere in the table, by partition and sort key."""
        for (subject, request_id), record in self.records.items():
            if not record.blocked:
                continue
            own = items.get(f"{request_id}#{subject}", {})
            bodies = [json.loads(item["body"]["S"]) for sk, item in own.items() if sk.startswith("event#")]
            if any(body["type"] in WITH_TEXT for body in bodies):
                self._fails("B1: an item of a withdrawn event is left")
            everything = repr(items)
            if any(call.mark and call.mark in everything for call in record.calls + record.agent_calls):
                self._fails("B1: a word of a blocked answer is left in the table")

    def settled(self, *, calm_from_s: float, within_s: float, unharmed: bool) -> None:
        """Nothing moves any more.

        Args:
            calm_from_s: when the faults ceased.
            within_s: in what time from then, or from its creation, each request must have ended.
            unharmed: whether nothing failed that answers may suffer from.
        """
        for record in self.records.values():
            since_s = max(calm_from_s, record.created_at)
            if record.terminal is None or record.ended_at is None:
                self._fails(f"I10: request {record.key[1]} has not ended {self._scheduler.now - since_s:.0f} s later")
            elif record.ended_at - since_s > within_s:
                late_s = record.ended_at - since_s
                self._fails(f"I10: request {record.key[1]} has ended {late_s:.0f} s later, which is too late")
            elif unharmed:
                self._unharmed(record, record.terminal, record.ended_at)

    def _unharmed(self, record: Record, terminal: dict[str, Any], ended_at: float) -> None:
        """I10: with nothing that it may suffer from, a request is answered by its first execution's own workers."""
        lost = [failure for failure in terminal.get("failed", ()) if failure["code"] in ("worker_lost", "worker_died")]
        if terminal["type"] != "complete" or lost or "takeovers" in record.item:
            self._fails(f"I10: nothing failed that may harm an answer, and the request ended with {terminal}")
            return
        if any((call.ended_at or self._scheduler.now) > ended_at + STOP_WITHIN_S for call in record.all_calls):
            self._fails("I7: a model is at work for a request that has ended")
        calls = sum(call.calls for call in record.all_calls)
        if terminal["metrics"]["modelCalls"] != calls:
            self._fails(f"I7: {terminal['metrics']['modelCalls']} calls are told of, {calls} were made")

"""Every kind of fault that the simulation injects, and how often it does so in one world."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from random import Random


@dataclass(frozen=True)
class Kind:
    """One kind of fault."""

    name: str
    catalogue: str
    """The rows of the fault catalogue that it stands for."""
    what: str
    rate: float
    """How likely it is at one opportunity, in a world of medium hardship that has it at all."""
    absorbed: bool = False
    """Whether an answer must come through it as if nothing had happened, by its first strategies and first workers."""


KINDS: tuple[Kind, ...] = (
    # --- the store ---
    Kind("store_throttled", "F13", "a call is refused by a throttle", 0.03),
    Kind("store_down", "F13", "the store is away for 0.5 to 25 s; each call in that time counts", 0.004),
    Kind("store_slow", "F13", "a call takes up to 1.9 s", 0.03, absorbed=True),
    Kind("store_ack_lost", "F12 F13", "a write lands, and its answer is lost", 0.03),
    Kind("store_write_late", "F13 F17", "a write times out, and lands seconds later all the same", 0.02),
    Kind(
        "store_write_repeated", "F12", "the SDK repeats a write that had landed, and meets its own", 0.02, absorbed=True
    ),
    Kind(
        "store_stale_read",
        "F13",
        "an eventually consistent read shows the item before its last change",
        0.1,
        absorbed=True,
    ),
    Kind("transaction_conflict", "F13", "a transaction meets another on one of its items", 0.1, absorbed=True),
    Kind("open_index_lags", "F9", "the index of open requests shows a change up to 20 s late", 0.2, absorbed=True),
    Kind("expired_items_deleted", "F15 F33", "expired items are deleted, in no order", 0.5),
    # --- the gateway and the sockets ---
    Kind("socket_dropped", "F1 F2", "a client's socket closes at any moment", 0.02, absorbed=True),
    Kind(
        "socket_half_open",
        "F31",
        "a socket is dead, and the gateway takes frames for it for a while",
        0.02,
        absorbed=True,
    ),
    Kind("socket_stuck", "F11", "a client reads nothing for 0.5 to 20 s: posts are answered 429", 0.02, absorbed=True),
    Kind("post_throttled", "F11", "a post is refused by a throttle", 0.03, absorbed=True),
    Kind("post_ack_lost", "F12", "a post is delivered, and its answer is lost", 0.03, absorbed=True),
    Kind("post_timed_out", "F12", "a post times out without having been delivered", 0.02, absorbed=True),
    Kind("post_slow", "F11", "a post takes up to 1.4 s", 0.03, absorbed=True),
    Kind("frame_lost", "F9", "a client's frame never reaches the function", 0.03, absorbed=True),
    Kind("frame_repeated", "F8", "a client's frame reaches the function twice", 0.05, absorbed=True),
    Kind(
        "gateway_error",
        "F4 F9",
        "a client's frame is answered by an error of the gateway's own, whether or not the function runs",
        0.05,
        absorbed=True,
    ),
    Kind("reply_lost", "F12", "the reply to a frame never reaches the client", 0.05, absorbed=True),
    Kind("token_expired", "F29", "the token of an open connection expires at any moment", 0.1, absorbed=True),
    # --- functions ---
    Kind("function_killed", "F3", "an invocation is killed before any of its steps", 0.12),
    Kind("function_out_of_memory", "F3", "an invocation runs out of memory at any of its steps", 0.04),
    Kind("function_paused", "F16 F17", "an invocation stands still for up to 150 s, and goes on", 0.12),
    Kind("function_throttled", "F4", "an invocation is refused by a throttle", 0.06),
    Kind("function_service_fault", "F8", "Lambda reports its own fault, though the invocation runs", 0.04),
    Kind("function_result_lost", "F8", "an invocation ends well, and the workflow hears of a fault", 0.03),
    Kind("clock_skewed", "F16", "an invocation's clock is wrong by up to 5 minutes", 0.1),
    Kind("cold_start_slow", "F3", "a new environment takes up to 8 s to begin", 0.05, absorbed=True),
    # --- the workflow ---
    Kind("start_refused", "F9", "the start is refused, and nothing starts", 0.08),
    Kind("start_ack_lost", "F8", "the start is answered by an error, and the execution runs", 0.08),
    Kind("start_lost", "F9", "the start is confirmed, and nothing runs", 0.06),
    Kind("start_late", "F9", "the execution begins up to 40 s late", 0.05),
    Kind("execution_repeated", "F8", "one execution runs twice, under one name", 0.05),
    Kind("execution_died", "F9", "an execution ends in the middle; its worker goes on", 0.05),
    Kind("sweep_lost", "F9", "a scheduled sweep does not run", 0.15, absorbed=True),
    Kind("sweep_doubled", "F8", "a scheduled sweep runs twice at once", 0.15, absorbed=True),
    # --- models ---
    Kind("model_throttled", "F4", "a model refuses a call by a throttle", 0.1),
    Kind("model_unavailable", "F4", "a model's service fails before the first piece", 0.05),
    Kind("model_refused", "F7", "a model's service rejects the call", 0.03),
    Kind("model_slow", "F5", "a model pauses for up to 12 s between two pieces", 0.03),
    Kind("stream_broken", "F5", "a stream breaks with an error after any piece", 0.02),
    Kind("stream_silent", "F5", "a stream stays open, and nothing more comes", 0.012),
    Kind("stream_truncated", "F6", "a stream ends without an error and without its finish", 0.05),
    Kind("answer_cut", "F7", "a model stops at its token limit", 0.04),
    Kind("answer_withheld", "F7", "a guardrail intervenes at the end of the stream: the request ends as blocked", 0.04),
    Kind("answer_empty", "F7", "a model finishes without a word", 0.03),
    Kind("answer_invents", "F7", "a model cites a passage that is not there", 0.08, absorbed=True),
    Kind("judge_slow", "F5", "the judge of citations takes up to 12 s", 0.1, absorbed=True),
    Kind("judge_fails", "F4", "the judge of citations is throttled", 0.1, absorbed=True),
    Kind("judge_malformed", "F7", "what the judge of citations answers is no judgement", 0.05, absorbed=True),
    Kind("judge_forgets", "F7", "the judge of citations leaves a sentence out", 0.1, absorbed=True),
    Kind("judge_objects", "F7", "the judge of citations finds none of them in its passages", 0.1, absorbed=True),
    Kind("agent_looks_again", "F7", "an agent's model uses a tool once more before it answers", 0.3, absorbed=True),
    Kind("embedder_failed", "F4", "a question cannot be embedded", 0.08),
    # --- the index ---
    Kind("index_unavailable", "F18", "the index does not answer a search", 0.08),
    Kind("index_corrupt", "F18", "the index is damaged", 0.04),
    Kind("index_missing", "F18", "there is no index yet", 0.02),
    Kind("index_partial", "F18", "a search had to leave segments out, and says so", 0.1, absorbed=True),
    Kind("index_slow", "F18", "a search takes up to 6 s", 0.05, absorbed=True),
    Kind("version_published", "F19 F20", "a new version of the index becomes current in mid-run", 0.25, absorbed=True),
    Kind("rights_changed", "", "who may read a collection changes in mid-run", 0.3, absorbed=True),
    # --- people ---
    Kind("second_device", "F10", "the asker follows the answer on a second device", 0.3, absorbed=True),
    Kind("cancelled", "F34", "the asker cancels at any moment", 0.12),
    Kind("asked_again", "F8", "the asker sends the same question under the same id once more", 0.15, absorbed=True),
    Kind("never_resumed", "F1", "the asker is gone for good after a drop", 0.2),
    Kind(
        "stranger_probes",
        "F29 F30",
        "another user resumes, cancels or asks under the request's id",
        0.15,
        absorbed=True,
    ),
)
BY_NAME = {kind.name: kind for kind in KINDS}

HARDSHIP = (0.0, 0.5, 1.5, 4.0)
"""Factors on the rates; one is drawn for each world."""
_HARDSHIP_SHARES = (0.05, 0.2, 0.4, 0.35)
ABSORBED_SHARE = 0.12
"""How many worlds have only faults that must be absorbed."""
KINDS_SHARE = 0.55
"""How many of the kinds a world has at all.

Source: Groce et al., "Swarm Testing", ISSTA 2012: runs that omit features at random find more than runs with all.
"""


class Faults:
    """Decides, by the seed, where a fault happens, and counts those that did."""

    def __init__(self, random: Random, counts: Counter[str]) -> None:
        self._random = random.random
        self.counts = counts
        hardship = random.choices(HARDSHIP, _HARDSHIP_SHARES)[0]
        self.off = hardship == 0.0
        """Nothing fails in this world."""
        self.absorbed = not self.off and random.random() < ABSORBED_SHARE
        """Whatever fails in this world is to be absorbed."""
        self._rates: dict[str, float] = {
            kind.name: min(0.8, kind.rate * hardship)
            for kind in KINDS
            if not self.off and random.random() < KINDS_SHARE and (kind.absorbed or not self.absorbed)
        }
        self._kinds = frozenset(self._rates)
        self.injected = 0

    def has(self, name: str) -> bool:
        """Whether this world has a kind of fault, or had it until they ceased."""
        return name in self._kinds

    def hit(self, name: str) -> bool:
        """Whether this fault happens here and now, which is then counted."""
        if not self.drawn(name):
            return False
        self.note(name)
        return True

    def drawn(self, name: str) -> bool:
        """Whether this fault is to happen later: whoever brings it about notes it then."""
        rate = self._rates.get(name)
        return rate is not None and self._random() < rate

    def note(self, name: str) -> None:
        """Count a fault."""
        self.counts[name] += 1
        self.injected += 1

    def cease(self) -> None:
        """From now on nothing fails any more; what is under way takes its course."""
        self._rates.clear()

    def between(self, low: float, high: float) -> float:
        """A random number."""
        return low + (high - low) * self._random()

"""Faults in the production code, put there to prove that the simulation finds them."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import cicada.answering.attempt_start
import cicada.answering.cag
import cicada.answering.grounding
import cicada.answering.recovery
import cicada.delivery.dynamodb
import cicada.delivery.outbox
import cicada.delivery.posting
import cicada.semantic_cache.cache
from cicada.answering.question_gate import QuestionGate
from cicada.answering.recovery import Recovery, Swept
from cicada.breakers.guards import GuardedModel
from cicada.conversation.turns import ConversationTurn
from cicada.delivery.driver import DeliveryDriver
from cicada.delivery.dynamodb import DynamoDbLog
from cicada.delivery.outbox import Outbox, Post
from cicada.delivery.record import Commit, Subscriber
from cicada.errors import LimitReached
from cicada.models.ports import Finished, Usage
from cicada.rights import AccessRules, Readable
from cicada.semantic_cache.scope import CacheScope
from tests.simulation.one import quiet, run_world

Patch = tuple[Any, str, Any]


@dataclass(frozen=True)
class Mutation:
    """One change for the worse."""

    name: str
    what: str
    patches: Callable[[], list[Patch]]


def _fence_ignored() -> list[Patch]:
    update = DynamoDbLog._update

    def lax(self: Any, key: Any, text: str, condition: str, names: Any, values: Any) -> Any:
        return update(
            self, key, text, condition.replace(" AND #attempt = :attempt AND #last = :last", ""), names, values
        )

    return [(DynamoDbLog, "_update", lax)]


def _posted_before_stored() -> list[Patch]:
    commit_it = DeliveryDriver._commit

    def eager(self: Any, commit: Commit) -> Any:
        head = self._outbox.head
        frames = tuple(entry.frame(head.key.request_id) for entry in commit.entries())
        for subscriber in head.subscribers:
            self._queues.send(Post(subscriber, frames))
        return commit_it(self, commit)

    return [(DeliveryDriver, "_commit", eager)]


def _no_fallback_event() -> list[Patch]:
    begin = vars(cicada.answering.attempt_start)["begin"]

    def silent(*arguments: Any, **named: Any) -> Any:
        commit = begin(*arguments, **named)
        if isinstance(commit, Commit):
            object.__setattr__(commit, "bodies", commit.bodies[-1:])
        return commit

    return [(cicada.answering.attempt_start, "begin", silent)]


def _always(value: bool) -> Callable[[], list[Patch]]:
    def patches() -> list[Patch]:
        holders = (cicada.answering.attempt_start, cicada.delivery.outbox, cicada.delivery.posting)
        return [(holder, "has_landed", lambda *_: value) for holder in holders]

    return patches


def _take_overs_unbounded() -> list[Patch]:
    return [(cicada.answering.recovery, "MAX_TAKEOVERS", 1_000)]


def _no_sweep() -> list[Patch]:
    return [(Recovery, "sweep", lambda _self, _remaining_s: Swept())]


def _calls_unbounded() -> list[Patch]:
    return [(cicada.answering.attempt_start, "allotted_calls", lambda _strategy, _reserved: 2)]


def _cut_streams_are_whole() -> list[Patch]:
    stream_it = GuardedModel.stream

    def trusting(self: Any, prompt: Any, **named: Any) -> Any:
        step: Any = None
        for step in stream_it(self, prompt, **named):
            yield step
        if not isinstance(step, Finished):
            yield Finished("end_turn", Usage())

    return [(GuardedModel, "stream", trusting)]


def _text_lost_in_flight() -> list[Patch]:
    text = Outbox.text

    def forgetful(self: Any, piece: str) -> None:
        if self._in_flight is None:
            text(self, piece)

    return [(Outbox, "text", forgetful)]


def _subject_ignored() -> list[Patch]:
    return [(cicada.delivery.dynamodb, "_pk", lambda key: f"{key.request_id}#house/mara")]


def _cache_knows_no_version() -> list[Patch]:
    digest = vars(CacheScope)["digest"].fget

    def versionless(self: CacheScope) -> str:
        return str(digest(CacheScope(**{**self.__dict__, "index_version": ""})))

    return [(CacheScope, "digest", property(versionless))]


def _cache_knows_no_owner() -> list[Patch]:
    return [(cicada.semantic_cache.cache, "shared_by", lambda _asked, _sharing: ("deployment",))]


def _cache_knows_no_rights() -> list[Patch]:
    return [(cicada.semantic_cache.cache, "rights_of", lambda _readable, *, by_groups: ())]


def _turns_for_whoever_asks() -> list[Patch]:
    return [(ConversationTurn, "readable_by", lambda _self, _readable: True)]


def _rights_ignored() -> list[Patch]:
    return [(AccessRules, "readable", lambda _self, groups: Readable(others=True, groups=groups))]


def _ungrounded_answers_kept() -> list[Patch]:
    def lax(given: Any) -> str | None:
        return None if given.retrieved is not None and given.retrieved.sources else "nothing retrieved"

    return [(cicada.semantic_cache.cache, "reason_not_to_keep", lax)]


def _text_not_withdrawn() -> list[Patch]:
    return [(cicada.delivery.posting, "withdraws", lambda _terminal: False)]


def _citations_trusted() -> list[Patch]:
    check = vars(cicada.answering.grounding)["check_citations"]

    def trusting(*asked: Any) -> Any:
        return tuple(one.model_copy(update={"verdict": "verified", "reason": None}) for one in check(*asked))

    return [(cicada.answering.grounding, "check_citations", trusting)]


def _expiry_ignored() -> list[Patch]:
    return [(Subscriber, "expired", lambda _self, _now_s: False)]


def _end_forgotten() -> list[Patch]:
    return [(cicada.answering.recovery, "end_request", lambda *_, **__: True)]


def _limits_unchecked() -> list[Patch]:
    reserving = vars(cicada.delivery.dynamodb)["reserving"]

    def lax(*asked: Any) -> dict[Any, Any]:
        changes = {key: part["Update"] for key, part in reserving(*asked).items() if "Update" in part}
        for update in changes.values():
            condition = update.pop("ConditionExpression", "")
            for name in re.findall(r":\w+", condition):
                if name not in update["UpdateExpression"]:
                    update["ExpressionAttributeValues"].pop(name, None)
        return {key: {"Update": update} for key, update in changes.items()}

    return [(cicada.delivery.dynamodb, "reserving", lax)]


def _month_beside_unchecked() -> list[Patch]:
    reserving = vars(cicada.delivery.dynamodb)["reserving"]

    def lax(*asked: Any) -> dict[Any, Any]:
        return {key: part for key, part in reserving(*asked).items() if "ConditionCheck" not in part}

    return [(cicada.delivery.dynamodb, "reserving", lax)]


def _reservations_kept() -> list[Patch]:
    return [(cicada.answering.recovery, "unsettled", lambda _head, _now_s: False)]


def _settled_by_all() -> list[Patch]:
    transact = vars(cicada.delivery.dynamodb)["transact"]

    def lax(client: Any, fault: Any, parts: Any) -> None:
        for part in parts:
            if "Delete" in part:
                part["Delete"].pop("ConditionExpression", None)
        transact(client, fault, parts)

    return [(cicada.delivery.dynamodb, "transact", lax)]


def _refused_and_asked() -> list[Patch]:
    create = QuestionGate.create

    def lax(self: Any, head: Any, accepted: str, caller: Any) -> None:
        try:
            create(self, head, accepted, caller)
        except LimitReached:
            self.log.create(head, accepted)

    return [(QuestionGate, "create", lax)]


MUTATIONS = (
    Mutation("fence_ignored", "a commit lands whatever attempt and seq stand", _fence_ignored),
    Mutation("posted_before_stored", "frames go out before they are in the log", _posted_before_stored),
    Mutation("no_fallback_event", "an attempt begins after another without telling clients", _no_fallback_event),
    Mutation("never_landed", "a write whose acknowledgement was lost counts as another's", _always(False)),
    Mutation("always_landed", "another's write counts as one's own", _always(True)),
    Mutation("take_overs_unbounded", "a request is started again and again", _take_overs_unbounded),
    Mutation("no_sweep", "nobody looks for orphans", _no_sweep),
    Mutation("orphans_not_ended", "a request that is given up stays open", _end_forgotten),
    Mutation("calls_unbounded", "every attempt may call models twice", _calls_unbounded),
    Mutation("cut_streams_are_whole", "a stream without its finish counts as an answer", _cut_streams_are_whole),
    Mutation("text_lost_in_flight", "text that arrives during a write is dropped", _text_lost_in_flight),
    Mutation("subject_ignored", "a request is found by its id alone", _subject_ignored),
    Mutation("expiry_ignored", "events go out to a connection whose token has expired", _expiry_ignored),
    Mutation("cache_knows_no_version", "answers of an older version are given again", _cache_knows_no_version),
    Mutation("cache_knows_no_owner", "answers are given to whoever asks", _cache_knows_no_owner),
    Mutation("cache_knows_no_rights", "answers are given to who may not read their passages", _cache_knows_no_rights),
    Mutation("turns_for_whoever_asks", "turns complete questions whatever they rest on", _turns_for_whoever_asks),
    Mutation("rights_ignored", "every collection is for everybody", _rights_ignored),
    Mutation("ungrounded_answers_kept", "answers that rest on nothing are kept", _ungrounded_answers_kept),
    Mutation("citations_trusted", "no citation is checked", _citations_trusted),
    Mutation("text_not_withdrawn", "a blocked answer stays in the log", _text_not_withdrawn),
    Mutation("limits_unchecked", "a reservation lands whatever its account counts", _limits_unchecked),
    Mutation("month_beside_unchecked", "a reservation lands whatever the other month counts", _month_beside_unchecked),
    Mutation("reservations_kept", "what a lost process had reserved is not given back", _reservations_kept),
    Mutation("settled_by_all", "whoever settles a request counts its use once more", _settled_by_all),
    Mutation("refused_and_asked", "a question that a limit refuses is asked all the same", _refused_and_asked),
)
BY_NAME = {mutation.name: mutation for mutation in MUTATIONS}
MAX_WORLDS = 3_000
"""Within so many worlds each mutation must be found."""


@contextmanager
def applied(mutation: Mutation) -> Iterator[None]:
    """Within it the production code is worse."""
    undo: list[Patch] = []
    try:
        for holder, name, replacement in mutation.patches():
            undo.append((holder, name, holder.__dict__[name]))
            setattr(holder, name, replacement)
        yield
    finally:
        for holder, name, original in undo:
            setattr(holder, name, original)


def worlds_until_found(mutation: Mutation, *, first_seed: int = 0, limit: int = MAX_WORLDS) -> tuple[int, str] | None:
    """How many worlds the simulation takes to find a mutation, and by which violation; None if it does not."""
    with quiet() as bugs, applied(mutation):
        for worlds in range(1, limit + 1):
            verdict = run_world(first_seed + worlds - 1, Counter(), bugs)
            if verdict.violations:
                return worlds, verdict.violations[0]
    return None

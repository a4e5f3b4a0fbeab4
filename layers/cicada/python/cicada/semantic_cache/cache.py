"""The semantic cache: looks up earlier answers, and stores new ones."""

from __future__ import annotations

import logging
import secrets
import time
from collections.abc import Callable

import numpy as np

from cicada.attempts.strategy import AnswerGiven, AskedQuestion
from cicada.errors import CicadaError
from cicada.index.embedding import unit_vectors
from cicada.models.ports import Embedder
from cicada.request_trace import log_event, log_fault
from cicada.retrieval.ports import SearchLimits
from cicada.semantic_cache.admission import reason_not_to_keep, reason_to_leave_out, still_holds
from cicada.semantic_cache.decision import (
    CANDIDATES,
    CacheChoice,
    Confirm,
    Thresholds,
    decide,
    serves,
    thresholds_of,
)
from cicada.semantic_cache.entries import (
    BodyTooLarge,
    CachedAnswer,
    CacheEntry,
    CacheStore,
    Vector,
    pack_body,
    pack_vector,
)
from cicada.semantic_cache.entry_lists import KnownEntries
from cicada.semantic_cache.ports import Looked
from cicada.semantic_cache.scope import CacheScope, Sharing, language_of, rights_of, shared_by
from cicada.text.characters import compared

logger = logging.getLogger(__name__)

DEFAULT_TTL_S = 7 * 24 * 3600
DEFAULT_MAX_ENTRIES = 1_000
"""Answers per scope; the newest stay."""
MAX_BODIES_READ = 3
"""Bodies that one lookup reads at most."""
KEEP_BUDGET_S = 3.0
"""Seconds for embedding the question of an answer that is stored; usually the vector is remembered."""
SURPLUS_DELETED = 25
"""Entries beyond ``max_entries`` that one write deletes: more than it adds, so that a lowered limit takes effect."""


class NoEarlierAnswers:
    """The cache of a deployment that has none."""

    def look_up(self, *_: object, **__: object) -> Looked:
        """See :class:`cicada.semantic_cache.ports.EarlierAnswers`."""
        return Looked("miss")


class SemanticCache:
    """Finds earlier answers by meaning; an :class:`~cicada.attempts.strategy.AnswerSink` of new ones. Thread-safe."""

    def __init__(
        self,
        store: CacheStore,
        embedder: Embedder,
        *,
        sharing: Sharing = "user",
        by_groups: bool = False,
        thresholds: Thresholds | None = None,
        confirm: Confirm | None = None,
        generation_model_id: str,
        prompt_version: str,
        ttl_s: int = DEFAULT_TTL_S,
        max_entries: int = DEFAULT_MAX_ENTRIES,
        now_s: Callable[[], float] = time.time,
        monotonic: Callable[[], float] = time.monotonic,
        on_look_up: Callable[[str], None] = lambda _use: None,
        new_suffix: Callable[[], str] = lambda: secrets.token_hex(4),
    ) -> None:
        """Wire the cache.

        Args:
            by_groups: whether the search engine has access rules of its own, for groups.
            embedder: one that remembers vectors: the search embeds the same query.
            thresholds: those of the embedding model by default.
            confirm: decides whether the nearest question with other words asks the same; without it none does.
            on_look_up: called with each lookup's result (``answer``, ``contexts`` or ``miss``), for the metrics.
            new_suffix: makes ids of the same millisecond unique; random letters or digits.
        """
        self._store = store
        self._embedder = embedder
        self._sharing: Sharing = sharing
        self._by_groups = by_groups
        self._thresholds = thresholds or thresholds_of(embedder.model_id)
        self._confirm = confirm
        self._generation_model_id = generation_model_id
        self._prompt_version = prompt_version
        self._ttl_s = ttl_s
        self._max_entries = max_entries
        self._now_s = now_s
        self._monotonic = monotonic
        self._on_look_up = on_look_up
        self._new_suffix = new_suffix
        self._known = KnownEntries(
            store, embedder.dimensions, max_entries=max_entries, now_s=now_s, monotonic=monotonic
        )

    def look_up(
        self, asked: AskedQuestion, index_version: str, limits: SearchLimits, *, time_budget_s: float
    ) -> Looked:
        """See :class:`cicada.semantic_cache.ports.EarlierAnswers`.

        In a warm worker it costs one Query for newer entries, and a read of each body that is used. No call is begun
        after ``time_budget_s``; one that is under way ends by its own time-out.
        """
        started = self._monotonic()
        left_out = reason_to_leave_out(asked)
        if left_out is None:
            looked = self._look_up(asked, index_version, limits, started + time_budget_s, time_budget_s)
        else:
            looked = Looked(use="miss", index_version=index_version)
        log_event(
            logger,
            "looked_up",
            "earlier answers looked up",
            outcome=looked.use,
            similarity=round(looked.similarity, 4),
            compared=looked.compared,
            why=left_out,
            took_ms=round((self._monotonic() - started) * 1000),
        )
        self._on_look_up(looked.use)
        return looked

    def _look_up(
        self, asked: AskedQuestion, index_version: str, limits: SearchLimits, deadline: float, time_budget_s: float
    ) -> Looked:
        vector = self._vector(asked.query, time_budget_s)
        scope = self._scope(asked, index_version)
        digest = scope.digest
        held = self._known.refreshed(digest, deadline)
        known = held.snapshot
        now_s = self._now_s()
        nearest = known.nearest(vector, limit=CANDIDATES, now_s=now_s)
        confirm = self._confirm
        confirms = None if confirm is None else lambda earlier: confirm(asked.query, earlier, limits)
        choices = decide(asked.query, nearest, self._thresholds, confirms)
        miss = Looked(
            use="miss",
            compared=known.alive(now_s),
            similarity=_share(nearest[0][1]) if nearest else 0.0,
            index_version=index_version,
        )
        for choice in choices[:MAX_BODIES_READ]:
            body = self._known.body(digest, held, choice.entry, deadline)
            if body is None:
                continue
            if choice.use == "answer" and not still_holds(body):
                logger.warning("a cached answer no longer passes the check", extra={"entry": choice.entry.id})
                held.forget(choice.entry.id)
            elif choice.use == "answer" or serves(asked.query, body):
                return _found(miss, choice, body)
        return miss

    def keep(self, given: AnswerGiven) -> None:
        """Store an answer that may be replayed: see :class:`cicada.attempts.strategy.AnswerSink`."""
        reason = reason_not_to_keep(given)
        if reason is None:
            try:
                reason = self._keep(given)
            except BodyTooLarge as error:
                reason = f"too large: {error}"
            except CicadaError as error:
                log_fault(logger, "an answer was not kept", error, dependency="cache")
                return
        if reason is None:
            log_event(logger, "kept", "the answer can be given again", where="cache")
        else:
            logger.debug("answer not cached", extra={"why": reason})

    def _keep(self, given: AnswerGiven) -> str | None:
        """Store an answer in place of earlier ones to the same question. Returns why, if it does not."""
        retrieved, asked = given.retrieved, given.asked
        assert retrieved is not None  # checked by reason_not_to_keep
        body = pack_body(
            CachedAnswer(
                question=asked.query,
                text=given.text,
                sources=retrieved.sources,
                citations=given.answered.citations or (),
                model_id=given.answered.model_id,
                stop_reason=given.answered.stop_reason,
                found=retrieved.found,
            )
        )
        now_s = self._now_s()
        expires_at = given.at_ms // 1000 + self._ttl_s
        if expires_at <= now_s:
            return "expired"
        vector = self._vector(asked.query, KEEP_BUDGET_S)
        digest = self._scope(asked, retrieved.index_version).digest
        held = self._known.refreshed(digest, self._monotonic() + KEEP_BUDGET_S)
        entry = CacheEntry(
            id=f"{given.at_ms:013d}-{self._new_suffix()}",
            question=asked.query,
            vector=pack_vector(vector),
            answered_at_ms=given.at_ms,
            expires_at=expires_at,
        )
        plain = compared(asked.query)
        gone = {old.id for old in held.snapshot.entries if compared(old.question) == plain}
        if gone and max(gone) > entry.id:
            return "a newer one is kept"
        self._store.put(digest, entry, body, owner=asked.key.subject)
        self._known.add(held, [entry])
        gone |= held.take_forgotten()
        newest = held.snapshot.entries
        if len(newest) >= self._max_entries:
            gone |= set(self._store.older(digest, before=newest[0].id, limit=SURPLUS_DELETED))
        if gone:
            self._store.delete(digest, sorted(gone))
        return None

    def _vector(self, query: str, time_budget_s: float) -> Vector:
        vector: Vector = np.asarray(unit_vectors(self._embedder, [query], time_budget_s=time_budget_s)[0])
        return vector

    def _scope(self, asked: AskedQuestion, index_version: str) -> CacheScope:
        return CacheScope(
            shared_by=shared_by(asked, self._sharing),
            index_version=index_version,
            collections=asked.question.collections,
            episodes=asked.question.episodes,
            documents=asked.question.documents,
            sections=asked.question.sections,
            rights=rights_of(asked.readable(), by_groups=self._by_groups),
            language=language_of(asked.query),
            generation_model_id=self._generation_model_id,
            prompt_version=self._prompt_version,
            embedding_model_id=self._embedder.model_id,
            dimensions=self._embedder.dimensions,
        )


def _found(miss: Looked, choice: CacheChoice, body: CachedAnswer) -> Looked:
    return Looked(
        use=choice.use,
        compared=miss.compared,
        similarity=_share(choice.similarity),
        index_version=miss.index_version,
        question=body.question,
        answered_at_ms=choice.entry.answered_at_ms,
        text=body.text,
        sources=tuple(source.model_copy(update={"origin": "cache"}) for source in body.sources),
        citations=body.citations,
        model_id=body.model_id,
        stop_reason=body.stop_reason,
        found=body.found,
    )


def _share(cosine: float) -> float:
    """A cosine as a similarity in [0, 1]."""
    return round(min(1.0, max(0.0, cosine)), 4)

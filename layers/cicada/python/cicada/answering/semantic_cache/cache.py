"""The semantic cache itself: looks earlier answers up, and keeps new ones."""

from __future__ import annotations

import logging
import secrets
import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Literal

import numpy as np

from cicada.answering.semantic_cache.decision import CANDIDATES, Choice, decide, serves
from cicada.answering.semantic_cache.guards import GuardName
from cicada.answering.semantic_cache.held import HeldScope, HeldScopes, Snapshot
from cicada.answering.semantic_cache.keeping import reason_not_to_keep
from cicada.answering.semantic_cache.ports import CacheStore
from cicada.answering.semantic_cache.records import (
    Body,
    BodyTooLarge,
    BodyUnreadable,
    Entry,
    Vector,
    pack_body,
    pack_vector,
    unpack_body,
)
from cicada.answering.semantic_cache.scope import Scope, Sharing, language_of, shared_by
from cicada.answering.semantic_cache.thresholds import Thresholds, thresholds_of
from cicada.answering.strategy import AnswerGiven, Asked
from cicada.errors import CacheUnavailable, CicadaError, IndexMismatch
from cicada.index.embedding import unit_vectors
from cicada.index.lexical.tokens import normalised
from cicada.models.ports import Embedder
from cicada.protocol.events import Citation, Source
from cicada.story import tell

logger = logging.getLogger(__name__)

DEFAULT_TTL_S = 7 * 24 * 3600
DEFAULT_MAX_ENTRIES = 1_000
"""Answers of one scope; the newest stay."""
OVERLAP_MS = 10_000
"""How much of what is known is read again, for entries that became visible after newer ones: clocks differ."""
MAX_BODIES_READ = 3
"""Bodies that one look-up reads at most."""
KEEP_BUDGET_S = 3.0
"""Seconds for embedding the question of an answer that is kept; a remembered one takes none."""
_ID_BYTES = 4


@dataclass(frozen=True)
class Looked:
    """What a look-up found."""

    use: Literal["answer", "contexts", "miss"]
    """answer: give it again; contexts: write a new one from its sources; miss: nothing fits."""
    compared: int = 0
    """Earlier questions that were compared."""
    similarity: float = 0.0
    """Of the question that is made use of, else of the nearest one, in [0, 1]."""
    refused_by: GuardName | None = None
    """The guard that kept a nearer question's answer from being given again, if one did."""
    index_version: str = ""
    question: str = ""
    """What was asked then; this and all below are empty in a miss."""
    answered_at_ms: int = 0
    text: str = ""
    sources: tuple[Source, ...] = ()
    citations: tuple[Citation, ...] = ()
    model_id: str = ""
    stop_reason: str = ""
    found: int = 0
    """How many passages its search had found."""


class SemanticCache:
    """Finds earlier answers by meaning, and is a :class:`cicada.answering.strategy.Keeper` of new ones.

    Safe for several threads.
    """

    def __init__(
        self,
        store: CacheStore,
        embedder: Embedder,
        *,
        sharing: Sharing = "user",
        thresholds: Thresholds | None = None,
        generation_model_id: str,
        prompt_version: str,
        ttl_s: int = DEFAULT_TTL_S,
        max_entries: int = DEFAULT_MAX_ENTRIES,
        now_s: Callable[[], float] = time.time,
        monotonic: Callable[[], float] = time.monotonic,
        new_suffix: Callable[[], str] = lambda: secrets.token_hex(_ID_BYTES),
    ) -> None:
        """Wire the cache.

        Args:
            store: where entries and bodies lie.
            embedder: one that remembers: the same query is embedded for the search as well.
            sharing: among whom answers are shared.
            thresholds: how near is near; those of the embedding model when absent.
            generation_model_id: of the model that writes grounded answers.
            prompt_version: of the prompt that it writes them from.
            ttl_s: seconds that an answer is kept.
            max_entries: answers of one scope.
            now_s: epoch seconds.
            monotonic: seconds, for time budgets.
            new_suffix: tells entries of one millisecond apart; random letters or digits.
        """
        self._store = store
        self._embedder = embedder
        self._sharing: Sharing = sharing
        self._thresholds = thresholds or thresholds_of(embedder.model_id)
        self._generation_model_id = generation_model_id
        self._prompt_version = prompt_version
        self._ttl_s = ttl_s
        self._max_entries = max_entries
        self._now_s = now_s
        self._monotonic = monotonic
        self._new_suffix = new_suffix
        self._held = HeldScopes(embedder.dimensions)

    def look_up(self, asked: Asked, index_version: str, *, time_budget_s: float) -> Looked:
        """Find an earlier answer that can be given again, or whose contexts are of use.

        Warm, it costs one Query for what is newer than what this worker knows, and a read of each body that is used.

        Args:
            asked: the question.
            index_version: that a search would use now.
            time_budget_s: seconds, for embedding the question and for reading. No call is begun after it; one that is
                under way ends by its own time-out.

        Raises:
            CacheUnavailable: the store does not answer, or not in time.
            ModelBusy, ModelUnavailable, ModelRefused: the question could not be embedded.
        """
        started = self._monotonic()
        looked = self._look_up(asked, index_version, started + time_budget_s, time_budget_s)
        tell(
            logger,
            "looked_up",
            "earlier answers looked up",
            outcome=looked.use,
            similarity=round(looked.similarity, 4),
            compared=looked.compared,
            refused_by=looked.refused_by,
            took_ms=round((self._monotonic() - started) * 1000),
        )
        return looked

    def _look_up(self, asked: Asked, index_version: str, deadline: float, time_budget_s: float) -> Looked:
        vector = self._vector(asked.query, time_budget_s)
        scope = self._scope(asked, index_version)
        digest = scope.digest
        held = self._held.of(digest)
        known = self._refreshed(digest, held, deadline)
        now_s = self._now_s()
        nearest = known.nearest(vector, at_least=-1.0, limit=CANDIDATES, now_s=now_s)
        decision = decide(asked.query, scope.language, nearest, self._thresholds)
        miss = Looked(
            use="miss",
            compared=known.alive(now_s),
            similarity=_share(nearest[0][1]) if nearest else 0.0,
            refused_by=decision.refused_by,
            index_version=index_version,
        )
        for choice in decision.choices[:MAX_BODIES_READ]:
            body = self._body(digest, held, choice.entry, deadline)
            if body is not None and (choice.use == "answer" or serves(choice, body)):
                return _found(miss, choice, body)
        return miss

    def keep(self, given: AnswerGiven) -> None:
        """Keep an answer that may be given again: see :class:`cicada.answering.strategy.Keeper`."""
        reason = reason_not_to_keep(given)
        if reason is None:
            try:
                reason = self._keep(given)
            except BodyTooLarge as error:
                reason = f"too large: {error}"
            except CicadaError as error:
                tell(
                    logger,
                    "fault",
                    "an answer was not kept",
                    level=logging.WARNING,
                    code=error.code,
                    why=str(error),
                    dependency="cache",
                )
                return
        if reason is None:
            tell(logger, "kept", "the answer can be given again", where="cache")
        else:
            logger.debug("the answer is not kept in the cache", extra={"why": reason})

    def _keep(self, given: AnswerGiven) -> str | None:
        """Write an answer; returns why not, if it does not."""
        retrieved, asked = given.retrieved, given.asked
        assert retrieved is not None  # see reason_not_to_keep
        body = pack_body(
            Body(
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
        held = self._held.of(digest)
        known = self._refreshed(digest, held, self._monotonic() + KEEP_BUDGET_S)
        plain = normalised(asked.query)
        if any(normalised(entry.question) == plain and entry.expires_at > now_s for entry in known.entries):
            return "kept already"
        entry = Entry(
            id=f"{given.at_ms:013d}-{self._new_suffix()}",
            question=asked.query,
            vector=pack_vector(vector),
            answered_at_ms=given.at_ms,
            expires_at=expires_at,
        )
        self._store.put(digest, entry, body)
        held.add([entry], keep=self._max_entries, now_s=now_s)
        surplus = len(known.entries) + 1 - self._max_entries
        if surplus > 0:
            self._store.delete(digest, [old.id for old in known.entries[:surplus]])
        return None

    def _vector(self, query: str, time_budget_s: float) -> Vector:
        try:
            vector: Vector = np.asarray(unit_vectors(self._embedder, [query], time_budget_s=time_budget_s)[0])
        except IndexMismatch as error:
            raise CacheUnavailable(f"the question's vector is of no use: {error}") from error
        return vector

    def _scope(self, asked: Asked, index_version: str) -> Scope:
        return Scope(
            shared_by=shared_by(asked, self._sharing),
            index_version=index_version,
            collections=asked.question.collections,
            episodes=asked.question.episodes,
            top_k=asked.question.top_k,
            language=language_of(asked.query),
            generation_model_id=self._generation_model_id,
            prompt_version=self._prompt_version,
            embedding_model_id=self._embedder.model_id,
            dimensions=self._embedder.dimensions,
        )

    def _refreshed(self, digest: str, held: HeldScope, deadline: float) -> Snapshot:
        """What is known of a scope, with what was added since."""
        self._check_time(deadline)
        entries = held.snapshot.entries
        after = f"{max(0, int(entries[-1].id[:13]) - OVERLAP_MS):013d}" if entries else ""
        held.add(
            self._store.entries(digest, after=after, limit=self._max_entries),
            keep=self._max_entries,
            now_s=self._now_s(),
        )
        return held.snapshot

    def _body(self, digest: str, held: HeldScope, entry: Entry, deadline: float) -> Body | None:
        """An entry's body; None if it is gone or damaged, and then the entry is not looked at again."""
        self._check_time(deadline)
        data = self._store.body(digest, entry.id)
        try:
            if data is not None and (body := unpack_body(data)).question == entry.question:
                return body
        except BodyUnreadable as error:
            logger.warning("an earlier answer cannot be read", extra={"entry": entry.id, "why": str(error)})
        held.forget(entry.id)
        return None

    def _check_time(self, deadline: float) -> None:
        if self._monotonic() >= deadline:
            raise CacheUnavailable("no time is left to read earlier answers")


def _found(miss: Looked, choice: Choice, body: Body) -> Looked:
    return Looked(
        use=choice.use,
        compared=miss.compared,
        similarity=_share(choice.similarity),
        refused_by=miss.refused_by,
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
    """A cosine as a similarity in [0, 1]: questions that point apart have nothing in common."""
    return round(min(1.0, max(0.0, cosine)), 4)

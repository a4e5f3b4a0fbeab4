"""Sessions that the scripted server plays, and what is asked to get them."""

from __future__ import annotations

from cicada.corpus.passages import ScriptLocator
from cicada.protocol.events import (
    Accepted,
    Attempt,
    Chunk,
    Citation,
    Citations,
    Complete,
    Fallback,
    LogEvent,
    Metrics,
    Source,
    Sources,
    StrategyFailure,
)

_EPISODES = {
    "ep1": "First Draft: The Boathouse",
    "ep2": "Second Draft: The Gauge Tower",
    "ep3": "Third Draft: The Ice Cellar",
    "ep4": "Fourth Draft: The Empty Chair",
}
_PASSAGES = (
    ("Winifred", "ep1", "ep1-ch4", "The green ledger goes back in the dresser, and the key goes back on my belt."),
    ("Corin", "ep1", "ep1-ch3", "I locked the water gate at nine. There is one key, and it hangs on my neck."),
    (
        "Narrator",
        "ep2",
        "ep2-ch1",
        "The causeway went under at twenty to five, and the house was an island until Friday.",
    ),
    ("Tamsin", "ep3", "ep3-ch3", "Still air. Listen for what does not ring."),
    ("Edda", "ep4", "ep4-ch5", "One chair too many, the line says. So who was it that never came down?"),
    ("Ilse", "ep1", "ep1-ch5", "He was dead before the bell rang. The water was in his pockets, not in his lungs."),
)


def source(n: int, text: str | None = None) -> Source:
    """The n-th source."""
    speaker, episode_id, chapter_id, words = _PASSAGES[(n - 1) % len(_PASSAGES)]
    return Source(
        n=n,
        passage_id=f"{episode_id}-{n:04}",
        collection="script",
        locator=ScriptLocator(
            episode_id=episode_id,
            episode_name=_EPISODES[episode_id],
            chapter_id=chapter_id,
            message_id=f"{episode_id}-{n:04}",
            speaker=speaker,
        ),
        score=max(0.5, 0.91 - 0.06 * n),
        text=text or words,
    )


def accepted(route: str = "rag") -> Accepted:
    """The request exists."""
    return Accepted.model_validate(
        {"route": route, "confidence": 0.93, "reasoning": "asks about the story", "strategy": route}
    )


def attempt(number: int = 1, strategy: str = "rag") -> Attempt:
    """A strategy begins."""
    return Attempt.model_validate({"attempt": number, "strategy": strategy})


def sources(count: int = 6, number: int = 1, text: str | None = None) -> Sources:
    """The search is done."""
    found = tuple(source(n, text) for n in range(1, count + 1))
    return Sources(attempt=number, index_version="v1", searched=712, sources=found)


def chunk(content: str, number: int = 1) -> Chunk:
    """A piece of text."""
    return Chunk(attempt=number, content=content)


def citation(n: int, sentence: str, reason: str | None = None) -> Citation:
    """A citation; unverified where there is a reason."""
    return Citation.model_validate(
        {"n": n, "verdict": "unverified" if reason else "verified", "sentence": sentence, "reason": reason}
    )


def citations(*found: Citation, number: int = 1) -> Citations:
    """Checked citations."""
    return Citations(attempt=number, citations=found)


def complete(number: int = 1, strategy: str = "rag", *, grounded: bool = True, failed: str | None = None) -> Complete:
    """The end."""
    lost = {"strategy": "rag", "code": "stream_broken", "reason": failed}
    return Complete.model_validate(
        {
            "attempt": number,
            "answeredBy": strategy,
            "attempted": ["rag", strategy] if failed else [strategy],
            "model": "local.extractive",
            "grounded": grounded,
            "stopReason": "end_turn",
            "failed": [StrategyFailure.model_validate(lost)] if failed else [],
            "metrics": Metrics(
                latency_ms=1840,
                attempt_ms=1700,
                first_chunk_ms=620,
                retrieval_latency_ms=12,
                model_calls=1,
                input_tokens=1432,
                output_tokens=58,
                cost_usd=0.00123,
                price_date="2026-01-01",
                sources_found=6,
                sources_used=1,
                passages_cited=2,
            ),
        }
    )


def fallback() -> Fallback:
    """The search's answer broke off."""
    return Fallback.model_validate(
        {"from": "rag", "to": "direct", "code": "stream_broken", "reason": "The answer was interrupted."}
    )


QUESTION = "Who locked the boathouse, and who has the key?"
PIECES = (
    "Corin says that he locked the water gate at nine: ",
    "“There is one key, and it hangs on my neck.” [2]",
    "\n\nWinifred keeps another key, ",
    "to the dresser where the ledger lies [1",
    ", 3]",
    ". Nobody says which of them was used.",
)
ANSWER = "".join(PIECES)
CITATIONS = (
    citation(2, "Corin says that he locked the water gate at nine: “There is one key, and it hangs on my neck.”"),
    citation(1, "Winifred keeps another key, to the dresser where the ledger lies."),
    citation(
        3,
        "Winifred keeps another key, to the dresser where the ledger lies.",
        "the passage holds 20% of what the sentence says",
    ),
)
EPISODES = [{"id": "ep1", "name": "First Draft"}, {"id": "ep2", "name": "Second Draft"}]
WHOLE: list[LogEvent] = [accepted(), attempt(), sources(), *map(chunk, PIECES), citations(*CITATIONS), complete()]
"""The session that answers :data:`QUESTION`: its events from 4 to 9 bring the text."""

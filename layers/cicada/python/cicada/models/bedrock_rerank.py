"""Re-ranking by Amazon Bedrock's InvokeModel, with Amazon Rerank and Cohere Rerank.

Both take a query and texts and return a relevance a text, best first; Cohere's body also names its API version.
Sources: Amazon Bedrock User Guide, "Supported Regions and models for reranking" and "Use a reranker model"; Cohere,
"Rerank on Amazon Bedrock". The models are not in every Region.
"""

from __future__ import annotations

import json
import math
from collections.abc import Sequence
from typing import Any, Unpack

from cicada.errors import AnswerMalformed, ModelError, ModelRefused
from cicada.models.bedrock import BedrockModel, read_failure
from cicada.models.model_ids import read_model_id
from cicada.models.ports import ModelUse, Reranked, TokenBudget, Usage
from cicada.models.prices import queries
from cicada.models.retries import QUERY, Pace, Pacing
from cicada.models.unary_calls import UnaryCalls

MAX_TEXTS = 1_000
"""Of one call; longer lists go out in several."""
MAX_TEXT_CHARS = 32_000
"""Of a text, what is judged; of the query, what is sent. Source: Bedrock's Rerank API, RerankTextDocument."""
_COHERE_API_VERSION = 2


class BedrockReranker(BedrockModel):
    """A re-ranking model on Bedrock; the port's contract is :class:`cicada.models.ports.Reranker`."""

    def __init__(self, client: Any, model_id: str, **pacing: Unpack[Pacing]) -> None:
        """``client`` is configured by ``bedrock_client_config``; the model is one of Amazon's or Cohere's."""
        super().__init__(client, model_id)
        pacing.setdefault("retry", QUERY)
        self._pace = Pace(**pacing)

    def rerank(self, query: str, texts: Sequence[str], *, time_budget_s: float, call_scope: TokenBudget) -> Reranked:
        """See the port; a blank text scores 0 and is not sent. An error's ``usage`` is that of all calls.

        Raises:
            ModelRefused: the query is blank, or the service rejects the call.
            AnswerMalformed: an answer that cannot be read, or lacks a text.
        """
        if not query.strip():
            raise ModelRefused("the query is blank")
        started_s = self._pace.clock()
        places = [place for place, text in enumerate(texts) if text.strip()]
        scores = [0.0] * len(texts)
        charged = Usage()
        calls = UnaryCalls(call_scope, started_s + time_budget_s, self._pace, read_failure=read_failure)
        with calls:
            for first in range(0, len(places), MAX_TEXTS):
                batch = places[first : first + MAX_TEXTS]
                sent = [texts[place][:MAX_TEXT_CHARS] for place in batch]
                most = Usage(queries=queries(query, sent))
                call_scope.allow(self.model_id, most)
                try:
                    content = self._call(calls, query[:MAX_TEXT_CHARS], sent)
                    charged += most
                    for place, score in zip(batch, _read_scores(content, len(sent)), strict=True):
                        scores[place] = score
                except ModelError as error:
                    if calls.count:
                        error.usage = charged + Usage(reported=not calls.lost)
                    raise
        if not calls.count:
            return Reranked(tuple(scores), ())
        took_ms = round((self._pace.clock() - started_s) * 1000)
        usage = charged + Usage(reported=not calls.lost)
        return Reranked(tuple(scores), (ModelUse("rerank", self.model_id, calls.count, usage, took_ms),))

    def _call(self, calls: UnaryCalls, query: str, texts: Sequence[str]) -> bytes:
        body: dict[str, Any] = {"query": query, "documents": list(texts), "top_n": len(texts)}
        if read_model_id(self.model_id).base.startswith("cohere."):
            body["api_version"] = _COHERE_API_VERSION

        return calls.make(lambda: self._invoke(body))


def _read_scores(content: bytes, count: int) -> list[float]:
    """The relevance of each text, in the order of the texts."""
    try:
        found = {int(result["index"]): float(result["relevance_score"]) for result in json.loads(content)["results"]}
        scores = [found[place] for place in range(count)]
    except (ValueError, KeyError, TypeError) as error:
        raise AnswerMalformed(f"cannot parse the re-ranking response: {type(error).__name__}") from error
    if not all(math.isfinite(score) for score in scores):
        raise AnswerMalformed("the re-ranking response has a score that is not finite")
    return [min(max(score, 0.0), 1.0) for score in scores]

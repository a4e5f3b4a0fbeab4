"""The local cloud's stand-in for a language model: an extractive answerer.

It reads the prompt as a model would get it, chooses the passages' sentences that answer the question, and quotes them
with their numbers, or says that it found nothing. It writes no word of its own about the story, and what a passage
says is quoted or left out, never obeyed. A question that a prompt shows with the turns before it is completed from
them. The same prompt always gets the same answer.
"""

from __future__ import annotations

import threading
from collections import OrderedDict
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from cicada_local.bedrock.extractive.completing import asks_to_complete, complete_from
from cicada_local.bedrock.extractive.documents import find
from cicada_local.bedrock.extractive.filling import fill
from cicada_local.bedrock.extractive.prompt import parse_prompt
from cicada_local.bedrock.extractive.prose import NOTHING_FOUND, write
from cicada_local.bedrock.extractive.relevance import relevance
from cicada_local.bedrock.extractive.selection import MAX_QUOTES, Quoted, select
from cicada_local.bedrock.extractive.small_talk import CANNOT_CONSULT, small_talk
from cicada_local.bedrock.extractive.text import content_stems
from cicada_local.bedrock.minilm import SentenceEmbedder
from cicada_local.bedrock.minilm_encoder import DIMENSIONS, Floats
from cicada_local.bedrock.tools import Tool

MAX_PASSAGES = 40
"""Of a prompt, the passages that are looked at: the most relevant. It bounds the time of an answer."""
REMEMBERED_TEXTS = 8192
"""Vectors kept in memory, 1.5 KB each."""


class ExtractiveAnswerer:
    """Answers prompts from their own passages. Thread-safe.

    Beside the question it embeds each line of a script as its index does: with an embedder that remembers
    (:class:`cicada_local.bedrock.minilm.CachedEmbedder`) most of these vectors are there already. Of documents it
    embeds :data:`~cicada_local.bedrock.extractive.documents.MAX_EMBEDDED` excerpts.
    """

    def __init__(self, embedder: SentenceEmbedder) -> None:
        self._embedder = RecentEmbeddings(embedder)

    def answer(self, system: str, user: str) -> str:  # noqa: ARG002 - what it asks of a writer, a quoter does anyway
        """Answer a prompt; any string is one.

        Args:
            system: the instructions.
            user: the passages and the question as :mod:`cicada.answering.prompt` writes them; without passages only
                small talk is answered, and one that begins with the turns of a conversation asks to complete a
                question, as :mod:`cicada.conversation.completion` does.

        Returns:
            Plain text, never empty but where there is no question to complete; each quotation is followed by its
            passage's ``[n]``.
        """
        if asks_to_complete(user):
            return complete_from(user)
        prompt = parse_prompt(user)
        if reply := small_talk(prompt.question, prompt.passages):
            return reply
        if not prompt.grounded:
            return CANNOT_CONSULT
        about = content_stems(prompt.question)
        if not about:
            return NOTHING_FOUND
        passages = sorted(prompt.passages, key=lambda passage: -passage.relevance)[:MAX_PASSAGES]
        spoken = [passage for passage in passages if passage.speaker]
        written = [passage for passage in passages if not passage.speaker]
        quoted = [
            *(Quoted(one.passage, words=one.text) for one in find(prompt.question, written, self._embedder)),
            *select(prompt.question, spoken, self._embedder),
        ]
        return write(quoted[:MAX_QUOTES], about)

    def fill(self, system: str, user: str, tool: Tool) -> Mapping[str, Any]:
        """Fill in a tool's input from the prompt: see :mod:`cicada_local.bedrock.extractive.filling`."""
        return fill(user, tool.schema, self._embedder, system=system)

    def rank(self, query: str, texts: Sequence[str]) -> list[float]:
        """How relevant each text is to a query, in [0, 1]."""
        return relevance(query, texts, self._embedder)


class RecentEmbeddings:
    """Remembers the vectors of the texts that were embedded last. Thread-safe."""

    def __init__(self, embedder: SentenceEmbedder, size: int = REMEMBERED_TEXTS) -> None:
        self._embedder = embedder
        self._size = size
        self._vectors: OrderedDict[str, Floats] = OrderedDict()
        self._lock = threading.Lock()

    def embed(self, texts: Sequence[str]) -> Floats:
        """Return shape ``(n, 384)``: see :class:`cicada_local.bedrock.minilm.SentenceEmbedder`."""
        with self._lock:
            known = {text: self._vectors[text] for text in texts if text in self._vectors}
        unknown = list(dict.fromkeys(text for text in texts if text not in known))
        if unknown:
            known |= dict(zip(unknown, self._embedder.embed(unknown), strict=True))
        with self._lock:
            for text in texts:
                self._vectors[text] = known[text]
                self._vectors.move_to_end(text)
            while len(self._vectors) > self._size:
                self._vectors.popitem(last=False)
        return np.array([known[text] for text in texts], dtype=np.float32).reshape(len(texts), DIMENSIONS)

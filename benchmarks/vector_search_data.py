"""Vectors for the vector benchmark: hard synthetic ones, and MiniLM's of real documentation.

Synthetic: 2,000 gaussian clusters with Zipf-distributed weights, centres and clusters having standard deviations that
fall as a power law along the axes of a random basis, scaled to unit length. Half of the queries are draws of their own,
half are rows with noise. Nearest neighbours are harder to tell apart in them than in text.

Real: the documentation strings of botocore's service models, at most 30 words each, in a fixed random order, embedded
by all-MiniLM-L6-v2; the last 500 are queries.
"""

from __future__ import annotations

import gzip
import html
import json
import random
import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import botocore
import numpy as np
from numpy.typing import NDArray

from cicada_local.bedrock.minilm import MiniLM

Floats = NDArray[np.float32]

REAL_QUERIES = 500
_CLUSTERS = 2_000
_SPECTRUM_EXPONENT = 0.4
_SPREAD = 0.8
"""Of a cluster, as a share of the spread of the centres."""
_QUERY_NOISE = 0.5
"""Length of the noise that makes a query of a row."""
_WORDS = range(6, 31)
_BATCH = 2_000


@dataclass(frozen=True)
class VectorSet:
    """Rows to search, shape ``(n, d)``, and queries, shape ``(q, d)``; all of unit length."""

    name: str
    rows: Floats
    queries: Floats


def synthetic(count: int, dimensions: int, query_count: int) -> VectorSet:
    """Draw a hard set."""
    generator = np.random.default_rng(0)
    spectrum = (np.arange(1, dimensions + 1) ** -_SPECTRUM_EXPONENT).astype(np.float32)
    spectrum /= np.linalg.norm(spectrum)
    basis = np.linalg.qr(generator.standard_normal((dimensions, dimensions)))[0].astype(np.float32)
    centres = generator.standard_normal((_CLUSTERS, dimensions), dtype=np.float32) * spectrum
    weights = 1 / np.arange(1, _CLUSTERS + 1)
    weights /= weights.sum()
    drawn = np.empty((count + query_count, dimensions), dtype=np.float32)
    for start in range(0, len(drawn), 65_536):
        block = drawn[start : start + 65_536]
        block[:] = generator.standard_normal(block.shape, dtype=np.float32)
        block *= _SPREAD * spectrum
        block += centres[generator.choice(_CLUSTERS, len(block), p=weights)]
        block /= np.linalg.norm(block, axis=1, keepdims=True)
        block[:] = block @ basis
    rows, queries = drawn[:count], drawn[count:]
    half = query_count // 2
    noise = generator.standard_normal((half, dimensions), dtype=np.float32) * np.float32(_QUERY_NOISE / dimensions**0.5)
    queries[:half] = rows[generator.choice(count, half, replace=False)] + noise
    queries /= np.linalg.norm(queries, axis=1, keepdims=True)
    return VectorSet(f"synthetic {count:,} x {dimensions}", rows, queries)


def read_real(path: Path, count: int | None, query_count: int) -> VectorSet:
    """Read what :func:`make_real` wrote; the first ``count`` rows, or all."""
    vectors = np.load(path, mmap_mode="r")
    rows = np.array(vectors[:-REAL_QUERIES][:count])
    return VectorSet(f"real {len(rows):,} x {rows.shape[1]}", rows, np.array(vectors[-REAL_QUERIES:][:query_count]))


def make_real(count: int, path: Path) -> None:
    """Embed documentation strings and write ``count`` rows, or as many as there are, and the queries."""
    texts = list(dict.fromkeys(_documentation()))
    random.Random(0).shuffle(texts)
    texts = texts[: count + REAL_QUERIES]
    model = MiniLM.load()
    vectors = np.lib.format.open_memmap(path, mode="w+", dtype=np.float32, shape=(len(texts), 384))
    for start in range(0, len(texts), _BATCH):
        vectors[start : start + _BATCH] = model.embed(texts[start : start + _BATCH])
        print(f"\rembedded {min(start + _BATCH, len(texts)):,} of {len(texts):,}", end="", flush=True)
    vectors.flush()
    print(f"\n{path}: {len(texts) - REAL_QUERIES:,} rows and {REAL_QUERIES} queries")


def _documentation() -> Iterator[str]:
    for file in sorted((Path(botocore.__file__).parent / "data").rglob("service-2.json.gz")):
        for text in _strings(json.loads(gzip.decompress(file.read_bytes()))):
            words = html.unescape(re.sub(r"<[^>]+>", " ", text)).split()[: _WORDS.stop - 1]
            if len(words) in _WORDS:
                yield " ".join(words)


def _strings(model: Any) -> Iterator[str]:
    """Every documentation string of a service model, in the order of the file."""
    if isinstance(model, dict):
        for key, value in model.items():
            if key == "documentation" and isinstance(value, str):
                yield value
            else:
                yield from _strings(value)
    elif isinstance(model, list):
        for value in model:
            yield from _strings(value)

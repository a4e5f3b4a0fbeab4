"""Vector search beside FAISS.

``OPENBLAS_NUM_THREADS=1 python -m benchmarks.vector_search [--sets 100000x384 ...] [--real PATH]``

CPU time of one query on one thread, top 10, the median over the queries. The engines take turns every 20 queries, so
that whatever else runs on the machine slows all of them. Peers: FAISS's exact scan of float32 (``IndexFlatIP``), and
its scan of 1-bit codes (``IndexBinaryFlat`` over the signs of ``row - mean``) with as many rows scored again in float32
as ours scores again. Recall is recall@10, against every row scored in float32, with a 95 % interval by the bootstrap
over queries.

Filtered: 1 % of the rows, drawn at random, may be found. Cold: only the heads are in memory; bytes and ranges are what
one search asks for. Memory: sections, opened heads and a thread's scratch, over one bit and one byte a number.

``--make-real N PATH`` embeds real passages with the local MiniLM (a few hundred a second) for ``--real PATH``.
"""

from __future__ import annotations

import argparse
import json
import sys
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from benchmarks.peers import peer
from benchmarks.vector_search_data import Floats, VectorSet, make_real, read_real, synthetic
from cicada.index.segment_format import Encoded, Span
from cicada.index.vectors import scan
from cicada.index.vectors.encoding import encode_vectors
from cicada.index.vectors.part import EXACT, VectorPart
from cicada.index.vectors.search import rescored_rows, search_vectors
from tests.support.sections import MemorySections, gather_resident

SEGMENT_ROWS = 262_144
TOP_K = 10
TURN = 20
WARM_UP = 10
BOOTSTRAPS = 2_000
Search = Callable[[Floats], Sequence[int]]


def scratch_bytes() -> int:
    """What this thread's searches keep for the next one."""
    return sum(len(buffer) for buffer in scan._buffers.by_use.values())


class SearchedSections(MemorySections):
    """Sections in memory, without the exact rows, which no search reads."""

    def __init__(self, encoded: Encoded) -> None:
        body = {name: data for name, data in encoded.body.items() if name != EXACT}
        super().__init__({"vectors": Encoded(encoded.meta, encoded.head, body)})
        self._exact_size = len(encoded.body[EXACT])

    def size(self, name: str) -> int:
        """Bytes of a section, the one that was dropped included."""
        return self._exact_size if name == EXACT else super().size(name)


class ColdSections:
    """The same sections with nothing but the head in memory."""

    def __init__(self, stored: MemorySections) -> None:
        self.stored = stored
        self.meta, self.head, self.size = stored.meta, stored.head, stored.size

    def resident(self, name: str) -> None:  # noqa: ARG002 (the protocol's)
        """Nothing is."""
        return


class Ours:
    """The vectors in segments, as a function would have them."""

    def __init__(self, rows: Floats) -> None:
        began = time.process_time()
        pieces = np.array_split(np.arange(len(rows)), -(-len(rows) // SEGMENT_ROWS))
        self._inputs: list[NDArray[np.intp]] = []
        self._sections: list[SearchedSections] = []
        for piece in pieces:
            order, encoded = encode_vectors(rows[piece[0] : piece[-1] + 1])
            self._inputs.append(piece[order])
            self._sections.append(SearchedSections(encoded))
        self.encode_s = time.process_time() - began
        sizes = [len(piece) for piece in pieces]
        dimensions = rows.shape[1]
        self._warm = [VectorPart(held, n, dimensions) for held, n in zip(self._sections, sizes, strict=True)]
        cold = [ColdSections(held) for held in self._sections]
        self._cold = [VectorPart(held, n, dimensions) for held, n in zip(cold, sizes, strict=True)]
        self.reads: list[tuple[int, int]] = []
        """Of each cold search the ranges and the bytes."""

    def search(self, query: Floats) -> list[int]:
        """Everything is in memory."""
        return self._found(search_vectors(self._warm, query, [None] * len(self._warm), TOP_K, gather_resident))

    def search_filtered(self, allowed: NDArray[np.bool_]) -> Search:
        """A search among some of the rows."""
        masks = [allowed[inputs] for inputs in self._inputs]
        return lambda query: self._found(search_vectors(self._warm, query, masks, TOP_K, gather_resident))

    def search_cold(self, query: Floats) -> list[int]:
        """Only the heads are in memory."""
        return self._found(search_vectors(self._cold, query, [None] * len(self._cold), TOP_K, self._read))

    def head_bytes(self) -> int:
        """Bytes of the heads."""
        return sum(part.centroids.nbytes // 2 + 8 * len(part.offsets) for part in self._warm)

    def resident_bytes(self) -> int:
        """All that a warm search keeps in memory."""
        opened = sum(
            value.nbytes for part in self._warm for value in vars(part).values() if isinstance(value, np.ndarray)
        )
        bodies = sum(held.size(name) for held in self._sections for name in VectorPart.body_names)
        return opened + bodies + self.head_bytes() + scratch_bytes()

    def _read(self, spans: Sequence[Span]) -> list[memoryview]:
        self.reads.append((len(spans), sum(span.length for span in spans)))
        stored = [
            Span(span.sections.stored, span.name, span.start, span.length)
            for span in spans
            if isinstance(span.sections, ColdSections)
        ]
        return gather_resident(stored)

    def _found(self, hits: Any) -> list[int]:
        return [int(self._inputs[segment][row]) for segment, row in zip(hits.segment, hits.row, strict=True)]


class Faiss:
    """The peers over the same rows."""

    def __init__(self, faiss: Any, rows: Floats, rescored: int) -> None:
        faiss.omp_set_num_threads(1)
        count, dimensions = rows.shape
        self._rows, self._rescored = rows, rescored
        self._mean = rows.mean(axis=0)
        self._flat = faiss.IndexFlatIP(dimensions)
        self._binary = faiss.IndexBinaryFlat(dimensions)
        for start in range(0, count, 65_536):
            block = rows[start : start + 65_536]
            self._flat.add(block)
            self._binary.add(np.packbits(block > self._mean, axis=1))

    def flat(self, query: Floats) -> list[int]:
        """Score every row in float32."""
        found: list[int] = self._flat.search(query[None], TOP_K)[1][0].tolist()
        return found

    def binary(self, query: Floats) -> list[int]:
        """Compare the signs of every row, and score the best in float32."""
        _, found = self._binary.search(np.packbits(query > self._mean)[None], self._rescored)
        candidates = found[0]
        best = np.argsort(-(self._rows[candidates] @ query), kind="stable")[:TOP_K]
        return [int(candidate) for candidate in candidates[best]]


def take_turns(searches: dict[str, Search], queries: Floats) -> tuple[dict[str, float], dict[str, list[Sequence[int]]]]:
    """Median CPU milliseconds of each engine, and what it found for each query."""
    took: dict[str, list[float]] = {name: [] for name in searches}
    found: dict[str, list[Sequence[int]]] = {name: [] for name in searches}
    for search in searches.values():
        for query in queries[:WARM_UP]:
            search(query)
    for start in range(0, len(queries), TURN):
        for name, search in searches.items():
            search(queries[start - 1])  # another engine's rows are in the caches
            for query in queries[start : start + TURN]:
                began = time.process_time()
                found[name].append(search(query))
                took[name].append(1e3 * (time.process_time() - began))
    return {name: float(np.median(times)) for name, times in took.items()}, found


def recall(found: Sequence[Sequence[int]], true: Sequence[Sequence[int]]) -> dict[str, float]:
    """Recall@10 with a 95 % interval."""
    shares = np.array([len(set(some) & set(best)) / len(best) for some, best in zip(found, true, strict=True)])
    drawn = np.random.default_rng(0).integers(0, len(shares), (BOOTSTRAPS, len(shares)))
    low, high = np.percentile(shares[drawn].mean(axis=1), (2.5, 97.5))
    return {"recall": float(shares.mean()), "low": float(low), "high": float(high)}


def bench(vectors: VectorSet) -> dict[str, Any]:
    """Measure one set and print the figures."""
    rows, queries = vectors.rows, vectors.queries
    count, dimensions = rows.shape
    ours = Ours(rows)
    rescored = rescored_rows(count, TOP_K)
    allowed: NDArray[np.bool_] = np.asarray(np.random.default_rng(1).random(count) < 0.01)
    few = np.flatnonzero(allowed)
    exact = [few[np.argsort(-scores)[:TOP_K]].tolist() for scores in queries @ rows[few].T]
    searches: dict[str, Search] = {
        "ours": ours.search,
        "ours, filter of 1 %": ours.search_filtered(allowed),
    }
    if faiss := peer("faiss"):
        peers = Faiss(faiss, rows, rescored)
        searches |= {"FAISS flat": peers.flat, f"FAISS binary, {rescored} again": peers.binary}
    took, found = take_turns(searches, queries)
    true = [np.argsort(-(rows @ query))[:TOP_K].tolist() for query in queries]
    recalls = {name: recall(some, exact if "filter" in name else true) for name, some in found.items()}
    cold = recall([ours.search_cold(query) for query in queries], true)
    ranges, read = np.median(ours.reads, axis=0)
    result = {
        "set": vectors.name,
        "queries": len(queries),
        "cpu_ms": took,
        "recall": recalls,
        "cold": {"ranges": ranges, "bytes": read, "head_bytes": ours.head_bytes(), **cold},
        "resident_ratio": ours.resident_bytes() / (count * dimensions * 9 / 8),
        "encode_s": ours.encode_s,
    }
    print(f"\n{vectors.name}, {len(queries)} queries")
    for name in searches:
        ratio = "" if name == "ours" else f"   ours takes 1/{took[name] / took['ours']:.2f}"
        print(f"  {name:28s} {took[name]:8.3f} ms   recall {_shown(recalls[name])}{ratio}")
    print(
        f"  cold: {ranges:.0f} ranges, {read / 1e6:.1f} MB (heads {ours.head_bytes() / 1e6:.1f}), recall {_shown(cold)}"
    )
    print(f"  memory: {result['resident_ratio']:.3f} of codes and int8 rows; encoding took {ours.encode_s:.1f} s")
    return result


def _shown(measured: dict[str, float]) -> str:
    return f"{measured['recall']:.4f} ({measured['low']:.4f} to {measured['high']:.4f})"


def main(argv: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(prog="vector_search", description=__doc__.splitlines()[0])
    parser.add_argument("--sets", nargs="*", default=["100000x384", "100000x1024"], help="synthetic, ROWSxDIMENSIONS")
    parser.add_argument("--real", type=Path, help="a file that --make-real wrote")
    parser.add_argument("--real-rows", type=int, help="of that file (default: all)")
    parser.add_argument("--queries", type=int, default=200, help="a set (default: %(default)s)")
    parser.add_argument("--json", type=Path, help="write the figures here too")
    parser.add_argument("--make-real", nargs=2, metavar=("N", "PATH"), help="embed real passages and stop")
    args = parser.parse_args(argv)
    if args.make_real:
        make_real(int(args.make_real[0]), Path(args.make_real[1]))
        return 0
    results = []
    if args.real:
        results.append(bench(read_real(args.real, args.real_rows, args.queries)))
    for shape in args.sets:
        count, dimensions = map(int, shape.split("x"))
        results.append(bench(synthetic(count, dimensions, args.queries)))
    if args.json:
        args.json.write_text(json.dumps(results, indent=1) + "\n", encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main())

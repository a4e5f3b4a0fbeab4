"""Lexical search beside tantivy and bm25s: ``python -m benchmarks.lexical_search [--sizes 100000 1000000]``.

Synthetic passages (about 90 words, Zipf-distributed over a vocabulary of 120,000), queries of 3 to 6 distinct words, no
query twice, top 10, one thread. CPU time of the whole search from the query's text on, the median and the 99th
percentile over the queries, after a warm-up with other queries. Nothing of a query is remembered but dictionary
entries (at most 16,384 a segment). Quality is measured against BM25 in double precision over the same words.

With ``--datasets FOLDER``: nDCG@10 on each BEIR-style set in the folder, with 95 % intervals over the queries (paired
for the differences), beside bm25s and an exact BM25 with the same analysis.
"""

from __future__ import annotations

import argparse
import json
import math
import sys
import time
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from benchmarks.peers import peer
from cicada.corpus.indexable import WeightedText
from cicada.index.lexical import K1, MAX_ROWS, B
from cicada.index.lexical.analysis import analyse
from cicada.index.lexical.codec import TermRows, encode_lexical
from cicada.index.lexical.part import LexicalPart
from cicada.index.lexical.query_parser import QueryAnalyzer, QueryTerm
from cicada.index.lexical.search import LexicalQuery
from tests.support.sections import MemorySections, gather_resident

VOCABULARY = 120_000
WORDS_A_PASSAGE = 90
LETTERS = "bcdfghjklmnpqrtvwxz"  # words without vowels, which stemmers leave alone
TOP_K = 10
BOOTSTRAPS = 2000
Search = Callable[[str], Sequence[int]]


# --- synthetic passages ---


def words() -> list[str]:
    """The vocabulary, the most frequent word first."""
    space = len(LETTERS) ** 6
    spelled = []
    for rank in range(1, VOCABULARY + 1):
        number, word = rank * 29_986_577 % space, ""
        for _ in range(6):
            number, letter = divmod(number, len(LETTERS))
            word += LETTERS[letter]
        spelled.append(word)
    return spelled


def zipf_passages(count: int) -> tuple[NDArray[np.uint32], NDArray[np.int64]]:
    """Word numbers of all passages one after the other, and where each passage begins (and the last ends)."""
    generator = np.random.default_rng(1)
    lengths = generator.poisson(WORDS_A_PASSAGE, count)
    share = np.cumsum(1 / (np.arange(1, VOCABULARY + 1) + 2.7) ** 1.07)
    drawn = [
        np.searchsorted(share, generator.random(int(some)) * share[-1]).astype(np.uint32)
        for some in np.add.reduceat(lengths, np.arange(0, count, 10_000))
    ]
    return np.concatenate(drawn), np.concatenate([[0], np.cumsum(lengths)])


def queries_of(count: int, *, common: bool, seed: int) -> list[NDArray[np.intp]]:
    """Distinct queries of 3 to 6 words, the logarithm of whose ranks is even between 50 and 50,000.

    With ``common``, one word is instead among the 20 most frequent ones.
    """
    generator = np.random.default_rng(seed)
    queries: dict[tuple[int, ...], None] = {}
    while len(queries) < count:
        size = int(generator.integers(3, 7))
        ranks = np.exp(generator.uniform(math.log(50), math.log(50_000), size)).astype(int)
        if common:
            ranks[0] = generator.integers(0, 20)
        if len(set(ranks.tolist())) == size:
            queries[tuple(ranks.tolist())] = None
    return [np.array(query) for query in queries]


# --- what is compared ---


@dataclass
class Built:
    """An engine, ready to search."""

    name: str
    search: Search
    build_s: float


def ours(passages: Callable[[int, int], Iterator[str]], count: int) -> Built:
    """Cicada's lexical parts, a segment for every 262,144 passages."""
    parts, analysed_s, build_s, size, postings = [], 0.0, 0.0, 0, 0
    for start in range(0, count, MAX_ROWS):
        stop = min(start + MAX_ROWS, count)
        before = time.process_time()
        rows = analyse(((WeightedText(text, 1.0),) for text in passages(start, stop)), ["eng"] * (stop - start))
        analysed = time.process_time()
        encoded = encode_lexical(rows, np.arange(stop - start))
        analysed_s, build_s = analysed_s + analysed - before, build_s + time.process_time() - before
        part = LexicalPart(MemorySections({"lexical": encoded}), stop - start)
        parts.append(part)
        sizes = {name: len(section) for name, section in {**encoded.body, **encoded.head}.items()}
        size, postings = size + sum(sizes.values()), postings + len(rows.terms)
        print(f"  segment of {stop - start:,}: {_listed(sizes)}")
    without = sum(len(part.sections.resident("lexical.positions") or b"") for part in parts)
    norms = 4 * count
    print(
        f"  analysis {count / analysed_s * 60:,.0f} passages a CPU minute; {postings:,} postings; resident bytes a "
        f"posting: {(size - without + norms) / postings:.2f} (length norms included), "
        f"{(size + norms) / postings:.2f} with positions"
    )
    everything = [None] * len(parts)
    bases = np.arange(0, count, MAX_ROWS)

    def search(query: str) -> Sequence[int]:
        hits = LexicalQuery(parts, query, everything, gather_resident).search(everything, TOP_K)
        found: list[int] = (bases[hits.segment] + hits.row).tolist()
        return found

    return Built("cicada", search, build_s)


def _listed(sizes: dict[str, int]) -> str:
    return ", ".join(f"{name.partition('.')[2]} {size / 1e6:.2f} MB" for name, size in sizes.items())


def tantivy_over(tantivy: Any, passages: Callable[[int, int], Iterator[str]], count: int) -> list[Built]:
    """tantivy, in memory, as its writer leaves it: as it is called by default, and without counting all matches."""
    schema = tantivy.SchemaBuilder()
    schema.add_text_field("text", tokenizer_name="whitespace", index_option="freq")
    index = tantivy.Index(schema.build())
    before = time.process_time()
    writer = index.writer(heap_size=500_000_000, num_threads=1)
    for text in passages(0, count):
        writer.add_document(tantivy.Document(text=text))
    writer.commit()
    writer.wait_merging_threads()
    index.reload()
    build_s = time.process_time() - before
    searcher = index.searcher()

    def searching(counted: bool) -> Search:
        def search(query: str) -> Sequence[int]:
            found = searcher.search(index.parse_query(query, ["text"]), TOP_K, count=counted)
            return [hit[1].doc for hit in found.hits]

        return search

    return [
        Built("tantivy", searching(True), build_s),
        Built("tantivy, matches not counted", searching(False), build_s),
    ]


def bm25s_over(bm25s: Any, words_: NDArray[np.uint32], starts: NDArray[np.int64], vocabulary: Sequence[str]) -> Built:
    """bm25s with the words' numbers as its tokens."""
    tokenized = bm25s.tokenization.Tokenized(
        ids=[words_[start:stop].tolist() for start, stop in pairwise(starts)],
        vocab={word: number for number, word in enumerate(vocabulary)},
    )
    before = time.process_time()
    index = bm25s.BM25(method="lucene", k1=K1, b=B)
    index.index(tokenized, show_progress=False)
    build_s = time.process_time() - before

    def search(query: str) -> Sequence[int]:
        found = index.retrieve([query.split()], k=TOP_K, show_progress=False, n_threads=0)
        numbers: list[int] = found.documents[0].tolist()
        return numbers

    return Built("bm25s", search, build_s)


# --- measuring ---


def cpu_ms(search: Search, queries: Sequence[str]) -> tuple[NDArray[np.float64], list[Sequence[int]]]:
    """CPU milliseconds of each query, and what was found."""
    spent, found = [], []
    for query in queries:
        before = time.process_time_ns()
        found.append(search(query))
        spent.append(time.process_time_ns() - before)
    return np.array(spent) / 1e6, found


class Exact:
    """BM25 in double precision over word numbers, for the words of some queries."""

    def __init__(
        self, words_: NDArray[np.uint32], starts: NDArray[np.int64], queries: Sequence[NDArray[np.intp]]
    ) -> None:
        lengths = np.diff(starts).astype(np.float64)
        self._count = len(lengths)
        self._norms = K1 * (1 - B + B * lengths / lengths.mean())
        wanted = np.zeros(VOCABULARY, np.bool_)
        wanted[np.concatenate(queries)] = True
        at = np.flatnonzero(wanted[words_])
        passage = np.searchsorted(starts, at, side="right") - 1
        pairs, self._tf = np.unique(words_[at].astype(np.int64) * self._count + passage, return_counts=True)
        self._word, self._passage = np.divmod(pairs, self._count)

    def scores(self, query: NDArray[np.intp]) -> NDArray[np.float64]:
        """The scores of all passages."""
        scores = np.zeros(self._count)
        for word in query:
            start, stop = np.searchsorted(self._word, [word, word + 1])
            rows, tf = self._passage[start:stop], self._tf[start:stop]
            idf = math.log(1 + (self._count - len(rows) + 0.5) / (len(rows) + 0.5))
            scores[rows] += idf * (K1 + 1) * tf / (tf + self._norms[rows])
        return scores

    def postings(self, query: NDArray[np.intp]) -> int:
        """How many postings the query's words have."""
        return sum(int(np.diff(np.searchsorted(self._word, [word, word + 1]))[0]) for word in query)


def agreement(exact: Exact, queries: Sequence[NDArray[np.intp]], found: Sequence[Sequence[int]]) -> tuple[float, float]:
    """The share of the exact top 10 found (scores equal to six digits count), and nDCG@10 of exact scores."""
    overlaps, gains = [], []
    discounts = 1 / np.log2(np.arange(2, TOP_K + 2))
    for query, rows in zip(queries, found, strict=True):
        scores = exact.scores(query)
        best = np.sort(np.partition(scores, len(scores) - TOP_K)[-TOP_K:])[::-1]
        ours_ = scores[list(rows)]
        overlaps.append(float(np.mean(ours_ >= best[-1] * (1 - 1e-6))) * len(rows) / TOP_K)
        gains.append(float(ours_ @ discounts[: len(rows)] / (best @ discounts)))
    return float(np.mean(overlaps)), float(np.mean(gains))


def bench(count: int, query_count: int, with_bm25s: bool) -> None:
    """Build everything for one size, and print the comparison."""
    vocabulary = words()
    numbers, starts = zipf_passages(count)
    spelled = np.array(vocabulary, dtype=object)

    def passages(start: int, stop: int) -> Iterator[str]:
        for at in range(start, stop):
            yield " ".join(spelled[numbers[starts[at] : starts[at + 1]]])

    print(f"\n{count:,} passages")
    engines = [ours(passages, count)]
    if tantivy := peer("tantivy"):
        engines += tantivy_over(tantivy, passages, count)
    if with_bm25s and (bm25s := peer("bm25s")):
        engines.append(bm25s_over(bm25s, numbers, starts, vocabulary))
    for common in (False, True):
        asked = queries_of(query_count, common=common, seed=7)
        exact = Exact(numbers, starts, asked)
        touched = np.median([exact.postings(query) for query in asked])
        print(
            f"{'one very common word each' if common else 'OR of 3 to 6 words'}: {touched:,.0f} postings in the median"
        )
        print("| engine | CPU ms median | p99 | x cicada | exact top 10 | nDCG of exact scores | build CPU s |")
        print("| --- | --- | --- | --- | --- | --- | --- |")
        base = 0.0
        warm = [" ".join(spelled[query]) for query in queries_of(200, common=common, seed=8)]
        for engine in engines:
            cpu_ms(engine.search, warm)
            spent, found = cpu_ms(engine.search, [" ".join(spelled[query]) for query in asked])
            base = base or float(np.median(spent))
            top, ndcg = agreement(exact, asked[:200], found[:200])
            shown = f"{top:.4f} | {ndcg:.5f}" if not engine.name.startswith("tantivy") else "- | -"
            print(
                f"| {engine.name} | {np.median(spent):.3f} | {np.percentile(spent, 99):.3f} | "
                f"{np.median(spent) / base:.2f} | {shown} | {engine.build_s:.1f} |"
            )


# --- public sets ---


def ndcg(ranking: Sequence[str], gains: dict[str, float]) -> float:
    """nDCG@10 with linear gains."""

    def discounted(values: Sequence[float]) -> float:
        return sum(value / math.log2(at + 2) for at, value in enumerate(values[:TOP_K]))

    ideal = discounted(sorted(gains.values(), reverse=True))
    return discounted([gains.get(name, 0.0) for name in ranking]) / ideal


def interval(values: NDArray[np.float64]) -> str:
    """The mean and its 95 % interval by the bootstrap over queries."""
    drawn = np.random.default_rng(0).integers(0, len(values), (BOOTSTRAPS, len(values)))
    low, high = np.percentile(values[drawn].mean(axis=1), (2.5, 97.5))
    return f"{values.mean():.4f} [{low:.4f}, {high:.4f}]"


def read_set(folder: Path) -> tuple[list[str], list[str], list[tuple[str, dict[str, float]]]]:
    """Ids and texts of the documents, and each judged query with its gains."""
    documents = [json.loads(line) for line in (folder / "corpus.jsonl").read_text(encoding="utf-8").splitlines()]
    gains: dict[str, dict[str, float]] = {}
    for line in (folder / "qrels.tsv").read_text(encoding="utf-8").splitlines()[1:]:
        query, document, gain = line.split("\t")
        if float(gain) > 0:
            gains.setdefault(query, {})[document] = float(gain)
    queries = [json.loads(line) for line in (folder / "queries.jsonl").read_text(encoding="utf-8").splitlines()]
    texts = [f"{document.get('title', '')}\n{document['text']}".strip() for document in documents]
    return (
        [document["_id"] for document in documents],
        texts,
        [(query["text"], gains[query["_id"]]) for query in queries if query["_id"] in gains],
    )


def asked_terms(rows: TermRows, part: LexicalPart, query: str) -> list[str]:
    """The terms that our analysis looks up, as another engine can be given them."""
    known = set(rows.vocabulary)
    return [
        term
        for clause, times in QueryAnalyzer(part.languages).clauses(query)
        if isinstance(clause, QueryTerm)
        for term in [alternative.decode() for alternative in clause.alternatives] * times
        if term in known
    ]


def exact_scores(rows: TermRows, terms: Sequence[str]) -> NDArray[np.float64]:
    """BM25 in double precision, straight from the forward form."""
    number = {term: at for at, term in enumerate(rows.vocabulary)}
    owner = np.repeat(np.arange(len(rows)), np.diff(rows.starts))
    lengths = rows.lengths / 64
    norms = K1 * (1 - B + B * lengths / lengths.mean())
    scores = np.zeros(len(rows))
    for term, times in Counter(terms).items():
        at = np.flatnonzero(rows.terms == number[term])
        tf = rows.weights[at] / 64
        idf = math.log(1 + (len(rows) - len(at) + 0.5) / (len(at) + 0.5))
        scores[owner[at]] += times * idf * (K1 + 1) * tf / (tf + norms[owner[at]])
    return scores


def bm25s_of(bm25s: Any, rows: TermRows) -> Any:
    """bm25s over the terms of our analysis."""
    tokens = [
        np.repeat(rows.terms[start:stop], rows.weights[start:stop] // 64).tolist()
        for start, stop in pairwise(rows.starts)
    ]
    index = bm25s.BM25(method="lucene", k1=1.5, b=0.75)
    vocabulary = {term: at for at, term in enumerate(rows.vocabulary)}
    index.index(bm25s.tokenization.Tokenized(ids=tokens, vocab=vocabulary), show_progress=False)
    return index


def quality(folder: Path) -> None:
    """Print one set's row."""
    bm25s = peer("bm25s")
    names, texts, queries = read_set(folder)
    rows = analyse([(WeightedText(text, 1.0),) for text in texts], [None] * len(texts))
    part = LexicalPart(MemorySections({"lexical": encode_lexical(rows, np.arange(len(rows)))}), len(rows))
    theirs = bm25s and bm25s_of(bm25s, rows)
    found: dict[str, list[float]] = {"cicada": [], "bm25s": [], "exact": []}
    for query, gains in queries:
        hits = LexicalQuery([part], query, [None], gather_resident).search([None], TOP_K)
        found["cicada"].append(ndcg([names[row] for row in hits.row], gains))
        terms = asked_terms(rows, part, query)
        if theirs:
            best = theirs.retrieve([terms or [rows.vocabulary[0]]], k=TOP_K, show_progress=False, n_threads=0)
            found["bm25s"].append(ndcg([names[row] for row in best.documents[0]], gains))
        exact = np.argsort(-exact_scores(rows, terms), kind="stable")[:TOP_K]
        found["exact"].append(ndcg([names[row] for row in exact], gains))
    ours, peers, exact_ = (np.array(found[name]) for name in ("cicada", "bm25s", "exact"))
    compared = f"{interval(peers)} | {interval(ours - peers)}" if bm25s else "- | -"
    print(f"| {folder.name} | {interval(ours)} | {compared} | {interval(ours - exact_)} |")


def main(argv: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(prog="lexical_search", description=__doc__.splitlines()[0] if __doc__ else "")
    parser.add_argument("--sizes", type=int, nargs="*", default=[100_000], help="passages (default: %(default)s)")
    parser.add_argument("--queries", type=int, default=1000, help="queries a size (default: %(default)s)")
    parser.add_argument("--bm25s", action="store_true", help="bm25s above 100,000 passages too (it needs the memory)")
    parser.add_argument("--datasets", type=Path, help="a folder of BEIR-style sets")
    args = parser.parse_args(argv)
    if args.datasets:
        folders = sorted(path.parent for path in args.datasets.glob("*/corpus.jsonl"))
        print("| set | cicada nDCG@10 | bm25s, same analysis (k1 1.5) | cicada - bm25s | cicada - exact BM25 |")
        print("| --- | --- | --- | --- | --- |")
        for folder in folders:
            quality(folder)
        return 0
    for size in args.sizes:
        bench(size, args.queries, args.bm25s or size <= 100_000)
    return 0


if __name__ == "__main__":
    sys.exit(main())

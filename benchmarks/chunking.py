"""How documents are cut, beside other splitters: ``python -m benchmarks.chunking [--part NAME ...] [--mode hybrid]``.

All cut to 800 tokens with 200 repeated, by the same estimate of tokens. The texts are those of ``../shared/datasets``,
joined to long documents, so that it is known where the words that answer a question stand.

- *edges*: how many chunks end within a sentence, by a judge that none of them uses (``sentencex``, of Wikimedia);
  megabytes a second; and of how many chunks the text changes when one sentence is put in.
- *retrieval*: of the text that answers (the sentence with the answer, or the abstract judged relevant), the share that
  is found within the first 1,600 and 4,000 tokens of hits: so a chunker gains nothing by large chunks. Documents with
  and without paragraphs; boundaries by structure, words and embedding.
- *parts*: the same for what a passage's vector and words are made of (``cicada.corpus.chunking.passages``), and, where
  every abstract is a section, for where its headings stand; with how many texts have to be embedded.

Peers that are not installed are left out; they are in ``requirements-bench.lock``.
"""

from __future__ import annotations

import argparse
import json
import re
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Literal

from benchmarks.peers import peer
from benchmarks.retrieval_data import (
    ROOT,
    Judged,
    Ranker,
    beir_questions,
    embedder_of,
    mean_and_interval,
    model_arguments,
    retriever_over,
)
from benchmarks.retrieval_quality import ranker
from cicada.corpus.chunking.options import DEFAULT_CHUNK_SIZE, DEFAULT_OVERLAP, ChunkOptions
from cicada.corpus.chunking.passages import parts_of, passages_of, windows_of
from cicada.corpus.documents import Document, DocumentBlock
from cicada.corpus.indexable import Indexable, WeightedText
from cicada.corpus.passages import DocumentLocator, Passage
from cicada.models.ports import Embedder
from cicada.retrieval.ports import SearchMode
from cicada.text.sentences import sentences
from cicada.text.tokens import estimated_tokens

DATASETS = ROOT.parent / "shared" / "datasets"
SETS = ("xquad-en", "xquad-zh", "cranfield")
BUDGETS = (1_600, 4_000)
EMBED_BUDGET_S = 3_600.0
COLLECTION = "bench"
EDITS = 8
"""Places, evenly over a document, at which a sentence is put in."""
Form = Literal["paragraphs", "stream", "sections"]
Span = tuple[str, int, int]
"""A document, and from where to where in its text without white space: the same whatever a splitter does to that."""
Splitter = Callable[[str], list[str]]
Parts = Callable[[Indexable], tuple[WeightedText, ...]]


@dataclass(frozen=True)
class LongSet:
    """A judged set whose documents are joined to long ones."""

    documents: Sequence[Document]
    wanted: Sequence[tuple[Judged, Sequence[Span]]]


def bare(text: str) -> str:
    return re.sub(r"\s+", "", text)


def rows_of(datasets: Path, name: str, limit: int | None = None) -> list[dict[str, Any]]:
    lines = (datasets / name / "corpus.jsonl").read_text(encoding="utf-8").splitlines()
    rows = [{**row, "text": " ".join(row["text"].split())} for row in map(json.loads, lines)]
    return [row for row in rows if row["text"]][:limit]


def long_set(datasets: Path, name: str, form: Form, per_document: int, limit: int | None = None) -> LongSet:
    rows = rows_of(datasets, name, limit)
    answers = _answers(datasets / name / "queries.jsonl")
    documents, place = [], {}
    for first in range(0, len(rows), per_document):
        source, blocks, at = f"{name}-{first}", [], 0
        for row in rows[first : first + per_document]:
            section = (" ".join(row["title"].split()) or row["_id"],) if form == "sections" else ()
            if section:
                blocks.append(DocumentBlock("heading", section[0], section))
                at += len(bare(section[0]))
            blocks.append(DocumentBlock("paragraph", row["text"], section))
            place[row["_id"]] = (source, at, row["text"])
            at += len(bare(row["text"]))
        if form == "stream":
            blocks = [DocumentBlock("paragraph", " ".join(block.text for block in blocks))]
        documents.append(Document(source, "", "text", "0" * 64, tuple(blocks)))
    wanted = []
    for question in beir_questions(datasets / name):
        spans = [_span(*place[found], answers.get(question.id)) for found in question.gains if found in place]
        wanted += [(question, spans)] if spans else []
    return LongSet(documents, wanted)


def _answers(queries: Path) -> dict[str, str]:
    found = map(json.loads, queries.read_text(encoding="utf-8").splitlines())
    return {query["_id"]: query["answer"] for query in found if isinstance(query.get("answer"), str)}


def _span(source: str, at: int, text: str, answer: str | None) -> Span:
    """The sentence that holds the answer; the whole text where no answer is given."""
    for sentence in sentences(text):
        size = len(bare(sentence))
        if answer and bare(answer) in bare(sentence):
            return source, at, at + size
        at += size
    return source, at - len(bare(text)), at


# --- splitters ---


def text_of(document: Document) -> str:
    """All of it, headings too: small sections that share a passage have theirs in it."""
    return "\n\n".join(block.text for block in document.blocks)


def peers() -> dict[str, Splitter]:
    found: dict[str, Splitter] = {}
    size, overlap = DEFAULT_CHUNK_SIZE, DEFAULT_OVERLAP
    if module := peer("langchain_text_splitters"):
        found["langchain Recursive"] = module.RecursiveCharacterTextSplitter(
            chunk_size=size, chunk_overlap=overlap, length_function=estimated_tokens
        ).split_text
    if module := peer("semantic_text_splitter"):
        found["semantic-text-splitter"] = module.TextSplitter.from_callback(estimated_tokens, size, overlap).chunks
    if module := peer("chonkie"):
        chunker = module.SentenceChunker(estimated_tokens, chunk_size=size, chunk_overlap=overlap)
        found["chonkie Sentence"] = lambda text: [chunk.text for chunk in chunker.chunk(text)]
    return found


def of_splitter(split: Splitter, documents: Sequence[Document]) -> list[Indexable]:
    items = []
    for document in documents:
        for number, text in enumerate(split(text_of(document))):
            locator = DocumentLocator(source=document.source, title=document.title)
            name = f"{document.source}#{number}"
            passage = Passage(id=name, collection=COLLECTION, text=text, context=text, locator=locator)
            items.append(Indexable(passage, (WeightedText(text, 1.0),)))
    return items


def of_ours(documents: Sequence[Document], options: ChunkOptions, embedder: Embedder | None = None) -> list[Indexable]:
    def embed(texts: Sequence[str]) -> Sequence[Sequence[float]]:
        assert embedder is not None
        return embedder.embed(texts, time_budget_s=EMBED_BUDGET_S)

    return [item for document in documents for item in passages_of(document, COLLECTION, options, embed=embed)]


def spans_of(documents: Sequence[Document], items: Sequence[Indexable]) -> dict[str, Span]:
    """Where each passage stands, by its id. What a splitter alters cannot be found, and is an error."""
    texts = {document.source: bare(text_of(document)) for document in documents}
    reached = dict.fromkeys(texts, 0)
    spans = {}
    for item in items:
        source, text = item.passage.locator.fields()["source"], bare(item.passage.text)
        start = texts[source].find(text, reached[source])
        if start < 0:
            raise ValueError(f"the passage {item.passage.id} is not in its document")
        reached[source] = start
        spans[item.passage.id] = (source, start, start + len(text))
    return spans


# --- edges, speed, stability ---


def measure_edges(datasets: Path) -> None:
    for name, language in (("xquad-en", "en"), ("xquad-zh", "zh")):
        found = long_set(datasets, name, "stream", 240)
        megabytes = sum(len(text_of(document).encode()) for document in found.documents) / 1e6
        judge = _judge(datasets, name, language)
        print(f"\n{name}, {megabytes:.2f} MB without paragraphs")
        print(f"{'':26} {'chunks':>7} {'tokens':>7} {'within a sentence':>18} {'MB/s':>7} {'changed by an edit':>19}")
        ways: dict[str, Callable[[Sequence[Document]], list[Indexable]]] = {
            f"cicada, by {boundaries}": _ours_by(boundaries) for boundaries in ("structure", "words")
        }
        ways |= {peer: _peers_by(split) for peer, split in peers().items()}
        for way, cut in ways.items():
            began = time.perf_counter()
            items = cut(found.documents)
            took = time.perf_counter() - began
            spans = spans_of(found.documents, items)
            last = {source: max(end for s, _, end in spans.values() if s == source) for source, _, _ in spans.values()}
            inner = [(source, end) for source, _, end in spans.values() if end != last[source]]
            broken = sum(edge not in judge for edge in inner) / len(inner)
            tokens = sum(estimated_tokens(item.passage.text) for item in items) / len(items)
            changed = _changed(found.documents[0], cut)
            print(f"{way:26} {len(items):7} {tokens:7.0f} {broken:18.1%} {megabytes / took:7.2f} {changed:19.1%}")


def _ours_by(boundaries: str) -> Callable[[Sequence[Document]], list[Indexable]]:
    options = ChunkOptions.model_validate({"boundaries": boundaries})
    return lambda documents: of_ours(documents, options)


def _peers_by(split: Splitter) -> Callable[[Sequence[Document]], list[Indexable]]:
    return lambda documents: of_splitter(split, documents)


def _judge(datasets: Path, name: str, language: str) -> set[tuple[str, int]]:
    """Every end of a sentence of a set in one document, found paragraph by paragraph."""
    module = peer("sentencex")
    ends, at = set(), 0
    for row in rows_of(datasets, name):
        for sentence in module.segment(language, row["text"]) if module else sentences(row["text"]):
            at += len(bare(sentence))
            ends.add((f"{name}-0", at))
    return ends


def _changed(document: Document, cut: Callable[[Sequence[Document]], list[Indexable]]) -> float:
    """The share of a document's chunks that are gone after a sentence was put into it: the mean over places."""
    told = sentences(document.blocks[0].text)
    before = {item.passage.text for item in cut([document])}
    gone = []
    for place in range(1, EDITS + 1):
        at = place * len(told) // (EDITS + 1)
        edited = "".join([*told[:at], "The ferry did not come on that day, and nobody asked why. ", *told[at:]])
        after = cut([Document(document.source, "", "text", "0" * 64, (DocumentBlock("paragraph", edited),))])
        gone.append(len(before - {item.passage.text for item in after}) / len(before))
    return sum(gone) / len(gone)


# --- retrieval ---


def found_share(found: LongSet, items: Sequence[Indexable], rank: Ranker, budget: int) -> list[float]:
    """For each question, the share of what answers it that stands in the first ``budget`` tokens of hits."""
    spans = spans_of(found.documents, items)
    tokens = {item.passage.id: estimated_tokens(item.passage.text) for item in items}
    shares = []
    for question, wanted in found.wanted:
        left, hits = budget, []
        for name in rank(question):
            if (left := left - tokens[name]) < 0:
                break
            hits.append(spans[name])
        shares.append(sum(_covered(span, hits) for span in wanted) / len(wanted))
    return shares


def _covered(wanted: Span, hits: Sequence[Span]) -> float:
    source, start, end = wanted
    places = {at for hit, a, b in hits if hit == source for at in range(max(a, start), min(b, end))}
    return len(places) / (end - start)


def measure(
    title: str, found: LongSet, ways: Mapping[str, Sequence[Indexable]], embedder: Embedder, mode: SearchMode
) -> None:
    print(f"\n{title}: {len(found.documents)} documents, {len(found.wanted)} questions, {mode}; 95 % interval")
    print(
        f"{'':34} {'chunks':>7} {'tokens':>7} {'embedded':>9} "
        + " ".join(f"{f'found in {budget:,}':>22}" for budget in BUDGETS)
    )
    for way, items in ways.items():
        rank = ranker(retriever_over(items, COLLECTION, embedder), mode)
        cells = [
            "{:.3f} [{:.3f}, {:.3f}]".format(*mean_and_interval(found_share(found, items, rank, budget)))
            for budget in BUDGETS
        ]
        tokens = sum(estimated_tokens(item.passage.text) for item in items) / len(items)
        texts = len({part.text for item in items for part in item.parts})
        print(
            f"{way:34} {len(items):7} {tokens:7.0f} {texts:9} " + " ".join(f"{cell:>22}" for cell in cells), flush=True
        )


def measure_retrieval(datasets: Path, embedder: Embedder, mode: SearchMode) -> None:
    forms: tuple[Form, ...] = ("paragraphs", "stream")
    for form in forms:
        found = long_set(datasets, "xquad-en", form, 20)
        ways = {
            f"cicada, by {boundaries}": of_ours(
                found.documents, ChunkOptions.model_validate({"boundaries": boundaries}), embedder
            )
            for boundaries in ("structure", "words", "embedding")
        }
        ways |= {peer: of_splitter(split, found.documents) for peer, split in peers().items()}
        measure(f"xquad-en, {form}", found, ways, embedder, mode)


def measure_parts(datasets: Path, embedder: Embedder, mode: SearchMode) -> None:
    found = long_set(datasets, "xquad-en", "stream", 20)
    items = of_ours(found.documents, ChunkOptions())
    ways = {
        "the whole": lambda item: (WeightedText(item.passage.text, 1.0),),
        "its windows": lambda item: tuple(WeightedText(window, 1.0) for window in windows_of(item.passage.text)),
        "the whole and its windows": lambda item: item.parts,
    }
    measure("xquad-en, parts", found, {name: _with(items, way) for name, way in ways.items()}, embedder, mode)
    found = long_set(datasets, "cranfield", "sections", 100, 500)
    for title in ("", "scan_0047_final(2)"):
        items = of_ours([replace(document, title=title) for document in found.documents], ChunkOptions())
        ways = {"not counted": _bare_parts}
        ways |= {f"a part, weight {weight}": _headed(weight) for weight in (0.25, 0.5, 1.0)}
        ways["before the text"] = _before_the_text
        ways["before the text and its windows"] = lambda item: item.parts
        told = f"cranfield, headings below the title {title!r}"
        measure(told, found, {name: _with(items, way) for name, way in ways.items()}, embedder, mode)


def _headings(item: Indexable) -> str:
    names = item.passage.locator.names()
    return " > ".join(filter(None, (names.get("title"), names.get("section"))))


def _bare_parts(item: Indexable) -> tuple[WeightedText, ...]:
    return parts_of(item.passage.text, "")


def _headed(weight: float) -> Parts:
    return lambda item: (*_bare_parts(item), WeightedText(_headings(item), weight))


def _before_the_text(item: Indexable) -> tuple[WeightedText, ...]:
    whole, *windows = _bare_parts(item)
    return (WeightedText(f"{_headings(item)}\n\n{whole.text}", 1.0), *windows)


def _with(items: Sequence[Indexable], parts: Parts) -> list[Indexable]:
    return [Indexable(item.passage, parts(item)) for item in items]


def main(argv: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description="Measure how documents are cut.")
    model_arguments(parser)
    parser.add_argument("--part", action="append", choices=("edges", "retrieval", "parts"), help="default: all")
    parser.add_argument("--datasets", type=Path, default=DATASETS, help="the folder of the sets (default: %(default)s)")
    parser.add_argument("--mode", default="hybrid", choices=("hybrid", "dense", "keyword"))
    arguments = parser.parse_args(argv)
    missing = [name for name in SETS if not (arguments.datasets / name / "corpus.jsonl").is_file()]
    if missing:
        parser.error(f"{arguments.datasets} does not hold {', '.join(missing)}")
    chosen = arguments.part or ("edges", "retrieval", "parts")
    if "edges" in chosen:
        measure_edges(arguments.datasets)
    embedder = embedder_of(arguments.model, arguments.dimensions)
    if "retrieval" in chosen:
        measure_retrieval(arguments.datasets, embedder, arguments.mode)
    if "parts" in chosen:
        measure_parts(arguments.datasets, embedder, arguments.mode)
    return 0


if __name__ == "__main__":
    sys.exit(main())

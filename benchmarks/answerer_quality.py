"""How good the local cloud's extractive answerer is: ``python -m benchmarks.answerer_quality [--answers]``.

On a machine with other work to do, set OPENBLAS_NUM_THREADS=1, as the local cloud does: numpy's threads wait for each
other, and an answer can take seconds.

The sample's questions go through production's own retrieval (the defaults for topK, minScore and the prompt's
passages) and prompt, and their answers through its check of citations. Measured, for the questions that the script
answers: how often an answer cites a message that answers, how many citations an answer has and how many of them are
right. For those that it does not answer (the sample's, and foreign ones): how often the answer cites nothing.

Beside it, two baselines on the same prompts: quoting the best passage, and quoting the best two. The answerer's few
weights were fitted on the sample's questions, so its figures flatter it a little; the baselines have none to fit.
"""

from __future__ import annotations

import argparse
import statistics
import sys
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

from benchmarks.retrieval_data import (
    SAMPLE,
    Judged,
    MiniLmEmbedder,
    retriever_over,
    sample_passages,
    sample_questions,
    script_argument,
)
from benchmarks.retrieval_foreign import FOREIGN_QUESTIONS
from cicada.answering.prompt import number_sources, rag_prompt
from cicada.citations import check_citations
from cicada.corpus.passages import ScriptLocator
from cicada.models.ports import Prompt
from cicada.protocol.events import Source
from cicada.retrieval.ports import Filters, SearchQuery
from cicada.rights import EVERYTHING
from cicada_local.bedrock.answerer import ExtractiveAnswerer
from cicada_local.bedrock.minilm import MiniLM

PROMPT_PASSAGES = 10

Answerer = Callable[[Prompt, Sequence[Source]], str]


@dataclass(frozen=True)
class Asked:
    """A question with its prompt, and the messages that answer it; none if nothing does."""

    text: str
    right: frozenset[str]
    sources: tuple[Source, ...]
    prompt: Prompt


@dataclass(frozen=True)
class Answered:
    """An answer, what it cites, and what it took."""

    asked: Asked
    text: str
    cited: tuple[str, ...]
    """Message ids, one a marker."""
    unverified: int
    took_ms: float

    @property
    def right(self) -> int:
        """Citations of messages that answer."""
        return sum(message in self.asked.right for message in self.cited)


def quote_best(count: int) -> Answerer:
    """The baseline: quote the first passages of the prompt."""
    return lambda _, sources: " ".join(f"“{source.text}” [{source.n}]" for source in sources[:count])


def message_of(locator: object) -> str:
    """The message that a passage of the sample script is cited by."""
    assert isinstance(locator, ScriptLocator)
    return locator.message_id


def ask(asked: Asked, answerer: Answerer) -> Answered:
    """Answer one prompt."""
    started = time.perf_counter()
    text = answerer(asked.prompt, asked.sources)
    took_ms = (time.perf_counter() - started) * 1000
    citations = check_citations(text, asked.sources)
    cited = tuple(message_of(citation.locator) for citation in citations if citation.locator is not None)
    return Answered(asked, text, cited, sum(each.verdict == "unverified" for each in citations), took_ms)


def prompts(script: Path, most: int | None, embedder: MiniLmEmbedder) -> dict[str, list[Asked]]:
    """The questions by what is known of their answers."""
    items = sample_passages(script)
    retriever = retriever_over(items, SAMPLE, embedder)

    def asked(text: str, right: frozenset[str], filters: Filters) -> Asked:
        hits = retriever.search(SearchQuery(text, filters, readable=EVERYTHING)).hits
        sources = number_sources(hits[:PROMPT_PASSAGES])
        return Asked(text, right, sources, rag_prompt(text, sources))

    questions = sample_questions(items)
    sets = {
        "answered by the script": [each for each in questions if each.gains],
        "not told": [each for each in questions if not each.gains],
        "foreign": [Judged("", text, {}) for text in FOREIGN_QUESTIONS],
    }
    return {
        kind: [asked(each.text, frozenset(each.gains), each.filters) for each in some[:most]]
        for kind, some in sets.items()
    }


def _share(found: Sequence[bool]) -> float:
    return sum(found) / len(found)


def main(argv: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description="Measure the extractive answerer.")
    parser.add_argument("--answers", action="store_true", help="print every answer")
    parser.add_argument("--most", type=int, help="of each kind, at most so many questions")
    script_argument(parser)
    args = parser.parse_args(argv)
    sets = prompts(args.script, args.most, MiniLmEmbedder())
    extractive = ExtractiveAnswerer(MiniLM.load())
    answerers: dict[str, Answerer] = {
        "extractive answerer": lambda prompt, _: extractive.answer(prompt.system, prompt.user),
        "best passage": quote_best(1),
        "best two passages": quote_best(2),
    }
    results = {
        name: {kind: [ask(asked, answerer) for asked in questions] for kind, questions in sets.items()}
        for name, answerer in answerers.items()
    }
    if args.answers:
        for answered in (each for found in results["extractive answerer"].values() for each in found):
            verdict = "right" if answered.right else "cites" if answered.cited else "nothing"
            print(f"{verdict:8}{answered.asked.text}\n        " + answered.text.replace("\n\n", "\n        "))
    answerable, *others = sets
    reachable = _share([any(message_of(s.locator) in each.right for s in each.sources) for each in sets[answerable]])
    sizes = ", ".join(f"{len(questions)} {kind}" for kind, questions in sets.items())
    print(f"questions: {sizes}; a right message is in {reachable:.0%} of the prompts\n")
    print(f"{'':22}{'right':>7}{'cites':>7}{'of them right':>15}{'silent':>8}", end="")
    print("".join(f"{'silent, ' + kind:>18}" for kind in others))
    for name, found in results.items():
        cited = sum(len(each.cited) for each in found[answerable])
        right = sum(each.right for each in found[answerable])
        print(f"{name:22}{_share([each.right > 0 for each in found[answerable]]):7.0%}", end="")
        print(f"{cited / len(found[answerable]):7.2f}{right / max(1, cited):15.0%}", end="")
        print(f"{_share([not each.cited for each in found[answerable]]):8.0%}", end="")
        print("".join(f"{_share([not each.cited for each in found[kind]]):18.0%}" for kind in others))
    ours, peer = (results[name][answerable] for name in ("extractive answerer", "best passage"))
    ratio = sum(each.right > 0 for each in ours) / max(1, sum(each.right > 0 for each in peer))
    took = [each.took_ms for found in results["extractive answerer"].values() for each in found]
    unverified = sum(each.unverified for found in results["extractive answerer"].values() for each in found)
    print(f"\nright answers, extractive over best passage: {ratio:.2f}")
    print(f"an answer took {statistics.median(took):.0f} ms (median), {max(took):.0f} ms at most")
    print(f"citations that production's check does not hold for verified: {unverified}")
    return 0


if __name__ == "__main__":
    sys.exit(main())

"""``cicada retrieve``: a retrieval pipeline, as integrators run it."""

from __future__ import annotations

import argparse
from collections.abc import Callable
from typing import Any, get_args

from rich.console import Console
from rich.table import Table
from rich.text import Text

from cicada.errors import CicadaError, RetrievalInvalid
from cicada.retrieval.pipelines.api import (
    DEFAULT_TIME_BUDGET_S,
    DEFAULT_TOP_K,
    MAX_TOP_K,
    Facet,
    PipelineName,
    RetrievedDocument,
    RetrieveRequest,
    RetrieveResponse,
    SearchType,
    parse_retrieve_request,
)
from cicada_cli.access import readable_by
from cicada_cli.deployment import Deployment
from cicada_cli.exits import Exit, UsageError
from cicada_cli.index import embedder_of, store_of
from cicada_cli.output import complain, say, say_json
from cicada_cli.pipelines import pipelines_with
from cicada_cli.shared_options import add_groups
from cicada_cli.text import clipped, counted, printable

EXCERPT_CHARS = 200
SHOWN_FACET_VALUES = 20
"""Of a field, how many values the terminal shows."""
_SWITCHES = ("rerank", "query_expansion", "hyde", "captions")
_FILTERS = {
    "collection": ("collections", "only this collection"),
    "episode": ("episodes", "only this episode"),
    "speaker": ("speakers", "only what this character says"),
    "source": ("sources", "only this document"),
    "entity": ("entities", "only passages that name this"),
    "entity_code": ("entity_codes", "only passages with this code"),
}
"""Options that can be repeated, by the filter that they fill."""


def add_retrieve(
    commands: argparse._SubParsersAction[argparse.ArgumentParser],
    run: Callable[[argparse.Namespace], Exit],
    add_filter: Callable[[argparse.ArgumentParser, str, str], None],
    add_metadata: Callable[[argparse.ArgumentParser], None],
    add_index: Callable[[argparse.ArgumentParser], None],
) -> None:
    """Add the command's grammar, its common options by the functions given."""
    parser = commands.add_parser(
        "retrieve",
        help="retrieve by a pipeline",
        description="Retrieve passages, or count what they name, by one of the pipelines.",
    )
    add = parser.add_argument
    add("query", nargs="?", default="", help="the question; `--pipeline facets` needs none")
    add("--pipeline", choices=get_args(PipelineName), default="advanced", help="which stages (default: %(default)s)")
    add("--search-type", choices=get_args(SearchType), default="hybrid", help="how to search (default: %(default)s)")
    add(
        "--top-k",
        type=int,
        default=DEFAULT_TOP_K,
        metavar="N",
        help=f"documents, 1 to {MAX_TOP_K} (default: %(default)s)",
    )
    add("--min-score", type=float, default=0.0, metavar="SCORE", help="least score of a search's hit, 0 to 1")
    add("--workflow-id", metavar="ID", help="only passages with this label")
    for option, (_, told) in _FILTERS.items():
        add_filter(parser, f"--{option.replace('_', '-')}", told)
    add_metadata(parser)
    add_groups(parser)
    add("--facet", action="append", metavar="FIELD", help="of the pipeline facets: a field to count; can be repeated")
    for switch in _SWITCHES:
        name = switch.replace("_", "-")
        add(f"--no-{name}", dest=f"enable_{switch}", action="store_false", help=f"leave {name.replace('-', ' ')} out")
    add(
        "--time-budget",
        type=float,
        default=DEFAULT_TIME_BUDGET_S,
        metavar="S",
        help="seconds for all stages (default: %(default)s)",
    )
    add("--json", action="store_true", help="the response as a JSON object")
    models = parser.add_argument_group("models")
    models.add_argument("--reranker", metavar="ID", help="what judges passages (CICADA_RERANKER_MODEL_ID)")
    models.add_argument(
        "--expansion-model", metavar="ID", help="what writes other wordings (CICADA_EXPANSION_MODEL_ID)"
    )
    add_index(parser)
    parser.set_defaults(run=run)


def request_of(args: argparse.Namespace) -> RetrieveRequest:
    """The request that was typed.

    Raises:
        UsageError: a value is out of range.
    """
    metadata: dict[str, list[str]] = {}
    for key, value in args.metadata:
        metadata.setdefault(key, []).append(value)
    found: dict[str, Any] = {
        "query": args.query,
        "workflow_id": args.workflow_id,
        "top_k": args.top_k,
        "search_type": args.search_type,
        "pipeline": args.pipeline,
        "min_score": args.min_score,
        "time_budget_s": args.time_budget,
        "filters": {field: getattr(args, option) for option, (field, _) in _FILTERS.items()} | {"metadata": metadata},
        **{f"enable_{switch}": getattr(args, f"enable_{switch}") for switch in _SWITCHES},
    }
    if args.facet:
        found["facets"] = args.facet
    try:
        return parse_retrieve_request(found)
    except RetrievalInvalid as error:
        raise UsageError(str(error)) from error


def retrieve(
    deployment: Deployment, request: RetrieveRequest, *, groups: tuple[str, ...] | None, as_json: bool, out: Console
) -> Exit:
    """Run a pipeline over the deployment's index, in this process, and show what it found.

    It reads what a member of some groups may, or everything for None.
    """
    from cicada.index.reader import IndexReader
    from cicada.models.embedding_cache import CachingEmbedder
    from cicada.retrieval.facets import ShardFacets
    from cicada.retrieval.names import NameChecker, NameCheckingRetriever
    from cicada.retrieval.shards import ShardRetriever

    embedder = CachingEmbedder(embedder_of(deployment, "query"))
    reader = IndexReader(
        store_of(deployment), embedding_model_id=embedder.model_id, dimensions=deployment.embedding_dimensions
    )
    try:
        pipelines = pipelines_with(
            deployment.aws,
            NameCheckingRetriever(ShardRetriever(reader, embedder), NameChecker(reader)),
            embedder,
            reranker=deployment.reranker_model_id,
            writer=deployment.expansion_model_id,
            facets=ShardFacets(reader),
        )
        response = pipelines.run(request, readable_by(deployment, groups))
    except CicadaError as error:
        complain(f"{error.told} ({error.code}: {error})")
        return Exit.FAILED
    finally:
        reader.close()
    return show(response, as_json=as_json, out=out)


def show(response: RetrieveResponse, *, as_json: bool, out: Console) -> Exit:
    """Show a response: on a terminal as a table, in a pipe a line each, or as JSON."""
    if as_json:
        say_json(response.model_dump(mode="json"))
        return Exit.DONE if response.success else Exit.FAILED
    if response.error is not None:
        complain(f"{response.error.message} ({response.error.code})")
        return Exit.FAILED
    for lack in response.degraded:
        complain(f"without {lack.stage} ({lack.code}): {lack.message}")
    if out.is_terminal:
        _show(response, out)
    else:
        for line in _lines(response):
            say(line)
    return Exit.DONE


def _show(response: RetrieveResponse, out: Console) -> None:
    for answer in response.semantic_answers:
        out.print(Text(f"“{printable(answer.text)}”", style="bold"), Text(f"  {answer.score:.2f}", style="dim"))
    for facet in response.facets:
        out.print(Text(f"{printable(facet.field)}: {counted(facet.unique, 'value')}", style="bold"))
        for one in facet.values[:SHOWN_FACET_VALUES]:
            out.print(Text(f"{one.count:>8,}  {printable(one.value)}"))
    if response.documents:
        out.print(_table(response))
    out.print(Text(_summary(response), style="dim"))


def _table(response: RetrieveResponse) -> Table:
    table = Table(box=None, pad_edge=False, header_style="bold")
    table.add_column("#", justify="right", style="cyan")
    table.add_column("score", justify="right")
    table.add_column("where", ratio=2)
    table.add_column("text", ratio=5)
    for rank, document in enumerate(response.documents, start=1):
        table.add_row(str(rank), f"{_ranked_by(document):.3f}", Text(_where(document)), _highlighted(document))
    return table


def _ranked_by(document: RetrievedDocument) -> float:
    """The score that put it where it is: the last stage's that has judged it."""
    scores = (document.rerank_score, document.reranker_score, document.score)
    return next(score for score in scores if score is not None)


def _highlighted(document: RetrievedDocument) -> Text:
    captions = document.metadata.captions
    if not captions or printable(captions[0].text) != captions[0].text:
        return Text(clipped(printable(captions[0].text if captions else document.content), EXCERPT_CHARS))
    text = Text(captions[0].text)
    for mark in captions[0].highlights:
        text.stylize("bold", mark.start, mark.end)
    return text


def _lines(response: RetrieveResponse) -> list[str]:
    """A document a line: score, passage, where, text; of the pipeline facets a value a line: field, count, value."""
    if response.pipeline == "facets":
        return [line for facet in response.facets for line in _facet_lines(facet)]
    return [
        "\t".join(
            (f"{_ranked_by(one):.6f}", printable(one.id), _where(one), clipped(printable(one.content), EXCERPT_CHARS))
        )
        for one in response.documents
    ]


def _facet_lines(facet: Facet) -> list[str]:
    name = printable(facet.field)
    return [f"{name}\t{one.count}\t{printable(' '.join(one.value.split()))}" for one in facet.values]


def _where(document: RetrievedDocument) -> str:
    page = None if document.metadata.page is None else f"page {document.metadata.page}"
    section = None if document.doc_type == "script" else document.metadata.section
    return printable(" · ".join(" ".join(part.split()) for part in (document.title, section, page) if part))


def _summary(response: RetrieveResponse) -> str:
    found = counted(response.count, "document") if response.count else "Nothing relevant found"
    if response.pipeline == "facets":
        found = counted(len(response.facets), "field")
    known = [use.cost_usd for use in response.model_uses if use.cost_usd is not None]
    usd = f"${sum(known):.6f}" if len(known) == len(response.model_uses) else "cost not known"
    parts = [
        f"{found} in {counted(response.total, 'passage')}",
        f"version {printable(response.index_version)}",
        *(f"searched for “{printable(query)}”" for query in response.queries_used[1:]),
        *(["and by a made-up passage"] if response.hyde_used else []),
        " · ".join(f"{stage} {taken:.0f} ms" for stage, taken in response.timings_ms.items()),
        *([usd] if response.model_uses else []),
    ]
    return " · ".join(parts)

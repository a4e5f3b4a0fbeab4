"""``cicada retrieve``: run a retrieval pipeline."""

from __future__ import annotations

import argparse
from collections.abc import Iterator, Sequence
from typing import Any, get_args

from rich.console import Console
from rich.text import Text

from cicada.errors import CicadaError, RetrievalInvalid
from cicada.retrieval.pipelines.api import (
    DEFAULT_TIME_BUDGET_S,
    DEFAULT_TOP_K,
    MAX_TOP_K,
    PipelineName,
    RetrievedDocument,
    RetrieveRequest,
    RetrieveResponse,
    SearchType,
    parse_retrieve_request,
)
from cicada_cli.access import readable_by
from cicada_cli.context import deployment_of
from cicada_cli.deployment import INDEX, Deployment
from cicada_cli.exits import Exit, UsageError
from cicada_cli.grammar import Commands
from cicada_cli.index import embedder_of, store_of
from cicada_cli.output import complain, console, say_json, show_rows
from cicada_cli.pipelines import pipelines_with
from cicada_cli.shared_options import add_filter, add_groups, add_index, add_json, add_metadata, as_whom
from cicada_cli.text import clipped, counted, printable

EXCERPT_CHARS = 200
COLUMNS = ("#", "score", "place", "text")
FACETS = ("field", "count", "value")
SHOWN_FACET_VALUES = 20
"""Values of a field that the terminal shows."""
_SWITCHES = ("rerank", "query_expansion", "hyde", "captions")
_FILTERS = {
    "collection": ("collections", "search this collection"),
    "episode": ("episodes", "search this episode"),
    "speaker": ("speakers", "search what this character says"),
    "source": ("sources", "search this document"),
    "entity": ("entities", "search passages that name this"),
    "entity_code": ("entity_codes", "search passages with this code"),
}
"""Filters that can be repeated: by option, the field of the request and the help."""


def add_retrieve(commands: Commands) -> None:
    """Add the command's parser."""
    parser = commands.add_parser(
        "retrieve",
        help="run a retrieval pipeline",
        description="Run a retrieval pipeline over the index, as an integrator's function does.",
        examples=(
            'cicada retrieve "who locked the boathouse" --pipeline rerank --top-k 5',
            "cicada retrieve --pipeline facets --facet entity_codes --collection manuals",
        ),
    )
    add = parser.add_argument
    add("query", nargs="?", default="", metavar="QUERY", help="the question; optional with `--pipeline facets`")
    add(
        "--pipeline",
        choices=get_args(PipelineName),
        default="advanced",
        metavar="PIPELINE",
        help=f"{', '.join(get_args(PipelineName))} (default: %(default)s)",
    )
    add(
        "--search-type",
        choices=get_args(SearchType),
        default="hybrid",
        metavar="TYPE",
        help=f"{', '.join(get_args(SearchType))} (default: %(default)s)",
    )
    add(
        "--top-k",
        type=int,
        default=DEFAULT_TOP_K,
        metavar="N",
        help=f"maximum number of documents, 1 to {MAX_TOP_K} (default: %(default)s)",
    )
    add("--min-score", type=float, default=0.0, metavar="SCORE", help="minimum score of a hit, 0 to 1")
    add("--workflow-id", metavar="ID", help="search passages with this label")
    for option, (_, told) in _FILTERS.items():
        add_filter(parser, f"--{option.replace('_', '-')}", told)
    add_metadata(parser)
    add_groups(parser)
    add("--facet", action="append", metavar="FIELD", help="with the pipeline facets: field to count; can be repeated")
    for switch in _SWITCHES:
        name = switch.replace("_", "-")
        add(f"--no-{name}", dest=f"enable_{switch}", action="store_false", help=f"skip {name.replace('-', ' ')}")
    add(
        "--time-budget",
        type=float,
        default=DEFAULT_TIME_BUDGET_S,
        metavar="S",
        help="seconds for all stages (default: %(default)s)",
    )
    add_json(parser)
    models = parser.add_argument_group("models")
    models.add_argument("--reranker", metavar="ID", help="re-ranking model (CICADA_RERANKER_MODEL_ID)")
    models.add_argument(
        "--expansion-model", metavar="ID", help="model that expands queries (CICADA_EXPANSION_MODEL_ID)"
    )
    add_index(parser)
    parser.set_defaults(run=_retrieve)


def _retrieve(args: argparse.Namespace) -> Exit:
    request = request_of(args)
    deployment = deployment_of(args, as_whom(args, INDEX))
    return retrieve(deployment, request, groups=args.groups, as_json=args.json, out=console())


def request_of(args: argparse.Namespace) -> RetrieveRequest:
    """The request that the options describe.

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
    """Run a pipeline over the deployment's index in this process and show the result.

    ``groups`` limits it to what their members may read; None reads everything.
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
    """Show a response as a table, as lines or as JSON."""
    if as_json:
        say_json(response.model_dump(mode="json"))
        return Exit.DONE if response.success else Exit.FAILED
    if response.error is not None:
        complain(f"{response.error.message} ({response.error.code})")
        return Exit.FAILED
    for lack in response.degraded:
        complain(f"skipped {lack.stage} ({lack.code}): {lack.message}")
    if response.pipeline == "facets":
        show_rows(FACETS, _facet_rows(response), out, numbers=("count",), piped=_facet_rows(response, every=True))
    else:
        for answer in response.semantic_answers if out.is_terminal else ():
            out.print(Text(f"“{printable(answer.text)}”", style="bold"), Text(f"  {answer.score:.2f}", style="dim"))
        show_rows(COLUMNS, _rows(response), out, numbers=("#", "score"), wide=("place", "text"), piped=_piped(response))
    if out.is_terminal:
        out.print(Text(_summary(response), style="dim"))
    return Exit.DONE


def _rows(response: RetrieveResponse) -> Iterator[Sequence[str | Text]]:
    for rank, document in enumerate(response.documents, start=1):
        yield str(rank), f"{_ranked_by(document):.3f}", _where(document), _highlighted(document)


def _piped(response: RetrieveResponse) -> Iterator[Sequence[str]]:
    for one in response.documents:
        yield f"{_ranked_by(one):.6f}", one.id, _where(one), clipped(printable(one.content), EXCERPT_CHARS)


def _facet_rows(response: RetrieveResponse, *, every: bool = False) -> Iterator[Sequence[str]]:
    for facet in response.facets:
        for one in facet.values if every else facet.values[:SHOWN_FACET_VALUES]:
            yield facet.field, str(one.count), one.value


def _ranked_by(document: RetrievedDocument) -> float:
    """The score that ranks the document: that of the last stage that scored it."""
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


def _where(document: RetrievedDocument) -> str:
    page = None if document.metadata.page is None else f"page {document.metadata.page}"
    section = None if document.doc_type == "script" else document.metadata.section
    return printable(" · ".join(" ".join(part.split()) for part in (document.title, section, page) if part))


def _summary(response: RetrieveResponse) -> str:
    found = counted(response.count, "document") if response.count else "Nothing relevant found"
    if response.pipeline == "facets":
        found = counted(len(response.facets), "field")
    known = [use.cost_usd for use in response.model_uses if use.cost_usd is not None]
    usd = f"${sum(known):.6f}" if len(known) == len(response.model_uses) else "cost unknown"
    parts = [
        f"{found} in {counted(response.total, 'passage')}",
        f"version {printable(response.index_version)}",
        *(f"also searched “{printable(query)}”" for query in response.queries_used[1:]),
        *(["and a hypothetical passage"] if response.hyde_used else []),
        " · ".join(f"{stage} {taken:.0f} ms" for stage, taken in response.timings_ms.items()),
        *([usd] if response.model_uses else []),
    ]
    return " · ".join(parts)

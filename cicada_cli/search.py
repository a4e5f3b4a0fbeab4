"""``cicada search``: retrieval alone."""

from __future__ import annotations

import argparse
from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from rich.text import Text

from cicada.defaults import DEFAULT_MIN_SCORE, DEFAULT_TOP_K
from cicada.errors import CicadaError, NameUnknown
from cicada_cli import argument_types
from cicada_cli.access import readable_by
from cicada_cli.context import deployment_of
from cicada_cli.deployment import INDEX, Deployment
from cicada_cli.exits import Exit
from cicada_cli.grammar import Commands
from cicada_cli.index import embedder_of, store_of
from cicada_cli.near_names import suggestion
from cicada_cli.output import complain, console, note, say_json, show_rows
from cicada_cli.shared_options import add_filter, add_groups, add_index, add_json, add_metadata, as_whom
from cicada_cli.text import clipped, counted, printable

if TYPE_CHECKING:  # numpy is loaded by a search
    from rich.console import Console

    from cicada.retrieval.ports import Hit, SearchQuery, SearchResult

EXCERPT_CHARS = 200
MODES = ("hybrid", "dense", "keyword")
COLUMNS = ("#", "score", "place", "text")


def add_search(commands: Commands) -> None:
    """Add the command's parser."""
    parser = commands.add_parser(
        "search",
        help="find passages, without an answer",
        description="Search the index and show the passages, without an answer.",
        examples=(
            'cicada search "the fog bell at night" --speaker Tamsin',
            'cicada search "the severance terms" --groups staff    # what members of a group find',
        ),
    )
    parser.add_argument("query", metavar="QUERY", help="the text to search for")
    add_filter(parser, "--episode", "search this episode")
    add_filter(parser, "--speaker", "search what this character says")
    add_filter(parser, "--collection", "search this collection")
    add_metadata(parser)
    add_groups(parser)
    parser.add_argument(
        "--mode",
        choices=MODES,
        default="hybrid",
        metavar="MODE",
        help="hybrid, dense (vectors) or keyword (words) (default: %(default)s)",
    )
    parser.add_argument(
        "--top-k",
        type=argument_types.top_k,
        default=DEFAULT_TOP_K,
        metavar="N",
        help="maximum number of hits (default: %(default)s)",
    )
    parser.add_argument(
        "--min-score",
        type=argument_types.share,
        default=DEFAULT_MIN_SCORE,
        metavar="SCORE",
        help="minimum score of a hit, 0 to 1 (default: %(default)s)",
    )
    add_json(parser)
    add_index(parser)
    parser.set_defaults(run=_search)


def _search(args: argparse.Namespace) -> Exit:
    from cicada.retrieval.ports import Filters, SearchQuery
    from cicada.rights import EVERYTHING

    wanted: dict[str, tuple[str, ...]] = {}
    for key, value in args.metadata:
        wanted[key] = (*wanted.get(key, ()), value)
    filters = Filters(tuple(args.collection), tuple(args.episode), tuple(args.speaker), wanted)
    query = SearchQuery(args.query, filters, args.top_k, args.min_score, args.mode, readable=EVERYTHING)
    deployment = deployment_of(args, as_whom(args, INDEX))
    return search(deployment, query, groups=args.groups, as_json=args.json, out=console())


def search(
    deployment: Deployment, query: SearchQuery, *, groups: tuple[str, ...] | None, as_json: bool, out: Console
) -> Exit:
    """Search as a member of some groups would, or everything for None, and show the hits."""
    from cicada.index.reader import IndexReader
    from cicada.retrieval.names import NameChecker, NameCheckingRetriever
    from cicada.retrieval.shards import ShardRetriever

    embedder = embedder_of(deployment, "query")
    reader = IndexReader(
        store_of(deployment), embedding_model_id=embedder.model_id, dimensions=deployment.embedding_dimensions
    )
    try:
        query = replace(query, readable=readable_by(deployment, groups))
        result = NameCheckingRetriever(ShardRetriever(reader, embedder), NameChecker(reader)).search(query)
    except NameUnknown as error:
        near = suggestion((*query.filters.collections, *query.filters.episodes), error.known)
        complain(f"{error.told}{near} ({error.code})")
        return Exit.USAGE
    except CicadaError as error:
        complain(f"{error.told} ({error.code}: {error})")
        return Exit.FAILED
    finally:
        reader.close()
    for one in result.degraded:
        complain(one.message)
    if as_json:
        say_json(_data(query, result))
        return Exit.DONE
    show_rows(COLUMNS, _rows(result), out, numbers=("#", "score"), wide=("place", "text"), piped=_piped(result))
    if out.is_terminal:
        out.print(Text(_summary(result), style="dim"))
    elif not result.hits:
        note(_summary(result))
    return Exit.DONE


def _data(query: SearchQuery, result: SearchResult) -> dict[str, Any]:
    return {
        "query": query.text,
        "indexVersion": result.index_version,
        "searched": result.searched,
        "mode": query.mode,
        "degraded": [{"code": one.code, "message": one.message} for one in result.degraded],
        "timingsMs": {name: round(taken, 3) for name, taken in result.timings_ms.items()},
        "hits": [
            {"score": round(hit.score, 6), "passage": hit.passage.model_dump(mode="json", by_alias=True)}
            for hit in result.hits
        ],
    }


def _rows(result: SearchResult) -> Iterator[Sequence[str]]:
    for rank, hit in enumerate(result.hits, start=1):
        yield str(rank), f"{hit.score:.3f}", _place(hit), _excerpt(hit)


def _piped(result: SearchResult) -> Iterator[Sequence[str]]:
    for hit in result.hits:
        yield f"{hit.score:.6f}", hit.passage.id, _place(hit), _excerpt(hit)


def _summary(result: SearchResult) -> str:
    found = counted(len(result.hits), "hit") if result.hits else "Nothing relevant found"
    taken = " · ".join(f"{name} {ms:.0f} ms" for name, ms in result.timings_ms.items())
    return f"{found} in {counted(result.searched, 'passage')} · version {printable(result.index_version)} · {taken}"


def _place(hit: Hit) -> str:
    return printable(hit.passage.locator.label())


def _excerpt(hit: Hit) -> str:
    return clipped(printable(hit.passage.text), EXCERPT_CHARS)

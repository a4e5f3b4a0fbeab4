"""``cicada search``: retrieval alone."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from rich.console import Console
from rich.table import Table
from rich.text import Text

from cicada.errors import CicadaError
from cicada.retrieval.ports import Hit, SearchQuery, SearchResult
from cicada_cli.access import readable_by
from cicada_cli.deployment import Deployment
from cicada_cli.exits import Exit
from cicada_cli.index import embedder_of, store_of
from cicada_cli.output import complain, say, say_json
from cicada_cli.text import clipped, counted, printable

EXCERPT_CHARS = 200


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
    except CicadaError as error:
        complain(f"{error.told} ({error.code}: {error})")
        return Exit.FAILED
    finally:
        reader.close()
    for one in result.degraded:
        complain(one.message)
    if as_json:
        say_json(_plain(query, result))
    elif out.is_terminal:
        out.print(_table(result), Text(_summary(result), style="dim"))
    else:
        for line in _lines(result):
            say(line)
    return Exit.DONE


def _plain(query: SearchQuery, result: SearchResult) -> dict[str, Any]:
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


def _table(result: SearchResult) -> Table:
    table = Table(box=None, pad_edge=False, header_style="bold", show_header=bool(result.hits))
    table.add_column("#", justify="right", style="cyan")
    table.add_column("score", justify="right")
    table.add_column("where", ratio=2)
    table.add_column("text", ratio=5)
    for rank, hit in enumerate(result.hits, start=1):
        table.add_row(str(rank), f"{hit.score:.3f}", Text(_where(hit)), Text(_excerpt(hit)))
    return table


def _lines(result: SearchResult) -> list[str]:
    """One hit a line: score, passage, where, text, separated by tabs."""
    return [
        "\t".join((f"{hit.score:.6f}", printable(hit.passage.id), _where(hit), _excerpt(hit))) for hit in result.hits
    ]


def _summary(result: SearchResult) -> str:
    found = counted(len(result.hits), "hit") if result.hits else "Nothing relevant found"
    taken = " · ".join(f"{name} {ms:.0f} ms" for name, ms in result.timings_ms.items())
    return f"{found} in {counted(result.searched, 'passage')} · version {printable(result.index_version)} · {taken}"


def _where(hit: Hit) -> str:
    return printable(hit.passage.locator.label())


def _excerpt(hit: Hit) -> str:
    return clipped(printable(hit.passage.text), EXCERPT_CHARS)

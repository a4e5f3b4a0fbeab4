"""The client's methods that read the corpus, against a scripted deployment."""

from __future__ import annotations

import asyncio
import itertools
from typing import Any

import pytest

from cicada.errors import CollectionUnknown, LimitReached
from cicada.protocol.actions import ListCollections, ListDocuments, ReadPassages, Search
from cicada.protocol.corpus import (
    CollectionListed,
    Collections,
    DocumentListed,
    DocumentRead,
    Documents,
    PassageRead,
    Passages,
    SearchFound,
)
from cicada.protocol.events import Refused, Reply
from cicada.usage.limits import LimitState
from cicada_client import CicadaClient, ClientError, InvalidQuestion, RequestRefused, SyncCicadaClient, Timing
from tests.support.scripted_answers import OTHER_SOURCE, PLACE, SOURCE
from tests.support.scripted_deployment import ScriptedDeployment

FAST = Timing(backoff_base_s=0.005, backoff_cap_s=0.01, attempts=3)
LISTED = [CollectionListed(name=name, passages=3, documents=1) for name in ("manuals", "script")]
DOCUMENT = DocumentListed(source="manuals/bell.md", title="The bell", passages=3, original=False)


def reply(action: Any) -> Reply:
    match action:
        case ListCollections(cursor=None):
            return Collections(index_version="v7", collections=tuple(LISTED[:1]), empty=False, next="manuals")
        case ListCollections():
            return Collections(index_version="v7", collections=tuple(LISTED[1:]), empty=False)
        case ListDocuments(collection="nowhere"):
            return Refused.of(CollectionUnknown("nowhere", known=()))
        case ListDocuments():
            return Documents(collection=action.collection, documents=(DOCUMENT,), next="manuals/bell.md")
        case Search():
            return SearchFound(index_version="v7", query=action.query, sources=(SOURCE, OTHER_SOURCE))
        case ReadPassages():
            passage = PassageRead(passage_id=action.passage_id, locator=PLACE, text=SOURCE.text)
            return Passages(
                index_version="v7",
                collection="script",
                document=DocumentRead(source="episode-1.jsonl", title="The Fog Bell"),
                passages=(passage,),
                at=0,
                has_previous=True,
                has_next=False,
            )
    raise AssertionError(action)


def test_the_corpus_is_listed_searched_and_read() -> None:
    with ScriptedDeployment(reply=reply) as deployment, SyncCicadaClient(deployment.url) as client:
        assert [one.name for one in client.collections().collections] == ["manuals", "script"]
        assert client.documents("manuals", prefix="manuals/", cursor="manuals/a.md").documents == (DOCUMENT,)
        found = client.search("bell", collections=["script"], episodes=["ep1"], sections=["Setup"], top_k=2)
        assert [source.passage_id for source in found.sources] == ["ep1/12", "ep1-14"]
        read = client.read("ep1/12", collection="script", before=0, after=3, index_version="v7")
        assert (read.passages[read.at].text, read.has_previous, read.has_next) == (SOURCE.text, True, False)
    listing, searching, reading = (deployment.actions(kind)[0] for kind in (ListDocuments, Search, ReadPassages))
    assert (listing.prefix, listing.cursor) == ("manuals/", "manuals/a.md")
    assert (searching.collections, searching.sections, searching.top_k) == (("script",), ("Setup",), 2)
    assert (reading.collection, reading.before, reading.after) == ("script", 0, 3)


def test_what_is_unknown_or_breaks_the_protocol_is_an_error() -> None:
    with ScriptedDeployment(reply=reply) as deployment, SyncCicadaClient(deployment.url) as client:
        with pytest.raises(RequestRefused) as refused:
            client.documents("nowhere")
        assert refused.value.code == "collection_unknown"
        with pytest.raises(InvalidQuestion, match="before"):
            client.read("ep1/12", before=31)
        with pytest.raises(InvalidQuestion, match="query"):
            client.search(" ")


@pytest.mark.parametrize("limited", [False, True])
def test_a_call_is_tried_again_unless_a_limit_refuses_it(limited: bool) -> None:
    limit = LimitState(account="user", limit="requestsMinute", most=5, left=0) if limited else None
    refusal = Refused(code=LimitReached.code, message="Not now.", retryable=True, limit=limit)
    replies = itertools.chain([refusal], itertools.repeat(None))

    async def search(url: str) -> SearchFound:
        async with CicadaClient(url, timing=FAST) as client:
            return await client.search("bell")

    with ScriptedDeployment(reply=lambda action: next(replies) or reply(action)) as deployment:
        if limited:
            with pytest.raises(RequestRefused):
                asyncio.run(search(deployment.url))
        else:
            assert asyncio.run(search(deployment.url)).sources
    assert len(deployment.received) == (1 if limited else 2)
    assert len({action.request_id for action in deployment.actions(Search)}) == 1


def test_a_reply_of_another_kind_is_an_error() -> None:
    other = Documents(collection="script", documents=())
    with ScriptedDeployment(reply=lambda _: other) as deployment, SyncCicadaClient(deployment.url) as client:
        with pytest.raises(ClientError, match="search"):
            client.search("bell")

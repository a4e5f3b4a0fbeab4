"""What the page knows of the corpus: what can be asked, and where to search."""

from __future__ import annotations

from typing import Any

from tests.e2e.page.accessibility import assert_accessible
from tests.e2e.page.asking import ask, connected, wait_for_phase
from tests.e2e.page.server import ScriptedServer
from tests.e2e.page.sessions import QUESTION, WHOLE

SCRIPT = {
    "name": "script",
    "title": "The Stillwater Almanac",
    "description": "A visual novel in five episodes.",
    "passages": 312,
    "episodes": [{"id": "ep1", "name": "First Draft", "passages": 60}, {"id": "ep2", "passages": 52}],
}
SHELF = {
    "name": "shelf",
    "passages": 25,
    "documents": 6,
    "sections": [{"path": "The Lamp", "passages": 5}, {"path": "The Pump", "passages": 3}],
}


def corpus(*collections: dict[str, Any], **fields: Any) -> dict[str, Any]:
    return {
        "type": "collections",
        "indexVersion": "000001-a",
        "collections": list(collections),
        "empty": False,
        **fields,
    }


def test_the_empty_page_says_what_can_be_asked(browser):
    with ScriptedServer({QUESTION: WHOLE}) as server:
        server.answers["collections"] = lambda _: corpus(SCRIPT, SHELF, examples=[QUESTION])
        with browser.page(server.page_url) as page:
            page.wait("document.querySelectorAll('.holdings li').length === 2")
            assert page.run(
                "[...document.querySelectorAll('.holdings li')].map((li) => li.innerText.split('\\n'))"
            ) == [
                ["The Stillwater Almanac", "A visual novel in five episodes.", "2 episodes · 312 passages"],
                ["shelf", "6 documents · 25 passages"],
            ]
            assert_accessible(page)
            page.click("#examples button")
            wait_for_phase(page, "complete")
            assert page.problems == []


def test_an_empty_corpus_says_how_to_load_one(browser):
    with ScriptedServer({}) as server:
        server.answers["collections"] = lambda _: corpus(empty=True, indexVersion=None)
        with browser.page(server.page_url) as page:
            page.wait("document.querySelector('.holdings code') !== null")
            assert "cicada load FOLDER --collection NAME" in page.text(".holdings")
            assert_accessible(page)


def test_collections_and_their_parts_are_chosen(browser):
    with ScriptedServer({QUESTION: WHOLE, "again": WHOLE}) as server:
        server.answers["collections"] = lambda _: corpus(SCRIPT, SHELF)
        found = [{"source": "pump.pdf", "title": "The Pump", "passages": 3}]
        server.answers["documents"] = lambda _: {"type": "documents", "collection": "shelf", "documents": found}
        with browser.page(server.page_url) as page:
            connected(page)
            page.click(".within > summary")
            page.wait("document.querySelectorAll('.within fieldset').length === 1")
            page.click(".chip input[value='shelf']")
            assert page.run("[...document.querySelectorAll('.within legend')].map((one) => one.innerText)") == [
                "Collections",
                "Sections of shelf",
                "Files of shelf",
            ]
            page.click(".chip input[value='The Lamp']")
            page.click(".within input[type='search']")
            page.wait("document.querySelector(\".chip input[value='pump.pdf']\") !== null")
            page.click(".chip input[value='pump.pdf']")
            assert page.text(".within > summary span:last-child") == "3 filters"
            assert_accessible(page)
            ask(page, QUESTION)
            wait_for_phase(page, "complete")
            asked = server.asked[0]
            assert (asked.collections, asked.sections, asked.documents) == (("shelf",), ("The Lamp",), ("pump.pdf",))
            assert page.text(".turn .scope") == "Only in shelf, The Lamp, The Pump"
            page.click(".within > summary")
            page.click(".chip input[value='script']")
            page.click(".chip input[value='shelf']")
            ask(page, "again")
            wait_for_phase(page, "complete")
            assert (server.asked[1].collections, server.asked[1].sections) == (("script",), ())
            assert page.problems == []

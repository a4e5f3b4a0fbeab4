"""The page looks as it did: its main states, wide and light, and narrow and dark."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path

import pytest

from tests.e2e.page import looks
from tests.e2e.page.asking import ask, connected, wait_for_phase
from tests.e2e.page.browser import Browser, Page
from tests.e2e.page.server import ScriptedServer, Step
from tests.e2e.page.sessions import QUESTION, WHOLE
from tests.e2e.page.test_page_access import STATES
from tests.e2e.page.test_page_conversations import TITLES, KeptConversations
from tests.e2e.page.test_page_corpus import SCRIPT, SHELF, corpus
from tests.e2e.page.test_page_reader import HERE, serve

UPLOADED = {"name": "pump.txt", "bytes": 900, "state": "loaded", "uploadedAtMs": 1, "passages": 4}
UPLOADS = {"type": "uploads", "collection": "shelf", "documents": [UPLOADED], "run": None, "maxBytes": 1000}
QUESTIONS: dict[str, Sequence[Step]] = {
    QUESTION: WHOLE,
    **{name: STATES[name] for name in ("fallback", "failed", "small talk")},
}
ADD_DOCUMENTS = "#bar > .menu:not([aria-controls])"


def show_states(page: Page) -> Iterator[str]:
    """Bring the page into each state, and name it."""
    page.wait("document.querySelectorAll('.holdings li').length === 2")
    yield "empty"
    page.click(".within > summary")
    page.wait("document.querySelectorAll('.within fieldset').length > 0")
    yield "filters"
    page.click(".within > summary")
    page.click(ADD_DOCUMENTS)
    page.wait("document.querySelectorAll('.documents li').length === 1")
    yield "uploads"
    page.press("Escape")
    for name in QUESTIONS:
        ask(page, name)
        wait_for_phase(page, "complete", "failed")
        page.run("document.querySelector('#question').focus(), document.querySelector('.turn').scrollIntoView(), 0")
        yield "answer" if name == QUESTION else name
        if name == QUESTION:
            page.run("document.querySelector('.source[data-n=\"2\"] .read').click()")
            page.wait(f"{HERE} !== null")
            yield "reader"
            page.press("Escape")
            page.wait("location.hash === ''")
        page.click("#clear")
        page.wait("document.querySelectorAll('.turn').length === 0")
    page.wait(f"{TITLES}.length === {len(QUESTIONS)}")
    page.click("[aria-controls='conversations']")
    yield "conversations"


@pytest.mark.parametrize(("width", "height", "dark"), [(1280, 800, False), (320, 960, True)], ids=["wide", "narrow"])
def test_the_page_looks_as_it_did(browser: Browser, tmp_path: Path, width: int, height: int, dark: bool) -> None:
    taken: dict[str, str] = {}
    different: dict[str, str] = {}
    folder = looks.renewing()
    with ScriptedServer(QUESTIONS) as server:
        server.answers["conversations"] = KeptConversations(server)
        server.answers["collections"] = lambda _: corpus(SCRIPT, {**SHELF, "upload": True}, examples=[QUESTION])
        server.answers["upload"] = lambda _: UPLOADS
        server.answers["documents"] = lambda _: {"type": "documents", "collection": "shelf", "documents": []}
        serve(server)
        with browser.page(server.page_url, width=width, height=height, dark=dark) as page:
            known = {} if folder else looks.kept(page)["looks"]
            page.fix(dark=dark)
            connected(page)
            for state in show_states(page):
                name = f"{state}, {width} px"
                assert page.run("document.documentElement.scrollWidth <= innerWidth"), f"{name}: wider than the screen"
                if folder:
                    folder.mkdir(parents=True, exist_ok=True)
                    taken[name], picture = looks.settled(page)
                    (folder / f"{name}.png").write_bytes(picture)
                elif told := looks.difference(page, known[name], tmp_path / f"{name}.png"):
                    different[name] = told
            if folder:
                looks.keep(page, taken)
    assert different == {}, "\n".join(f"{name}: {told}" for name, told in different.items())

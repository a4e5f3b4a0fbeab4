"""The page in a real browser: a source read in its document."""

from __future__ import annotations

from urllib.parse import quote

import pytest

from cicada.corpus.passages import DocumentLocator, ScriptLocator
from cicada.protocol.actions import ReadPassages
from cicada.protocol.corpus import DocumentRead, OriginalFile, PassageRead
from tests.e2e.page.asking import ask, wait_for_phase
from tests.e2e.page.browser import Browser, Page
from tests.e2e.page.server import ScriptedServer
from tests.e2e.page.sessions import QUESTION, WHOLE, source

HERE = "document.querySelector('.reader[open] .piece.here')"
FILE = "https://files.example/ledger.pdf?X-Amz-Signature=1"


def script_passages(count: int = 60) -> list[PassageRead]:
    """Lines of a script, with the answer's sources 1 to 6 from the 30th on."""
    lines = []
    for place in range(count):
        found = source(place - 29) if 30 <= place < 36 else None
        locator = ScriptLocator(
            episode_id="ep1",
            episode_name="First Draft: The Boathouse",
            chapter_id=f"ep1-ch{place // 8}",
            message_id=f"m{place}",
            speaker=f"Speaker {place}",
        )
        text = found.text if found else f"Line {place}."
        lines.append(PassageRead(passage_id=found.passage_id if found else f"m{place}", locator=locator, text=text))
    return lines


def serve(server: ScriptedServer, passages: list[PassageRead] | None = None, *, title: str = "ep1.jsonl") -> None:
    server.document = DocumentRead(
        source="ep1.jsonl", title=title, original=OriginalFile(url=FILE, expires_at_ms=4_000_000_000_000)
    )
    server.passages = script_passages() if passages is None else passages


def read_source(page: Page, n: int) -> None:
    page.click(f".source[data-n='{n}'] .read")
    page.wait(f"{HERE}?.querySelector('.number')?.innerText.endsWith('{n}')")


def in_view(page: Page) -> bool:
    box: list[float] = page.run(f"(({{ top, bottom }}) => [top, bottom, innerHeight])({HERE}.getBoundingClientRect())")
    top, bottom, height = box
    return 0 < top < bottom < height


def shown(page: Page) -> list[str]:
    lines: list[str] = page.run("[...document.querySelectorAll('.reader .piece')].map((piece) => piece.innerText)")
    return lines


def test_a_source_is_read_among_the_lines_around_it(browser: Browser) -> None:
    with ScriptedServer({QUESTION: WHOLE}) as server, browser.page(server.page_url) as page:
        serve(server)
        ask(page, QUESTION)
        wait_for_phase(page, "complete")
        read_source(page, 2)
        (asked,) = server.actions(ReadPassages)
        assert (asked.passage_id, asked.collection, asked.index_version) == ("ep1-0002", "script", "v1")
        assert page.text(".reader h2") == "First Draft: The Boathouse"
        assert page.run(f"{HERE}.getAttribute('aria-current')") == "true"
        assert page.text(".reader .here mark") == "There is one key, and it hangs on my neck"
        assert page.text(".reader .here .speaker") == "Speaker 31"
        assert len(shown(page)) == 11
        assert page.text(".reader .original") == "Original file"
        assert in_view(page)

        page.click(".reader .beyond:has(+ .pieces)")
        page.wait("document.querySelectorAll('.reader .piece').length === 23")
        assert in_view(page), "what is read stays in view"
        page.click(".reader .pieces + .beyond")
        page.wait("document.querySelectorAll('.reader .piece').length === 35")
        assert page.run("document.querySelectorAll('.reader [aria-current]').length") == 1
        assert [line.split("\n")[0] for line in shown(page)][:2] == ["Speaker 14", "Speaker 15"]

        page.click(".reader .steps button:last-child")
        page.wait(f"{HERE}?.querySelector('.number')?.innerText.endsWith('3')")
        assert page.run("location.hash") == "#read/script/ep2-0003"
        page.press("Escape")
        page.wait("!document.querySelector('.reader').open")
        assert page.run("document.activeElement.matches('.source[data-n=\"2\"] .read')")
        page.wait("location.hash === ''")
        assert page.problems == []


def test_a_link_opens_the_passage_again_and_back_closes_it(browser: Browser) -> None:
    with ScriptedServer({QUESTION: WHOLE}) as server:
        serve(server)
        with browser.page(f"{server.page_url}#read/script/{quote('ep1-0002')}") as page:
            page.wait(f"{HERE}?.innerText.includes('I locked the water gate')")
            assert page.run("document.querySelector('.reader .steps').hidden")
            page.reload()
            page.wait(f"{HERE}?.innerText.includes('I locked the water gate')")
            page.press("Escape")
            page.wait("location.hash === ''")
            ask(page, QUESTION)
            wait_for_phase(page, "complete")
            read_source(page, 1)
            page.run("history.back()")
            page.wait("!document.querySelector('.reader').open")
            assert page.problems == []


def test_a_small_screen_shows_the_document_over_the_answer(browser: Browser) -> None:
    with ScriptedServer({QUESTION: WHOLE}) as server, browser.page(server.page_url, width=360, height=700) as page:
        pages = [
            PassageRead(
                passage_id=source(n).passage_id,
                locator=DocumentLocator(source="a.pdf", title="The Ledger", page=n // 2 + 1, section="Doors > Keys"),
                text=source(n).text,
            )
            for n in range(1, 7)
        ]
        serve(server, pages, title="The Ledger")
        ask(page, QUESTION)
        wait_for_phase(page, "complete")
        page.click(".sources > summary")
        read_source(page, 1)
        assert page.run("document.querySelector('.reader').matches(':modal')")
        assert page.text(".reader h2") == "The Ledger"
        headings = page.run("[...document.querySelectorAll('.reader h3')].map((one) => one.innerText)")
        assert headings == [f"Doors > Keys · page {number}" for number in (1, 2, 3, 4)]
        assert page.run("document.querySelectorAll('.reader .speaker').length") == 0
        assert page.run("document.querySelector('.reader').scrollWidth <= innerWidth")
        page.press("Escape")
        page.wait("!document.querySelector('.reader').open")
        assert page.run("document.activeElement.matches('.source[data-n=\"1\"] .read')")


@pytest.mark.parametrize(
    ("known", "told"),
    [
        (True, "Passage not found."),
        (False, "This server cannot show passages in their documents."),
    ],
)
def test_a_passage_that_cannot_be_read_says_why(browser: Browser, known: bool, told: str) -> None:
    with ScriptedServer({QUESTION: WHOLE}) as server, browser.page(server.page_url) as page:
        if known:
            serve(server, [])
        ask(page, QUESTION)
        wait_for_phase(page, "complete")
        page.click(".source[data-n='1'] .read")
        page.wait(f"document.querySelector('.reader-note').innerText === '{told}'")
        assert page.run("document.querySelectorAll('.reader .piece').length") == 0
        page.press("Escape")
        page.wait("!document.querySelector('.reader').open")

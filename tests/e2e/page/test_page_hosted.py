"""The page on a static host that sends the headers of ``headers.json``, in a real browser."""

from __future__ import annotations

from tests.e2e.page.asking import ask, connected, wait_for_phase
from tests.e2e.page.server import ScriptedServer
from tests.e2e.page.sessions import ANSWER, QUESTION, WHOLE

FOREIGN = "page.css"
"""Shown as text, it is a document without a policy of its own."""


def test_it_works_and_speaks_to_its_own_server_alone(browser):
    with ScriptedServer({QUESTION: WHOLE}, headers=True) as server, ScriptedServer({}) as other:
        with browser.page(server.page_url) as page:
            connected(page)
            ask(page, QUESTION)
            assert wait_for_phase(page, "complete")["text"] == ANSWER
            assert page.problems == []
            page.run(f"new WebSocket('{other.websocket_url}').onerror = () => (window.refused = true), 0")
            page.wait("window.refused")
            assert any("Content Security Policy" in problem for problem in page.problems)
            assert other.opened == []


def test_no_page_of_another_origin_shows_it_in_a_frame(browser):
    for headers, framed in ((False, True), (True, False)):
        with (
            ScriptedServer({}, headers=headers) as server,
            ScriptedServer({}) as other,
            browser.page(other.page_url + FOREIGN) as page,
        ):
            page.run(
                "{ const frame = document.createElement('iframe');"
                f"frame.src = '{server.page_url}';"
                "frame.onload = () => (window.loaded = true);"
                "document.body.append(frame); }"
            )
            page.wait("window.loaded")
            if framed:
                server.wait(lambda: bool(server.opened))
            else:
                assert any("frame" in problem for problem in page.problems)
                assert server.opened == []

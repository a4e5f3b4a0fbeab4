"""Feedback on an answer."""

from __future__ import annotations

from tests.e2e.page.accessibility import assert_accessible
from tests.e2e.page.asking import ask, connected, wait_for_phase
from tests.e2e.page.server import ScriptedServer
from tests.e2e.page.sessions import QUESTION, WHOLE

PRESSED = "[...document.querySelectorAll('.feedback > button')].map((one) => one.getAttribute('aria-pressed'))"


def test_an_answer_is_rated_with_a_reason_and_the_rating_is_taken_back(browser):
    with ScriptedServer({QUESTION: WHOLE}) as server:
        server.answers["feedback"] = lambda fields: {"type": "feedback", "rating": fields["rating"]}
        with browser.page(server.page_url) as page:
            connected(page)
            ask(page, QUESTION)
            wait_for_phase(page, "complete")
            page.click(".feedback > button:nth-child(2)")
            page.wait("document.activeElement.tagName === 'SELECT'")
            assert_accessible(page)
            page.run("document.activeElement.value = 'bad_sources'; 0")
            page.click(".feedback textarea")
            page.type("They speak of another key.")
            page.click(".feedback form button")
            page.wait("document.querySelector('.feedback form').hidden")
            assert page.text(".feedback .outcome") == "Thank you."
            page.reload()
            wait_for_phase(page, "complete")
            assert page.run(PRESSED) == ["false", "true"]
            page.click(".feedback > button:nth-child(2)")
            page.wait(f"{PRESSED}[1] === 'false'")
            request_id = server.asked[0].request_id
            given = [one for one in server.called if one["action"] == "feedback"]
            assert [(one["requestId"], one["rating"], one.get("reason")) for one in given] == [
                (request_id, "down", None),
                (request_id, "down", "bad_sources"),
                (request_id, "none", None),
            ]
            assert given[1]["comment"] == "They speak of another key."
            assert page.problems == []


def test_a_server_that_takes_no_feedback_says_so(browser):
    with ScriptedServer({QUESTION: WHOLE}) as server, browser.page(server.page_url) as page:
        connected(page)
        ask(page, QUESTION)
        wait_for_phase(page, "complete")
        page.click(".feedback > button")
        page.wait("document.querySelector('.feedback .outcome').innerText !== ''")
        assert page.run(PRESSED) == ["false", "false"]

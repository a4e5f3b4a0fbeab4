"""The list of conversations: opened, renamed, deleted and restored; the server keeps it."""

from __future__ import annotations

from typing import Any

from tests.e2e.page.accessibility import assert_accessible
from tests.e2e.page.asking import ask, connected, wait_for_phase
from tests.e2e.page.server import ScriptedServer
from tests.e2e.page.sessions import ANSWER, QUESTION, WHOLE


class KeptConversations:
    """Answers the action ``conversations`` as the server does."""

    def __init__(self, server: ScriptedServer) -> None:
        self._server = server
        self._titles: dict[str, str] = {}
        self._deleted: set[str] = set()

    def __call__(self, fields: dict[str, Any]) -> dict[str, Any]:
        asked: dict[str, list[dict[str, Any]]] = {}
        for one in self._server.asked:
            request = {"requestId": one.request_id, "query": one.query, "askedAtMs": 1, "state": "complete"}
            asked.setdefault(one.session_id or "", []).append(request)
        session = fields.get("sessionId", "")
        if fields["operation"] == "list":
            found = [self._listed(one, asked[one]) for one in reversed(asked) if one not in self._deleted]
            return {"type": "conversations", "conversations": found, "next": None}
        if session not in asked:
            return {"type": "error", "code": "conversation_unknown", "message": "No.", "retryable": False}
        if fields["operation"] == "rename":
            self._titles[session] = fields["title"]
        if fields["operation"] == "delete":
            self._deleted.add(session)
        if fields["operation"] == "restore":
            self._deleted.discard(session)
        return {"type": "conversation", **self._listed(session, asked[session]), "requests": asked[session]}

    def _listed(self, session: str, requests: list[dict[str, Any]]) -> dict[str, Any]:
        title = self._titles.get(session, requests[0]["query"])
        return {"sessionId": session, "title": title, "createdAtMs": 1, "updatedAtMs": 2, "questions": len(requests)}


TITLES = "[...document.querySelectorAll('#conversations .title')].map((one) => one.innerText)"


def test_new_loses_nothing_and_an_earlier_conversation_is_opened_again(browser):
    with ScriptedServer({QUESTION: WHOLE, "second": WHOLE}) as server:
        server.answers["conversations"] = KeptConversations(server)
        with browser.page(server.page_url) as page:
            connected(page)
            ask(page, QUESTION)
            wait_for_phase(page, "complete")
            page.click("#clear")
            ask(page, "second")
            wait_for_phase(page, "complete")
            page.wait(f"{TITLES}.length === 2")
            page.click("[aria-controls='conversations']")
            assert page.run(TITLES) == ["second", QUESTION]
            assert_accessible(page)
            page.click("#conversations li:nth-child(2) .title")
            page.wait(f"document.querySelector('.turn h2')?.innerText === '{QUESTION}'")
            seen = wait_for_phase(page, "complete")
            assert (seen["question"], seen["text"]) == (QUESTION, ANSWER)
            assert page.run("document.querySelectorAll('.turn').length") == 1
            address = page.run("location.href")
            assert f"c={server.asked[0].session_id}" in address
            page.run("sessionStorage.clear(), 0")
            page.reload()
            assert wait_for_phase(page, "complete")["question"] == QUESTION
            assert page.problems == []


def test_a_conversation_is_renamed_deleted_and_restored(browser):
    with ScriptedServer({QUESTION: WHOLE}) as server:
        server.answers["conversations"] = KeptConversations(server)
        with browser.page(server.page_url) as page:
            connected(page)
            ask(page, QUESTION)
            wait_for_phase(page, "complete")
            page.wait(f"{TITLES}.length === 1")
            page.click("[aria-controls='conversations']")
            page.click("#conversations .tools button:first-child")
            page.run("document.activeElement.select(), 0")
            page.type("The key")
            page.press("Enter")
            page.wait(f"{TITLES}[0] === 'The key'")
            page.click("#conversations .tools button:last-child")
            page.wait(f"{TITLES}.length === 0")
            assert page.text(".undo") == "“The key” was deleted.\nUndo"
            page.wait("document.querySelectorAll('.turn').length === 0")
            page.click(".undo button")
            page.wait(f"{TITLES}[0] === 'The key'")
            page.press("Escape")
            assert page.run("document.querySelector('#conversations').hidden")
            assert page.focused()["name"] == "Conversations"
            assert page.problems == []


def test_a_server_that_keeps_no_conversations_shows_no_list(browser):
    with ScriptedServer({QUESTION: WHOLE}) as server, browser.page(server.page_url) as page:
        connected(page)
        ask(page, QUESTION)
        wait_for_phase(page, "complete")
        assert page.run("document.querySelector('.menu').hidden")
        assert "c=" not in page.run("location.href")

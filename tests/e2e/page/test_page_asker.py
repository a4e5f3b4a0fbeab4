"""The page in a real browser: what an asker can do, with a mouse, a keyboard, a reload."""

from __future__ import annotations

import time
from collections.abc import Sequence

from cicada.errors import LimitReached
from cicada.protocol.actions import Ask, Cancel, Resume
from cicada.usage.limits import LimitState
from tests.e2e.page.asking import ask, connected, wait_for_phase, wait_for_text
from tests.e2e.page.browser import Page
from tests.e2e.page.server import Hold, ScriptedServer, Step, Wire
from tests.e2e.page.sessions import (
    ANSWER,
    EPISODES,
    PIECES,
    QUESTION,
    WHOLE,
    accepted,
    attempt,
    chunk,
    complete,
)


def test_stop_ends_the_answer(browser):
    script: list[Step] = [*WHOLE[:4], Hold(), *WHOLE[4:]]
    with ScriptedServer({QUESTION: script}) as server, browser.page(server.page_url) as page:
        ask(page, QUESTION)
        wait_for_text(page, PIECES[0])
        page.click(".turn .stop")
        end = wait_for_phase(page, "cancelled")
        assert end["line"].startswith("Stopped. The text so far is not the whole answer.")
        assert len(server.actions(Cancel)) == 1
        assert page.run("document.activeElement.id") == "question"
        assert end["notices"] == []


def test_a_conversation_keeps_its_questions(browser):
    second: list[Step] = [
        accepted("direct"),
        attempt(1, "direct"),
        chunk("You are welcome."),
        complete(1, "direct", grounded=False),
    ]
    scripts: dict[str, Sequence[Step]] = {QUESTION: WHOLE, "Thanks!": second}
    with ScriptedServer(scripts, config={"examples": [QUESTION]}) as server, browser.page(server.page_url) as page:
        page.wait("!!document.querySelector('#examples button')")
        page.click("#examples button")
        wait_for_phase(page, "complete")
        ask(page, "Thanks!")
        wait_for_text(page, "You are welcome.")
        assert page.run("[...document.querySelectorAll('.turn h2')].map((it) => it.innerText)") == [QUESTION, "Thanks!"]
        assert page.run("document.querySelector('.turn .answer').innerText") == ANSWER
        assert len({one.session_id for one in server.asked}) == 1
        page.click("#clear")
        assert page.run("document.querySelectorAll('.turn').length") == 0
        assert page.run("document.querySelector('#welcome').hidden") is False
        page.reload()
        connected(page)
        assert page.run("document.querySelectorAll('.turn').length") == 0


def test_two_questions_at_once(browser):
    scripts: dict[str, Sequence[Step]] = {
        "one": [*WHOLE[:4], Hold(), *WHOLE[4:]],
        "two": [*WHOLE[:4], Hold(), *WHOLE[4:]],
    }
    with ScriptedServer(scripts) as server, browser.page(server.page_url) as page:
        ask(page, "one")
        wait_for_phase(page, "writing")
        ask(page, "two")
        wait_for_phase(page, "writing")
        server.cut_all()
        server.release()
        page.wait("[...document.querySelectorAll('.turn')].every((turn) => turn.dataset.phase === 'complete')")
        texts = page.run("[...document.querySelectorAll('.turn .answer')].map((it) => it.innerText)")
        assert texts == [ANSWER, ANSWER]


def test_a_reload_shows_the_answers_again(browser):
    scripts: dict[str, Sequence[Step]] = {QUESTION: WHOLE, "open": [*WHOLE[:5], Hold(), *WHOLE[5:]]}
    with ScriptedServer(scripts) as server, browser.page(server.page_url) as page:
        ask(page, QUESTION)
        wait_for_phase(page, "complete")
        ask(page, "open")
        wait_for_text(page, "".join(PIECES[:2]))
        page.reload()
        wait_for_text(page, "".join(PIECES[:2]))
        assert page.run("document.querySelector('.turn .answer').innerText") == ANSWER
        assert page.text("#announcer") == "2 earlier questions restored."
        server.release()
        assert wait_for_phase(page, "complete")["text"] == ANSWER
        assert len(server.asked) == 2
        assert [one.after for one in server.actions(Resume)[:2]] == [0, 0]


def test_a_reload_before_the_acceptance_asks_again_under_the_same_id(browser):
    wire = Wire(deaf=True)
    with ScriptedServer({QUESTION: WHOLE}, wire=wire) as server, browser.page(server.page_url) as page:
        ask(page, QUESTION)
        server.wait(lambda: len(server.actions(Ask)) == 1)
        wire.deaf = False
        page.reload()
        assert wait_for_phase(page, "complete")["text"] == ANSWER
        assert len(server.actions(Ask)) == 2
        assert len({one.request_id for one in server.actions(Ask)}) == 1


def test_an_answer_that_is_no_longer_kept_can_be_asked_for_again(browser):
    with ScriptedServer({QUESTION: WHOLE}) as server, browser.page(server.page_url) as page:
        ask(page, QUESTION)
        wait_for_phase(page, "complete")
        server.forget()
        page.reload()
        assert wait_for_phase(page, "failed")["line"] == "The server does not know this question any more."
        page.click(".turn .again")
        page.wait("document.querySelectorAll('.turn').length === 2")
        assert wait_for_phase(page, "complete")["text"] == ANSWER


def test_a_limit_keeps_the_question_until_it_is_asked_again(browser):
    tomorrow_ms = int((time.time() + 86_400) * 1000)
    limit = LimitState(account="user", limit="usdDay", most=2, left=0.25, resets_at_ms=tomorrow_ms)
    wire = Wire(refused=LimitReached(limit))
    nearly = WHOLE[-1].model_copy(update={"limits": (limit,)})
    with (
        ScriptedServer({QUESTION: [*WHOLE[:-1], nearly]}, wire=wire) as server,
        browser.page(server.page_url) as page,
    ):
        ask(page, QUESTION)
        refused = wait_for_phase(page, "limited")
        said = "Your limit of $2.00 a day is reached. $0.25 left: too little for a question. You can ask again "
        assert refused["line"].startswith(said)
        assert refused["notices"] == []
        assert page.run("document.querySelector('#send').disabled") is False
        assert len(server.asked) == 0
        sent = len(server.actions(Ask))
        page.reload()
        assert wait_for_phase(page, "limited")["line"].startswith(said)
        connected(page)
        assert len(server.actions(Ask)) == sent
        wire.refused = None
        page.click(".turn .again")
        assert wait_for_phase(page, "complete")["text"] == ANSWER
        assert page.run("document.querySelectorAll('.turn').length") == 1
        assert page.text(".facts .left").startswith("$0.25 of $2.00 a day left until ")


def test_episodes_are_chosen_from_the_list(browser):
    config = {"episodes": EPISODES}
    with ScriptedServer({QUESTION: WHOLE}, config=config) as server, browser.page(server.page_url) as page:
        connected(page)
        page.click(".within > summary")
        page.click(".chip input[value='ep2']")
        assert page.text(".within > summary span:last-child") == "Second Draft"
        ask(page, QUESTION)
        wait_for_phase(page, "complete")
        assert server.asked[0].episodes == ("ep2",)
        assert page.text(".turn .scope") == "Only in Second Draft"


def test_episodes_are_typed_where_there_is_no_list(browser):
    with ScriptedServer({QUESTION: WHOLE}) as server, browser.page(server.page_url) as page:
        connected(page)
        page.click(".within > summary")
        page.click(".within .typing input")
        page.type("ep7")
        page.press("Enter")
        page.type("ep8")
        page.press("Enter")
        page.click(".chip input[value='ep7']")
        ask(page, QUESTION)
        wait_for_phase(page, "complete")
        assert server.asked[0].episodes == ("ep8",)
        # what the sources have named is offered from now on
        offered = page.run("[...document.querySelectorAll('.chip input')].map((box) => box.value)")
        assert offered == ["ep7", "ep8", "ep1", "ep2", "ep3", "ep4"]


def test_shift_enter_begins_a_line_and_enter_sends(browser):
    with ScriptedServer({"one\ntwo": WHOLE}) as server, browser.page(server.page_url) as page:
        connected(page)
        page.click("#question")
        page.press("Enter")
        assert page.text("#hint") == "Write a question first."
        page.type("one")
        page.press("Enter", shift=True)
        page.type("two")
        page.press("Enter")
        wait_for_phase(page, "complete")
        assert server.asked[0].query == "one\ntwo"


def test_the_page_works_without_a_mouse(browser):
    script: list[Step] = [*WHOLE[:4], Hold(), *WHOLE[4:]]
    config = {"examples": [QUESTION], "episodes": EPISODES}
    with ScriptedServer({QUESTION: script}, config=config) as server, browser.page(server.page_url) as page:
        connected(page)
        page.run("document.activeElement.blur()")
        page.press("Tab")
        assert page.focused() == {"role": "link", "name": "Skip to the question box"}
        page.press("Enter")
        assert page.focused() == {"role": "textbox", "name": "Your question"}
        page.type(QUESTION)
        page.press("Tab")
        assert page.focused() == {"role": "button", "name": "Send"}
        page.press("Tab")
        assert page.focused()["name"] == "Search in: Everything"
        page.press("Enter")
        page.press("Tab")
        assert page.focused() == {"role": "checkbox", "name": "First Draft"}
        page.press("Space")
        page.press("Escape")
        assert page.focused()["name"] == "Search in: First Draft"
        page.press("Tab", shift=True)
        page.press("Enter")
        wait_for_text(page, PIECES[0])
        assert page.focused()["name"] == "Your question"
        names = [step_back(page) for _ in range(8)]
        assert names[0].startswith("Source 6")
        assert names[5].startswith("Source 1")
        assert names[7] == "Stop"
        server.release()
        wait_for_phase(page, "complete")
        assert page.focused()["name"] == "Your question"  # the button is gone, the focus is not
        while not (name := step_back(page)).startswith("Source 2, Corin, verified"):
            assert name, "the marker was not found"
        page.press("Enter")
        page.wait("!!document.querySelector('details.source[data-n=\"2\"]').open")
        assert page.focused()["name"].startswith("Source 2 Corin")
        page.press("Escape")
        assert page.focused()["name"] == "Source 2, Corin, verified"


def step_back(page: Page) -> str:
    page.press("Tab", shift=True)
    return page.focused()["name"]

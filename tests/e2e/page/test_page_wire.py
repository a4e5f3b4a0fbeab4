"""The page in a real browser, over a wire that fails on demand."""

from __future__ import annotations

import pytest

from cicada.errors import Unauthorized
from cicada.protocol.actions import Ask, Ping, Resume
from tests.e2e.page.asking import (
    ask,
    banner,
    connected,
    give_token,
    seen,
    wait_for_banner,
    wait_for_phase,
    wait_for_text,
)
from tests.e2e.page.server import Hold, ScriptedServer, Step, Wire
from tests.e2e.page.sessions import ANSWER, PIECES, QUESTION, WHOLE

FAST = {"replyMs": 400, "silenceMs": 400, "gapMs": 100, "backoffBaseMs": 50, "backoffCapMs": 200}
"""Times of the page, in ms, so that it does not wait for long until it helps itself."""


@pytest.mark.parametrize("cut_after", [1, 2, 3, 4, 6, 9, 10])
def test_a_cut_connection_loses_and_doubles_nothing(browser, cut_after):
    wire = Wire(cuts=[cut_after, 2])
    with ScriptedServer({QUESTION: WHOLE}, wire=wire) as server, browser.page(server.page_url) as page:
        ask(page, QUESTION)
        done = wait_for_phase(page, "complete")
        assert done["text"] == ANSWER
        assert len(done["sources"]) == 6
        assert len(server.actions(Ask)) == 1
        assert server.actions(Resume)[0].after == cut_after


def test_a_lost_connection_is_seen_and_so_is_its_return(browser):
    script: list[Step] = [*WHOLE[:5], Hold(), *WHOLE[5:]]
    with ScriptedServer({QUESTION: script}) as server, browser.page(server.page_url) as page:
        ask(page, QUESTION)
        wait_for_text(page, "".join(PIECES[:2]))
        server.accepting = False
        server.cut_all()
        wait_for_banner(page, "Connection lost, reconnecting…")
        wait_for_text(page, "".join(PIECES[:2]))
        assert "Waiting for the connection" in page.text(".turn .status")
        server.accepting = True
        page.click("#retry")
        wait_for_banner(page, "Connected again")
        server.release()
        assert wait_for_phase(page, "complete")["text"] == ANSWER
        page.wait("document.querySelector('#banner').hidden")


@pytest.mark.parametrize(
    "wire",
    [Wire(doubled=True), Wire(swapped=True, cuts=[3]), Wire(doubled=True, swapped=True, cuts=[5, 4])],
    ids=["doubled", "swapped", "both"],
)
def test_doubled_and_swapped_frames_change_nothing(browser, wire):
    with ScriptedServer({QUESTION: WHOLE}, wire=wire) as server, browser.page(server.page_url) as page:
        ask(page, QUESTION)
        assert wait_for_phase(page, "complete")["text"] == ANSWER


def test_a_lost_frame_is_noticed_and_fetched(browser):
    wire = Wire(lost={5})
    config = {"timing": FAST | {"silenceMs": 60_000}}
    with ScriptedServer({QUESTION: WHOLE}, wire=wire, config=config) as server, browser.page(server.page_url) as page:
        ask(page, QUESTION)
        assert wait_for_phase(page, "complete")["text"] == ANSWER
        assert server.actions(Resume)[0].after == 4


def test_a_silent_connection_is_asked(browser):
    wire = Wire(silent=True)
    with ScriptedServer({QUESTION: WHOLE}, wire=wire, config={"timing": FAST}) as server:
        with browser.page(server.page_url) as page:
            ask(page, QUESTION)
            assert wait_for_phase(page, "complete")["text"] == ANSWER


def test_a_dead_connection_is_replaced(browser):
    wire = Wire(deaf=True)
    with ScriptedServer({QUESTION: WHOLE}, wire=wire, config={"timing": FAST}) as server:
        with browser.page(server.page_url) as page:
            ask(page, QUESTION)
            wait_for_banner(page, "Connection lost")
            wire.deaf = False
            assert wait_for_phase(page, "complete")["text"] == ANSWER
            assert len({one.request_id for one in server.actions(Ask)}) == 1


def test_a_question_that_did_not_arrive_is_asked_again_under_its_id(browser):
    with ScriptedServer({QUESTION: WHOLE}, wire=Wire(swallow_asks=2)) as server, browser.page(server.page_url) as page:
        ask(page, QUESTION)
        assert wait_for_phase(page, "complete")["text"] == ANSWER
        assert len(server.actions(Ask)) == 3
        assert len({one.request_id for one in server.actions(Ask)}) == 1


def test_a_question_whose_acceptance_was_lost_is_one_request(browser):
    with ScriptedServer({QUESTION: WHOLE}, wire=Wire(lose_accepted=1)) as server, browser.page(server.page_url) as page:
        ask(page, QUESTION)
        assert wait_for_phase(page, "complete")["text"] == ANSWER
        assert len(server.asked) == 1


def test_a_question_is_asked_as_soon_as_there_is_a_connection(browser):
    with ScriptedServer({QUESTION: WHOLE}) as server:
        server.accepting = False
        with browser.page(server.page_url) as page:
            wait_for_banner(page, "The server cannot be reached")
            ask(page, QUESTION)
            assert seen(page)["line"].startswith("Waiting for the connection")
            server.accepting = True
            assert wait_for_phase(page, "complete")["text"] == ANSWER


def test_an_idle_connection_is_kept_by_pings(browser):
    with ScriptedServer({}, config={"timing": {"pingMs": 50}}) as server, browser.page(server.page_url) as page:
        connected(page)
        server.wait(lambda: len(server.actions(Ping)) > 2)
        assert len(server.opened) == 1
        assert banner(page) == ""


def test_an_answer_whose_token_expires_goes_on_once_a_fresh_one_is_given(browser):
    script: list[Step] = [*WHOLE[:5], Hold(), *WHOLE[5:]]
    with ScriptedServer({QUESTION: script}) as server, browser.page(server.page_url) as page:
        ask(page, QUESTION)
        wait_for_text(page, "".join(PIECES[:2]))
        server.expire()
        wait_for_banner(page, "Your session has expired. Please connect again.")
        server.release()
        give_token(page, "second")
        assert wait_for_phase(page, "complete")["text"] == ANSWER
        assert server.opened == ["/live", "/live"]
        assert server.offered == [[], ["cicada.v1", "cicada.bearer.second"]]
        assert len(server.asked) == 1


def test_an_ended_session_says_so_and_stops_trying(browser):
    wire = Wire(refused=Unauthorized())
    with ScriptedServer({QUESTION: WHOLE}, wire=wire) as server, browser.page(server.page_url) as page:
        ask(page, QUESTION)
        wait_for_banner(page, "Your session has expired. Please connect again.")
        assert page.text("#connection") == "Not connected"
        wire.refused = None
        page.click("#retry")
        assert wait_for_phase(page, "complete")["text"] == ANSWER

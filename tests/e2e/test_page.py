"""The web page in a real browser, against a scripted server whose wire fails on demand."""

from __future__ import annotations

import json
from collections.abc import Iterator

import pytest

from cicada.errors import InvalidMessage, Unauthorized
from cicada.protocol.actions import Ask, Cancel, Ping, Resume
from cicada.protocol.events import Failed, StrategyFailure
from tests.e2e.page_asking import ask, connected, seen, wait_for_phase, wait_for_text
from tests.e2e.page_browser import Browser, Page
from tests.e2e.page_server import Hold, ScriptedServer, Wire
from tests.e2e.page_sessions import (
    ANSWER,
    CITATIONS,
    PIECES,
    QUESTION,
    accepted,
    attempt,
    chunk,
    citation,
    citations,
    complete,
    fallback,
    sources,
)

WHOLE = [accepted(), attempt(), sources(), *map(chunk, PIECES), citations(*CITATIONS), complete()]
FAST = {"replyMs": 400, "silenceMs": 400, "gapMs": 100, "backoffBaseMs": 50, "backoffCapMs": 200}
EPISODES = [{"id": "ep1", "name": "First Draft"}, {"id": "ep2", "name": "Second Draft"}]


@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    with Browser() as browser:
        yield browser


def banner(page: Page) -> str:
    return page.run("document.querySelector('#banner').hidden ? '' : document.querySelector('#banner-text').innerText")


def wait_for_banner(page: Page, text: str) -> None:
    page.wait(
        "!document.querySelector('#banner').hidden"
        f" && document.querySelector('#banner-text').innerText.includes({json.dumps(text)})"
    )


# --- an answer ---


def test_an_answer_is_written_and_told(browser):
    script = [accepted(), attempt(), sources(), *map(chunk, PIECES[:2]), Hold(), *map(chunk, PIECES[2:])]
    script += [citations(*CITATIONS[:1]), citations(*CITATIONS[1:]), complete()]
    with ScriptedServer({QUESTION: script}) as server, browser.page(server.page_url) as page:
        ask(page, QUESTION)
        wait_for_text(page, "".join(PIECES[:2]))
        writing = seen(page)
        assert writing["phase"] == "writing"
        assert writing["line"].startswith("Writing the answer")
        assert page.run("getComputedStyle(document.querySelector('.caret')).display") != "none"
        assert [one["n"] for one in writing["sources"]] == [1, 2, 3, 4, 5, 6]

        server.release()
        done = wait_for_phase(page, "complete")
        assert done["text"] == ANSWER
        assert [one["verdict"] for one in done["sources"]] == ["verified", "verified", "unverified", "", "", ""]
        assert done["badge"] == "Grounded in 2 passages, 1 citation unverified"
        assert done["facts"] == {
            "Strategy": "Search (rag)",
            "Model": "local.extractive",
            "First text": "0.62 s",
            "Total": "1.84 s",
            "Tokens": "1,432 in, 58 out",
            "Cost": "$0.0012",
        }
        assert page.run("getComputedStyle(document.querySelector('.caret')).display") == "none"
        assert page.problems == []


def test_the_steps_before_the_text_are_told(browser):
    script = [accepted(), Hold(), attempt(), Hold(), sources(), Hold(), chunk("So."), complete()]
    with ScriptedServer({QUESTION: script}) as server, browser.page(server.page_url) as page:
        ask(page, QUESTION)
        lines = []
        for phase in ("accepted", "searching", "reading"):
            lines.append(wait_for_phase(page, phase)["line"].splitlines()[0])
            server.release()
        wait_for_phase(page, "complete")
        assert lines == [
            "A question for the passages. Starting…",
            "Searching the passages…",
            "Reading 6 passages of 712 searched…",
        ]


def test_a_marker_opens_its_source(browser):
    with ScriptedServer({QUESTION: WHOLE}) as server, browser.page(server.page_url) as page:
        ask(page, QUESTION)
        wait_for_phase(page, "complete")
        assert not any(one["open"] for one in seen(page)["sources"])
        page.click(".marker[data-n='3']")
        page.wait("!!document.querySelector('details.source[data-n=\"3\"]').open")
        assert [one["n"] for one in seen(page)["sources"] if one["open"]] == [3]
        assert page.run("document.activeElement.closest('details.source').dataset.n") == "3"
        opened = page.text("details.source[open]")
        assert "ep2-ch1" in opened
        assert "The causeway went under" in opened
        assert "the passage holds 20% of what the sentence says" in opened
        page.press("Escape")
        assert page.run("document.activeElement.className + document.activeElement.dataset.n") == "marker3"
        assert not any(one["open"] for one in seen(page)["sources"])


def test_half_a_marker_is_not_shown(browser):
    script = [accepted(), attempt(), sources(), chunk("It was so [1"), Hold(), chunk("2]."), complete()]
    with ScriptedServer({QUESTION: script}) as server, browser.page(server.page_url) as page:
        ask(page, QUESTION)
        wait_for_text(page, "It was so ")
        server.release()
        wait_for_phase(page, "complete")
        # there is no source 12, so it is no link
        assert seen(page)["text"] == "It was so [12]."
        assert page.run("document.querySelectorAll('a.marker').length") == 0


def test_a_citation_without_a_source_is_named(browser):
    script = [accepted(), attempt(), sources(2), chunk("So [1, 9]. And [8].")]
    script += [citations(citation(9, "So.", "no such passage"), citation(8, "And.", "no such passage")), complete()]
    with ScriptedServer({QUESTION: script}) as server, browser.page(server.page_url) as page:
        ask(page, QUESTION)
        assert wait_for_phase(page, "complete")["notices"] == ["[9], [8]: there is no such source."]
        assert page.run("[...document.querySelectorAll('a.marker')].map((link) => link.dataset.n)") == ["1"]


def test_a_fallback_drops_what_was_written(browser):
    script = [accepted(), attempt(), sources(), chunk("In the boat"), Hold(), fallback(), attempt(2, "direct")]
    script += [
        Hold(),
        chunk("I cannot check the script.", 2),
        complete(2, "direct", grounded=False, failed="It broke."),
    ]
    with ScriptedServer({QUESTION: script}) as server, browser.page(server.page_url) as page:
        ask(page, QUESTION)
        wait_for_text(page, "In the boat")
        server.release()
        wait_for_phase(page, "searching")
        assert seen(page)["sources"] == []
        assert seen(page)["line"].startswith("Answering without a search")
        server.release()
        done = wait_for_phase(page, "complete")
        assert done["text"] == "I cannot check the script."
        assert done["notices"] == [
            "Search did not work: The answer broke off. Answering without sources instead.",
        ]
        assert done["grounded"] is False
        assert done["badge"] == "Not grounded: written without passages"


def test_an_error_says_what_was_tried(browser):
    tried = (StrategyFailure(strategy="rag", code="model_busy", reason="The model is busy."),)
    failed = Failed(code="all_strategies_failed", message="Every way failed.", retryable=True, failed=tried)
    script = [accepted(), attempt(), chunk("Half a"), failed]
    with ScriptedServer({QUESTION: script}) as server, browser.page(server.page_url) as page:
        ask(page, QUESTION)
        end = wait_for_phase(page, "failed")
        assert end["notices"] == ["Every way failed. Search: The model is busy."]
        assert end["line"].startswith("Failed. What is written so far is not the whole answer.")
        page.click(".turn .again")
        page.wait("document.querySelectorAll('.turn').length === 2")
        wait_for_phase(page, "failed")
        assert [one.query for one in server.asked] == [QUESTION, QUESTION]
        assert server.asked[0].request_id != server.asked[1].request_id


def test_events_of_a_later_protocol_are_passed_over(browser):
    script = [*WHOLE[:4], {"type": "haiku", "lines": ["<b>"]}, *WHOLE[4:]]
    with ScriptedServer({QUESTION: script}) as server, browser.page(server.page_url) as page:
        ask(page, QUESTION)
        assert wait_for_phase(page, "complete")["text"] == ANSWER
        assert page.problems == []


def test_a_refused_question_says_why(browser):
    wire = Wire(refused=InvalidMessage())
    with ScriptedServer({}, wire=wire) as server, browser.page(server.page_url) as page:
        ask(page, QUESTION)
        assert wait_for_phase(page, "failed")["notices"] == ["That message could not be read."]


HOSTILE = """<img src=x onerror="window.hacked = 1"> <script>window.hacked = 2</script> ![pixel](https://evil.example/p.png)
[click me](javascript:window.hacked=3) <a href="javascript:window.hacked=4">[1]</a> https://evil.example/ **bold** &lt;b&gt;
| a | b | </p></article><style>body{display:none}</style> {{7*7}} ${window.hacked=5}"""


def test_text_is_text_whoever_wrote_it(browser):
    script = [accepted(), attempt(), sources(2, text=HOSTILE)]
    script += [chunk(HOSTILE), citations(citation(1, HOSTILE, HOSTILE), citation(7, HOSTILE, HOSTILE)), complete()]
    with ScriptedServer({HOSTILE: script}) as server, browser.page(server.page_url) as page:
        ask(page, HOSTILE)
        done = wait_for_phase(page, "complete")
        assert done["text"] == HOSTILE
        assert done["question"] == HOSTILE
        assert done["sources"][0]["text"] == HOSTILE
        inside = "document.querySelectorAll('.turn :is(img, script, style, iframe, b, strong, table)').length"
        assert page.run(inside) == 0
        hrefs = page.run("[...document.querySelectorAll('.turn a')].map((link) => link.getAttribute('href')[0])")
        assert hrefs == ["#"]
        assert page.run("window.hacked ?? null") is None
        assert page.problems == []


def test_nothing_from_elsewhere_is_loaded(browser):
    with ScriptedServer({QUESTION: WHOLE}) as server, browser.page(server.page_url) as page:
        connected(page)
        loaded = page.run("performance.getEntriesByType('resource').map((one) => one.name)")
        assert loaded
        assert all(one.startswith(server.page_url) for one in loaded)


# --- a bad wire ---


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
    script = [*WHOLE[:5], Hold(), *WHOLE[5:]]
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
        page.wait("new Promise((done) => setTimeout(() => done(true), 300))")
        assert len(server.actions(Ping)) > 1
        assert len(server.opened) == 1
        assert banner(page) == ""


def test_an_ended_session_says_so_and_stops_trying(browser):
    wire = Wire(refused=Unauthorized())
    with ScriptedServer({QUESTION: WHOLE}, wire=wire) as server, browser.page(server.page_url) as page:
        ask(page, QUESTION)
        wait_for_banner(page, "Your session is not valid any more. Please connect again.")
        assert page.text("#connection") == "Not connected"
        wire.refused = None
        page.click("#retry")
        assert wait_for_phase(page, "complete")["text"] == ANSWER


# --- the asker's hand ---


def test_stop_ends_the_answer(browser):
    script = [*WHOLE[:4], Hold(), *WHOLE[4:]]
    with ScriptedServer({QUESTION: script}) as server, browser.page(server.page_url) as page:
        ask(page, QUESTION)
        wait_for_text(page, PIECES[0])
        page.click(".turn .stop")
        end = wait_for_phase(page, "cancelled")
        assert end["line"].startswith("Stopped. What is written so far is not the whole answer.")
        assert len(server.actions(Cancel)) == 1
        assert page.run("document.activeElement.id") == "question"
        assert end["notices"] == []


def test_a_conversation_keeps_its_questions(browser):
    second = [
        accepted("direct"),
        attempt(1, "direct"),
        chunk("You are welcome."),
        complete(1, "direct", grounded=False),
    ]
    scripts = {QUESTION: WHOLE, "Thanks!": second}
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
    scripts = {"one": [*WHOLE[:4], Hold(), *WHOLE[4:]], "two": [*WHOLE[:4], Hold(), *WHOLE[4:]]}
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
    scripts = {QUESTION: WHOLE, "open": [*WHOLE[:5], Hold(), *WHOLE[5:]]}
    with ScriptedServer(scripts) as server, browser.page(server.page_url) as page:
        ask(page, QUESTION)
        wait_for_phase(page, "complete")
        ask(page, "open")
        wait_for_text(page, "".join(PIECES[:2]))
        page.reload()
        wait_for_text(page, "".join(PIECES[:2]))
        assert page.run("document.querySelector('.turn .answer').innerText") == ANSWER
        assert page.text("#announcer") == "2 earlier questions shown again."
        server.release()
        assert wait_for_phase(page, "complete")["text"] == ANSWER
        assert len(server.asked) == 2
        assert [one.after for one in server.actions(Resume)[:2]] == [0, 0]


def test_a_reload_before_the_acceptance_asks_again_under_the_same_id(browser):
    wire = Wire(deaf=True)
    with ScriptedServer({QUESTION: WHOLE}, wire=wire) as server, browser.page(server.page_url) as page:
        ask(page, QUESTION)
        page.wait("document.querySelector('#connection').dataset.state === 'open'")
        wire.deaf = False
        page.reload()
        assert wait_for_phase(page, "complete")["text"] == ANSWER
        assert len({one.request_id for one in server.actions(Ask)}) == 1


def test_an_answer_that_is_no_longer_kept_can_be_asked_for_again(browser):
    with ScriptedServer({QUESTION: WHOLE}) as server, browser.page(server.page_url) as page:
        ask(page, QUESTION)
        wait_for_phase(page, "complete")
        server.forget()
        page.reload()
        assert wait_for_phase(page, "failed")["notices"] == ["The server does not know this question any more."]
        page.click(".turn .again")
        page.wait("document.querySelectorAll('.turn').length === 2")
        assert wait_for_phase(page, "complete")["text"] == ANSWER


def test_episodes_are_chosen_from_the_list(browser):
    config = {"episodes": EPISODES}
    with ScriptedServer({QUESTION: WHOLE}, config=config) as server, browser.page(server.page_url) as page:
        connected(page)
        page.click(".episodes > summary")
        page.click(".chip input[value='ep2']")
        assert page.text(".episodes > summary") == "1 episode"
        ask(page, QUESTION)
        wait_for_phase(page, "complete")
        assert server.asked[0].episodes == ("ep2",)
        assert page.text(".turn .scope") == "Only in Second Draft"


def test_episodes_are_typed_where_there_is_no_list(browser):
    with ScriptedServer({QUESTION: WHOLE}) as server, browser.page(server.page_url) as page:
        connected(page)
        page.click(".episodes > summary")
        page.click("#episode")
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
    script = [*WHOLE[:4], Hold(), *WHOLE[4:]]
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
        assert page.focused()["name"] == "All episodes"
        page.press("Enter")
        page.press("Tab")
        assert page.focused() == {"role": "checkbox", "name": "First Draft"}
        page.press("Space")
        page.press("Escape")
        assert page.focused()["name"] == "1 episode"
        page.press("Tab", shift=True)
        page.press("Enter")
        wait_for_text(page, PIECES[0])
        assert page.focused()["name"] == "Your question"
        names = [step_back(page) for _ in range(9)]
        assert names[0].startswith("Source 6")
        assert names[5].startswith("Source 1")
        assert names[7] == "Stop"
        server.release()
        wait_for_phase(page, "complete")
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


# --- what is not seen ---


def test_a_screen_reader_hears_the_steps_and_the_answer_once(browser):
    script = [accepted(), Hold(), attempt(), Hold(), sources(), *map(chunk, PIECES), citations(*CITATIONS), complete()]
    with ScriptedServer({QUESTION: script}) as server, browser.page(server.page_url) as page:
        connected(page)
        page.run(
            "window.heard = []; new MutationObserver(() => heard.push(document.querySelector('#announcer').innerText))"
            ".observe(document.querySelector('#announcer'), {childList: true, characterData: true, subtree: true})"
        )
        ask(page, QUESTION)
        wait_for_phase(page, "accepted")
        server.release()
        wait_for_phase(page, "searching")
        server.release()
        wait_for_phase(page, "complete")
        heard = [text for text in page.run("heard") if text]
        assert heard[:2] == ["A question for the passages.", "Searching the passages…"]
        assert heard[-1].startswith("Corin says that he locked the water gate at nine: “There is one key")
        assert heard[-1].endswith("Nobody says which of them was used. Grounded in 2 passages, 1 citation unverified.")
        assert sum("Corin" in text for text in heard) == 1
        live = "[...document.querySelectorAll('[aria-live], [role=status], [role=alert], [role=log]')]"
        assert page.run(f"{live}.some((it) => it.querySelector('.answer') || it.closest('.turn'))") is False


def test_languages_are_marked(browser):
    script = [
        accepted(),
        attempt(),
        sources(1, text="先生、氷の上に誰かいるんです!"),
        chunk("誰かいるんです [1]"),
        complete(),
    ]
    with ScriptedServer({"誰がいますか": script}) as server, browser.page(server.page_url) as page:
        assert page.run("document.documentElement.lang") == "en"
        ask(page, "誰がいますか")
        wait_for_phase(page, "complete")
        selectors = "['.turn h2', '.answer', '.passage blockquote']"
        assert page.run(f"{selectors}.map((it) => document.querySelector(it).lang)") == ["ja", "ja", "ja"]


CONTRASTS = """(() => {
  const channels = (colour) => colour.match(/[\\d.]+/g).map(Number);
  const luminance = (rgb) => rgb.slice(0, 3).map((c) => c / 255)
    .map((c) => (c <= 0.04045 ? c / 12.92 : ((c + 0.055) / 1.055) ** 2.4))
    .reduce((sum, c, i) => sum + c * [0.2126, 0.7152, 0.0722][i], 0);
  const ground = (element) => {
    for (let it = element; it; it = it.parentElement) {
      const colour = channels(getComputedStyle(it).backgroundColor);
      if (colour.length === 3 || colour[3] === 1) return colour;
    }
  };
  const found = [];
  const walker = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT);
  for (let node; (node = walker.nextNode()); ) {
    const element = node.parentElement;
    if (!node.data.trim() || !element.checkVisibility() || element.closest('.unseen, noscript, :disabled')) continue;
    const style = getComputedStyle(element);
    if (style.fontSize === '0px') continue;
    const [a, b] = [channels(style.color), ground(element)].map(luminance);
    const ratio = (Math.max(a, b) + 0.05) / (Math.min(a, b) + 0.05);
    found.push([ratio, node.data.trim().slice(0, 40)]);
  }
  return found.sort(([a], [b]) => a - b);
})()"""


@pytest.mark.parametrize("dark", [False, True], ids=["light", "dark"])
def test_every_text_stands_out_from_its_ground(browser, dark):
    first = [*WHOLE[:3], chunk("Half"), fallback(), attempt(2), sources(6, 2), *(chunk(one, 2) for one in PIECES)]
    first += [citations(*CITATIONS, number=2), complete(2, failed="It broke.")]
    second = [accepted(), attempt(), chunk("Half"), Failed(code="x", message="It failed.", retryable=True)]
    third = [*WHOLE[:5], Hold()]
    config = {"episodes": EPISODES}
    with ScriptedServer({"1": first, "2": second, "3": third}, config=config) as server:
        with browser.page(server.page_url, dark=dark) as page:
            page.emulate(dark=dark, still=True)
            connected(page)
            welcome = page.run(CONTRASTS)
            page.click(".episodes > summary")
            page.click(".chip input[value='ep2']")
            for question, phase in (("1", "complete"), ("2", "failed"), ("3", "writing")):
                ask(page, question)
                wait_for_phase(page, phase)
            page.run("document.querySelectorAll('details').forEach((it) => { it.open = true; })")
            server.accepting = False
            server.cut_all()
            wait_for_banner(page, "Connection lost")
            texts = welcome + page.run(CONTRASTS)
            assert len(texts) > 60
            assert [text for text in texts if text[0] < 4.5] == []


@pytest.mark.parametrize("width", [320, 375, 768, 1024, 1920])
def test_it_fits_any_screen(browser, width):
    long = "https://example.org/" + "very-long-word" * 20
    script = [accepted(), attempt(), sources(6), chunk(long + " [1]"), citations(*CITATIONS), complete()]
    config = {"examples": [long, QUESTION], "episodes": [{"id": "e", "name": long}]}
    with ScriptedServer({long: script}, config=config) as server:
        with browser.page(server.page_url, width=width, height=700) as page:
            connected(page)
            overflow = "document.documentElement.scrollWidth - document.documentElement.clientWidth"
            assert page.run(overflow) == 0
            page.click(".episodes > summary")
            ask(page, long)
            wait_for_phase(page, "complete")
            page.run("document.querySelectorAll('details').forEach((it) => { it.open = true; })")
            assert page.run(overflow) == 0


def test_the_end_of_a_long_answer_stays_in_sight(browser):
    lines = [chunk(f"Line {n} of a long answer.\n") for n in range(80)]
    script = [accepted(), attempt(), *lines[:40], Hold(), *lines[40:60], Hold(), *lines[60:], Hold(), complete()]
    in_sight = (
        "(() => { const end = document.querySelector('.turn .status').getBoundingClientRect();"
        "return end.bottom <= document.querySelector('#composer').getBoundingClientRect().top + 1 && end.top >= 0; })()"
    )
    with ScriptedServer({QUESTION: script}) as server, browser.page(server.page_url) as page:
        ask(page, QUESTION)
        page.wait("document.querySelector('.answer').innerText.includes('Line 39 ')")
        page.wait(in_sight)
        # who scrolls back to read is left alone
        page.run("scrollTo(0, 0)")
        server.release()
        page.wait("document.querySelector('.answer').innerText.includes('Line 59 ')")
        page.wait("!document.querySelector('#latest').hidden")
        assert page.run("scrollY") == 0
        page.click("#latest")
        page.wait(in_sight)
        server.release()
        page.wait("document.querySelector('.answer').innerText.includes('Line 79 ')")
        page.wait(in_sight)


# --- what the page is told ---


def test_the_address_names_the_server_and_the_token(browser):
    with ScriptedServer({QUESTION: WHOLE}) as server, ScriptedServer({}) as other:
        url = f"{other.page_url}?ws={server.websocket_url}&token=a.b-c"
        with browser.page(url) as page:
            connected(page)
            assert server.opened == ["/live?token=a.b-c"]
            assert "token" not in page.run("location.href")
            page.reload()
            connected(page)
            assert server.opened == ["/live?token=a.b-c"] * 2
            # another server does not get it
            page.go(f"{other.page_url}?ws={other.websocket_url}")
            connected(page)
            assert other.opened == ["/live"]


def test_a_deployment_that_is_not_ready_is_waited_for(browser):
    with ScriptedServer({QUESTION: WHOLE}) as server:
        server.config_status = 503
        with browser.page(server.page_url) as page:
            wait_for_banner(page, "The server is still being set up.")
            assert page.run("document.querySelector('#send').disabled") is True
            server.config_status = 200
            ask(page, QUESTION)
            assert wait_for_phase(page, "complete")["text"] == ANSWER
            assert banner(page) == ""


@pytest.mark.parametrize(
    ("config", "told"),
    [
        ({"webSocketUrl": "https://example.org/"}, "“https://example.org/” is no WebSocket address."),
        ({"webSocketUrl": None}, "config.json names no webSocketUrl."),
    ],
)
def test_a_wrong_configuration_is_told(browser, config, told):
    with ScriptedServer({}, config=config) as server, browser.page(server.page_url) as page:
        wait_for_banner(page, told)

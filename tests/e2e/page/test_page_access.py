"""The page in a real browser: for those who see it badly, not at all, or on a small screen."""

from __future__ import annotations

import json
from collections.abc import Sequence

import pytest

from cicada.errors import LimitReached
from cicada.protocol.events import Failed, Receipt, Reused, StrategyFailure, Verdict, VerdictPassage
from cicada.usage.limits import LimitState
from tests.e2e.page.accessibility import assert_accessible
from tests.e2e.page.asking import ask, connected, wait_for_banner, wait_for_phase
from tests.e2e.page.server import Hold, ScriptedServer, Step, Wire
from tests.e2e.page.sessions import (
    CITATIONS,
    EPISODES,
    PIECES,
    QUESTION,
    WHOLE,
    accepted,
    attempt,
    chunk,
    citations,
    complete,
    fallback,
    sources,
)
from tests.e2e.page.test_page_changes import CREATED, TO_DELETE
from tests.e2e.page.test_page_conversations import TITLES, KeptConversations
from tests.e2e.page.test_page_corpus import SCRIPT, SHELF, corpus
from tests.e2e.page.test_page_reader import HERE, serve


def test_a_screen_reader_hears_the_steps_and_the_answer_once(browser):
    script: list[Step] = [
        accepted(),
        Hold(),
        attempt(),
        Hold(),
        sources(),
        *map(chunk, PIECES),
        citations(*CITATIONS),
        complete(),
    ]
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
        assert heard[0] == "Answering…"
        assert len(heard) == 2
        assert heard[-1].startswith("Corin says that he locked the water gate at nine: “There is one key")
        assert heard[-1].endswith("Nobody says which of them was used. Grounded in 2 passages, 1 citation unverified.")
        assert sum("Corin" in text for text in heard) == 1
        live = "[...document.querySelectorAll('[aria-live], [role=status], [role=alert], [role=log]')]"
        assert page.run(f"{live}.some((it) => it.querySelector('.answer') || it.closest('.answer'))") is False


def test_languages_are_marked(browser):
    script: list[Step] = [
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
    second: list[Step] = [accepted(), attempt(), chunk("Half"), Failed(code="x", message="It failed.", retryable=True)]
    third: list[Step] = [*WHOLE[:5], Hold()]
    config = {"episodes": EPISODES}
    with ScriptedServer({"1": first, "2": second, "3": third}, config=config) as server:
        with browser.page(server.page_url, dark=dark) as page:
            page.emulate(dark=dark, still=True)
            connected(page)
            welcome = page.run(CONTRASTS)
            page.click(".within > summary")
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
    script: list[Step] = [accepted(), attempt(), sources(6), chunk(long + " [1]"), citations(*CITATIONS), complete()]
    config = {"examples": [long, QUESTION], "episodes": [{"id": "e", "name": long}]}
    with ScriptedServer({long: script}, config=config) as server:
        with browser.page(server.page_url, width=width, height=700) as page:
            connected(page)
            overflow = "document.documentElement.scrollWidth - document.documentElement.clientWidth"
            assert page.run(overflow) == 0
            page.click(".within > summary")
            ask(page, long)
            wait_for_phase(page, "complete")
            page.run("document.querySelectorAll('details').forEach((it) => { it.open = true; })")
            assert page.run(overflow) == 0


def test_the_end_of_a_long_answer_stays_in_sight(browser):
    lines = [chunk(f"Line {n} of a long answer.\n") for n in range(80)]
    script: list[Step] = [
        accepted(),
        attempt(),
        *lines[:40],
        Hold(),
        *lines[40:60],
        Hold(),
        *lines[60:],
        Hold(),
        complete(),
    ]
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


BLOCKED = Failed(code="answer_blocked", message="We do not speak of keys here.", retryable=False)
FAILED = Failed(
    code="all_strategies_failed",
    message="Every way failed.",
    retryable=True,
    failed=(StrategyFailure(strategy="rag", code="model_busy", reason="The model is busy."),),
)
RULING = Verdict(
    attempt=1,
    verdict="contradicted",
    given=True,
    for_=(VerdictPassage(n=1, strength="weak"),),
    against=(VerdictPassage(n=2, strength="strong"),),
)
MARKDOWN = (
    "### Keys\n\n- one [1]\n\n| a | b |\n|---|---|\n| 1 | [2] |\n\n```py\nx = 1\n```\n\n> It is [so](https://x.org)."
)
STATES: dict[str, list[Step]] = {
    "written": [accepted(), attempt(), sources(), chunk(MARKDOWN), citations(*CITATIONS), complete()],
    "half": [*WHOLE[:6], Hold()],
    "fallback": [
        *WHOLE[:5],
        fallback(),
        attempt(2, "direct"),
        chunk("I cannot.", 2),
        complete(2, "direct", grounded=False),
    ],
    "small talk": [accepted("direct"), attempt(1, "direct"), chunk("Hello."), complete(1, "direct", grounded=False)],
    "failed": [*WHOLE[:5], FAILED],
    "blocked": [*WHOLE[:5], BLOCKED],
    "theory": [accepted("theory_agent"), attempt(), sources(2), chunk("It is not so [2]."), RULING, complete()],
    "profile": [
        accepted("profile_agent"),
        attempt(),
        Receipt(attempt=1, change=CREATED),
        TO_DELETE,
        chunk("Done."),
        complete(grounded=False),
    ],
}


@pytest.mark.parametrize(("width", "dark"), [(1280, False), (320, True)], ids=["wide, light", "320 px, dark"])
def test_axe_finds_nothing_in_any_state(browser, width, dark):
    scripts = dict(sorted(STATES.items(), key=lambda state: state[0] == "half"))
    with ScriptedServer(scripts) as server, browser.page(server.page_url, width=width, dark=dark) as page:
        serve(server)
        page.emulate(dark=dark, still=True)
        connected(page)
        assert_accessible(page)
        for name in scripts:
            ask(page, name)
            wait_for_phase(page, "complete", "failed", "blocked", "writing")
        page.run("document.querySelectorAll('details').forEach((it) => { it.open = true; })")
        assert_accessible(page)
        page.click(".source[data-n='2'] .read")
        page.wait("!!document.querySelector('.reader .piece.here')")
        assert_accessible(page)


def test_small_talk_has_no_warning_and_escape_stops_an_answer(browser):
    with ScriptedServer(STATES) as server, browser.page(server.page_url) as page:
        ask(page, "small talk")
        assert wait_for_phase(page, "complete")["badge"] == "Details"
        ask(page, "half")
        wait_for_phase(page, "writing")
        page.press("Escape")
        stopped = wait_for_phase(page, "cancelled")
        assert stopped["line"] == "Stopped. The text so far is not the whole answer."
        assert page.focused()["name"] == "Your question"


OFFERED = sources(3, 2).model_copy(update={"offered": True})
REUSED = sources(2).model_copy(
    update={
        "reused": Reused(use="answer", question="Who had it?", answered_at_ms=1_795_000_000_000, similarity=0.97),
        "searched": 0,
    }
)
RARER: dict[str, Sequence[Step]] = {
    "offered": [*WHOLE[:5], fallback(), attempt(2, "direct"), OFFERED, chunk("No.", 2), complete(2, grounded=False)],
    "reused": [accepted("cag"), attempt(1, "cag"), REUSED, chunk("Corin had it [1]."), complete(1, "cag")],
    "right to left": [
        accepted(),
        attempt(),
        sources(2),
        chunk("\u05d4\u05de\u05e4\u05ea\u05d7 \u05d0\u05e6\u05dc\u05d5 [1]."),
        complete(),
    ],
    "cancelled": [*WHOLE[:6], Hold()],
}


def test_axe_finds_nothing_in_rarer_states_on_a_huge_screen_with_forced_colours(browser):
    limit = LimitState(account="user", limit="usdDay", most=2, left=0.25, resets_at_ms=4_000_000_000_000)
    wire = Wire()
    with ScriptedServer(RARER, wire=wire) as server, browser.page(server.page_url, width=3840, height=2160) as page:
        page.emulate(still=True)
        for name in RARER:
            ask(page, name)
            if name == "cancelled":
                wait_for_phase(page, "writing")
                page.press("Escape")
            wait_for_phase(page, "complete", "cancelled")
        wire.refused = LimitReached(limit)
        ask(page, "limited")
        wait_for_phase(page, "limited")
        page.run("document.querySelectorAll('details').forEach((it) => { it.open = true; })")
        assert page.run("[...document.querySelectorAll('.answer')].some((it) => it.querySelector(':dir(rtl)'))")
        assert_accessible(page)
        page.emulate(still=True, forced=True)
        assert_accessible(page)
        assert page.problems == []


def _go_to(page, selector, *, most=60):
    """Press Tab until an element has the focus, which is seen at each step."""
    for _ in range(most):
        if page.run(f"document.activeElement.matches({json.dumps(selector)})"):
            return
        page.press("Tab")
        assert page.run("document.activeElement === document.body || document.activeElement.checkVisibility()"), (
            "the focus is on something hidden"
        )
    raise AssertionError(f"Tab does not lead to {selector}")


def test_the_whole_page_is_used_by_keyboard_alone(browser):
    with ScriptedServer({QUESTION: WHOLE}) as server:
        server.answers["conversations"] = KeptConversations(server)
        server.answers["collections"] = lambda _: corpus(SCRIPT, {**SHELF, "upload": True})
        server.answers["documents"] = lambda _: {"type": "documents", "collection": "shelf", "documents": []}
        server.answers["upload"] = lambda _: {
            "type": "uploads",
            "collection": "shelf",
            "documents": [],
            "run": None,
            "maxBytes": 1000,
        }
        server.answers["feedback"] = lambda fields: {"type": "feedback", "rating": fields["rating"]}
        serve(server)
        with browser.page(server.page_url) as page:
            page.fix()
            connected(page)
            page.wait("document.querySelectorAll('.holdings li').length === 2")
            _go_to(page, "#question")
            page.type(QUESTION)
            page.press("Enter")
            wait_for_phase(page, "complete")
            page.wait(f"{TITLES}.length === 1")
            _go_to(page, ".marker")
            page.press("Enter")
            page.wait("document.activeElement.closest('details.source') !== null")
            _go_to(page, ".source .read")
            page.press("Enter")
            page.wait(f"{HERE} !== null")
            page.press("Escape")
            page.wait("document.activeElement.matches('.source .read')")
            _go_to(page, ".feedback > button")
            page.press("Space")
            page.wait("document.querySelector('.feedback > button').getAttribute('aria-pressed') === 'true'")
            _go_to(page, ".within > summary")
            page.press("Enter")
            _go_to(page, ".chip input")
            page.press("Space")
            page.wait("document.querySelector('.chip input').checked")
            page.press("Escape")
            assert page.run("document.activeElement.matches('.within > summary')")
            _go_to(page, "[aria-controls='conversations']")
            page.press("Enter")
            _go_to(page, "#conversations .tools button")
            page.press("Enter")
            page.type("The key")
            page.press("Enter")
            page.wait(f"{TITLES}[0] === 'The key'")
            page.press("Escape")
            _go_to(page, "#bar > .menu:not([aria-controls])")
            page.press("Enter")
            page.wait("document.querySelector('#uploads').open")
            page.press("Escape")
            page.wait("document.activeElement.matches('#bar > .menu:not([aria-controls])')")
            assert page.problems == []

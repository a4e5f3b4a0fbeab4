"""The page in a real browser: the verdict on a theory, with what speaks for it beside what speaks against it."""

from __future__ import annotations

from cicada.protocol.events import Verdict, VerdictPassage
from tests.e2e.page.asking import ask, wait_for_phase
from tests.e2e.page.server import ScriptedServer
from tests.e2e.page.sessions import accepted, attempt, chunk, complete, sources

THEORY = "Is my theory right that the bell rang?"
NASTY = "<img src=x onerror=alert(1)> The bell rang."
RULING = "document.querySelector('.ruling')"


def script(verdict):
    start = [accepted("theory_agent"), attempt(1, "theory_agent"), sources(2, text=NASTY), chunk("It is supported.")]
    return [*start, verdict, complete(strategy="theory_agent")]


def side(page, name):
    return page.run(f"{RULING}.querySelector('.{name}').innerText").split("\n")


def test_the_passages_for_and_against_stand_side_by_side_and_lead_to_their_sources(browser):
    verdict = Verdict(
        attempt=1,
        verdict="contradicted",
        given=True,
        for_=(VerdictPassage(n=1, strength="weak"),),
        against=(VerdictPassage(n=2, strength="strong"),),
    )
    with ScriptedServer({THEORY: script(verdict)}) as server, browser.page(server.page_url) as page:
        ask(page, THEORY)
        wait_for_phase(page, "complete")
        assert page.text(".ruling summary") == "Verdict: contradicted 1 for, 1 against"
        page.click(".ruling summary")
        assert side(page, "for")[0] == "For"
        assert NASTY in "".join(side(page, "for"))
        assert "strong" in "".join(side(page, "against"))
        assert page.run("document.querySelectorAll('img').length") == 0
        left, right = (f"{RULING}.querySelector('.{name}').getBoundingClientRect()" for name in ("for", "against"))
        assert page.run(f"{left}.top === {right}.top && {left}.right <= {right}.left")
        page.click(".ruling .against a")
        page.wait("document.activeElement.closest('details.source')?.dataset.n === '2'")


def test_a_verdict_that_was_not_given_is_open_and_says_so(browser):
    verdict = Verdict(attempt=1, verdict="open", given=False)
    with ScriptedServer({THEORY: script(verdict)}) as server, browser.page(server.page_url) as page:
        ask(page, THEORY)
        wait_for_phase(page, "complete")
        page.click(".ruling summary")
        shown = page.run(f"{RULING}.innerText")
        assert "Verdict: open" in shown
        assert "The agent gave no verdict" in shown
        assert side(page, "for")[-1] == "Nothing"

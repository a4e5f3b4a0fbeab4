"""The page in a real browser: what is shown of an answer."""

from __future__ import annotations

from cicada.errors import InvalidMessage
from cicada.protocol.events import Failed, Reason, Reused, StrategyFailure
from tests.e2e.page.asking import ask, connected, seen, wait_for_phase, wait_for_text
from tests.e2e.page.server import Hold, ScriptedServer, Step, Wire
from tests.e2e.page.sessions import (
    ANSWER,
    CITATIONS,
    PIECES,
    QUESTION,
    WHOLE,
    accepted,
    attempt,
    chunk,
    citation,
    citations,
    complete,
    fallback,
    sources,
)


def test_an_answer_is_written_and_told(browser):
    script: list[Step] = [accepted(), attempt(), sources(), *map(chunk, PIECES[:2]), Hold(), *map(chunk, PIECES[2:])]
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
    script: list[Step] = [accepted(), Hold(), attempt(), Hold(), sources(), Hold(), chunk("So."), complete()]
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


def test_cited_sources_are_open_to_read_and_a_marker_leads_to_them(browser):
    with ScriptedServer({QUESTION: WHOLE}) as server, browser.page(server.page_url) as page:
        ask(page, QUESTION)
        done = wait_for_phase(page, "complete")
        assert [one["n"] for one in done["sources"] if one["open"]] == [1, 2, 3]
        assert page.run("[...document.querySelectorAll('.more .source')].map((one) => one.dataset.n).join()") == "4,5,6"
        assert page.text(".more > summary") == "3 more found"
        assert page.text(".source[data-n='2'] mark") == "There is one key, and it hangs on my neck"
        page.click(".marker[data-n='3']")
        page.wait("document.activeElement.closest('details.source')?.dataset.n === '3'")
        opened = page.text("details.source[data-n='3']")
        assert "ep2-ch1" in opened
        assert "The causeway went under" in opened
        assert "the passage holds 20% of what the sentence says" in opened
        page.press("Escape")
        assert page.run("document.activeElement.className + document.activeElement.dataset.n") == "marker3"


MARKDOWN = (
    "## The keys\n\nCorin has **one** [2]:\n\n- of the *gate* [1]\n- of the cellar\n\n",
    "| Key | Who |\n|---|---|\n| gate | Corin [2] |\n| dresser | Wini",
    "fred [1] |\n\n```py\nkeys = [2]\n",
    "print(keys)\n```\n\nThat is **all",
    "**.",
)


def test_an_answer_is_drawn_as_markdown_and_what_is_being_read_stays(browser):
    script: list[Step] = [accepted(), attempt(), sources(), chunk(MARKDOWN[0])]
    for piece in MARKDOWN[1:]:
        script += [Hold(), chunk(piece)]
    script += [citations(*CITATIONS), complete()]
    with ScriptedServer({QUESTION: script}) as server, browser.page(server.page_url) as page:
        ask(page, QUESTION)
        wait_for_text(page, "The keys\n\nCorin has one [2]:\n\nof the gate [1]\nof the cellar")
        page.run("document.querySelector('.answer ul a.marker').focus()")
        page.run("getSelection().selectAllChildren(document.querySelector('.answer h3'))")
        for tag in ("table", "pre", "strong:not(p:first-of-type *)"):
            server.release()
            page.wait(f"!!document.querySelector('.answer {tag}')")
            assert page.text(".answer").count("**") == 0
        server.release()
        wait_for_phase(page, "complete")
        assert page.run("getSelection().toString()") == "The keys"
        assert page.run("document.activeElement.matches('.answer ul a.marker')")
        assert (
            page.run("[...document.querySelectorAll('.answer td a.marker')].map((one) => one.dataset.n).join()")
            == "2,1"
        )
        assert page.text(".answer pre") == "keys = [2]\nprint(keys)"
        page.click(".answer td a.marker[data-n='1']")
        page.wait("document.activeElement.closest('details.source')?.dataset.n === '1'")
        assert page.problems == []


def test_half_a_marker_is_not_shown(browser):
    script: list[Step] = [accepted(), attempt(), sources(), chunk("It was so [1"), Hold(), chunk("2]."), complete()]
    with ScriptedServer({QUESTION: script}) as server, browser.page(server.page_url) as page:
        ask(page, QUESTION)
        wait_for_text(page, "It was so ")
        server.release()
        wait_for_phase(page, "complete")
        # there is no source 12, so it is no link
        assert seen(page)["text"] == "It was so [12]."
        assert page.run("document.querySelectorAll('a.marker').length") == 0


def test_a_citation_without_a_source_is_named(browser):
    script: list[Step] = [accepted(), attempt(), sources(2), chunk("So [1, 9]. And [8].")]
    script += [citations(citation(9, "So.", "no such passage"), citation(8, "And.", "no such passage")), complete()]
    with ScriptedServer({QUESTION: script}) as server, browser.page(server.page_url) as page:
        ask(page, QUESTION)
        assert wait_for_phase(page, "complete")["notices"] == ["[9], [8]: there is no such source."]
        assert page.run("[...document.querySelectorAll('a.marker')].map((link) => link.dataset.n)") == ["1"]


def test_a_fallback_drops_what_was_written(browser):
    script: list[Step] = [
        accepted(),
        attempt(),
        sources(),
        chunk("In the boat"),
        Hold(),
        fallback(),
        attempt(2, "direct"),
    ]
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
            "Search failed. Answering without sources instead.",
        ]
        page.click(".notices .fallback summary")
        reason = "Search failed: The answer was interrupted. Answering without sources instead."
        assert page.text(".notices .more-said") == reason
        assert done["grounded"] is False
        assert done["badge"] == "Not grounded: written without passages"


def test_an_earlier_answer_that_is_given_again_says_so(browser):
    again = Reused(use="answer", question="Who had the key?", answered_at_ms=1_795_000_000_000, similarity=0.97)
    found = sources(2).model_copy(update={"reused": again, "searched": 0})
    script: list[Step] = [accepted("cag"), attempt(1, "cag"), found, chunk("Corin had it [1]."), complete(1, "cag")]
    with ScriptedServer({QUESTION: script}) as server, browser.page(server.page_url) as page:
        ask(page, QUESTION)
        done = wait_for_phase(page, "complete")
        (notice,) = done["notices"]
        assert notice.startswith("Answered before, on November ")
        assert page.text(".notices .reused q") == "Who had the key?"
        assert done["facts"]["Strategy"] == "Earlier answers (cag)"
        assert page.problems == []


def test_the_last_resort_offers_what_was_found_before(browser):
    offered = sources(3, 2).model_copy(update={"offered": True})
    script: list[Step] = [
        accepted(),
        attempt(),
        sources(),
        chunk("In the boat"),
        fallback(),
        attempt(2, "direct"),
        offered,
    ]
    script += [
        chunk("The sources could not be consulted.", 2),
        complete(2, "direct", grounded=False, failed="It broke."),
    ]
    with ScriptedServer({QUESTION: script}) as server, browser.page(server.page_url) as page:
        ask(page, QUESTION)
        done = wait_for_phase(page, "complete")
        assert [one["n"] for one in done["sources"]] == [1, 2, 3]
        assert page.text(".sources > summary") == "3 passages found by the failed search"
        assert page.text(".sources .degraded").startswith("The failed search found these.")
        assert done["badge"] == "Not grounded: written without passages"
        assert done["facts"]["Strategy"] == "Direct answer (direct), after Search (rag)"


def test_a_question_that_was_completed_is_shown_as_it_was_understood(browser):
    found = sources().model_copy(update={"query": "What did Corin say after he locked the water gate?"})
    script: list[Step] = [accepted(), attempt(), found, chunk("That he did [2]."), complete()]
    with ScriptedServer({QUESTION: script}) as server, browser.page(server.page_url) as page:
        ask(page, QUESTION)
        wait_for_phase(page, "complete")
        assert page.text(".turn .understood") == "Understood as: What did Corin say after he locked the water gate?"


def test_what_an_earlier_answer_brought_is_marked(browser):
    both = sources(2)
    both = both.model_copy(
        update={"sources": (both.sources[0], both.sources[1].model_copy(update={"origin": "cache"}))}
    )
    script: list[Step] = [
        accepted("hybrid"),
        attempt(1, "hybrid"),
        both,
        chunk("So [1]. And [2]."),
        complete(1, "hybrid"),
    ]
    with ScriptedServer({QUESTION: script}) as server, browser.page(server.page_url) as page:
        ask(page, QUESTION)
        places = [one["place"] for one in wait_for_phase(page, "complete")["sources"]]
        assert ["of an earlier answer" in place for place in places] == [False, True]


def test_why_a_passage_is_there_is_said_below_it(browser):
    why = (
        Reason(kind="entity", name="Corin", section="people", matched="the boatman", confidence=0.9),
        Reason(kind="intention", name="npc_history", section="people", confidence=0.8),
    )
    found = sources(2)
    first, second = found.sources
    found = found.model_copy(update={"sources": (first.model_copy(update={"why": why}), second)})
    script: list[Step] = [accepted("hybrid"), attempt(1, "hybrid"), found, chunk("So [1]."), complete(1, "hybrid")]
    with ScriptedServer({QUESTION: script}) as server, browser.page(server.page_url) as page:
        ask(page, QUESTION)
        wait_for_phase(page, "complete")
        told = page.text(".source[data-n='1'] .passage .why")
        assert told.endswith("Found because: names Corin (“the boatman”); for npc history")
        assert "Found because" not in page.run("document.querySelector('.source[data-n=\"2\"]').textContent")


def test_an_error_says_what_was_tried(browser):
    tried = (StrategyFailure(strategy="rag", code="model_busy", reason="The model is busy."),)
    failed = Failed(code="all_strategies_failed", message="Every way failed.", retryable=True, failed=tried)
    script: list[Step] = [accepted(), attempt(), chunk("Half a"), failed]
    with ScriptedServer({QUESTION: script}) as server, browser.page(server.page_url) as page:
        ask(page, QUESTION)
        end = wait_for_phase(page, "failed")
        assert end["notices"] == []
        assert page.text(".facts summary") == "What was tried"
        page.click(".facts summary")
        assert page.text(".facts .more-said") == "Search: The model is busy."
        assert end["line"].startswith("Every way failed. The text so far is not the whole answer.")
        page.click(".turn .again")
        page.wait("document.querySelectorAll('.turn').length === 2")
        wait_for_phase(page, "failed")
        assert [one.query for one in server.asked] == [QUESTION, QUESTION]
        assert server.asked[0].request_id != server.asked[1].request_id


def test_a_blocked_answer_leaves_its_guardrails_message_and_no_word(browser):
    message = "We do not speak of keys here."
    reason = StrategyFailure(strategy="rag", code="answer_blocked", reason=message)
    end = Failed(code="answer_blocked", message=message, retryable=False, failed=(reason,))
    script: list[Step] = [accepted(), attempt(), sources(), *map(chunk, PIECES[:2]), Hold(), end]
    with ScriptedServer({QUESTION: script}) as server, browser.page(server.page_url) as page:
        ask(page, QUESTION)
        wait_for_text(page, "".join(PIECES[:2]))
        server.release()
        blocked = wait_for_phase(page, "blocked")
        assert (blocked["text"], blocked["line"], blocked["notices"], blocked["sources"]) == ("", message, [], [])
        assert PIECES[0] not in page.run("document.body.textContent")
        assert page.problems == []


def test_events_of_a_later_protocol_are_passed_over(browser):
    script: list[Step] = [*WHOLE[:4], {"type": "haiku", "lines": ["<b>"]}, *WHOLE[4:]]
    with ScriptedServer({QUESTION: script}) as server, browser.page(server.page_url) as page:
        ask(page, QUESTION)
        assert wait_for_phase(page, "complete")["text"] == ANSWER
        assert page.problems == []


def test_a_refused_question_says_why(browser):
    wire = Wire(refused=InvalidMessage())
    with ScriptedServer({}, wire=wire) as server, browser.page(server.page_url) as page:
        ask(page, QUESTION)
        assert wait_for_phase(page, "failed")["line"] == "Invalid message."


HOSTILE = """<img src=x onerror="window.hacked = 1"> <script>window.hacked = 2</script> **bold** &lt;b&gt; | a | b |
![pixel](https://evil.example/p.png) [click me](javascript:window.hacked=3) https://evil.example/ {{7*7}}
<a href="javascript:window.hacked=4">[1]</a> </p></article><style>body{display:none}</style> ${window.hacked=5}"""


def test_text_is_text_whoever_wrote_it(browser):
    script: list[Step] = [accepted(), attempt(), sources(2, text=HOSTILE)]
    script += [chunk(HOSTILE), citations(citation(1, HOSTILE, HOSTILE), citation(7, HOSTILE, HOSTILE)), complete()]
    with ScriptedServer({HOSTILE: script}) as server, browser.page(server.page_url) as page:
        ask(page, HOSTILE)
        done = wait_for_phase(page, "complete")
        words = HOSTILE.replace("**", "").replace("![pixel](https://evil.example/p.png)", "pixel")
        assert done["text"] == words
        assert done["question"] == HOSTILE
        assert done["sources"][0]["text"] == HOSTILE
        inside = "document.querySelectorAll('.turn :is(img, script, style, iframe, b, table)').length"
        assert page.run(inside) == 0
        hrefs = page.run("[...document.querySelectorAll('.turn a')].map((link) => link.getAttribute('href'))")
        assert [href for href in hrefs if not href.startswith("#")] == [
            "https://evil.example/p.png",
            "https://evil.example/",
        ]
        assert len(hrefs) == 3
        assert page.run("window.hacked ?? null") is None
        assert page.problems == []


def test_nothing_from_elsewhere_is_loaded(browser):
    with ScriptedServer({QUESTION: WHOLE}) as server, browser.page(server.page_url) as page:
        connected(page)
        loaded = page.run("performance.getEntriesByType('resource').map((one) => one.name)")
        assert loaded
        assert all(one.startswith(server.page_url) for one in loaded)

"""The page in a real browser: what an answer changed of the asker's profiles, and what it asks them to confirm."""

from __future__ import annotations

import pytest

from cicada.errors import ProfileConflict
from cicada.protocol.actions import ConfirmChange, ManageProfile
from cicada.protocol.events import ChangedField, Complete, Confirm, Confirmed, ProfileChanged, Receipt, Refused
from cicada.protocol.profiles import ProfileDeleted, ProfileShown
from tests.e2e.page.asking import ask, wait_for_phase
from tests.e2e.page.server import ScriptedServer
from tests.e2e.page.sessions import accepted, attempt, chunk, complete

PROFILE = "0" * 20
CONFIRMATION = "c" * 32
NASTY = "<img src=x onerror=alert(1)>\u202eboatman"
CREATED = ProfileChanged(
    operation="created",
    id=PROFILE,
    kind="character",
    name="Corin",
    version=1,
    fields=(ChangedField(field="occupation", after=NASTY), ChangedField(field="mood", before="calm", after="grumpy")),
    undoable=True,
)
TO_DELETE = Confirm(
    attempt=1,
    confirmation_id=CONFIRMATION,
    operation="delete",
    id=PROFILE,
    kind="character",
    name="Corin",
    version=1,
    fields=(ChangedField(field="occupation", before="boatman"),),
    expires_at_ms=4_000_000_000_000,
)
KEEP = "Keep Corin's mood."


def ended(changes: int) -> Complete:
    return complete(strategy="profile_agent").model_copy(update={"changes": changes})


def script(*events, changes):
    return [accepted("profile_agent"), attempt(1, "profile_agent"), *events, chunk("Done."), ended(changes)]


def item(kind):
    return f"document.querySelector('.changes .{kind}')"


def outcome(page, kind, words):
    page.wait(f"{item(kind)}.querySelector('.outcome').innerText === '{words}'")


def test_a_change_is_shown_with_its_values_and_taken_back(browser):
    with ScriptedServer({KEEP: script(Receipt(attempt=1, change=CREATED), changes=1)}) as server:
        server.replies = [ProfileDeleted(id=PROFILE, version=2)]
        with browser.page(server.page_url) as page:
            ask(page, KEEP)
            wait_for_phase(page, "complete")
            shown = page.run(f"{item('receipt')}.textContent")
            assert "Corin" in shown
            assert "<img src=x onerror=alert(1)>" in shown
            assert "\u202e" not in shown
            assert "calm" in shown
            assert "grumpy" in shown
            page.click(".changes .receipt button")
            outcome(page, "receipt", "Undone.")
            assert page.run(f"{item('receipt')}.querySelector('button').hidden")
        (undo,) = server.actions(ManageProfile)
        assert (undo.operation, undo.id, undo.version) == ("undo", PROFILE, 1)


def test_a_change_that_cannot_be_taken_back_any_more_says_why_and_can_be_tried_again(browser):
    with ScriptedServer({KEEP: script(Receipt(attempt=1, change=CREATED), changes=1)}) as server:
        shown = ProfileShown(id=PROFILE, kind="character", name="Corin", version=3, created_at_ms=0, changed_at_ms=0)
        server.replies = [Refused.of(ProfileConflict("It was changed since.")), shown]
        with browser.page(server.page_url) as page:
            ask(page, KEEP)
            wait_for_phase(page, "complete")
            page.click(".changes .receipt button")
            outcome(page, "receipt", ProfileConflict.told)
            page.click(".changes .receipt button")
            outcome(page, "receipt", "Undone.")


@pytest.mark.parametrize(
    ("button", "accept", "told"), [(".danger", True, "Deleted."), (":not(.danger)", False, "Kept.")]
)
def test_a_deletion_is_done_or_not_as_the_user_says(browser, button, accept, told):
    question = "Delete my profile of Corin"
    with ScriptedServer({question: script(TO_DELETE, changes=0)}) as server:
        server.replies = [Confirmed(confirmation_id=CONFIRMATION, outcome="done" if accept else "declined")]
        with browser.page(server.page_url) as page:
            ask(page, question)
            wait_for_phase(page, "complete")
            shown = page.run(f"{item('confirm')}.textContent")
            assert "occupation: “boatman”" in shown
            assert "removed" not in shown  # nothing is, yet
            assert server.actions(ConfirmChange) == []
            page.click(f".changes .confirm button{button}")
            outcome(page, "confirm", told)
        (confirm,) = server.actions(ConfirmChange)
        assert (confirm.confirmation_id, confirm.accept) == (CONFIRMATION, accept)
        assert confirm.request_id == server.asked[0].request_id


def test_an_answer_that_changed_nothing_says_so(browser):
    with ScriptedServer({KEEP: script(changes=0)}) as server, browser.page(server.page_url) as page:
        ask(page, KEEP)
        wait_for_phase(page, "complete")
        assert page.run("document.querySelector('.changes').innerText").strip() == "Nothing was changed."

"""The page, in a real browser, on the deployed thing."""

from __future__ import annotations

from tests.e2e.page.asking import ask_in_browser


def test_a_question_on_the_page_is_answered_with_sources_that_open(cloud, issuer, user):
    seen = ask_in_browser(
        cloud.endpoint_url, "How many strokes of the fog bell did Ilse count?", token=issuer.token(user)
    )
    assert "thirteen" in seen["text"]
    assert seen["sources"]
    assert seen["status"]["grounded"] is True
    assert not seen["problems"]

"""The page in a real browser: what it is told about its server."""

from __future__ import annotations

from urllib.parse import quote

import pytest

from tests.e2e.page.asking import ask, banner, connected, wait_for_banner, wait_for_phase
from tests.e2e.page.server import ScriptedServer
from tests.e2e.page.sessions import ANSWER, QUESTION, WHOLE


def test_a_link_names_neither_a_server_nor_an_account(browser):
    with ScriptedServer({}) as server, ScriptedServer({}) as other:
        with browser.page(f"{server.page_url}?ws={other.websocket_url}&token=a.b-c#token=a.b-c") as page:
            connected(page)
            assert (server.opened, other.opened) == (["/live"], [])
            page.reload()
            connected(page)
            assert (server.opened, other.opened) == (["/live"] * 2, [])


def test_a_link_names_the_server_where_the_configuration_allows_it(browser):
    with ScriptedServer({}) as server, ScriptedServer({}, config={"serverFromAddress": True}) as other:
        with browser.page(f"{other.page_url}?ws={server.websocket_url}") as page:
            connected(page)
            assert (server.opened, other.opened) == (["/live"], [])


@pytest.mark.parametrize("account", ["{}?token=a.b-c", "{}?x=1&token=a.b-c#token=a.b-c", "{}/../live?token=a.b-c"])
def test_a_server_that_a_link_names_brings_no_account(browser, account):
    with ScriptedServer({}) as server, ScriptedServer({}, config={"serverFromAddress": True}) as other:
        named = quote(account.format(server.websocket_url.replace("://", "://eve:secret@")), safe="")
        with browser.page(f"{other.page_url}?ws={named}") as page:
            connected(page)
            page.reload()
            connected(page)
            assert (server.opened, other.opened) == (["/live"] * 2, [])


def test_a_token_that_is_typed_is_kept_for_its_server_and_this_tab(browser):
    with ScriptedServer({QUESTION: WHOLE}) as server:
        server.accepting = False
        with browser.page(server.page_url) as page:
            page.wait("!document.querySelector('#token-form').hidden")
            page.run("document.querySelector('#token').value = ' a.b-c '")
            page.click("#token-form button")
            server.accepting = True
            connected(page)
            assert server.offered[-1] == ["cicada.v1", "cicada.bearer.a.b-c"]
            assert "token" not in page.run("location.href")
            page.reload()
            connected(page)
            assert server.offered[-1] == ["cicada.v1", "cicada.bearer.a.b-c"]
            assert set(server.opened) == {"/live"}


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
        ({"webSocketUrl": "https://example.org/"}, "“https://example.org/” is not a WebSocket address."),
        ({"webSocketUrl": None}, "config.json names no webSocketUrl."),
    ],
)
def test_a_wrong_configuration_is_told(browser, config, told):
    with ScriptedServer({}, config=config) as server, browser.page(server.page_url) as page:
        wait_for_banner(page, told)

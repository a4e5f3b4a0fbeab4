"""``cicada login``, ``logout``, ``whoami``, and the tokens that commands take from a sign-in."""

from __future__ import annotations

import asyncio
import contextlib
import io
import json
import socket
import stat
import sys
import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import jwt
import pytest

from cicada_cli.aws import Aws
from cicada_cli.deployment import CHAT, Deployment, DeploymentChoice, discover
from cicada_cli.exits import Exit
from cicada_cli.login import login, logout, whoami
from cicada_cli.main import main
from cicada_cli.sign_in_browser import Callback, NoAnswer, redirect_uri
from cicada_client import NotSignedIn, SignedIn
from cicada_client.connection import TransportClosed
from cicada_client.sign_in_store import SignIn, SignInStore
from tests.support.sign_in import EMAIL, PASSWORD, Browser, Reply
from tests.wire.issuer_service import SignInService, sign_in_service
from tests.wire.page_stack import deployed_page
from tests.wire.test_client_cli import no_surroundings, running
from tests.wire.test_client_wire import Deployment as Gateway

__all__ = ["no_surroundings"]  # a fixture of every test here too

URL = "wss://gateway.example/live"


@pytest.fixture(scope="module")
def module_service() -> Iterator[SignInService]:
    with sign_in_service("login") as service:
        yield service


@pytest.fixture
def service(module_service: SignInService) -> Iterator[SignInService]:
    yield module_service
    module_service.offset_s = 0.0
    module_service.faults.disarm()


@pytest.fixture
def store(tmp_path: Path) -> SignInStore:
    return SignInStore(tmp_path / "state" / "cicada" / "sign-ins")


@pytest.fixture
def port(service: SignInService) -> int:
    with socket.create_server(("127.0.0.1", 0)) as found:
        free: int = found.getsockname()[1]
    service.allow(redirect_uri(free))
    return free


def deployment(service: SignInService, **values: str) -> Deployment:
    told = {"url": URL, "auth_mode": "cognito", "issuer": service.issuer_url, "client_id": service.client_id}
    return Deployment({**told, **values}, Aws())


class Surfer:
    """Does in a thread what the user does in the browser."""

    def __init__(self, name: str = EMAIL, password: str = PASSWORD) -> None:
        self.seen: list[Reply] = []
        self.threads: list[threading.Thread] = []
        self._name, self._password = name, password

    def __call__(self, url: str) -> bool:
        thread = threading.Thread(target=self._go, args=(url,))
        self.threads.append(thread)
        thread.start()
        return True

    def _go(self, url: str) -> None:
        browser = Browser()
        reply = browser.sign_in(url, self._name, self._password)
        self.seen.append(browser.get(self.change(reply.location)))

    def change(self, location: str) -> str:
        return location


def sign_in(service: SignInService, store: SignInStore, port: int, surfer: Surfer | None = None) -> Exit:
    surfer = surfer or Surfer()
    status = login(deployment(service), store, browser=True, open_url=surfer, ports=[port])
    for thread in surfer.threads:
        thread.join(10)
    return status


def kept(store: SignInStore) -> SignIn:
    found = store.get(URL)
    assert found is not None
    return found


def aged(store: SignInStore, seconds: float) -> None:
    """Make the sign-in older."""
    found = kept(store)
    store.put(
        found.model_copy(update={"obtained_at": found.obtained_at - seconds, "expires_at": found.expires_at - seconds})
    )


def subject(token: str) -> str:
    return str(jwt.decode(token, options={"verify_signature": False})["sub"])


# --- login ---


def test_a_browser_signs_in(
    service: SignInService, store: SignInStore, port: int, capsys: pytest.CaptureFixture[str]
) -> None:
    surfer = Surfer()
    assert sign_in(service, store, port, surfer) == Exit.DONE
    assert f"Signed in to {URL} as {EMAIL} (groups: users)." in capsys.readouterr().out
    assert surfer.seen[0].status == 200
    assert "You are signed in" in surfer.seen[0].text
    found = kept(store)
    claims = jwt.decode(found.token, options={"verify_signature": False})
    assert claims["token_use"] == "access"
    assert found.refresh_token
    assert found.email == EMAIL


def test_the_file_is_for_its_owner_alone(service: SignInService, store: SignInStore, port: int, tmp_path: Path) -> None:
    sign_in(service, store, port)
    folder = tmp_path / "state" / "cicada" / "sign-ins"
    assert stat.S_IMODE(folder.stat().st_mode) == 0o700
    assert {stat.S_IMODE(path.stat().st_mode) for path in folder.iterdir()} == {0o600}
    assert not list(folder.glob(".new-*"))


def pasting(monkeypatch: pytest.MonkeyPatch, change: Callable[[Reply], str]) -> io.StringIO:
    """Let standard input give what the user pastes, once the address to sign in at is on standard error: returned."""
    printed = io.StringIO()

    class Pasted:
        def isatty(self) -> bool:
            return False

        def readline(self) -> str:
            url = next(word for word in printed.getvalue().split() if "/oauth2/authorize?" in word)
            return change(Browser().sign_in(url)) + "\n"

    monkeypatch.setattr(sys, "stderr", printed)
    monkeypatch.setattr(sys, "stdin", Pasted())
    return printed


@pytest.mark.parametrize("what", ["address", "code"])
def test_the_address_or_the_code_can_be_pasted(
    service: SignInService, store: SignInStore, monkeypatch: pytest.MonkeyPatch, what: str
) -> None:
    pasting(monkeypatch, lambda reply: reply.location if what == "address" else reply.sent_back["code"])
    assert login(deployment(service), store, browser=False) == Exit.DONE
    assert kept(store).email == EMAIL


@pytest.mark.parametrize(
    ("change", "told"),
    [
        (lambda reply: reply.location.replace("state=", "state=x"), "state mismatch"),
        (lambda reply: "http://localhost:8741/callback?error=access_denied&error_description=Not%20you", "Not you"),
        (lambda reply: "http://localhost:8741/callback", "state mismatch"),
        (lambda reply: "no code at all", "neither a code nor the address"),
        (lambda reply: "00000000-wrong", "invalid_grant"),
    ],
)
def test_what_is_pasted_must_be_of_this_sign_in(
    service: SignInService, store: SignInStore, monkeypatch: pytest.MonkeyPatch, change: Any, told: str
) -> None:
    printed = pasting(monkeypatch, change)
    assert login(deployment(service), store, browser=False) == Exit.FAILED
    assert told in printed.getvalue()
    assert store.get(URL) is None


def test_answers_to_other_sign_ins_are_left_aside(service: SignInService, store: SignInStore, port: int) -> None:
    class Strayed(Surfer):
        def change(self, location: str) -> str:
            strays = (f"{redirect_uri(port)}?code=x&state=other", f"{redirect_uri(port)}?error=no", location[:-4])
            self.seen += [Browser().get(url) for url in strays]
            self.seen.append(Browser().get(location, Host="rebound.example:8741"))
            return location

    surfer = Strayed()
    assert sign_in(service, store, port, surfer) == Exit.DONE
    assert [reply.status for reply in surfer.seen] == [400, 400, 400, 404, 200]
    assert "state mismatch" in surfer.seen[0].text


def test_a_stray_answer_does_not_end_the_wait_while_the_sign_in_finishes(port: int) -> None:
    callback = Callback([port])

    def finish(_: dict[str, str]) -> str | None:
        callback.answered()  # of a stray that came a moment before
        with pytest.raises(NoAnswer):
            callback.wait(0)
        return None

    callback.serve("mine", finish)
    try:
        assert callback.arrived({"state": "mine"}) is None
        callback.answered()
        callback.wait(0)
    finally:
        callback.close()


def test_a_browser_in_the_terminal_is_answered_while_it_runs(
    service: SignInService, store: SignInStore, port: int
) -> None:
    seen: list[int] = []

    def surf(url: str) -> bool:
        browser = Browser()
        seen.append(browser.get(browser.sign_in(url).location).status)
        return True

    assert login(deployment(service), store, browser=True, open_url=surf, ports=[port]) == Exit.DONE
    assert seen == [200]


def test_a_browser_that_does_not_come_back_is_not_waited_for_without_end(
    service: SignInService, store: SignInStore, port: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    told: list[str] = []
    monkeypatch.setattr(Callback.wait, "__defaults__", (0.01,))
    monkeypatch.setattr("cicada_cli.login.complain", told.append)
    status = login(deployment(service), store, browser=True, open_url=lambda _: False, ports=[port])
    assert status == Exit.CONNECTION_LOST
    assert "the browser did not return" in told[0]
    assert store.get(URL) is None


def test_all_ports_taken(service: SignInService, store: SignInStore, capsys: pytest.CaptureFixture[str]) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        number = taken.getsockname()[1]
        assert login(deployment(service), store, browser=True, open_url=Surfer(), ports=[number]) == Exit.FAILED
    told = capsys.readouterr().err
    assert f"ports {number} are in use" in told
    assert "--no-browser" in told


def test_a_taken_port_is_passed_over(service: SignInService, store: SignInStore, port: int) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        ports = [taken.getsockname()[1], port]
        assert login(deployment(service), store, browser=True, open_url=Surfer(), ports=ports) == Exit.DONE


@pytest.mark.parametrize(
    ("fault", "operation", "status", "told"),
    [
        ("issuer.unreachable", "discovery", Exit.CONNECTION_LOST, "cannot be reached"),
        ("issuer.error", "discovery", Exit.CONNECTION_LOST, "answered HTTP 500"),
        ("issuer.lost_ack", "token", Exit.CONNECTION_LOST, "cannot be reached"),
        ("issuer.error", "token", Exit.CONNECTION_LOST, "answered HTTP 500"),
    ],
)
def test_what_fails_midway_leaves_nothing_and_the_same_command_completes_it(
    service: SignInService,
    store: SignInStore,
    port: int,
    capsys: pytest.CaptureFixture[str],
    fault: str,
    operation: str,
    status: Exit,
    told: str,
) -> None:
    service.faults.arm(fault, operation=operation)
    assert sign_in(service, store, port) == status
    said = capsys.readouterr().err
    assert service.issuer.url in said
    assert told in said
    assert "Run the same command again" in said
    assert store.get(URL) is None
    service.faults.disarm()
    assert sign_in(service, store, port) == Exit.DONE


def test_an_unknown_issuer_and_a_wrong_one(
    service: SignInService, store: SignInStore, capsys: pytest.CaptureFixture[str]
) -> None:
    for issuer, told in (
        ("http://localhost:1/pool", "cannot be reached"),
        (f"{service.issuer.url}/us-east-1_nothing", "answered HTTP 404"),
        (f"{service.issuer.url.replace('localhost', '127.0.0.1')}/{service.pool_id}", "is of another issuer"),
        ("http://issuer.example", "must begin with https://"),
    ):
        assert login(deployment(service, issuer=issuer), store, browser=True) != Exit.DONE
        assert told in capsys.readouterr().err
    assert store.get(URL) is None


def test_an_issuer_that_refuses_the_request_is_told(
    service: SignInService, store: SignInStore, port: int, capsys: pytest.CaptureFixture[str]
) -> None:
    def surf(url: str) -> bool:
        browser = Browser()
        threading.Thread(target=lambda: browser.get(browser.get(url).location)).start()
        return True

    asked = deployment(service, scopes="openid everything")
    assert login(asked, store, browser=True, open_url=surf, ports=[port]) == Exit.FAILED
    assert f"{service.issuer_url} refused the sign-in: invalid_scope" in capsys.readouterr().err


def test_a_user_without_a_group_is_told_so(
    service: SignInService, store: SignInStore, port: int, capsys: pytest.CaptureFixture[str]
) -> None:
    service.add_user("alone@example.com", PASSWORD, group=None)
    assert sign_in(service, store, port, Surfer("alone@example.com")) == Exit.DONE
    assert "has no groups" in capsys.readouterr().err


def test_a_deployment_without_sign_in(store: SignInStore, capsys: pytest.CaptureFixture[str]) -> None:
    assert login(Deployment({"url": URL, "auth_mode": "none"}, Aws()), store, browser=True) == Exit.DONE
    assert "needs no sign-in" in capsys.readouterr().out
    page = {"url": URL, "page": "https://page.example", "auth_mode": "none"}
    assert login(Deployment(page, Aws(), by_page=True), store, browser=True) == Exit.DONE
    assert "--issuer URL --client-id ID" in capsys.readouterr().out


# --- whoami, logout ---


def test_whoami(service: SignInService, store: SignInStore, port: int, capsys: pytest.CaptureFixture[str]) -> None:
    assert whoami(URL, store, as_json=False) == Exit.FAILED
    assert f"not signed in to {URL}: cicada login" in capsys.readouterr().err
    sign_in(service, store, port)
    capsys.readouterr()
    assert whoami(URL, store, as_json=True) == Exit.DONE
    told = json.loads(capsys.readouterr().out)
    assert told["subject"] == subject(kept(store).token)
    assert (told["email"], told["groups"], told["issuer"]) == (EMAIL, ["users"], service.issuer_url)
    assert told["expiresAt"].endswith("Z")
    assert whoami(URL, store, as_json=False) == Exit.DONE
    assert "groups    users" in capsys.readouterr().out


def test_logout_revokes_and_forgets(
    service: SignInService, store: SignInStore, port: int, capsys: pytest.CaptureFixture[str]
) -> None:
    sign_in(service, store, port)
    token = kept(store).refresh_token
    assert token
    service.faults.arm("issuer.error", operation="revoke")
    assert logout(URL, store, forget=False) == Exit.CONNECTION_LOST
    assert "still signed in" in capsys.readouterr().err
    assert kept(store).refresh_token == token
    service.faults.disarm()
    assert logout(URL, store, forget=False) == Exit.DONE
    assert json.loads(service.refresh(token).text) == {"error": "invalid_grant"}
    assert store.get(URL) is None
    assert logout(URL, store, forget=False) == Exit.DONE


def test_logout_can_only_forget(service: SignInService, store: SignInStore, port: int) -> None:
    sign_in(service, store, port)
    token = kept(store).refresh_token
    assert token
    assert logout(URL, store, forget=True) == Exit.DONE
    assert store.get(URL) is None
    assert service.refresh(token).status == 200


@pytest.mark.parametrize("why", ["damaged", "in a keyring that is gone"])
def test_what_cannot_be_read_can_be_forgotten(
    service: SignInService, store: SignInStore, port: int, why: str, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    sign_in(service, store, port)
    (path,) = tmp_path.rglob("*.json")
    path.write_text("{" if why == "damaged" else json.dumps({**json.loads(path.read_text()), "in_keyring": True}))
    assert logout(URL, store, forget=False) == Exit.FAILED
    assert "--forget deletes the stored tokens" in capsys.readouterr().err
    assert logout(URL, store, forget=True) == Exit.DONE
    assert store.get(URL) is None


# --- refreshing ---


def test_a_token_is_refreshed_ahead_of_its_end(service: SignInService, store: SignInStore, port: int) -> None:
    sign_in(service, store, port)
    first = kept(store)
    assert asyncio.run(SignedIn(URL, store)()) == first.token
    aged(store, 3600 - 250)
    second = asyncio.run(SignedIn(URL, store)())
    assert second != first.token
    assert kept(store).token == second
    assert kept(store).refresh_token != first.refresh_token
    assert kept(store).expires_at > first.expires_at - 60


def test_many_processes_refresh_once(service: SignInService, store: SignInStore, port: int) -> None:
    sign_in(service, store, port)
    aged(store, 4000)
    before = len(service.issuer._grants.refresh_tokens)
    tokens: list[str] = []
    takers = [threading.Thread(target=lambda: tokens.append(asyncio.run(SignedIn(URL, store)()))) for _ in range(6)]
    for taker in takers:
        taker.start()
    for taker in takers:
        taker.join(20)
    assert len(tokens) == 6
    assert len(set(tokens)) == 1
    assert len(service.issuer._grants.refresh_tokens) == before + 1


def test_a_lost_answer_to_a_refresh_is_asked_for_again(service: SignInService, store: SignInStore, port: int) -> None:
    sign_in(service, store, port)
    aged(store, 4000)
    service.faults.arm("issuer.lost_ack", times=1, operation="token")
    token = asyncio.run(SignedIn(URL, store)())
    assert token == kept(store).token


def test_an_issuer_that_is_away_matters_only_when_the_token_has_ended(
    service: SignInService, store: SignInStore, port: int
) -> None:
    sign_in(service, store, port)
    aged(store, 3600 - 250)
    service.faults.arm("issuer.error", operation="token", status=503)
    assert asyncio.run(SignedIn(URL, store)()) == kept(store).token
    aged(store, 300)
    with pytest.raises(TransportClosed, match=r"could not be refreshed: .* answered HTTP 503"):
        asyncio.run(SignedIn(URL, store)())
    service.faults.disarm()
    assert asyncio.run(SignedIn(URL, store)()) == kept(store).token


def test_an_ended_sign_in_says_so(service: SignInService, store: SignInStore, port: int) -> None:
    sign_in(service, store, port)
    aged(store, 4000)
    token = kept(store).refresh_token
    assert token
    service.revoke(token)
    with pytest.raises(NotSignedIn, match=r"has ended: invalid_grant\. Sign in again: cicada login"):
        asyncio.run(SignedIn(URL, store)())


def test_without_a_refresh_token_the_sign_in_ends(service: SignInService, store: SignInStore, port: int) -> None:
    sign_in(service, store, port)
    store.put(kept(store).model_copy(update={"refresh_token": None}))
    assert asyncio.run(SignedIn(URL, store)()) == kept(store).token
    aged(store, 4000)
    with pytest.raises(NotSignedIn, match=r"expired: sign in again"):
        asyncio.run(SignedIn(URL, store)())


def test_a_token_that_is_rejected_is_replaced_once(service: SignInService, store: SignInStore, port: int) -> None:
    sign_in(service, store, port)
    first = kept(store).token
    provider = SignedIn(URL, store)
    given = [asyncio.run(provider()) for _ in range(4)]
    assert given[0] == first
    assert given[1] != first
    assert given[1:] == [given[1]] * 3  # a server that is away does not have the issuer asked at every attempt


# --- commands ---


def signed_in_at(url: str, tmp_path: Path, service: SignInService, page: str | None = None) -> str:
    """Keep a sign-in to a gateway where commands look for it."""
    store = SignInStore(tmp_path / "state" / "cicada" / "sign-ins")
    tokens = service.tokens()
    store.put(
        SignIn(
            url=url,
            page=page,
            issuer=service.issuer_url,
            client_id=service.client_id,
            token_endpoint=f"{service.issuer.url}/oauth2/token",
            token=tokens["access_token"],
            obtained_at=service.clock(),
            expires_at=service.clock() + 3600,
            refresh_token=tokens["refresh_token"],
            signed_in_at=service.clock(),
        )
    )
    token: str = tokens["access_token"]
    return token


def test_asking_takes_the_token_of_the_sign_in(service: SignInService, tmp_path: Path) -> None:
    gateway = Gateway()
    with running(gateway) as url:
        token = signed_in_at(url, tmp_path, service)
        assert main(["ask", "Who rang?", "--url", url, "--json"]) == 0
        assert main(["ask", "Who rang?", "--url", url, "--json", "--token", "other"]) == 0
    assert gateway.tokens == [f"Bearer {token}", "Bearer other"]


@pytest.fixture
def opened() -> Iterator[contextlib.ExitStack]:
    """What is open until the test ends."""
    with contextlib.ExitStack() as stack:
        yield stack


def config_of(service: SignInService, url: str) -> bytes:
    """A page's configuration."""
    told = {"issuer": service.issuer_url, "clientId": service.client_id, "scopes": "openid email"}
    return json.dumps({"webSocketUrl": url, "signIn": told}).encode()


def test_a_page_names_the_deployment(
    service: SignInService,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
    opened: contextlib.ExitStack,
) -> None:
    page = service.services.endpoint_url
    gateway = Gateway()
    with running(gateway) as url:
        opened.enter_context(deployed_page(service.services, {"config.json": config_of(service, url)}))
        assert main(["ask", "Who rang?", "--page", page]) == 2
        assert f"not signed in to {url}. Run: cicada login --page {page}" in capsys.readouterr().err
        signed_in_at(url, tmp_path, service, page)
        assert main(["ask", "Who rang?", "--page", page, "--json"]) == 0
        assert main(["whoami", "--page", page]) == 0
        assert main(["ask", "Who rang?", "--json"]) == 0  # the last page that was signed in by
        monkeypatch.setenv("CICADA_PAGE", page + "/")
        assert main(["ask", "Who rang?", "--json"]) == 0
        assert main(["logout", "--page", page, "--forget"]) == 0
    assert len(gateway.tokens) == 3


def test_a_sign_in_by_a_page_is_found_again_and_another_is_not(
    service: SignInService,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    opened: contextlib.ExitStack,
) -> None:
    opened.enter_context(deployed_page(service.services, {"config.json": config_of(service, URL)}))
    store = SignInStore(tmp_path / "state" / "cicada" / "sign-ins")
    with monkeypatch.context() as patch:
        pasting(patch, lambda reply: reply.location)
        assert main(["login", "--no-browser", "--page", service.services.endpoint_url]) == 0
    assert kept(store).page == service.services.endpoint_url
    assert main(["whoami"]) == 0
    with monkeypatch.context() as patch:
        pasting(patch, lambda reply: reply.location)
        assert main(["login", "--no-browser"]) == 0
    monkeypatch.setenv("AWS_PROFILE", "another")
    assert main(["whoami"]) == 2
    assert "(missing: --url)" in capsys.readouterr().err
    monkeypatch.delenv("AWS_PROFILE")
    found = Deployment({**deployment(service).values, "page": "https://page.example"}, Aws())  # as the stacks tell it
    with monkeypatch.context() as patch:
        pasting(patch, lambda reply: reply.location)
        assert login(found, store, browser=False) == Exit.DONE
    assert kept(store).page is None


def test_a_page_by_option_is_before_variables_and_read_when_needed(
    service: SignInService, tmp_path: Path, opened: contextlib.ExitStack
) -> None:
    opened.enter_context(deployed_page(service.services, {"config.json": config_of(service, URL)}))
    page = service.services.endpoint_url

    def found(needs: tuple[str, ...], environ: dict[str, str], **choice: Any) -> Deployment:
        return discover(DeploymentChoice(**choice), needs, environ=environ, cwd=tmp_path, project=tmp_path)

    assert found(CHAT, {"CICADA_URL": "wss://other.example"}, page=page).url == URL
    assert found(CHAT, {"CICADA_URL": "wss://other.example", "CICADA_PAGE": page}).url == "wss://other.example"
    assert found(CHAT, {"CICADA_PAGE": page}, url="wss://option.example").url == "wss://option.example"
    nowhere = {"CICADA_PAGE": "http://localhost:1", "CICADA_REQUESTS_TABLE": "table"}
    assert found(("requests_table",), nowhere).requests_table == "table"


def test_a_page_that_is_none(service: SignInService, capsys: pytest.CaptureFixture[str]) -> None:
    with deployed_page(service.services, {"config.json": b'{"something": "else"}'}):
        for page, told in (
            (service.services.endpoint_url, "is not the configuration of a Cicada page"),
            ("http://localhost:1", "cannot read the page"),
            ("http://page.example", "must begin with https://"),
        ):
            assert main(["login", "--page", page]) == 2
            assert told in capsys.readouterr().err


def test_issuer_and_client_can_be_named(
    service: SignInService, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    pasting(monkeypatch, lambda reply: reply.location)
    named = ["--url", URL, "--issuer", service.issuer_url, "--client-id", service.client_id, "--scopes", "openid"]
    assert main(["login", "--no-browser", *named]) == 0
    found = SignInStore(tmp_path / "state" / "cicada" / "sign-ins").get(URL)
    assert found is not None
    assert found.email is None


def test_a_sign_in_that_others_can_read_is_not_used(
    service: SignInService, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    signed_in_at(URL, tmp_path, service)
    path = next((tmp_path / "state" / "cicada" / "sign-ins").glob("*.json"))
    path.chmod(0o640)
    assert main(["ask", "Who rang?", "--url", URL]) == 2
    told = capsys.readouterr().err
    assert f"chmod 600 {path}" in told

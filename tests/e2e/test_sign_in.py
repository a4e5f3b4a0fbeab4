"""``make up AUTH=1`` and the command: from no user to answered questions, and to a user whose access has ended."""

from __future__ import annotations

import json
import os
import pty
import re
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from cicada_cli.main import main
from cicada_local.places import ROOT
from tests.e2e.page.asking import connected, seen, send, wait_for_banner, wait_for_phase
from tests.e2e.page.browser import PATIENCE_S
from tests.e2e.page.browser import Browser as ChromiumBrowser
from tests.e2e.searched_cloud import SearchedCloud
from tests.support.sign_in import PASSWORD, Browser

EMAIL = "ada@example.com"
COMMAND = [sys.executable, "-m", "cicada_cli"]


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("place")


@pytest.fixture(scope="module")
def signed(place: Path) -> Iterator[SearchedCloud]:
    """A local cloud where users sign in, found by the commands that run in ``place``."""
    script = [ROOT / "samples" / "script" / "episode-1.jsonl"]
    with SearchedCloud(place / ".cicada", settings={"auth": {"mode": "cognito"}}, load=script) as cloud:
        cloud.forbid_texts(PASSWORD)
        yield cloud


class Typist:
    """Types commands in a place, as a user with a home of its own: in this process, but for those that need another."""

    def __init__(
        self, cloud: SearchedCloud, place: Path, patch: pytest.MonkeyPatch, captured: pytest.CaptureFixture[str]
    ) -> None:
        self._cloud = cloud
        self.place = place
        self.state = place / "state"
        self._captured = captured
        for name in list(os.environ):
            if name.startswith(("CICADA_", "AWS_")):
                patch.delenv(name)
        patch.chdir(place)
        for name, value in {
            "XDG_STATE_HOME": str(self.state),
            "PYTHONPATH": f"{ROOT}:{ROOT / 'layers/cicada/python'}",
            "BROWSER": f"{sys.executable} {ROOT / 'tests/e2e/surf.py'} %s",
        }.items():
            patch.setenv(name, value)

    def type(self, *words: str, status: int = 0) -> str:
        """Both outputs of a command."""
        self._captured.readouterr()
        found = main(words)
        told = self._captured.readouterr()
        self._forbid_token()
        assert found == status, told
        return told.out + told.err

    def json(self, *words: str) -> Any:
        return json.loads(self.type(*words, "--json"))

    def run_login(self, **environment: str) -> None:
        """``cicada login``, which opens a browser."""
        subprocess.run([*COMMAND, "login"], env=os.environ | environment, check=True, timeout=60, capture_output=True)
        self._forbid_token()

    def token(self) -> str:
        kept: str = json.loads(self._sign_in_file().read_text())["token"]
        return kept

    def age(self, seconds: float) -> None:
        """Make the sign-in older."""
        path = self._sign_in_file()
        kept = json.loads(path.read_text())
        path.write_text(json.dumps(kept | {name: kept[name] - seconds for name in ("obtained_at", "expires_at")}))

    def _forbid_token(self) -> None:
        """No log may hold the token of the sign-in that there is."""
        for path in (self.state / "cicada" / "sign-ins").glob("*.json"):
            self._cloud.forbid_texts(json.loads(path.read_text())["token"])

    def _sign_in_file(self) -> Path:
        return next((self.state / "cicada" / "sign-ins").glob("*.json"))


@pytest.fixture
def typist(
    signed: SearchedCloud, place: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> Typist:
    return Typist(signed, place, monkeypatch, capsys)


def login_on_a_terminal(password: str, new_password: str) -> str:
    """``cicada login --no-browser`` on a terminal: sign in elsewhere, and paste where the browser ends."""
    ours, theirs = pty.openpty()
    command = [*COMMAND, "login", "--no-browser"]
    process = subprocess.Popen(command, stdin=theirs, stdout=theirs, stderr=theirs)
    os.close(theirs)
    told = ""
    try:
        while "Address or code: " not in told:
            told += os.read(ours, 65536).decode()
        url = re.search(r"http://localhost:\d+/oauth2/authorize\S+", told)
        assert url is not None
        location = Browser().sign_in(url[0], EMAIL, password, new_password).location
        os.write(ours, location.encode() + b"\n")
        assert process.wait(30) == 0
        return told + os.read(ours, 65536).decode()
    finally:
        process.kill()
        process.wait()
        os.close(ours)


def test_what_is_printed_at_the_start_signs_in(signed: SearchedCloud, typist: Typist) -> None:
    told = signed.log()
    name, password = (re.search(rf"{what} +(\S+)", told) for what in ("name", "password"))
    assert name is not None
    assert password is not None
    assert "cicada login" in told
    typist.run_login(SURF_NAME=name[1], SURF_PASSWORD=password[1])
    assert typist.json("whoami")["groups"] == ["admins", "users"]
    assert "Signed out" in typist.type("logout")


STORED = "JSON.stringify(Object.values({...sessionStorage}))"
QUESTION = "How many strokes of the fog bell did Ilse count?"


def first_user(signed: SearchedCloud) -> tuple[str, str]:
    """Name and password, as they are printed at the start: a moment after it is ready."""
    deadline = time.monotonic() + PATIENCE_S
    while (found := re.search(r"name +(\S+)\s+password +(\S+)", signed.log())) is None:
        assert time.monotonic() < deadline, signed.log()
        time.sleep(0.05)
    return found[1], found[2]


def test_a_browser_signs_in_on_the_page_asks_and_signs_out(signed: SearchedCloud) -> None:
    name, password = first_user(signed)
    with ChromiumBrowser() as browser, browser.page(signed.endpoint_url) as page:
        wait_for_banner(page, "Sign in to ask.")
        send(page, QUESTION)  # it waits while its asker signs in
        page.wait("location.pathname === '/login' && document.readyState === 'complete'")
        for field, value in (("username", name), ("password", password)):
            page.run(f"document.querySelector('#{field}').value = {json.dumps(value)}")
        page.click("form button")
        page.wait("document.querySelector('.turn')?.dataset.phase === 'complete'")
        answer = seen(page)
        assert answer["question"] == QUESTION
        assert "thirteen" in answer["text"]
        assert "verified" in {source["verdict"] for source in answer["sources"]}
        search, fragment = page.run("[location.search, location.hash]")
        assert re.fullmatch(r"(\?c=[0-9a-f-]{36})?", search)  # the conversation, and nothing of the sign-in
        assert fragment == ""
        assert page.text("#account-name") == name

        token = page.run(f'JSON.parse({STORED}).map((it) => it.match(/"token":"([^"]+)/)?.[1]).find(Boolean)')
        page.reload()
        connected(page)
        assert wait_for_phase(page, "complete")["text"] == answer["text"]
        assert page.text("#account-name") == name

        page.click("#sign-out")
        page.wait("document.querySelector('#account')?.hidden && document.readyState === 'complete'")
        wait_for_banner(page, "Sign in to ask.")
        assert page.run("document.querySelector('.turn')") is None
        assert token not in page.run(STORED)
        assert page.problems == []
    assert not [file for file in signed.logs.glob("*.log") if token in file.read_text(encoding="utf-8")]


def test_a_user_is_added_asks_and_is_refused(signed: SearchedCloud, typist: Typist) -> None:
    added = typist.json("users", "add", EMAIL, "--password-once")
    assert "cicada login" in typist.type("ask", "Hello!", status=2)
    told = login_on_a_terminal(added["temporaryPassword"], PASSWORD)
    assert f"as {EMAIL} (groups: users)" in told
    assert typist.json("whoami")["subject"] == added["subject"]
    assert "answered by direct" in typist.type("ask", "Hello!")

    first = typist.token()
    typist.age(4000)
    signed.control("POST", "issuer/keys")
    signed.arm("issuer.unreachable", operation="token", times=1)
    typist.type("ask", "Hello!")
    assert typist.token() != first

    time.sleep(1.1)  # tokens are stamped in whole seconds
    typist.type("users", "revoke", EMAIL)
    assert "has ended: invalid_grant" in typist.type("ask", "Hello!", status=3)
    typist.run_login(SURF_NAME=EMAIL, SURF_PASSWORD=PASSWORD)
    typist.type("ask", "Hello!")

    keys = signed.control("GET", "issuer/keys")
    signed.stop()
    signed.start()  # the issuer is at another port now, for a cloud of a test takes free ones
    assert signed.control("GET", "issuer/keys") == keys
    listed = [json.loads(line) for line in typist.type("users", "list", "--json").splitlines()]
    assert {user["email"]: user["subject"] for user in listed}[EMAIL] == added["subject"]

"""Sign-ins on this machine: whole or absent, for their owner alone, with the keyring where there is one."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from cicada_client.sign_in_store import LOCK_TIMEOUT_S, SignIn, SignInStore, StoreError

URL = "wss://gateway.example/live"


def sign_in(url: str = URL, *, at: float = 0.0, refresh_token: str | None = "refresh") -> SignIn:
    return SignIn(
        url=url,
        issuer="https://issuer.example",
        client_id="client",
        token_endpoint="https://issuer.example/token",
        token="token",
        obtained_at=0.0,
        expires_at=3600.0,
        refresh_token=refresh_token,
        signed_in_at=at,
    )


class Keyring:
    """The functions of the package ``keyring``."""

    def __init__(self, *, works: bool = True) -> None:
        self.secrets: dict[tuple[str, str], str] = {}
        self.works = works

    def set_password(self, service: str, name: str, secret: str) -> None:
        if not self.works:
            raise RuntimeError("no keyring is available")
        self.secrets[service, name] = secret

    def get_password(self, service: str, name: str) -> str | None:
        if not self.works:
            raise RuntimeError("no keyring is available")
        return self.secrets.get((service, name))

    def delete_password(self, service: str, name: str) -> None:
        del self.secrets[service, name]


def file_of(folder: Path) -> Path:
    return next(folder.glob("*.json"))


def test_what_is_put_is_got_whatever_the_closing_slash(tmp_path: Path) -> None:
    store = SignInStore(tmp_path / "a" / "b")
    assert store.get(URL) is None
    store.put(sign_in())
    assert store.get(URL + "/") == sign_in()
    store.remove(URL)
    assert store.get(URL) is None
    store.remove(URL)


def test_the_latest_sign_in_comes_first_and_damaged_ones_are_left_out(tmp_path: Path) -> None:
    store = SignInStore(tmp_path)
    for number, at in enumerate((1.0, 3.0, 2.0)):
        store.put(sign_in(f"{URL}/{number}", at=at))
    (tmp_path / "damaged.json").write_text("{")
    assert [one.url[-1] for one in store.all()] == ["1", "2", "0"]


@pytest.mark.parametrize("mode", [0o644, 0o660, 0o601])
def test_a_file_that_others_can_read_or_write_is_refused(tmp_path: Path, mode: int) -> None:
    store = SignInStore(tmp_path)
    store.put(sign_in())
    file_of(tmp_path).chmod(mode)
    with pytest.raises(StoreError, match=r"others can read the sign-in: chmod 600 /"):
        store.get(URL)


def test_a_damaged_file_is_told_without_its_content(tmp_path: Path) -> None:
    store = SignInStore(tmp_path)
    store.put(sign_in())
    file_of(tmp_path).write_text('{"token": "secret"}')
    with pytest.raises(StoreError, match="is damaged: delete it and sign in again") as caught:
        store.get(URL)
    assert "secret" not in str(caught.value)


def test_a_write_that_fails_leaves_what_was_there(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    store = SignInStore(tmp_path)
    store.put(sign_in())

    def full(*_: Any) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr("os.fsync", full)
    with pytest.raises(StoreError, match="No space left on device"):
        store.put(sign_in(refresh_token="another"))
    monkeypatch.undo()
    assert store.get(URL) == sign_in()
    assert len(list(tmp_path.iterdir())) == 1


def test_the_keyring_holds_the_refresh_token(tmp_path: Path) -> None:
    keyring = Keyring()
    store = SignInStore(tmp_path, load_keyring=lambda: keyring)
    store.put(sign_in())
    assert "refresh_token" not in file_of(tmp_path).read_text()
    found = store.get(URL)
    assert found is not None
    assert (found.refresh_token, found.in_keyring, found.refreshable) == ("refresh", True, True)
    with pytest.raises(StoreError, match="keyring is not installed any more"):
        SignInStore(tmp_path).get(URL)
    keyring.works = False
    with pytest.raises(StoreError, match="the keyring cannot be read: no keyring is available"):
        store.get(URL)
    store.remove(URL)
    assert keyring.secrets == {}


def test_without_a_working_keyring_the_file_holds_it(tmp_path: Path) -> None:
    class Forgetful(Keyring):
        def set_password(self, *_: Any) -> None:
            """The null keyring."""

    for keyring in (Keyring(works=False), Forgetful()):
        store = SignInStore(tmp_path, load_keyring=lambda keyring=keyring: keyring)  # type: ignore[misc]
        store.put(sign_in())
        assert store.get(URL) == sign_in()


def test_a_lock_that_another_process_keeps_is_not_waited_for_without_end(tmp_path: Path) -> None:
    store, now = SignInStore(tmp_path), [0.0]

    def sleep(seconds: float) -> None:
        now[0] += seconds

    with store.locked(URL):
        with pytest.raises(StoreError, match=rf"another process has held .* for {LOCK_TIMEOUT_S:.0f} s"):
            with store.locked(URL, clock=lambda: now[0], sleep=sleep):
                pass
    with store.locked(URL, clock=lambda: now[0], sleep=sleep):
        pass

"""A headless Chromium for tests of the page, spoken to by the Chrome DevTools Protocol.

Protocol: https://chromedevtools.github.io/devtools-protocol/. Only what the tests need, and synchronous.
"""

from __future__ import annotations

import base64
import itertools
import json
import os
import shutil
import subprocess
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from types import TracebackType
from typing import Any, Self

import pytest
from websockets.sync.client import ClientConnection, connect

_NAMES = ("chromium", "chromium-browser", "google-chrome", "chrome")
_FLAGS = (
    "--headless",
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
    "--disable-dev-shm-usage",
    "--hide-scrollbars",
    "--remote-debugging-port=0",
    "about:blank",
)
_START_S = 60.0
PATIENCE_S = 30.0
"""How long something on the page may take to become true: a bound for failures, not an expectation."""
_POLL_S = 0.03

_KEYS = {
    "Enter": ("Enter", 13, "\r"),
    "Escape": ("Escape", 27, ""),
    "Tab": ("Tab", 9, ""),
    "Space": (" ", 32, " "),
    "ArrowDown": ("ArrowDown", 40, ""),
}
_SHIFT = 8
_NO_CARET = """(() => {
  const sheet = new CSSStyleSheet();
  sheet.replaceSync('* { caret-color: transparent !important; }');
  document.adoptedStyleSheets.push(sheet);
})()"""


class PageError(Exception):
    """A script on the page has failed, or what was waited for has not come."""


def chromium() -> str:
    """The browser's path. Skips the test without one, unless this is CI, where it must be there."""
    found = next(filter(None, map(shutil.which, _NAMES)), None)
    if found is None:
        reason = "there is no Chromium (Debian: apt-get install chromium)"
        if os.environ.get("CI"):
            pytest.fail(reason)
        pytest.skip(reason)
    return found


class Browser:
    """A browser process with an empty profile. A context: it ends with it."""

    def __init__(self, *flags: str) -> None:
        self._profile = Path(tempfile.mkdtemp(prefix="cicada-chromium-"))
        self._process = subprocess.Popen(
            [chromium(), *flags, *_FLAGS, f"--user-data-dir={self._profile}"],
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
        )
        self._port = self._read_port()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._process.terminate()
        try:
            self._process.wait(10)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()
        shutil.rmtree(self._profile, ignore_errors=True)

    def _read_port(self) -> int:
        file = self._profile / "DevToolsActivePort"
        deadline = time.monotonic() + _START_S
        while time.monotonic() < deadline:
            if self._process.poll() is not None:
                raise PageError(f"Chromium ended with status {self._process.returncode}")
            if file.exists() and (lines := file.read_text().split()):
                self.path = lines[1]
                return int(lines[0])
            time.sleep(_POLL_S)
        raise PageError("Chromium does not start")

    @contextmanager
    def page(self, url: str, *, width: int = 1280, height: int = 800, dark: bool = False) -> Iterator[Page]:
        """A tab of its own, with storage of its own, showing a URL."""
        with connect(f"ws://127.0.0.1:{self._port}{self.path}", max_size=None, proxy=None) as socket:
            page = Page(socket)
            page.open(width, height, dark=dark)
            page.go(url)
            yield page
            page.close()


class Page:
    """One tab."""

    def __init__(self, socket: ClientConnection) -> None:
        self._socket = socket
        self._ids = itertools.count(1)
        self._session: str | None = None
        self._context = ""
        self.problems: list[str] = []
        """What the browser complained of: uncaught exceptions, errors of the console, breaches of the page's policy."""

    def open(self, width: int, height: int, *, dark: bool) -> None:
        """Create the tab."""
        self._context = self._call("Target.createBrowserContext")["browserContextId"]
        target = self._call("Target.createTarget", url="about:blank", browserContextId=self._context)["targetId"]
        self._session = self._call("Target.attachToTarget", targetId=target, flatten=True)["sessionId"]
        for domain in ("Page", "Runtime", "Log", "Accessibility"):
            self._call(f"{domain}.enable")
        self._call(
            "Emulation.setDeviceMetricsOverride", width=width, height=height, deviceScaleFactor=1, mobile=width < 600
        )
        self.emulate(dark=dark)

    def close(self) -> None:
        """Close the tab and forget its storage."""
        self._session = None
        self._call("Target.disposeBrowserContext", browserContextId=self._context)

    def emulate(self, *, dark: bool = False, still: bool = False, forced: bool = False) -> None:
        """The asker's preferences: a dark screen, reduced motion, forced colours."""
        features = [
            {"name": "prefers-color-scheme", "value": "dark" if dark else "light"},
            {"name": "prefers-reduced-motion", "value": "reduce" if still else "no-preference"},
            {"name": "forced-colors", "value": "active" if forced else "none"},
        ]
        self._call("Emulation.setEmulatedMedia", features=features)

    def fix(self, *, dark: bool = False) -> None:
        """Let the page look the same each time: no motion, no caret, English, UTC, and the tab has the focus."""
        self.emulate(dark=dark, still=True)
        self._call("Emulation.setTimezoneOverride", timezoneId="UTC")
        self._call("Emulation.setLocaleOverride", locale="en-US")
        self._call("Emulation.setFocusEmulationEnabled", enabled=True)
        self.run(_NO_CARET)

    def throttle(self, times: float) -> None:
        """Slow the processor down, as it is seen by the page."""
        self._call("Emulation.setCPUThrottlingRate", rate=times)

    def version(self) -> str:
        """The browser's name and version."""
        found: str = self._call("Browser.getVersion")["product"]
        return found

    def at_start(self, script: str) -> None:
        """Run a script in each page that is shown from now on, before its own."""
        self._call("Page.addScriptToEvaluateOnNewDocument", source=script)

    def go(self, url: str) -> None:
        """Show a URL."""
        self._call("Page.navigate", url=url)
        self.wait("location.href !== 'about:blank' && document.readyState === 'complete'")

    def reload(self) -> None:
        """Load the page again, in the same tab."""
        self.run("window.isOld = true")
        self._call("Page.reload")
        self.wait("!window.isOld && document.readyState === 'complete'")

    def run(self, script: str) -> Any:
        """Evaluate an expression, or wait for the promise that it is, and return its value. Raises PageError.

        The page draws once a frame: what it knew before this call is drawn when the expression is evaluated.
        """
        self._evaluate("new Promise(requestAnimationFrame)")
        return self._evaluate(script)

    def _evaluate(self, script: str) -> Any:
        answer = self._call("Runtime.evaluate", expression=script, returnByValue=True, awaitPromise=True)
        if "exceptionDetails" in answer:
            details = answer["exceptionDetails"]
            raise PageError(details.get("exception", {}).get("description", details["text"]))
        return answer["result"].get("value")

    def wait(self, condition: str) -> Any:
        """Wait until an expression is truthy, and return its value. Raises PageError."""
        deadline = time.monotonic() + PATIENCE_S
        seen: object = None
        while time.monotonic() < deadline:
            try:
                if seen := self.run(condition):
                    return seen
            except PageError as error:  # the page may be half loaded
                seen = error
            time.sleep(_POLL_S)
        raise PageError(f"not true within {PATIENCE_S:.0f} s: {condition} (last: {seen}; problems: {self.problems})")

    def text(self, selector: str) -> str:
        """The text of the last element that a selector finds, as it is seen."""
        found: str = self.run(f"[...document.querySelectorAll({json.dumps(selector)})].at(-1)?.innerText ?? ''")
        return found

    def click(self, selector: str) -> None:
        """Click the last element that a selector finds, with the mouse. Raises PageError."""
        found = f"[...document.querySelectorAll({json.dumps(selector)})].at(-1)"
        x, y = self.run(
            f"(() => {{ const it = {found}; it.scrollIntoView({{block: 'center', behavior: 'instant'}});"
            "const box = it.getBoundingClientRect(); return [box.x + box.width / 2, box.y + box.height / 2]; })()"
        )
        for kind in ("mousePressed", "mouseReleased"):
            self._call("Input.dispatchMouseEvent", type=kind, x=x, y=y, button="left", clickCount=1)

    def type(self, text: str) -> None:
        """Put text in where the focus is."""
        self._call("Input.insertText", text=text)

    def press(self, key: str, *, shift: bool = False) -> None:
        """Press and release a key."""
        name, code, text = _KEYS[key]
        modifiers = _SHIFT if shift else 0
        about = {"key": name, "code": key, "windowsVirtualKeyCode": code, "modifiers": modifiers}
        down = {"type": "keyDown", "text": text} if text else {"type": "rawKeyDown"}
        self._call("Input.dispatchKeyEvent", **down, **about)
        self._call("Input.dispatchKeyEvent", type="keyUp", **about)

    def focused(self) -> dict[str, str]:
        """The role and the name, as a screen reader tells them, of the element that has the focus."""
        found = self._call("Runtime.evaluate", expression="document.activeElement")["result"]["objectId"]
        node = self._call("Accessibility.getPartialAXTree", objectId=found, fetchRelatives=False)["nodes"][0]
        return {part: node.get(part, {}).get("value", "") for part in ("role", "name")}

    def screenshot(self) -> bytes:
        """What is seen, as PNG."""
        return base64.b64decode(self._call("Page.captureScreenshot", format="png")["data"])

    def _call(self, method: str, **params: Any) -> dict[str, Any]:
        number = next(self._ids)
        message = {"id": number, "method": method, "params": params}
        if self._session:
            message["sessionId"] = self._session
        self._socket.send(json.dumps(message))
        while True:
            answer = json.loads(self._socket.recv(timeout=PATIENCE_S))
            if answer.get("id") == number:
                if "error" in answer:
                    raise PageError(f"{method}: {answer['error']['message']}")
                result: dict[str, Any] = answer["result"]
                return result
            self._notice(answer)

    def _notice(self, event: dict[str, Any]) -> None:
        params = event.get("params", {})
        match event.get("method"):
            case "Runtime.exceptionThrown":
                details = params["exceptionDetails"]
                self.problems.append(details.get("exception", {}).get("description", details["text"]))
            case "Log.entryAdded" if params["entry"]["level"] == "error":
                self.problems.append(params["entry"]["text"])

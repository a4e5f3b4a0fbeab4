"""Adding documents on the page: sent by a signed form, followed until they are loaded, deleted."""

from __future__ import annotations

import hashlib
import http.server
import threading
from collections.abc import Iterator
from typing import Any, ClassVar

import pytest

from tests.e2e.page.accessibility import assert_accessible
from tests.e2e.page.asking import connected
from tests.e2e.page.server import ScriptedServer
from tests.e2e.page.test_page_corpus import SHELF, corpus


class Store(http.server.BaseHTTPRequestHandler):
    """Takes forms as S3 does, from any origin."""

    forms: ClassVar[list[bytes]] = []

    def do_POST(self) -> None:
        self.forms.append(self.rfile.read(int(self.headers["Content-Length"])))
        self.send_response(204)
        self.send_header("Access-Control-Allow-Origin", "*")
        self.end_headers()

    def do_OPTIONS(self) -> None:
        self.send_response(204)
        self.send_header("Access-Control-Allow-Origin", "*")
        self.send_header("Access-Control-Allow-Methods", "POST")
        self.end_headers()

    def log_message(self, *args: Any) -> None:
        """Say nothing."""


@pytest.fixture
def store() -> Iterator[str]:
    Store.forms.clear()
    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Store)
    thread = threading.Thread(target=server.serve_forever, daemon=True)
    thread.start()
    yield f"http://localhost:{server.server_port}/"
    server.shutdown()
    server.server_close()
    thread.join()


class Folder:
    """Answers the action ``upload``."""

    def __init__(self, url: str) -> None:
        self._url = url
        self._looks = 0
        self.begun: list[dict[str, Any]] = []
        self.documents: dict[str, dict[str, Any]] = {}

    def __call__(self, fields: dict[str, Any]) -> dict[str, Any]:
        match fields["operation"]:
            case "begin":
                if fields["name"].endswith(".exe"):
                    message = "Unsupported format."
                    return {"type": "error", "code": "document_unsupported", "message": message, "retryable": False}
                self.begun.append(fields)
                self.documents[fields["name"]] = {"name": fields["name"], "bytes": fields["bytes"], "state": "waiting"}
                return {"type": "upload", "url": self._url, "fields": {"key": fields["name"]}, "expiresAtMs": 1}
            case "list":
                self._looks += 1
                if self._looks > 2:
                    for document in self.documents.values():
                        document.update(state="loaded", passages=4)
                listed = [{"uploadedAtMs": 1, "passages": None, **one} for one in self.documents.values()]
                return {"type": "uploads", "collection": "shelf", "documents": listed, "run": None, "maxBytes": 1000}
            case _:
                del self.documents[fields["name"]]
                return {"type": "upload_deleted", "collection": "shelf", "name": fields["name"]}


DROP = """(() => {
  const data = new DataTransfer();
  for (const name of ['pump.txt', 'virus.exe']) data.items.add(new File(['The pump runs.'], name));
  document.body.dispatchEvent(new DragEvent('drop', { dataTransfer: data, bubbles: true, cancelable: true }));
})()"""


def test_dropped_files_are_sent_and_followed_until_they_are_loaded(browser, store):
    with ScriptedServer({}) as server:
        server.answers["collections"] = lambda _: corpus({**SHELF, "upload": True})
        folder = server.answers["upload"] = Folder(store)
        with browser.page(server.page_url) as page:
            connected(page)
            page.wait("document.querySelector('#bar > .menu:not([hidden])') !== null")
            page.run(DROP)
            page.wait("document.querySelector('.documents li')?.dataset.state === 'loaded'")
            assert page.text(".documents li") == "pump.txt\n1 kB · 4 passages"
            assert page.text(".queue li") == "virus.exe\nUnsupported format."
            assert_accessible(page)
            assert folder.begun[0]["sha256"] == hashlib.sha256(b"The pump runs.").hexdigest()
            assert len(Store.forms) == 1
            assert b"The pump runs." in Store.forms[0]
            page.click(".documents button")
            page.click(".documents button")
            page.wait("document.querySelectorAll('.documents li').length === 0")
            page.press("Escape")
            assert not page.run("document.querySelector('#uploads').open")
            assert page.problems == []


def test_who_may_not_upload_sees_no_way_to(browser):
    with ScriptedServer({}) as server:
        server.answers["collections"] = lambda _: corpus(SHELF)
        with browser.page(server.page_url) as page:
            connected(page)
            page.wait("document.querySelectorAll('.holdings li').length === 1")
            assert page.run("[...document.querySelectorAll('.menu')].every((one) => one.hidden)")

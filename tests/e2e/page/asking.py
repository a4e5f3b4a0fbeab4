"""What an asker does on the page, and what there is to see."""

from __future__ import annotations

import json
from typing import Any, TypedDict

from tests.e2e.page.browser import Browser, Page

ENDED = ("complete", "cancelled", "limited", "blocked", "failed")

_TURN = "[...document.querySelectorAll('.turn')].at(-1)"
_SEEN = f"""(() => {{
  const turn = {_TURN};
  const facts = [...turn.querySelectorAll('.facts dl > div')];
  return {{
    question: turn.querySelector('h2').textContent,
    text: turn.querySelector('.answer').innerText,
    phase: turn.dataset.phase,
    grounded: turn.dataset.grounded === 'true',
    badge: turn.querySelector('.badge')?.innerText ?? '',
    facts: Object.fromEntries(facts.map((fact) => [...fact.children].map((part) => part.textContent))),
    notices: [...turn.querySelectorAll('.notices .line')].map((notice) => notice.innerText),
    line: turn.querySelector('.status').innerText,
    sources: [...turn.querySelectorAll('details.source')].sort((a, b) => a.dataset.n - b.dataset.n).map((source) => ({{
      n: Number(source.dataset.n),
      speaker: source.querySelector('.speaker').textContent,
      place: source.querySelector('.place').textContent,
      text: source.querySelector('blockquote').textContent,
      verdict: source.dataset.verdict,
      open: source.open && (!source.closest('.more') || source.closest('.more').open),
    }})),
  }};
}})()"""


class SeenSource(TypedDict):
    """A source as the page shows it."""

    n: int
    speaker: str
    place: str
    text: str
    verdict: str
    """``verified``, ``unverified``, or empty where the answer does not cite it."""
    open: bool


class Seen(TypedDict):
    """The last question of the page, as it is seen."""

    question: str
    text: str
    phase: str
    """``waiting``, ``accepted``, ``searching``, ``reading``, ``writing``; ``complete``, ``cancelled``, ``limited``,
    ``failed``."""
    grounded: bool
    badge: str
    facts: dict[str, str]
    notices: list[str]
    line: str
    """What happens now."""
    sources: list[SeenSource]


def connected(page: Page) -> None:
    """Wait until the page has a connection."""
    page.wait("document.querySelector('#connection').dataset.state === 'open'")


def give_token(page: Page, token: str) -> None:
    """Give the page a token, as one does who was refused without."""
    page.wait("!document.querySelector('#token-form').hidden")
    page.run(f"document.querySelector('#token').value = {_quoted(token)}")
    page.click("#token-form button")
    connected(page)
    page.problems.clear()  # the browser complains of the socket that was refused


def send(page: Page, question: str) -> None:
    """Send a question as one does: by clicking into the box, typing, and Enter."""
    page.wait("!document.querySelector('#send').disabled")
    page.click("#question")
    page.type(question)
    page.press("Enter")


def ask(page: Page, question: str) -> None:
    """Send a question, and wait until it is shown."""
    send(page, question)
    page.wait(f"{_TURN}?.querySelector('h2').textContent.length > 0")


def wait_for_text(page: Page, text: str) -> None:
    """Wait until the last answer is exactly this."""
    page.wait(f"{_TURN}.querySelector('.answer').innerText === {_quoted(text)}")


def wait_for_phase(page: Page, *phases: str) -> Seen:
    """Wait until the last question is in one of some phases."""
    page.wait(f"{_quoted(phases)}.includes({_TURN}.dataset.phase)")
    return seen(page)


def banner(page: Page) -> str:
    """What is said about the connection; empty if nothing is."""
    said: str = page.run("document.querySelector('#banner:not([hidden]) p')?.innerText ?? ''")
    return said


def wait_for_banner(page: Page, text: str) -> None:
    """Wait until this is said about the connection."""
    page.wait(f"document.querySelector('#banner:not([hidden]) p')?.innerText.includes({_quoted(text)})")


def seen(page: Page) -> Seen:
    """The last question as it is seen now."""
    found: Seen = page.run(_SEEN)
    return found


def ask_in_browser(page_url: str, question: str, *, token: str = "") -> dict[str, Any]:
    """Ask one question on a page in a browser of its own, and wait for the end of its answer.

    Args:
        page_url: the page.
        question: what is asked.
        token: typed into the page once that offers it; none if empty.

    Returns:
        ``text``: the answer, with its markers as ``[n]``; ``sources``: a :class:`SeenSource` each; ``status``:
        ``phase``, ``grounded``, ``badge``, ``notices`` and ``facts`` (``Strategy``, ``Model``, ``First text``,
        ``Total``, ``Tokens``, ``Cost``); ``problems``: what the browser complained of, empty if all went well.

    Raises:
        PageError: it did not end in time.
    """
    with Browser() as browser, browser.page(page_url) as page:
        if token:
            give_token(page, token)
        ask(page, question)
        last = wait_for_phase(page, *ENDED)
        status = {name: last[name] for name in ("phase", "grounded", "badge", "facts", "notices")}
        return {"text": last["text"], "sources": last["sources"], "status": status, "problems": page.problems}


def _quoted(value: object) -> str:
    return json.dumps(value)

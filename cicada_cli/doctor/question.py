"""One real question, from the socket to the end of its answer."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Iterable

from cicada_cli.doctor.findings import Finding, Reporter
from cicada_client import Answer, CicadaClient, ClientError, ConnectionRefused, TokenProvider

QUESTION = "What is this text about?"
TOP_K = 1
"""Passages in the prompt: with one, the answer costs a fraction of a cent with any model of the price table."""
TIMEOUT_S = 90.0
SLOW_S = 20.0
"""A first answer, by cold functions, is there before."""
NOTHING_LOADED = "index_missing"
TOKEN = str | TokenProvider | None


def ask(url: str, token: TOKEN) -> Answer:
    """Ask, and return the whole answer. Raises ClientError or TimeoutError."""

    async def asked() -> Answer:
        async with asyncio.timeout(TIMEOUT_S), CicadaClient(url, token=token) as client:
            return await client.answer(QUESTION, top_k=TOP_K)

    return asyncio.run(asked())


def check_question(
    url: str,
    token: TOKEN,
    *,
    signs_in: bool,
    asking: Callable[[str, TOKEN], Answer] = ask,
    clock: Callable[[], float] = time.monotonic,
) -> Iterable[Finding]:
    """Ask one question; what is reported is the time as the asker sees it, and the models' cost.

    Args:
        url: the deployment's WebSocket URL.
        token: what the authorizer wants.
        signs_in: whether the deployment wants one.
        asking: asks.
        clock: seconds that never run backwards.
    """
    report = Reporter("question", url)
    if signs_in and token is None:
        yield report.unknown("not asked, because you are not signed in", "cicada login")
        return
    began_s = clock()
    try:
        answer = asking(url, token)
    except ConnectionRefused as error:
        yield report.problem(
            f"the deployment refused the connection: {error}", "cicada login, then docs/troubleshooting.md"
        )
        return
    except (ClientError, TimeoutError) as error:
        said = str(error) or f"timed out after {TIMEOUT_S:.0f} s"
        yield report.problem(f"no answer: {said}", "docs/troubleshooting.md says where to look")
        return
    took_s = clock() - began_s
    yield from _judged(report, answer, took_s)


def _judged(report: Reporter, answer: Answer, took_s: float) -> Iterable[Finding]:
    metrics = answer.metrics
    cost = metrics.cost_usd if metrics is not None else None
    told = (
        f"answered by {answer.strategy} ({answer.model}) in {took_s:.1f} s, "
        + ("" if metrics is None else f"first text after {metrics.first_chunk_ms / 1000:.1f} s, ")
        + ("cost unknown" if cost is None else f"for {cost:.5f} US dollars")
    )
    codes = {one.code for one in answer.failed}
    if codes == {NOTHING_LOADED}:
        yield report.ok(f"{told}; nothing is loaded to answer from")
    elif codes:
        failed = ", ".join(f"{one.strategy} ({one.code})" for one in answer.failed)
        yield report.warning(f"{told}; failed before: {failed}", f"cicada trace {answer.request_id}")
    elif took_s > SLOW_S:
        yield report.warning(f"{told}: slow", f"cicada trace {answer.request_id}")
    else:
        yield report.ok(told)

"""One browser for all tests of the page; each test gets a tab with storage of its own."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.e2e.page.browser import Browser


@pytest.fixture(scope="session")
def browser() -> Iterator[Browser]:
    with Browser() as browser:
        yield browser

"""A gateway and a Lambda service of a test's own."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from tests.wire.functions_cloud import Cloud, clouds
from tests.wire.gateway_house import House, houses


@pytest.fixture
def build() -> Iterator[Callable[..., House]]:
    """Starts gateways."""
    with houses() as build_one:
        yield build_one


@pytest.fixture
def house(build: Callable[..., House]) -> House:
    """A gateway with every route open."""
    return build()


@pytest.fixture
def start(tmp_path: Path) -> Iterator[Callable[..., Cloud]]:
    """Starts Lambda services."""
    with clouds(tmp_path) as start_one:
        yield start_one


@pytest.fixture
def cloud(start: Callable[..., Cloud]) -> Cloud:
    """A Lambda service."""
    return start()

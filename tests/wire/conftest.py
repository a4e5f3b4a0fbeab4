"""A gateway and a Lambda service of a test's own, and a local cloud that tests share."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from cicada_local.testing import LocalCloud
from tests.wire.announced_issuer import Issuer
from tests.wire.functions_cloud import Cloud, clouds
from tests.wire.gateway_house import House, houses


@pytest.fixture(scope="session")
def issuer() -> Iterator[Issuer]:
    """Whose tokens open the local cloud's connections."""
    issuer = Issuer()
    with issuer.serve():
        yield issuer


@pytest.fixture(scope="session")
def deployed(issuer: Issuer, tmp_path_factory: pytest.TempPathFactory) -> Iterator[LocalCloud]:
    """A local cloud with the stacks and nothing in it: one for all tests of a worker, which leave it as it is."""
    home = tmp_path_factory.mktemp("cloud")
    with LocalCloud(home, settings=issuer.settings(), environment={"JWT_ISSUER": issuer.url}) as cloud:
        yield cloud


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

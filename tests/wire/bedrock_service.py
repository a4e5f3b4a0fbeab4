"""The Bedrock stand-in over real HTTP, and boto3 clients aimed at it."""

from __future__ import annotations

import json
import ssl
import threading
import urllib.request
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from ipaddress import IPv4Address
from pathlib import Path
from typing import Any

import boto3
from aiohttp import web
from aiohttp.typedefs import Handler
from botocore.config import Config
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import NameOID

from cicada.models.bedrock import bedrock_client_config
from cicada_local.agents.brain import next_step
from cicada_local.agents.turns import BrainTool, Decide, Step
from cicada_local.agents.turns import Turn as AgentTurn
from cicada_local.bedrock.extractive.filling import fill_from_words
from cicada_local.bedrock.extractive.relevance import relevance
from cicada_local.bedrock.guardrails import GuardrailStore
from cicada_local.bedrock.server import add_routes
from cicada_local.bedrock.tools import Tool
from cicada_local.faults import Faults
from tests.wire.app_server import serving_app

ANSWER = "Aoi found the letter in the boathouse on the second evening [1]. She did not tell Ren about it [2]."


@dataclass
class BedrockService:
    """A running stand-in; what it says and what it was asked are the test's to set and read."""

    url: str = ""
    certificate: Path | None = None
    """What to trust, where the stand-in is served over TLS."""
    answer: Callable[[str, str], str] = lambda system, user: ANSWER
    fill: Callable[[str, str, Tool], Mapping[str, Any]] = fill_from_words
    rank: Callable[[str, Sequence[str]], Sequence[float]] = relevance
    decide: Decide = next_step
    embed: Callable[[Sequence[str]], Sequence[Sequence[float]]] = lambda texts: [[0.6, 0.8] + [0.0] * 382] * len(texts)
    faults: Faults = field(default_factory=Faults)
    guardrails: GuardrailStore = field(default_factory=GuardrailStore)
    calls: Counter[str] = field(default_factory=Counter)
    """Requests by operation."""
    raw_bodies: list[bytes] = field(default_factory=list)
    connections: set[tuple[str, int]] = field(default_factory=set)
    finished: threading.Event = field(default_factory=threading.Event)
    """Set when the handler of a request has ended."""

    @property
    def bodies(self) -> list[dict[str, Any]]:
        """What was sent, in the order of its arrival."""
        return [json.loads(body) for body in self.raw_bodies]

    def streams(self) -> dict[str, int]:
        """The stand-in's own count of streams."""
        trusted = None if self.certificate is None else ssl.create_default_context(cafile=self.certificate)
        with urllib.request.urlopen(f"{self.url}/_cicada/bedrock", context=trusted) as response:
            counts: dict[str, int] = json.load(response)
            return counts

    def client(self, config: Config | None = None, *, read_timeout_s: float = 5.0) -> Any:
        return boto3.client(
            "bedrock-runtime",
            endpoint_url=self.url,
            region_name="eu-west-1",
            aws_access_key_id="test",
            aws_secret_access_key="test",
            config=config or bedrock_client_config(read_timeout_s=read_timeout_s),
            verify=None if self.certificate is None else str(self.certificate),
        )


class FakeTime:
    """A clock that only sleeping moves."""

    def __init__(self) -> None:
        self.now_s = 1000.0
        self.slept_s: list[float] = []

    def clock(self) -> float:
        return self.now_s

    def sleep(self, seconds: float) -> None:
        self.slept_s.append(seconds)
        self.now_s += seconds


@dataclass(frozen=True)
class Identity:
    """A certificate for 127.0.0.1, which vouches for itself, and its key."""

    certificate: Path
    key: Path

    @classmethod
    def make(cls, folder: Path) -> Identity:
        """Make one in a folder."""
        key = ec.generate_private_key(ec.SECP256R1())
        name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, "127.0.0.1")])
        now = datetime.now(UTC)
        certificate = (
            x509.CertificateBuilder()
            .subject_name(name)
            .issuer_name(name)
            .public_key(key.public_key())
            .serial_number(x509.random_serial_number())
            .not_valid_before(now - timedelta(days=1))
            .not_valid_after(now + timedelta(days=1))
            .add_extension(x509.SubjectAlternativeName([x509.IPAddress(IPv4Address("127.0.0.1"))]), critical=False)
            .sign(key, hashes.SHA256())
        )
        made = cls(folder / "certificate.pem", folder / "key.pem")
        made.certificate.write_bytes(certificate.public_bytes(serialization.Encoding.PEM))
        made.key.write_bytes(
            key.private_bytes(
                serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
            )
        )
        return made

    def context(self) -> ssl.SSLContext:
        """For the server."""
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.load_cert_chain(self.certificate, self.key)
        return context


@contextmanager
def serving(identity: Identity | None = None) -> Iterator[BedrockService]:
    """Run the stand-in in a thread, on a port of its own; over TLS if it is given an identity."""
    service = BedrockService(certificate=None if identity is None else identity.certificate)

    @web.middleware
    async def record(request: web.Request, handler: Handler) -> web.StreamResponse:
        if request.path.startswith("/_cicada/"):
            return await handler(request)
        service.calls[request.path.rsplit("/", 1)[-1]] += 1
        assert request.transport is not None
        service.connections.add(request.transport.get_extra_info("peername"))
        service.raw_bodies.append(await request.read())
        try:
            return await handler(request)
        finally:
            service.finished.set()

    def answer(system: str, user: str) -> str:
        return service.answer(system, user)  # looked up anew: a test may replace it at any time

    def fill(system: str, user: str, tool: Tool) -> Mapping[str, Any]:
        return service.fill(system, user, tool)

    def rank(query: str, texts: Sequence[str]) -> Sequence[float]:
        return service.rank(query, texts)

    def decide(system: str, tools: Sequence[BrainTool], turns: Sequence[AgentTurn]) -> Step:
        return service.decide(system, tools, turns)

    def embed(texts: Sequence[str]) -> Sequence[Sequence[float]]:
        return service.embed(texts)

    app = web.Application(middlewares=[record])
    add_routes(
        app,
        answer=answer,
        embed=embed,
        fill=fill,
        rank=rank,
        decide=decide,
        guardrails=service.guardrails,
        faults=service.faults,
        pace_s=0.0,
    )
    with serving_app(app, tls=None if identity is None else identity.context()) as url:
        service.url = url
        yield service

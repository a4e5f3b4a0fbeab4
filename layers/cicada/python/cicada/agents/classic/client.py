"""The configuration of the client for the agents' service."""

from __future__ import annotations

from botocore.config import Config

from cicada.agents.limits import SERVICE_READ_TIMEOUT_S


def agent_client_config(*, read_timeout_s: float = SERVICE_READ_TIMEOUT_S, connect_timeout_s: float = 3.0) -> Config:
    """The configuration that the ``bedrock-agent-runtime`` client needs.

    botocore makes one attempt: retries are the adapter's own, inside the run's limits.

    Args:
        read_timeout_s: how long one read may wait; more than the adapter's ``silence_s``, which ends a silent stream
            sooner.
        connect_timeout_s: how long connecting may take.
    """
    return Config(
        connect_timeout=connect_timeout_s,
        read_timeout=read_timeout_s,
        retries={"mode": "standard", "total_max_attempts": 1},
        tcp_keepalive=True,
    )

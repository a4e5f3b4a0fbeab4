"""For all tests: no example of a property fails for the time that it takes, and what they start heeds Ctrl-C."""

from __future__ import annotations

import functools
import gc
import os
import signal
from types import SimpleNamespace

import botocore.endpoint
import botocore.session
from hypothesis import settings

from cicada_cli import serving

# The tests run side by side: numpy's own threads would only contend for the processors.
os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")

settings.register_profile("untimed", deadline=None)
settings.load_profile("untimed")

# All sessions of the SDK share what they read from its descriptions of services, as the clients of one session do.
botocore.session.create_loader = functools.cache(botocore.session.create_loader)
# What the SDK sends again it sends at once: its pauses are random, and up to a second and more.
botocore.endpoint.time = SimpleNamespace(sleep=lambda _: None)
# A load in this process ends as soon as it has published.
serving.pause = lambda _: None

if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:  # as under nohup; programs inherit it
    signal.signal(signal.SIGINT, signal.default_int_handler)


def pytest_collection_finish() -> None:
    """Leave what was imported and collected out of garbage collections: all of it lives to the end."""
    gc.collect()
    gc.freeze()

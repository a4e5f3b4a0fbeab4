"""Behind the function URL: an ASGI application, which ``cicada_http.bridge`` serves in place of Lambda's client."""

from __future__ import annotations

import os

import cicada.telemetry  # noqa: F401 - gives the log its form
from cicada_http.app import create_app
from cicada_http.parts import PARTS
from cicada_http.settings import HttpSettings

handler = create_app(HttpSettings.read(os.environ), *PARTS)

"""Stands for the browser that ``cicada login`` opens: signs in with the name and password of the environment."""

from __future__ import annotations

import os
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))

from tests.support.sign_in import Browser

browser = Browser()
reply = browser.sign_in(sys.argv[1], os.environ["SURF_NAME"], os.environ["SURF_PASSWORD"])
sys.exit(0 if browser.get(reply.location).status == 200 else 1)

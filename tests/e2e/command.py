"""The command line in the test's own process: a process of its own takes a second to begin, and shows no more.

That the command is a program is shown by test_wheel.py, test_sign_in.py and test_readme_deployment.py.
"""

from __future__ import annotations

import contextlib
import io
import os
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import NamedTuple
from unittest import mock

from cicada_cli.main import main

ROOT = Path(__file__).parents[2]


class Done(NamedTuple):
    """How a command ended."""

    returncode: int
    stdout: str
    stderr: str


def cicada(words: Sequence[str], environment: Mapping[str, str]) -> Done:
    """Type a command, with these variables alone."""
    told, complained = io.BytesIO(), io.BytesIO()
    out, err = (io.TextIOWrapper(into, encoding="utf-8", write_through=True) for into in (told, complained))
    with (
        mock.patch.dict(os.environ, environment, clear=True),
        contextlib.chdir(ROOT),
        contextlib.redirect_stdout(out),
        contextlib.redirect_stderr(err),
    ):
        try:
            status = int(main(words))
        except SystemExit as ended:
            status = ended.code if isinstance(ended.code, int) else 1
    return Done(status, told.getvalue().decode(), complained.getvalue().decode())

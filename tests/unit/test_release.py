"""The release has one number, and every place that tells it reads it there."""

from __future__ import annotations

import re
import tomllib
from pathlib import Path

import pytest

from cicada import __version__
from cicada_cli.main import main

ROOT = Path(__file__).resolve().parents[2]


def test_the_release_is_a_number_of_three_parts() -> None:
    assert re.fullmatch(r"\d+\.\d+\.\d+", __version__)


def test_the_wheel_takes_the_librarys_number() -> None:
    said = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
    assert said["project"]["dynamic"] == ["version"]
    assert said["tool"]["setuptools"]["dynamic"]["version"] == {"attr": "cicada.__version__"}


def test_the_command_tells_its_release(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as ended:
        main(["--version"])
    assert ended.value.code == 0
    assert capsys.readouterr().out == f"cicada {__version__}\n"

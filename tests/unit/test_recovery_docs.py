"""The page on recovery: its commands exist, and its table is what the drill measured."""

from __future__ import annotations

import re
import shlex
from pathlib import Path

import pytest

from cicada_cli.main import build_parser
from tests.drills.restore import BEGIN, END, SCENES

PAGE = (Path(__file__).resolve().parents[2] / "docs" / "recovery.md").read_text(encoding="utf-8")
COMMANDS = [
    *re.findall(r"^\$ cicada (.+?)(?: {2,}#.*)?$", PAGE, re.MULTILINE),
    *re.findall(r"`cicada ((?:restore|audit|engine|index) [^`…]+)`", PAGE),
]


def typed(command: str) -> list[str]:
    return shlex.split(command.replace(" TIME", " 2026-11-25T10:00:00Z"))


@pytest.mark.parametrize("command", sorted(set(COMMANDS)))
def test_a_command_of_the_page_can_be_typed(command: str) -> None:
    build_parser().parse_args(typed(command))


def test_every_loss_that_is_drilled_is_in_the_table() -> None:
    table = PAGE.partition(BEGIN)[2].partition(END)[0]
    rows = re.findall(r"^\| (.+?) \| .+ \| `(.+?)` \|", table, re.MULTILINE)
    assert [name for name, _ in rows] == list(SCENES)
    for _, restored in rows:
        build_parser().parse_args(typed(restored.removeprefix("cicada ")))

"""What the commands print: nothing from elsewhere reaches a terminal as it is, whatever command prints it."""

from __future__ import annotations

import ast
import io
import json
import re
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from rich.live import Live
from rich.progress import Progress, TextColumn
from rich.table import Table
from rich.text import Text

from cicada_cli.output import complain, console, say, say_json
from cicada_cli.text import UNSAFE, printable

CLI = Path(__file__).resolve().parents[2] / "cicada_cli"
PRINTING = (
    *("print", "Console", "sys.stdout.write", "sys.stderr.write", "os.write"),
    *("argparse.ArgumentParser", "sys.exit", "warnings.warn", "traceback.print_exc"),
)
HOSTILE = "a\x1b]0;title\x07b\x1b[2Jc\u202ed\x9be\U000e0041f"


def test_lines_and_complaints_are_made_safe(capsys):
    say(HOSTILE)
    complain(HOSTILE)
    out, err = capsys.readouterr()
    assert out == "a]0;titlebcdef\n"
    assert err == "cicada: a]0;titlebcdef\n"


def test_json_loses_nothing_and_holds_nothing_unsafe(capsys):
    say_json({"key": HOSTILE + "\x7f"}, readable=True)
    out, _ = capsys.readouterr()
    assert json.loads(out) == {"key": HOSTILE + "\x7f"}
    assert printable(out) == out


@given(st.text())
def test_any_text_in_a_table_is_safe_and_the_consoles_own_colours_stay(text):
    written = io.StringIO()
    made = console()
    made.file = written
    made._force_terminal = True
    table = Table("name")
    table.add_row(Text(text, style="bold"))
    made.print(table, Text("plain", style="red"))
    left = written.getvalue().replace("\x1b[", "")
    assert "\x1b" not in left
    assert printable(left) == left


def test_live_views_are_safe_too():
    made = console()
    made.file = written = io.StringIO()
    made._force_terminal = True
    with Live(Text(HOSTILE), console=made, auto_refresh=False) as live:
        live.refresh()
    with Progress(TextColumn("{task.description}"), console=made, auto_refresh=False) as progress:
        progress.add_task(HOSTILE)
        progress.refresh()
    left = re.sub(r"\x1b\[[?0-9;]*[A-Za-z]", "", written.getvalue()).replace("\r", "")
    assert printable(left) == left


def test_no_command_prints_past_the_one_module_that_makes_text_safe():
    """Every module of the command line, whichever command it belongs to."""
    found = []
    for path in sorted(CLI.glob("*.py")):
        if path.name in ("output.py", "__main__.py"):
            continue
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if isinstance(node, ast.Call):
                called = ast.unparse(node.func)
                if called in PRINTING:
                    found.append(f"{path.name}:{node.lineno}: {called}")
    assert found == []


@pytest.mark.parametrize("unsafe", ["\x1b", "\x07", "\x9b", "\u202e", "\u2066", "\U000e0041", "\u200b", "\x7f"])
def test_what_is_unsafe_is_known(unsafe):
    assert re.fullmatch(UNSAFE, unsafe)
    assert printable(unsafe) == ""

"""Completion by the shells that are on this machine, and what a command imports before it runs."""

from __future__ import annotations

import io
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from rich.console import Console

from cicada_cli import output
from cicada_cli.completion import SHELLS
from cicada_cli.main import main
from cicada_cli.output import show_rows
from cicada_cli.text import encodable

ROOT = Path(__file__).resolve().parents[2]
HEAVY = {"numpy", "boto3", "botocore", "rich", "pydantic", "websockets", "shtab"}
ASKED = {
    "bash": """
COMP_WORDS=({words}); COMP_CWORD=$(({count} - 1)); COMP_LINE="{words}"; COMP_POINT=${{#COMP_LINE}}
$(complete -p cicada | sed 's/.*-F \\([^ ]*\\).*/\\1/') cicada "{last}" ""
printf '%s\\n' "${{COMPREPLY[@]}}"
""",
    "fish": "complete -C '{words}'\n",
}
"""What asks a shell, after it has read the script, how a command line can go on."""


@pytest.fixture(scope="module")
def scripts() -> dict[str, str]:
    out = {}
    for shell in SHELLS:
        stdout, sys.stdout = sys.stdout, io.StringIO()
        try:
            assert main(["completion", shell]) == 0
            out[shell] = sys.stdout.getvalue()
        finally:
            sys.stdout = stdout
    return out


@pytest.mark.parametrize(("words", "completed"), [("cicada co", "collections"), ("cicada index ro", "rollback")])
@pytest.mark.parametrize("shell", ASKED)
def test_a_shell_completes_commands(shell: str, words: str, completed: str, scripts: dict[str, str]) -> None:
    if shutil.which(shell) is None:
        pytest.skip(f"no {shell} here")
    asked = ASKED[shell].format(words=words, count=len(words.split()), last=words.split()[-1])
    done = subprocess.run([shell], input=scripts[shell] + asked, capture_output=True, text=True, timeout=60)
    assert completed in {line.split("\t")[0].strip() for line in done.stdout.splitlines()}, done


def test_zsh_reads_its_script(scripts: dict[str, str]) -> None:
    assert scripts["zsh"].startswith("#compdef cicada")
    if shutil.which("zsh") is None:
        pytest.skip("no zsh here")
    assert subprocess.run(["zsh", "-n"], input=scripts["zsh"], text=True, timeout=60).returncode == 0


@pytest.mark.parametrize("shell", SHELLS)
def test_every_script_knows_the_options(shell: str, scripts: dict[str, str]) -> None:
    assert "all-sources" in scripts[shell]


@pytest.mark.parametrize("words", ["", "--help", "aks", "help"])
def test_the_overview_imports_no_package(words: str) -> None:
    code = f"import sys; from cicada_cli.main import main; main({words.split()!r}); print(*sys.modules)"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, cwd=ROOT, timeout=60)
    loaded = {name.partition(".")[0] for name in done.stdout.splitlines()[-1].split()}
    assert not HEAVY & loaded


def test_asking_imports_neither_aws_nor_numpy() -> None:
    code = "import sys; from cicada_cli import ask, session; print(*sys.modules)"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, cwd=ROOT, timeout=60)
    assert not {"numpy", "boto3", "botocore"} & set(done.stdout.split())


def test_rows_are_a_table_on_a_terminal_and_lines_in_a_pipe(capsys: pytest.CaptureFixture[str]) -> None:
    table, pipe = Console(file=io.StringIO(), force_terminal=True, width=40), Console(file=io.StringIO())
    show_rows(("name", "n"), [("a\tb", "1")], table, numbers=("n",))
    show_rows(("name", "n"), [("a\tb", "1")], pipe, numbers=("n",))
    assert "name" in table.file.getvalue()  # type: ignore[attr-defined]
    assert capsys.readouterr().out == "a b\t1\n"


def test_plain_output_is_as_in_a_pipe(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("FORCE_COLOR", "1")
    assert output.console().is_terminal
    output.use_plain(True)
    try:
        assert not output.console().is_terminal
    finally:
        output.use_plain(False)


def test_no_color_is_respected(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("NO_COLOR", "1")
    assert output.console().no_color


def test_signs_are_ascii_where_the_encoding_lacks_them() -> None:
    assert encodable("✓ cited “a” → b…", "ascii") == '+ cited "a" > b~'
    assert encodable("✓ cited “a”", "utf-8") == "✓ cited “a”"
    assert encodable("é", "latin-1") == "é"

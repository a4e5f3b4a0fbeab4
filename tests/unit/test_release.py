"""The release has one number, and every place that tells it reads it there."""

from __future__ import annotations

import re
import tarfile
import tomllib
from pathlib import Path
from typing import Any

import pytest

from cicada import __version__
from cicada_cli.main import main
from supply_chain.archives import CODE, archive, archived, pack
from supply_chain.release import KEPT_SETTINGS, TEMPLATES, problems, releases

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


CHANGES = "# Changelog\n\n## Unreleased\n\n## 0.3.0 (2027-01-31)\n\n- More.\n\n## 0.2.0 (2026-11-25)\n"


def test_a_release_with_everything_in_place_can_be_cut() -> None:
    assert list(problems("0.3.0", CHANGES, "", ("0.1.0", "0.2.0"))) == []


@pytest.mark.parametrize(
    ("told", "arguments"),
    [
        ("commit or remove", ("0.3.0", CHANGES, " M app.py\n", ("0.2.0",))),
        ("above 0.10.0", ("0.3.0", CHANGES, "", ("0.10.0",))),
        ("above 0.3.0", ("0.3.0", CHANGES, "", ("0.3.0",))),
        ("a section “## 0.4.0 (", ("0.4.0", CHANGES, "", ("0.2.0",))),
        ("empty", ("0.3.0", CHANGES.replace("Unreleased\n", "Unreleased\n\n- New.\n"), "", ("0.2.0",))),
        ("empty", ("0.3.0", CHANGES.replace("## Unreleased\n", ""), "", ("0.2.0",))),
    ],
)
def test_what_must_be_done_before_a_release_is_cut_is_told(told: str, arguments: Any) -> None:
    (problem,) = problems(*arguments)
    assert told in problem


def test_an_archive_has_code_alone_and_no_times(tmp_path: Path) -> None:
    pack("HEAD", tmp_path / "packed")
    with tarfile.open(tmp_path / "packed") as packed:
        members = packed.getmembers()
    assert all(member.name.startswith(CODE) and member.mtime == 0 for member in members)
    names = {member.name for member in members}
    assert {"lambdas/answer/handler.py", "layers/cicada/python/cicada/__init__.py"} <= names


def test_every_release_has_its_templates_and_its_code() -> None:
    assert archived() == releases()
    for one in releases():
        assert {path.name.partition(".")[0] for path in (TEMPLATES / one).iterdir()} == set(KEPT_SETTINGS)
    assert all(archive(one).stat().st_size < 2**20 for one in archived())


def test_the_changelog_has_a_section_for_this_release() -> None:
    changelog = (ROOT / "CHANGELOG.md").read_text(encoding="utf-8")
    assert re.search(rf"^## {re.escape(__version__)} \(\d{{4}}-\d\d-\d\d\)$", changelog, re.MULTILINE)

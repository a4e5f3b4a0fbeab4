"""The frame of the drills and their report, over a deployment that is made up."""

from __future__ import annotations

import re
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any, cast

import pytest

from stacks.queries import CATALOGUE
from tests.drills import runner
from tests.drills.__main__ import main
from tests.drills.deployment import AlarmChange, Asked, Deployment, told
from tests.drills.report import report, summary
from tests.drills.runner import run
from tests.drills.scene import NotShown, Outcome, Scene, some
from tests.drills.scenes import NOT_DRILLED, SCENES

ROOT = Path(__file__).parents[2]
NOON = datetime(2026, 11, 25, 12, tzinfo=UTC)


def nothing(_: Deployment) -> None:
    """An act."""


SCENE = Scene(
    name="lamp-out",
    broken="The lamp is out.",
    how="It is put out.",
    alarm="LampOut",
    query="Lamps",
    expected="the lamp",
    shows=some(lamp="out"),
    mend="Light it.",
    over="There is light.",
    breaks=nothing,
    traffic=lambda deployed: deployed.asked.append(Asked("broken", "Is there light?", "`error` `dark`", {})),
    mends=lambda deployed: deployed.commands.append("$ light"),
    is_over=nothing,
)


class Fake:
    """A deployment whose alarms change as they are told."""

    def __init__(self, states: tuple[str, ...] = ("OK", "ALARM", "OK"), **row: str) -> None:
        self.asked: list[Asked] = []
        self.commands: list[str] = []
        self.ended = False
        self._states = iter(states)
        self._rows = [row]

    def begin(self) -> None:
        """See :class:`Deployment`, here as below."""

    def mended(self) -> None: ...

    def end(self) -> None:
        self.ended = True

    def now(self) -> datetime:
        return NOON

    def wait_for_alarm(self, name: str, *states: str, within_s: float) -> bool:
        return next(self._states) in states

    def wait_until_fired(self, name: str, since: datetime, within_s: float) -> bool:
        return next(self._states) == "ALARM"

    def alarm_changes(self, since: datetime) -> list[AlarmChange]:
        changes = ((SCENE.alarm, 2, "ALARM"), ("Darkness", 3, "ALARM"), (SCENE.alarm, 9, "OK"))
        return [AlarmChange(name, since + timedelta(minutes=at), state, "a reason") for name, at, state in changes]

    def saved_query(self, name: str, began: float) -> list[dict[str, str]]:
        return self._rows


def played(fake: Fake, scene: Scene = SCENE) -> Outcome:
    return run(scene, cast(Any, fake), lambda _: None)


@pytest.fixture(autouse=True)
def impatient(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(runner, "ROWS_S", 0.0)


def fails(_: Deployment) -> None:
    raise NotShown("no light")


def test_a_scene_that_shows_what_it_promises_has_no_problem() -> None:
    fake = Fake(lamp="it is out")
    outcome = played(fake)
    assert outcome.problem is None
    assert fake.ended
    assert outcome.rows == [{"lamp": "it is out"}]
    assert ([change.state for change in outcome.changes], outcome.others) == (["ALARM", "OK"], ["Darkness"])
    assert (len(outcome.asked), outcome.commands) == (1, ["$ light"])


@pytest.mark.parametrize(
    ("states", "row", "scene", "problem"),
    [
        (("ALARM",), {}, SCENE, "the alarm LampOut is in ALARM before anything is broken"),
        (("OK", "OK"), {}, SCENE, "the alarm LampOut did not fire"),
        (
            ("OK", "ALARM"),
            {"lamp": "on"},
            SCENE,
            "the query 'Lamps' does not show the lamp; its rows: [{'lamp': 'on'}]",
        ),
        (("OK", "ALARM"), {"lamp": "out"}, replace(SCENE, is_over=fails), "no light"),
        (("OK", "ALARM", "ALARM"), {"lamp": "out"}, SCENE, "the alarm LampOut did not come back to OK after the mend"),
        (("OK", "ALARM", "OK"), {"lamp": "out"}, replace(SCENE, also=("Fog",)), "further alarms did not fire: Fog"),
    ],
)
def test_a_scene_that_does_not_tells_why_and_is_undone(
    states: tuple[str, ...], row: dict[str, str], scene: Scene, problem: str
) -> None:
    fake = Fake(states, **row)
    assert played(fake, scene).problem == problem
    assert fake.ended


def test_the_report_has_what_was_seen() -> None:
    text = report([played(Fake(lamp="out")), played(Fake(("OK", "OK")))])
    assert "| [lamp-out](#lamp-out) | The lamp is out. | [LampOut](runbooks/lamp-out.md) | 2 min | 9 min |" in text
    for line in (
        "- *Is there light?* `error` `dark`",
        "**Alarm** [LampOut](runbooks/lamp-out.md); [Darkness](runbooks/darkness.md) fired too",
        "- 2 min: ALARM. a reason",
        "| out |",
        "$ light",
        "**Not shown:** the alarm LampOut did not fire",
    ):
        assert line in text.splitlines(), line


def test_the_summary_counts_what_was_shown() -> None:
    lines = list(summary([played(Fake(lamp="out")), played(Fake(("OK", "OK")))]))
    assert lines[1].endswith("NOT SHOWN: the alarm LampOut did not fire")
    assert lines[2].startswith("1 of 2 scenes have shown what they promise")


def test_rows_are_found_by_texts_in_their_columns() -> None:
    shows = some(failed__0="model_busy", code="")
    assert shows([{"failed.0": "rag: model_busy"}])
    assert not shows([{"failed.0": "rag: model_refused"}, {}])


def test_what_an_asker_saw_is_told_in_a_line() -> None:
    frames = [
        {"type": "accepted"},
        {"type": "chunk", "content": "never mind"},
        {"type": "fallback", "from": "rag", "to": "direct", "code": "model_busy"},
        {"type": "chunk", "content": "The bell "},
        {"type": "chunk", "content": "rang."},
        {"type": "complete", "answeredBy": "direct"},
    ]
    assert (
        told(frames) == "`fallback` from rag to direct (`model_busy`); “The bell rang.”; `complete`, answered by direct"
    )
    assert told(frames[:1]) == "nothing after `accepted`"
    assert told([{"message": "Internal server error"}]) == "the gateway's `Internal server error`"


# --- the scenes ---


def test_every_alarm_is_raised_by_a_scene_or_said_to_be_left_out() -> None:
    named = [path.stem for path in (ROOT / "docs" / "runbooks").glob("*.md") if path.stem != "README"]
    alarms = {"".join(word.title() for word in name.split("-")) for name in named}
    raised = {name for scene in SCENES for name in (scene.alarm, *scene.also)}
    assert (raised | set(NOT_DRILLED), raised & set(NOT_DRILLED)) == (alarms, set())


def test_scenes_name_saved_queries_and_have_names_of_their_own() -> None:
    assert {scene.query for scene in SCENES} <= {query.name for query in CATALOGUE}
    assert len({scene.name for scene in SCENES}) == len(SCENES)


def test_the_report_in_the_documentation_is_of_these_scenes_and_all_were_shown() -> None:
    text = (ROOT / "docs" / "drills.md").read_text(encoding="utf-8")
    assert re.findall(r"^## (.+)$", text, re.M) == [*(scene.name for scene in SCENES), "Not drilled"]
    assert "**Not shown:**" not in text


def test_the_command_lists_the_scenes_and_refuses_unknown_ones(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["--list"]) == 0
    listed = capsys.readouterr().out
    assert [line.split()[0] for line in listed.splitlines()] == [scene.name for scene in SCENES]
    with pytest.raises(SystemExit) as refused:
        main(["no-such-scene"])
    assert refused.value.code == 2
    assert "unknown scene: no-such-scene" in capsys.readouterr().err

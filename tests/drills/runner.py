"""Runs scenes, one after another, over one deployment."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

from cicada_local.testing import LocalCloud
from tests.drills.deployment import METRIC_MINUTE_S, SETTINGS, Deployment
from tests.drills.scene import NotShown, Outcome, Row, Scene
from tests.support.token_issuer import Issuer

SAMPLES = Path(__file__).parents[2] / "samples" / "script"
ALARM_S, OK_S, ROWS_S = 45.0, 90.0, 20.0
"""Real seconds within which an alarm fires, comes back, and a query shows its rows. An objective looks back for 15."""
_KEPT_ROWS = 4

Show = Callable[[str], None]


@contextmanager
def deployment(home: Path) -> Iterator[Deployment]:
    """A local cloud of the drills' own, with a corpus."""
    issuer = Issuer()
    try:
        with LocalCloud(
            home,
            settings=SETTINGS,
            load=[SAMPLES],
            environment={"JWKS_URL": issuer.jwks_url},
            metric_minute_s=METRIC_MINUTE_S,
        ) as cloud:
            yield Deployment(cloud, issuer)
    finally:
        issuer.close()


def run_all(scenes: Sequence[Scene], deployed: Deployment, show: Show) -> list[Outcome]:
    """Run scenes; one that fails does not keep the others from running."""
    return [run(scene, deployed, show) for scene in scenes]


def run(scene: Scene, deployed: Deployment, show: Show) -> Outcome:
    """Run a scene, and undo what it has left broken."""
    outcome = Outcome(scene)
    began = time.monotonic()
    deployed.begin()
    try:
        _play(scene, deployed, outcome, show)
    except (NotShown, LookupError, TimeoutError, AssertionError, OSError) as error:
        outcome.problem = str(error) or type(error).__name__
    finally:
        outcome.asked, outcome.commands = deployed.asked, list(deployed.commands)
        deployed.end()
    outcome.took_s = time.monotonic() - began
    return outcome


def _play(scene: Scene, deployed: Deployment, outcome: Outcome, show: Show) -> None:
    if not deployed.wait_for_alarm(scene.alarm, "OK", "INSUFFICIENT_DATA", within_s=OK_S):
        raise NotShown(f"the alarm {scene.alarm} is in ALARM before anything is broken")
    began, outcome.since = time.time(), deployed.now()
    try:
        _break_and_mend(scene, deployed, outcome, began, show)
    finally:
        changes = deployed.alarm_changes(outcome.since)
        outcome.changes = [change for change in changes if change.alarm == scene.alarm]
        fired = {change.alarm for change in changes if change.state == "ALARM"}
        outcome.others = sorted(fired - {scene.alarm})
    silent = [name for name in scene.also if name not in fired]
    if silent:
        raise NotShown(f"further alarms did not fire: {', '.join(silent)}")


def _break_and_mend(scene: Scene, deployed: Deployment, outcome: Outcome, began: float, show: Show) -> None:
    show(f"{scene.name}: {scene.broken}")
    scene.breaks(deployed)
    scene.traffic(deployed)
    if not deployed.wait_until_fired(scene.alarm, outcome.since, ALARM_S):
        raise NotShown(f"the alarm {scene.alarm} did not fire")
    outcome.rows = _rows(scene, deployed, began)
    show(f"  {scene.alarm} has fired, and {scene.query!r} shows {scene.expected}. Mend: {scene.mend}")
    deployed.mended()
    scene.mends(deployed)
    scene.is_over(deployed)
    if not deployed.wait_for_alarm(scene.alarm, "OK", within_s=OK_S):
        raise NotShown(f"the alarm {scene.alarm} did not come back to OK after the mend")


def _rows(scene: Scene, deployed: Deployment, began: float) -> list[Row]:
    """The rows of the scene's query, once they show what they must."""
    deadline = time.monotonic() + ROWS_S
    while True:
        rows = deployed.saved_query(scene.query, began)
        if scene.shows(rows):
            return list(rows[:_KEPT_ROWS])
        if time.monotonic() > deadline:
            raise NotShown(f"the query {scene.query!r} does not show {scene.expected}; its rows: {rows[:_KEPT_ROWS]}")
        time.sleep(0.5)

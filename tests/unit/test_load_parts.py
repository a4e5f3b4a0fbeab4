"""The parts of a load run: who asks what, what the check finds wrong, and how waiting times are summed up."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from tests.chaos.record import Followed, Frame, text_of
from tests.load import figures, report
from tests.load.checker import Promise, conclude
from tests.load.figures import Row
from tests.load.machine import ASKERS, CLOUD, Reading
from tests.load.people import DROPPING, MEAN_THINK_S, SHARES, SLOW, Person, Question
from tests.load.record import Request, Tally, compact
from tests.load.run import Extent, Outcome

ID = "6f9619ff-8b86-4d01-b42d-00cf4fc964ff"
EVENTS: list[dict[str, Any]] = [
    {"type": "accepted", "route": "rag", "strategy": "rag"},
    {"type": "attempt", "attempt": 1, "strategy": "rag"},
    {"type": "sources", "attempt": 1, "indexVersion": "000002-a", "sources": [{"n": 1, "text": "long " * 50}]},
    {"type": "chunk", "attempt": 1, "content": "Ilse counted "},
    {"type": "chunk", "attempt": 1, "content": "thirteen strokes."},
    {"type": "complete", "attempt": 1, "answeredBy": "rag", "attempted": ["rag"], "metrics": {"firstChunkMs": 70.0}},
]
FRAMES = [{"requestId": ID, "seq": seq, **event} for seq, event in enumerate(EVENTS, 1)]


def asked(number: int = 1, *, person: int = 0, at_once: int = 1, first_s: float = 1.0) -> Request:
    """A question whose events came in order and were all shown."""
    followed = Followed(number, ID if number == 1 else f"id-{number}", "Who?", asked_at=100.0, ended_at=103.0)
    request = Request(person, "script", followed, at_once, is_slow=False)
    followed.screens.append(request.screen)
    for frame in FRAMES:
        request.arrived(frame, "one socket")
    request.times = {"accepted": 100.2, "attempt": 100.3, "sources": 100.5, "chunk": 100.0 + first_s, "complete": 102.9}
    request.screen.displayed = tuple(map(compact, FRAMES))
    request.screen.text = text_of(FRAMES)
    followed.log = tuple(map(compact, FRAMES))
    return request


def logged(request: Request, change: Callable[[list[Frame]], object]) -> None:
    log = list(request.followed.log or ())
    change(log)
    request.followed.log = tuple(log)


def shown(request: Request, change: Callable[[list[Frame]], object]) -> None:
    displayed = list(request.screen.displayed)
    change(displayed)
    request.screen.displayed = tuple(displayed)


def broken(*requests: Request, left_open: tuple[str, ...] = ()) -> set[Promise]:
    return {breach.promise for breach in conclude(requests, left_open).breaches}


def test_a_question_whose_events_all_came_breaks_no_promise() -> None:
    verdict = conclude([asked()], ())
    assert verdict.holds
    assert (verdict.outcomes, verdict.answered_by) == ({"complete": 1}, {"rag": 1})
    assert verdict.index_versions == 1


def _swap(frames: list[Frame]) -> None:
    frames[3], frames[4] = frames[4], frames[3]


@pytest.mark.parametrize(
    ("change", "promise"),
    [
        (lambda one: shown(one, lambda frames: frames.pop()), "lost"),
        (lambda one: shown(one, lambda frames: frames.pop(3)), "chunks"),
        (lambda one: shown(one, lambda frames: frames.insert(4, frames[3])), "chunks"),
        (lambda one: shown(one, _swap), "chunks"),
        (lambda one: logged(one, lambda frames: frames.pop(3)), "chunks"),
        (lambda one: logged(one, lambda frames: frames.insert(4, frames[3])), "chunks"),
        (lambda one: logged(one, _swap), "chunks"),
        (lambda one: logged(one, lambda frames: frames.pop()), "terminal"),
        (lambda one: logged(one, lambda frames: frames.append({**frames[5], "seq": 7})), "terminal"),
        (lambda one: setattr(one.followed, "log", None), "lost"),
        (lambda one: setattr(one.screen, "text", "Ilse counted Ilse counted "), "mixed"),
        (lambda one: setattr(one.screen, "failure", "RequestRefused: Internal server error"), "given up"),
    ],
)
def test_each_way_in_which_an_answer_can_go_wrong_is_found(change: Callable[[Request], object], promise: str) -> None:
    request = asked()
    change(request)
    assert promise in broken(request, asked(2))


def test_an_event_that_came_otherwise_than_it_is_stored_is_found() -> None:
    """Also where it differs in what the check does not keep."""
    request = asked()
    other = {**FRAMES[2], "sources": []}
    logged(request, lambda frames: frames.__setitem__(2, compact(other)))
    assert "shown" in broken(request)


def test_a_request_that_is_still_open_is_found() -> None:
    assert broken(asked(), left_open=(ID,)) == {"left open"}


def test_a_question_that_the_server_would_not_take_is_not_lost_if_it_was_not_taken() -> None:
    followed = Followed(1, ID, "Who?", asked_at=100.0, ended_at=130.0)
    request = Request(0, "talk", followed, 1, is_slow=False, refused=True)
    request.screen.failure = "RequestRefused: Internal server error"
    followed.screens.append(request.screen)
    assert conclude([request], ()).outcomes == {"refused": 1}
    assert broken(request) == set()
    followed.log = tuple(map(compact, FRAMES))
    assert {"given up", "lost"} <= broken(request)


def test_what_was_not_checked_keeps_the_promises_from_holding() -> None:
    verdict = conclude([asked()], (), unread=[ID])
    assert (verdict.unread, verdict.breaches, verdict.holds) == (1, (), False)


def test_frames_that_come_twice_over_one_socket_are_counted_and_those_of_a_new_socket_are_not() -> None:
    request = asked()
    request.arrived(FRAMES[4], "one socket")
    request.arrived(FRAMES[3], "another socket")
    request.arrived(FRAMES[4], "another socket")
    assert request.disordered == 1
    assert [len(socket) for socket in request.screen.arrived] == [7, 2]


# --- people ---


def questions(number: int, seed: int, count: int) -> list[Question]:
    person = Person(number, seed)
    return [person.next() for _ in range(count)]


def test_a_seed_gives_the_same_people() -> None:
    assert questions(3, 7, 20) == questions(3, 7, 20)
    assert questions(3, 7, 20) != questions(3, 8, 20)


def test_people_ask_every_kind_at_a_human_pace_and_some_drop_or_read_slowly() -> None:
    people = [Person(number, 1) for number in range(300)]
    asked = [person.next() for person in people for _ in range(17)]
    kinds = {kind: sum(one.kind == kind for one in asked) / len(asked) for kind in SHARES}
    assert all(abs(kinds[kind] - share / 100) < 0.03 for kind, share in SHARES.items())
    assert abs(sum(one.drop is not None for one in asked) / len(asked) - DROPPING) < 0.015
    assert abs(sum(person.is_slow for person in people) / len(people) - SLOW) < 0.04
    later = [one for person in people for one in (person.next() for _ in range(2))]
    assert 0.9 < sum(one.think_s for one in later) / len(later) / MEAN_THINK_S < 1.1
    assert len({one.request_id for one in asked}) == len(asked)


def test_a_repeat_is_a_question_that_the_same_person_has_asked() -> None:
    asked = questions(1, 2, 100)
    for place, one in enumerate(asked):
        if one.kind == "repeat":
            assert (one.asked, one.collections) in [(earlier.asked, earlier.collections) for earlier in asked[:place]]


# --- figures ---


def test_percentiles_are_values_that_were_measured() -> None:
    assert Row.of("x", [3.0, 1.0, 2.0, 4.0]) == Row("x", 4, 2.0, 4.0, 4.0, 4.0, 4.0)
    assert figures.percentile([5.0], 0.5) == 5.0


def test_waiting_times_are_told_by_how_many_were_open_without_slow_readers_and_cut_sockets() -> None:
    few, many = asked(1, at_once=4, first_s=0.5), asked(2, at_once=300, first_s=9.0)
    slow, cut = asked(3, first_s=60.0), asked(4, first_s=60.0)
    slow.is_slow, cut.drops = True, 1
    rows = figures.by_open([few, many, slow, cut])
    assert [(row.name, row.count, round(row.most, 1)) for row in rows] == [
        ("1–4", 1, 0.5),
        ("160 and more", 1, 9.0),
        ("all", 2, 9.0),
    ]


def test_the_worst_client_is_the_one_that_waited_longest() -> None:
    found = figures.worst([asked(1, person=1), asked(2, person=2, first_s=8.0), asked(3, person=2, first_s=2.0)])
    assert found is not None
    assert (found[0], len(found[1])) == (2, 2)


def reading(at: float, cloud_s: float, answer_s: float, throttles: int = 0) -> Reading:
    used = {CLOUD: cloud_s, "Answer": answer_s, ASKERS: 0.1 * at}
    return Reading(at, used, cloud_s + answer_s, throttles, 100, 5)


@pytest.mark.parametrize(
    ("last", "named"),
    [
        (reading(100, 95, 20), "One processor"),
        (reading(100, 80, 100), "The 2 processors"),
        (reading(100, 10, 10, throttles=50), "Admission"),
        (reading(100, 10, 10), "None was reached"),
    ],
)
def test_the_bottleneck_is_named(last: Reading, named: str) -> None:
    load = figures.load([replace(reading(0, 0, 0), invocations=0), last], 10, 2)
    told = figures.bottleneck(load, figures.by_phase([asked()]), 2)
    assert told.startswith(named)
    assert "the rest of the text" in told


def test_the_report_stands_between_its_marks_and_says_what_is_not_checked_yet(tmp_path: Path) -> None:
    page = tmp_path / "load.md"
    page.write_text(f"# Load\n\n{report.BEGIN}\nearlier figures\n{report.END}\n\nThe end.\n", encoding="utf-8")
    tally = Tally(asked=1, ended=1, happened=[(3.0, "new code deployed")])
    outcome = Outcome(Extent(1, 1), 7, [asked()], tally, [reading(0, 0, 0), reading(10, 1, 1)], began=99.0)
    report.write(page, outcome)
    text = page.read_text(encoding="utf-8")
    assert text.startswith("# Load\n")
    assert text.endswith("The end.\n")
    assert "earlier figures" not in text
    assert "under way" in text
    assert "Not checked yet." in text
    outcome.complete, outcome.verdict = True, conclude(outcome.requests, ())
    report.write(page, outcome)
    text = page.read_text(encoding="utf-8")
    assert "under way" not in text
    assert "- after 3 s: new code deployed" in text
    assert "| 0 | logs or screens with a doubled, missing or misplaced event |" in text

"""What one answer takes of each service, measured: by route, over the local cloud with warm functions.

Calls come from the local cloud's front, DynamoDB's units from :mod:`benchmarks.dynamodb_units`, billed time and bytes
from the functions' logs, tokens from the answers' own figures. The model writes at a fixed pace, so that an answer
takes about as long as one of a model of Bedrock.
"""

from __future__ import annotations

import asyncio
import json
import re
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from pathlib import Path
from typing import Any

from benchmarks.aws_calls import CASES, Case, answer, settle
from benchmarks.dynamodb_units import CALLER, UnitMeter
from benchmarks.local_cloud import reworded
from cicada_local.places import REGION
from cicada_local.testing import LocalCloud

FILE = Path(__file__).with_name("capacity_measured.json")
"""The figures of the last run that was kept: the documentation is made of them."""
ROUTES = ("rag", "hybrid", "direct", "cag")
FIRST_PIECE_MS, BETWEEN_PIECES_MS = 500.0, 30.0
"""The model's pace."""
TRIES = 5
WARMING = 2
"""Answers of a route before the first that counts."""
LOG_EVENT_BYTES = 26
"""What CloudWatch adds to the bytes of each log line."""
_FUNCTION = re.compile(r"-(\w+?)Function[0-9A-F]{8}-")
_REPORT = re.compile(r"Billed Duration: (\d+) ms\s+Memory Size: (\d+) MB")
_PREFIX = re.compile(r"^\S+ \d{4}/\d\d/\d\d/\[\S+ ")
"""What the local cloud writes before a line: its time and its stream."""


@dataclass(frozen=True)
class Units:
    """What one answer takes."""

    seconds: float
    """From the workflow's start to its end."""
    input_tokens: float
    output_tokens: float
    calls: Mapping[str, float]
    """By ``service.operation``; GETs of S3 by their key's name, of the index's parts together."""
    units: Mapping[str, float]
    """DynamoDB's, by ``write`` or ``read`` and the kind of partition, such as ``write request``."""
    invocations: Mapping[str, float]
    billed_s: Mapping[str, float]
    gb_s: Mapping[str, float]
    """By function."""
    log_bytes: float

    @classmethod
    def mean(cls, several: Sequence[Units], weights: Sequence[float] | None = None) -> Units:
        """The weighted mean."""
        shares = [1 / len(several)] * len(several) if weights is None else weights
        values: dict[str, Any] = {}
        for name in cls.__dataclass_fields__:
            given = [getattr(one, name) for one in several]
            if isinstance(given[0], Mapping):
                keys = sorted({key for one in given for key in one})
                values[name] = {
                    key: sum(w * one.get(key, 0.0) for w, one in zip(shares, given, strict=True)) for key in keys
                }
            else:
                values[name] = sum(share * one for share, one in zip(shares, given, strict=True))
        return cls(**values)

    @property
    def posts(self) -> float:
        """Posts to connections."""
        return self.calls.get("apigatewaymanagementapi.PostToConnection", 0.0)

    def of_table(self, kind: str) -> float:
        """All ``write`` or ``read`` units of the table; its index has its own."""
        return sum(units for name, units in self.units.items() if name.startswith(kind) and "index" not in name)


def measured(cloud: LocalCloud, meter: UnitMeter, answers: int, warming: int = WARMING) -> dict[str, Units]:
    """The means of so many answers a route, after ``warming`` that do not count."""
    meter.forward_to(cloud.endpoint_url, REGION)
    cloud.arm("bedrock.pace", first_piece_ms=FIRST_PIECE_MS, delay_ms=BETWEEN_PIECES_MS)
    cases = {case.told.split(",")[0]: case for case in CASES}
    return {route: Units.mean(list(_answers(cloud, meter, cases[route], answers, warming))) for route in ROUTES}


def _answers(cloud: LocalCloud, meter: UnitMeter, case: Case, answers: int, warming: int) -> Iterator[Units]:
    for number in range(warming):
        question = case.questions[0]
        asyncio.run(answer(cloud, reworded(question, number) if case.new else question, case.episode))
        settle(cloud)
    for number in range(answers):
        yield _one(cloud, meter, case, number)


def _one(cloud: LocalCloud, meter: UnitMeter, case: Case, number: int) -> Units:
    question = case.questions[0]
    for attempt in range(TRIES):
        asked = reworded(question, number * TRIES + attempt + 1_000) if case.new else question
        meter.take_places()
        cloud.clear_calls()
        logs = _sizes(cloud.logs)
        _, complete = asyncio.run(answer(cloud, asked, case.episode))
        settle(cloud)
        if complete.attempted != case.attempted:
            continue  # the workers learn beside the answers: an answer is kept, an index is loaded
        lines = list(_new_lines(cloud.logs, logs))
        return replace(
            _of_functions(lines),
            seconds=_seconds(cloud.executions()),
            input_tokens=float(complete.metrics.input_tokens),
            output_tokens=float(complete.metrics.output_tokens),
            calls=_counted(call for call in cloud.call_log() if call["caller"] != CALLER),
            units={f"{kind} {place}": units for (kind, place), units in sorted(meter.take_places().items())},
        )
    raise RuntimeError(f"{question!r} is not answered by way of {case.attempted}")


def _seconds(executions: Sequence[Mapping[str, Any]]) -> float:
    """From the last execution's start to its end."""
    last = max(executions, key=lambda execution: str(execution["startDate"]))
    took = datetime.fromisoformat(last["stopDate"]) - datetime.fromisoformat(last["startDate"])
    return took.total_seconds()


def _counted(calls: Iterable[Mapping[str, Any]]) -> dict[str, float]:
    counts: Counter[str] = Counter()
    for call in calls:
        name = f"{call['service']}.{call['operation']}"
        if name == "s3.GetObject":
            object_name = str(call["resource"]).rpartition("/")[2]
            name += f" {object_name}" if object_name in ("access.json", "current.json") else " parts of the index"
        counts[name] += 1
    return {name: float(count) for name, count in sorted(counts.items())}


def _sizes(folder: Path) -> dict[Path, int]:
    return {path: path.stat().st_size for path in folder.iterdir() if _FUNCTION.search(path.name)}


def _new_lines(folder: Path, before: Mapping[Path, int]) -> Iterator[tuple[str, str]]:
    """Each function's new lines, as CloudWatch has them."""
    for path in sorted(_sizes(folder)):
        found = _FUNCTION.search(path.name)
        assert found is not None
        with path.open("rb") as log:
            log.seek(before.get(path, 0))
            for line in log.read().decode().splitlines():
                if line:
                    yield found.group(1), _PREFIX.sub("", line)


def _of_functions(lines: Sequence[tuple[str, str]]) -> Units:
    invocations: Counter[str] = Counter()
    billed: defaultdict[str, float] = defaultdict(float)
    gb_s: defaultdict[str, float] = defaultdict(float)
    for function, line in lines:
        report = _report(line)
        if report is not None and function != "Connection":  # of a socket, not of an answer
            seconds, memory_gb = report
            invocations[function] += 1
            billed[function] += seconds
            gb_s[function] += seconds * memory_gb
    log_bytes = sum(len(line.encode()) + LOG_EVENT_BYTES for function, line in lines if function != "Connection")
    return Units(0, 0, 0, {}, {}, dict(invocations), dict(billed), dict(gb_s), float(log_bytes))


def _report(line: str) -> tuple[float, float] | None:
    """The billed seconds and the memory in GB of a line that reports an invocation, in either format of Lambda's."""
    if found := _REPORT.search(line):
        return int(found.group(1)) / 1000, int(found.group(2)) / 1024
    if '"platform.report"' in line:
        metrics = json.loads(line)["record"]["metrics"]
        return metrics["billedDurationMs"] / 1000, metrics["memorySizeMB"] / 1024
    return None


def load(path: Path = FILE) -> dict[str, Units]:
    """Kept figures."""
    return {route: Units(**units) for route, units in json.loads(path.read_text(encoding="utf-8")).items()}


def keep(routes: Mapping[str, Units], path: Path = FILE) -> None:
    """Keep figures."""

    def rounded(value: Any) -> Any:
        return {key: round(one, 3) for key, one in value.items()} if isinstance(value, Mapping) else round(value, 3)

    plain = {
        route: {name: rounded(getattr(units, name)) for name in Units.__dataclass_fields__}
        for route, units in routes.items()
    }
    path.write_text(json.dumps(plain, indent=1) + "\n", encoding="utf-8")

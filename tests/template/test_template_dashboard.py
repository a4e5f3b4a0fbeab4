"""The dashboard: what it shows exists, can be queried, and stays within what CloudWatch gives away."""

from __future__ import annotations

import json
import re
import time
from collections.abc import Callable, Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

from benchmarks import dashboard_example
from benchmarks.dashboard_data import collect, widget_metrics
from cicada.metrics import CATALOGUE, DIMENSION, NAMESPACE
from cicada_local.cloudwatch import CloudWatch, Metric, MetricClock, MetricStore
from cicada_local.cloudwatch.dashboards import check
from cicada_local.faults import Faults
from stacks import queries
from stacks.alarms import runbook
from stacks.context import documented
from stacks.dashboard import MAX_METRICS, MAX_MODELS
from stacks.findings import flat
from stacks.settings import Settings
from tests.template.templates import Synthesis
from tests.wire.engine_services import EngineService, serving

ROOT = Path(__file__).resolve().parents[2]
OPERATIONS = ROOT / "docs" / "operations.md"
PICTURE = ROOT / "docs" / "images" / "dashboard.svg"
CONFORMANCE = ROOT / "cicada_local" / "cloudwatch" / "CONFORMANCE.md"
TYPE = "AWS::CloudWatch::Dashboard"


@pytest.fixture(scope="module", params=["shipped", "local", "other", "alarmed"])
def shown(request: pytest.FixtureRequest) -> Synthesis:
    """Deployments with a dashboard."""
    synthesis: Synthesis = request.getfixturevalue(request.param)
    return synthesis


@pytest.fixture(scope="module")
def other(make: Callable[..., Synthesis], shipped_settings: dict[str, Any]) -> Synthesis:
    return make({**shipped_settings, "stackPrefix": "Other"})


@pytest.fixture(scope="module")
def alarmed(make: Callable[..., Synthesis], shipped_settings: dict[str, Any]) -> Synthesis:
    return make({**shipped_settings, "alarmEmail": "operator@example.org"})


def body(synthesis: Synthesis) -> dict[str, Any]:
    """The dashboard's, with references flattened."""
    read: dict[str, Any] = json.loads(flat(synthesis.one(TYPE).properties["DashboardBody"]))
    return read


def metrics(synthesis: Synthesis) -> Iterator[tuple[str, str, dict[str, str]]]:
    """Namespace, name and dimensions of all that the widgets name."""
    for widget in body(synthesis)["widgets"]:
        for (namespace, name, *rest), _ in (one for one in widget_metrics(widget) if one[0]):
            yield namespace, name, dict(zip(rest[::2], rest[1::2], strict=True))


def test_it_is_named_after_the_deployment_and_its_region(shown: Synthesis) -> None:
    name = flat(shown.one(TYPE).properties["DashboardName"])
    assert name == f"{shown.prefix}-<AWS::Region>" == flat(shown.template("Gateway")["Outputs"]["Dashboard"]["Value"])
    assert list(check(name.replace("<AWS::Region>", "us-east-1"), json.dumps(body(shown)))) == []


def test_it_is_left_out_where_the_setting_says_so(full: Synthesis) -> None:
    assert list(full.resources(TYPE)) == []
    assert "Dashboard" not in full.template("Gateway")["Outputs"]


def test_it_stays_within_the_free_allowance_with_any_models(shown: Synthesis) -> None:
    counted = sum(len(widget["properties"].get("metrics", ())) for widget in body(shown)["widgets"])
    models = sum(namespace == "AWS/Bedrock" for namespace, _, _ in metrics(shown))
    assert 1 <= models <= MAX_MODELS
    assert counted - models + MAX_MODELS <= MAX_METRICS


def test_every_metric_of_its_own_is_reported_by_this_deployment(shown: Synthesis) -> None:
    own = {(name, tuple(dimensions.items())) for space, name, dimensions in metrics(shown) if space == NAMESPACE}
    assert own <= {(one.name, ((DIMENSION, shown.prefix),)) for one in CATALOGUE}
    assert {name for name, _ in own} >= {one.name for one in CATALOGUE if one.everyday}


def test_every_metric_of_a_service_is_one_of_those_listed(shown: Synthesis) -> None:
    rows = re.findall(r"^\| `(AWS/\w+)` \| (.+?) \| (.+?) \|$", CONFORMANCE.read_text(encoding="utf-8"), re.MULTILINE)
    listed = {
        (space, name, frozenset(re.findall(r"`(\w+)`", dimensions)))
        for space, dimensions, names in rows
        for name in re.findall(r"`(\w+)`", names)
    }
    services = {(space, name, frozenset(given)) for space, name, given in metrics(shown) if space != NAMESPACE}
    assert services <= listed


def test_every_log_widget_is_a_saved_query_over_the_logs_that_it_reads(shown: Synthesis) -> None:
    saved = {one.properties["Name"]: one.properties for one in shown.resources("AWS::Logs::QueryDefinition")}
    found = [widget["properties"] for widget in body(shown)["widgets"] if widget["type"] == "log"]
    shown_queries = [queries.FALLBACKS, queries.SPENDING, queries.VERSIONS]
    assert [widget["title"] for widget in found] == [query.name for query in shown_queries]
    for widget, query in zip(found, shown_queries, strict=True):
        properties = saved[queries.full_name(shown.prefix, query)]
        sources = "".join(f"SOURCE '{flat(name)}' | " for name in properties["LogGroupNames"])
        assert widget["query"] == sources + properties["QueryString"]


def test_it_shows_every_alarm_there_is(alarmed: Synthesis, shipped: Synthesis) -> None:
    alarms = [f"<{one.id}.Arn>" for one in alarmed.resources("AWS::CloudWatch::Alarm")]
    (widget,) = (one["properties"] for one in body(alarmed)["widgets"] if one["type"] == "alarm")
    assert sorted(widget["alarms"]) == sorted(alarms)
    assert "alarm" not in {one["type"] for one in body(shipped)["widgets"]}


def test_its_lines_are_the_objectives(shipped: Synthesis) -> None:
    objectives = Settings().objectives
    lines = {
        widget["properties"]["title"]: line["value"]
        for widget in body(shipped)["widgets"]
        for line in widget["properties"].get("annotations", {}).get("horizontal", ())
    }
    assert lines == {
        "Answers": objectives.answers_missing_share,
        "Time to the first text and to the end, ms": objectives.first_text_s * 1000,
        "Fallbacks": objectives.answers_fell_back_share,
        "Spending on text models, US dollars a day": objectives.usd_day,
    }


def test_every_widget_has_values_where_its_metrics_have(shipped: Synthesis) -> None:
    store, service = MetricStore(MetricClock()), EngineService()
    for namespace, name, dimensions in metrics(shipped):
        store.record(Metric.of(namespace, name, dimensions), 2.0)
    now = datetime.fromtimestamp(time.time(), UTC)
    with serving(service, CloudWatch(store, Faults())):
        client = service.client("cloudwatch")
        client.put_dashboard(DashboardName="cicada", DashboardBody=json.dumps(body(shipped)))
        found = collect(client, "cicada", now - timedelta(hours=3), now + timedelta(minutes=1))
    asked = {
        str(place): len(widget["properties"]["metrics"])
        for place, widget in enumerate(found["body"]["widgets"])
        if widget["type"] == "metric"
    }
    assert {place: sum(bool(one["Values"]) for one in results) for place, results in found["results"].items()} == asked


def test_the_documentation_explains_every_widget(alarmed: Synthesis) -> None:
    titles = [one["properties"]["title"] for one in body(alarmed)["widgets"] if one["type"] != "text"]
    told = [widget for widget, *_ in rows("The dashboard")]
    assert sorted(title for title in titles for widget in told if title.startswith(widget)) == sorted(titles)
    assert len(told) == len(titles)


def test_the_documentation_has_every_alarm_and_the_objectives_defaults(alarmed: Synthesis) -> None:
    section = OPERATIONS.read_text(encoding="utf-8").partition("\n## Alarms\n")[2].partition("\n## ")[0]
    alarms = {
        one.properties["AlarmName"].removeprefix("Cicada-") for one in alarmed.resources("AWS::CloudWatch::Alarm")
    }
    assert {(name, page) for name, page in re.findall(r"\[(\w+)\]\(runbooks/([\w-]+\.md)\)", section)} == {
        (name, runbook(name)) for name in alarms
    }
    defaults = {entry.path: entry.default for entry in documented()}
    for _, _, setting, default in rows("Alarms")[:4]:
        assert defaults[setting.strip("`")] == default


def test_the_documentation_counts_what_is_billed(alarmed: Synthesis) -> None:
    told = {what: int(re.findall(r"\d+", much)[0]) for what, much, *_ in rows("What observing costs")[:6]}
    everyday = sum(one.everyday for one in CATALOGUE)
    watched = [len(one.properties.get("Metrics", [])) for one in alarmed.resources("AWS::CloudWatch::Alarm")]
    expressions = sum(map(bool, watched))
    assert told["metrics in ordinary running"] == everyday
    assert told["metrics of what happens"] == len(CATALOGUE) - everyday
    assert told["alarms, with `alarmEmail`"] == sum(watched) - expressions + watched.count(0)
    assert told["saved queries, kept"] == len(queries.CATALOGUE)
    assert f"With `alarmEmail` {len(watched)} alarms are created" in OPERATIONS.read_text(encoding="utf-8")


def rows(heading: str) -> list[tuple[str, ...]]:
    """The rows of the tables in a section of the operator's page, without those tables' heads."""
    section = OPERATIONS.read_text(encoding="utf-8").partition(f"\n## {heading}\n")[2].partition("\n## ")[0]
    tables = re.findall(r"(?:^\|.*\|\n)+", section, re.MULTILINE)
    return [
        tuple(cell.strip() for cell in line.strip("|").split(" | "))
        for table in tables
        for line in table.splitlines()[2:]
    ]


def test_the_picture_in_the_documentation_is_of_this_dashboard(
    alarmed: Synthesis, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(dashboard_example, "gateway_template", lambda: alarmed.template("Gateway"))
    assert dashboard_example.main([str(tmp_path / "dashboard.svg")]) == 0
    drawn = (tmp_path / "dashboard.svg").read_text(encoding="utf-8")
    assert PICTURE.read_text(encoding="utf-8") == drawn, "python -m benchmarks.dashboard_example draws it anew"

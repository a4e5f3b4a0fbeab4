"""The dashboard: what an operator asks first, in that order, within CloudWatch's free allowance."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from aws_cdk import Aws, Duration
from aws_cdk import aws_cloudwatch as cloudwatch
from constructs import Construct

from cicada.metrics import (
    ANSWER_LATENCY,
    ANSWERS_BLOCKED,
    ANSWERS_COMPLETE,
    ANSWERS_FELL_BACK,
    ATTEMPTS_FAILED,
    BREAKER_OPENED,
    CACHE_HITS,
    CONNECTIONS_REFUSED,
    COST_USD,
    DOCUMENTS_NOT_PREPARED,
    DOCUMENTS_QUARANTINED,
    FIRST_CHUNK,
    FRAMES_REFUSED,
    LIMITS_REACHED,
    QUESTIONS,
    REQUESTS_FAILED,
    REQUESTS_RECOVERED,
    Metric,
)
from stacks import queries
from stacks.answering import AnsweringStack
from stacks.data import DataStack
from stacks.ingest import IngestStack
from stacks.queries import SavedQuery, read_by
from stacks.settings import Settings
from stacks.watched import PERIOD, model_metric, own_metric, running_functions, stage_metric, table_metric

MAX_METRICS = 50
"""What a dashboard may show without being billed; a metric counts as often as it is named."""
MAX_MODELS = 8
"""Models whose throttles are shown: what the other widgets leave of the metrics."""

_HOUR, _DAY = Duration.hours(1), Duration.days(1)
_SHOWN = Duration.hours(3)
_SPENDING_SHOWN, _UPKEEP_SHOWN = "-P14D", "-P3D"
"""Widgets with a time of their own: their figures are by the day."""
_COLUMNS = 24
_THIRD, _HALF, _QUARTER = _COLUMNS // 3, _COLUMNS // 2, _COLUMNS // 4
_HEIGHT = 6
_COUNT = cloudwatch.YAxisProps(min=0, show_units=False)
_SHARE = cloudwatch.YAxisProps(min=0, label="share", show_units=False)
_COLOR = cloudwatch.Color


def dashboard_name(prefix: str, region: str) -> str:
    """Its name. Dashboards belong to no Region: those of two Regions' deployments must differ."""
    return f"{prefix}-{region}"


class OperatorsDashboard(Construct):
    """One dashboard."""

    def __init__(
        self,
        scope: Construct,
        id: str,
        *,
        settings: Settings,
        data: DataStack,
        answering: AnsweringStack,
        ingest: IngestStack,
        log_groups: Mapping[str, str],
    ) -> None:
        """Make it.

        Args:
            scope: the stack, with the alarms if there are any.
            id: the construct's id.
            settings: the deployer's, with the objectives.
            data: has the API and the table.
            answering: has the functions and the workflow.
            ingest: has those that load documents.
            log_groups: as :func:`stacks.queries.log_groups` finds them.
        """
        super().__init__(scope, id)
        self._settings = settings
        self._data = data
        self._answering = answering
        self._ingest = ingest
        self._log_groups = log_groups
        alarms = [one for one in scope.node.find_all() if isinstance(one, cloudwatch.Alarm)]
        self.name = dashboard_name(settings.stack_prefix, Aws.REGION)
        cloudwatch.Dashboard(
            self,
            "Dashboard",
            dashboard_name=self.name,
            default_interval=_SHOWN,
            # Otherwise the console chooses periods by the time that is shown, and sums up less than a day's spending.
            period_override=cloudwatch.PeriodOverride.INHERIT,
            widgets=[
                [self._guide()],
                *([[_alarms(alarms)]] if alarms else []),
                [self._figures()],
                [self._answers(), self._speed(), self._fallbacks()],
                [self._log(queries.FALLBACKS, height=5), self._log(queries.SPENDING, height=5)],
                [self._spending(), self._functions(), self._models()],
                [self._table(), self._gateway(), self._refused()],
                [self._upkeep(), self._loads(), self._log(queries.VERSIONS)],
            ],
        )

    def _guide(self) -> cloudwatch.TextWidget:
        runbooks = self._settings.runbooks
        where = f"[runbooks]({runbooks}/README.md)" if runbooks.startswith("https://") else f"`{runbooks}/README.md`"
        return cloudwatch.TextWidget(
            markdown="## What to look at first\nRead from the top left: do answers come, how fast, from which "
            "strategy, at what cost? What is throttled or refused? Is the index current, and do loads fail? "
            f"What to do: {where}. One request's story: `cicada trace REQUEST_ID`.",
            width=_COLUMNS,
            height=2,
        )

    def _figures(self) -> cloudwatch.SingleValueWidget:
        return cloudwatch.SingleValueWidget(
            title="In the selected time range",
            metrics=[
                self._own(QUESTIONS, "questions"),
                self._own(ANSWERS_COMPLETE, "complete answers"),
                self._own(REQUESTS_FAILED, "requests without an answer"),
                self._own(FIRST_CHUNK, "first text, p95, ms", "p95"),
                self._own(COST_USD, "US dollars"),
            ],
            set_period_to_time_range=True,
            width=_COLUMNS,
            height=3,
        )

    def _answers(self) -> cloudwatch.GraphWidget:
        complete = self._own(ANSWERS_COMPLETE, "complete", color=_COLOR.GREEN)
        failed = self._own(REQUESTS_FAILED, "without an answer", color=_COLOR.RED)
        share = cloudwatch.MathExpression(
            expression="FILL(failed, 0) / (FILL(failed, 0) + FILL(complete, 0))",
            using_metrics={"failed": failed, "complete": complete},
            label="share without an answer",
            color=_COLOR.PURPLE,
            period=PERIOD,
        )
        return _graph(
            "Answers",
            [self._own(QUESTIONS, "questions", color=_COLOR.BLUE), complete, failed],
            right=[share],
            right_limit=("objective", self._settings.objectives.answers_missing_share),
        )

    def _speed(self) -> cloudwatch.GraphWidget:
        return _graph(
            "Time to the first text and to the end, ms",
            [
                self._own(FIRST_CHUNK, "first text, p50", "p50", color=_COLOR.BLUE),
                self._own(FIRST_CHUNK, "first text, p95", "p95", color=_COLOR.RED),
                self._own(ANSWER_LATENCY, "end, p50", "p50", color=_COLOR.GREEN),
                self._own(ANSWER_LATENCY, "end, p95", "p95", color=_COLOR.ORANGE),
            ],
            limit=("objective for the first text, p95", self._settings.objectives.first_text_s * 1000),
        )

    def _fallbacks(self) -> cloudwatch.GraphWidget:
        return _graph(
            "Fallbacks",
            [
                self._own(ATTEMPTS_FAILED, "failed attempts"),
                self._own(BREAKER_OPENED, "breakers opened"),
                self._own(REQUESTS_RECOVERED, "lost workers"),
            ],
            right=[
                self._own(ANSWERS_FELL_BACK, "share that fell back", "Average", color=_COLOR.RED),
                self._own(CACHE_HITS, "share of cache hits", "Average", color=_COLOR.GREY),
            ],
            right_limit=("objective", self._settings.objectives.answers_fell_back_share),
        )

    def _spending(self) -> cloudwatch.GraphWidget:
        return _graph(
            "Spending on text models, US dollars a day",
            [self._own(COST_USD, "US dollars", period=_DAY)],
            limit=("objective", self._settings.objectives.usd_day),
            start=_SPENDING_SHOWN,
        )

    def _functions(self) -> cloudwatch.GraphWidget:
        running = running_functions("running in the account")
        quota = cloudwatch.MathExpression(
            expression="SERVICE_QUOTA(running)",
            using_metrics={"running": running},
            label="the account's quota",
            color=_COLOR.GREY,
            period=PERIOD,
        )
        throttled = {
            "answers": self._answering.answer.function,
            "frames": self._answering.message_processor.function,
        }
        return _graph(
            "Functions at once, and throttled",
            [running, quota],
            right=[
                function.metric_throttles(period=PERIOD, label=f"throttled {what}")
                for what, function in throttled.items()
            ],
            right_axis=_COUNT,
        )

    def _models(self) -> cloudwatch.GraphWidget:
        return _graph(
            "Throttled model calls",
            [
                model_metric(model_id, "InvocationThrottles", label=model_id)
                for model_id in self._settings.models_of_bedrock()[:MAX_MODELS]
            ],
        )

    def _table(self) -> cloudwatch.GraphWidget:
        return _graph(
            "Throttled reads and writes of the table",
            [
                table_metric(self._data, "ReadThrottleEvents", "reads"),
                table_metric(self._data, "WriteThrottleEvents", "writes"),
            ],
        )

    def _gateway(self) -> cloudwatch.GraphWidget:
        return _graph(
            "API",
            [
                stage_metric(self._data, "ConnectCount", "connects"),
                stage_metric(self._data, "MessageCount", "messages"),
            ],
            right=[
                stage_metric(self._data, "IntegrationError", "integration errors", color=_COLOR.RED),
                stage_metric(self._data, "ClientError", "client errors", color=_COLOR.GREY),
            ],
            right_axis=_COUNT,
        )

    def _refused(self) -> cloudwatch.GraphWidget:
        return _graph(
            "Refused",
            [
                self._own(LIMITS_REACHED, "questions, by a limit"),
                self._own(ANSWERS_BLOCKED, "answers, by a guardrail"),
                self._own(CONNECTIONS_REFUSED, "connections"),
                self._own(FRAMES_REFUSED, "frames"),
            ],
        )

    def _upkeep(self) -> cloudwatch.GraphWidget:
        maintenance, sweep = self._answering.maintenance.function, self._answering.recovery.function
        return _graph(
            "Upkeep, runs an hour",
            [
                maintenance.metric_invocations(period=_HOUR, label="index maintenance"),
                maintenance.metric_errors(period=_HOUR, label="failed maintenance", color=_COLOR.RED),
            ],
            right=[
                sweep.metric_invocations(period=_HOUR, label="recovery sweep"),
                sweep.metric_errors(period=_HOUR, label="failed sweeps", color=_COLOR.ORANGE),
            ],
            right_axis=_COUNT,
            start=_UPKEEP_SHOWN,
            width=_QUARTER,
        )

    def _loads(self) -> cloudwatch.GraphWidget:
        machine, queue = self._ingest.workflow, self._ingest.dead_letters
        return _graph(
            "Loads that fail",
            [
                machine.metric_failed(period=PERIOD, label="failed runs"),
                machine.metric_timed_out(period=PERIOD, label="runs out of time"),
                self._own(DOCUMENTS_QUARANTINED, "documents set aside"),
                self._own(DOCUMENTS_NOT_PREPARED, "documents not prepared"),
                queue.metric_approximate_number_of_messages_visible(
                    period=PERIOD, statistic="Maximum", label="dead letters"
                ),
            ],
            width=_QUARTER,
        )

    def _log(self, query: SavedQuery, height: int = _HEIGHT) -> cloudwatch.LogQueryWidget:
        """A saved query's rows. Few widgets are such: each scans its logs, for a price, whenever it is refreshed."""
        return cloudwatch.LogQueryWidget(
            title=query.name,
            log_group_names=read_by(query, self._log_groups),
            query_string=query.text,
            width=_HALF,
            height=height,
        )

    def _own(
        self,
        metric: Metric,
        label: str,
        statistic: str = "Sum",
        *,
        color: str | None = None,
        period: Duration = PERIOD,
    ) -> cloudwatch.Metric:
        return own_metric(self._settings.stack_prefix, metric, statistic, period=period, label=label, color=color)


def _graph(
    title: str,
    left: Sequence[cloudwatch.IMetric],
    *,
    right: Sequence[cloudwatch.IMetric] = (),
    right_axis: cloudwatch.YAxisProps = _SHARE,
    limit: tuple[str, float] | None = None,
    right_limit: tuple[str, float] | None = None,
    start: str | None = None,
    width: int = _THIRD,
) -> cloudwatch.GraphWidget:
    """A graph, with a line at what its alarm allows."""
    return cloudwatch.GraphWidget(
        title=title,
        left=list(left),
        left_y_axis=_COUNT,
        left_annotations=list(_limits(limit)),
        right=list(right),
        right_y_axis=right_axis if right else None,
        right_annotations=list(_limits(right_limit)),
        start=start,
        width=width,
        height=_HEIGHT,
    )


def _limits(limit: tuple[str, float] | None) -> Iterator[cloudwatch.HorizontalAnnotation]:
    if limit is not None:
        label, value = limit
        yield cloudwatch.HorizontalAnnotation(label=label, value=value, color=_COLOR.RED)


def _alarms(alarms: Sequence[cloudwatch.Alarm]) -> cloudwatch.AlarmStatusWidget:
    return cloudwatch.AlarmStatusWidget(title="Alarms", alarms=list(alarms), width=_COLUMNS, height=4)

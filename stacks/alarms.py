"""Alarms for the operator, sent by e-mail: the objectives, and what breaks. They cost by the month, so a setting asks
for them."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from math import ceil

from aws_cdk import Aws, Duration
from aws_cdk import aws_cloudwatch as cloudwatch
from aws_cdk import aws_cloudwatch_actions as actions
from aws_cdk import aws_iam as iam
from aws_cdk import aws_lambda as lambda_
from aws_cdk import aws_sns as sns
from aws_cdk import aws_sns_subscriptions as subscriptions
from constructs import Construct

from cicada.metrics import (
    ANSWERS_COMPLETE,
    ANSWERS_FELL_BACK,
    BREAKER_OPENED,
    COST_USD,
    DOCUMENTS_NOT_PREPARED,
    DOCUMENTS_QUARANTINED,
    FIRST_CHUNK,
    ISSUER_UNAVAILABLE,
    LIMITS_REACHED,
    POSTS_REJECTED,
    REQUESTS_FAILED,
    REQUESTS_RECOVERED,
    Metric,
)
from stacks.answering import AnsweringStack
from stacks.data import DataStack
from stacks.findings import accept
from stacks.ingest import IngestStack
from stacks.settings import Settings
from stacks.watched import PERIOD, model_metric, own_metric, running_functions, stage_metric, table_metric

_WINDOW = Duration.minutes(15)
_MAINTENANCE_HOURS = 26
"""Two more than from one run to the next."""


@dataclass(frozen=True)
class _Watch:
    """What one alarm watches. It is in alarm from the threshold on, in each of its periods."""

    value: cloudwatch.IMetric
    tells: str
    threshold: float = 1
    periods: int = 1
    comparison: cloudwatch.ComparisonOperator = cloudwatch.ComparisonOperator.GREATER_THAN_OR_EQUAL_TO_THRESHOLD


def runbook(name: str) -> str:
    """The file of an alarm's runbook: ``AnswersMissing`` is in ``answers-missing.md``."""
    return re.sub(r"(?<!^)(?=[A-Z])", "-", name).lower() + ".md"


class Alarms(Construct):
    """A topic with one subscriber, and an alarm for each thing that an operator must know of."""

    def __init__(
        self,
        scope: Construct,
        id: str,
        *,
        settings: Settings,
        email: str,
        data: DataStack,
        answering: AnsweringStack,
        ingest: IngestStack,
    ) -> None:
        """Make them.

        Args:
            scope: the stack.
            id: the construct's id.
            settings: the deployer's, with the objectives.
            email: who is told; AWS asks for a confirmation first.
            data: has the API and the table.
            answering: has the functions and the workflow.
            ingest: has those that load documents.
        """
        super().__init__(scope, id)
        self._settings = settings
        self._data = data
        self._answering = answering
        self._ingest = ingest
        tell = actions.SnsAction(self._topic(email))
        for name, watch in self._watches():
            alarm = cloudwatch.Alarm(
                self,
                name,
                alarm_name=f"{settings.stack_prefix}-{name}",
                metric=watch.value,
                threshold=watch.threshold,
                evaluation_periods=watch.periods,
                comparison_operator=watch.comparison,
                treat_missing_data=cloudwatch.TreatMissingData.NOT_BREACHING,
                alarm_description=f"{watch.tells}. Runbook: {settings.runbooks}/{runbook(name)}",
            )
            alarm.add_alarm_action(tell)

    def _topic(self, email: str) -> sns.Topic:
        # Alarms carry no customer's data: the topic needs no key of ours, nor CloudWatch a right to it.
        topic = sns.Topic(self, "Topic", display_name="Cicada", enforce_ssl=True)
        topic.add_to_resource_policy(
            iam.PolicyStatement(
                principals=[iam.ServicePrincipal("cloudwatch.amazonaws.com")],
                actions=["sns:Publish"],
                resources=[topic.topic_arn],
                conditions={"StringEquals": {"aws:SourceAccount": Aws.ACCOUNT_ID}},
            )
        )
        topic.add_subscription(subscriptions.EmailSubscription(email))
        accept(
            topic,
            {"Serverless-SNSRedrivePolicy": "SNS retries e-mail by itself; a queue would hold what nobody reads."},
        )
        return topic

    def _watches(self) -> Iterator[tuple[str, _Watch]]:
        yield from self._objectives()
        yield from self._silence()
        yield from self._quotas()
        yield from self._faults()

    def _objectives(self) -> Iterator[tuple[str, _Watch]]:
        objectives = self._settings.objectives
        least = objectives.least_events
        failed, complete = self._own(REQUESTS_FAILED, _WINDOW), self._own(ANSWERS_COMPLETE, _WINDOW)
        yield (
            "AnswersMissing",
            _Watch(
                _expression(
                    f"IF(FILL(failed, 0) >= {least}, FILL(failed, 0) / (FILL(failed, 0) + FILL(complete, 0)), 0)",
                    {"failed": failed, "complete": complete},
                    label="requests without an answer",
                ),
                "Too many requests end without an answer",
                objectives.answers_missing_share,
            ),
        )
        yield (
            "FirstTextSlow",
            _Watch(
                _expression(
                    f"IF(FILL(answers, 0) >= {least}, slowest, 0)",
                    {
                        "answers": self._own(FIRST_CHUNK, _WINDOW, "SampleCount"),
                        "slowest": self._own(FIRST_CHUNK, _WINDOW, "p95"),
                    },
                    label="95 of 100 first texts come within",
                ),
                "The first text of answers is too slow",
                objectives.first_text_s * 1000,
            ),
        )
        yield (
            "AnswersFellBack",
            _Watch(
                _expression(
                    f"IF(FILL(fell_back, 0) >= {least}, fell_back / complete, 0)",
                    {"fell_back": self._own(ANSWERS_FELL_BACK, _WINDOW), "complete": complete},
                    label="answers of a fallback",
                ),
                "Too many answers come from a fallback",
                objectives.answers_fell_back_share,
            ),
        )
        yield (
            "SpendingHigh",
            _Watch(
                _filled({"usd": self._own(COST_USD, Duration.days(1))}, label="US dollars in 24 hours"),
                "The cost of text models exceeds its threshold",
                objectives.usd_day,
            ),
        )

    def _silence(self) -> Iterator[tuple[str, _Watch]]:
        sweep, maintenance = self._answering.recovery.function, self._answering.maintenance.function
        yield (
            "SweepSilent",
            _Watch(
                _filled({"runs": sweep.metric_invocations(period=PERIOD)}, label="runs"),
                "The recovery sweep does not run",
                comparison=cloudwatch.ComparisonOperator.LESS_THAN_THRESHOLD,
                periods=ceil(3 * max(5, self._settings.recovery.sweep_minutes) / PERIOD.to_minutes()),
            ),
        )
        # The first run comes a day after the first deployment. The sweep's runs tell since when there is one.
        hour = Duration.hours(1)
        yield (
            "MaintenanceSilent",
            _Watch(
                _expression(
                    "IF(FILL(runs, 0) > 0, 0, sweeps)",
                    {
                        "runs": maintenance.metric_invocations(period=hour),
                        "sweeps": sweep.metric_invocations(period=hour),
                    },
                    label="sweeps in hours without maintenance",
                ),
                "Index maintenance does not run",
                periods=_MAINTENANCE_HOURS,
            ),
        )

    def _quotas(self) -> Iterator[tuple[str, _Watch]]:
        share = self._settings.objectives.quota_share
        yield (
            "ConcurrencyNearQuota",
            _Watch(
                _expression(
                    "IF(FILL(refused, 0) > 0, 1, FILL(running, 0) / SERVICE_QUOTA(running))",
                    {
                        "refused": self._answering.answer.function.metric_throttles(period=PERIOD),
                        "running": running_functions(),
                    },
                    label="used share of the account's concurrency",
                ),
                "The account's Lambda concurrency is nearly used up, or answers were throttled",
                share,
            ),
        )
        yield (
            "ModelNearQuota",
            _Watch(self._models_use(), "A model's quota is nearly used up, or calls were throttled", share),
        )

    def _models_use(self) -> cloudwatch.MathExpression:
        """The used share of the fullest quota of a model, 1 if any refused a call."""

        minute = Duration.minutes(1)
        most = 10 - len(self._settings.objectives.model_tokens_minute)  # an alarm watches ten metrics
        refused = {
            f"refused{number}": model_metric(model_id, "InvocationThrottles", period=minute)
            for number, model_id in enumerate(self._settings.models_of_bedrock()[:most])
        }
        used = {
            f"used{number}": (model_metric(model_id, "EstimatedTPMQuotaUsage", period=minute), quota)
            for number, (model_id, quota) in enumerate(self._settings.objectives.model_tokens_minute.items())
        }
        any_refused = " + ".join(f"FILL({name}, 0)" for name in refused)
        shares = ", ".join(f"FILL({name}, 0) / {quota}" for name, (_, quota) in used.items())
        return _expression(
            f"IF({any_refused} > 0, 1, {f'MAX([{shares}])' if shares else 0})",
            {**refused, **{name: metric for name, (metric, _) in used.items()}},
            label="used share of a model's quota",
        )

    def _faults(self) -> Iterator[tuple[str, _Watch]]:
        """What is an alarm when it happens once: any of some metrics, and what it means."""
        answering, ingest, data = self._answering, self._ingest, self._data
        queue = ingest.dead_letters.metric_approximate_number_of_messages_visible(period=PERIOD, statistic="Maximum")
        faults: dict[str, tuple[str, dict[str, cloudwatch.IMetric]]] = {
            "DeadLetters": ("Some upload events could not be processed", {"messages": queue}),
            "MessagesFailed": (
                "The message processor, the corpus function or the upload function failed for some frames",
                {
                    "failed": _errors(answering.message_processor.function),
                    "corpus": _errors(answering.corpus.function),
                    **({} if ingest.uploads is None else {"uploads": _errors(ingest.uploads.function)}),
                },
            ),
            "GatewayFailed": (
                "A function returned no valid response to the API, or the API rejected frames to clients",
                {"failed": stage_metric(data, "IntegrationError"), "rejected": self._own(POSTS_REJECTED)},
            ),
            "IssuerUnavailable": (
                "Users could not connect because the issuer's keys could not be fetched",
                {"connections": self._own(ISSUER_UNAVAILABLE)},
            ),
            "BreakersOpened": (
                "A circuit breaker opened: a model, the agent service, the index or the cache keeps failing "
                "and is not called for a while",
                {"breakers": self._own(BREAKER_OPENED)},
            ),
            "WorkersLost": (
                "Some questions lost their worker and were restarted or ended",
                {"requests": self._own(REQUESTS_RECOVERED)},
            ),
            "UpkeepFailed": (
                "Index maintenance or the recovery sweep failed",
                {
                    "maintenance": _errors(answering.maintenance.function),
                    "sweep": _errors(answering.recovery.function),
                },
            ),
            "TableThrottled": (
                "The table throttled calls, which delays answers",
                {kind.lower(): table_metric(data, f"{kind}ThrottleEvents") for kind in ("Read", "Write")},
            ),
            "IngestFailed": (
                "An ingestion run failed; its changes are loaded by the next run",
                {
                    "failed": ingest.workflow.metric_failed(period=PERIOD),
                    "timed_out": ingest.workflow.metric_timed_out(period=PERIOD),
                },
            ),
            "DocumentsSetAside": (
                "Some uploaded documents were not loaded",
                {
                    "quarantined": self._own(DOCUMENTS_QUARANTINED),
                    "not_prepared": self._own(DOCUMENTS_NOT_PREPARED),
                },
            ),
            "LimitsReached": (
                "Some questions were rejected by a limit of a user, a group or the deployment, or by the "
                "spending switch",
                {"questions": self._own(LIMITS_REACHED)},
            ),
        }
        for name, (tells, metrics) in faults.items():
            yield name, _Watch(_filled(metrics, label=", ".join(metrics).replace("_", " ")), tells)

    def _own(self, metric: Metric, period: Duration = PERIOD, statistic: str = "Sum") -> cloudwatch.Metric:
        return own_metric(self._settings.stack_prefix, metric, statistic, period=period)


def _errors(function: lambda_.IFunction) -> cloudwatch.Metric:
    return function.metric_errors(period=PERIOD)


def _filled(metrics: Mapping[str, cloudwatch.IMetric], *, label: str) -> cloudwatch.MathExpression:
    """The sum of metrics of one period, in which what is missing counts as 0.

    Of missing values an alarm keeps its state for some periods, of DynamoDB's for ever.
    """
    return _expression(" + ".join(f"FILL({name}, 0)" for name in metrics), metrics, label=label)


def _expression(text: str, metrics: Mapping[str, cloudwatch.IMetric], *, label: str) -> cloudwatch.MathExpression:
    """An expression over metrics of one period."""
    first = next(iter(metrics.values()))
    assert isinstance(first, cloudwatch.Metric)
    return cloudwatch.MathExpression(expression=text, using_metrics=dict(metrics), label=label, period=first.period)

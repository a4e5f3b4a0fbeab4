"""Alarms for the operator, sent by e-mail. They cost by the month, so a setting asks for them."""

from __future__ import annotations

from aws_cdk import Aws, Duration
from aws_cdk import aws_cloudwatch as cloudwatch
from aws_cdk import aws_cloudwatch_actions as actions
from aws_cdk import aws_iam as iam
from aws_cdk import aws_sns as sns
from aws_cdk import aws_sns_subscriptions as subscriptions
from constructs import Construct

from cicada.metrics import (
    BREAKER_OPENED,
    DIMENSION,
    DOCUMENTS_NOT_PREPARED,
    DOCUMENTS_QUARANTINED,
    ISSUER_UNAVAILABLE,
    LIMITS_REACHED,
    NAMESPACE,
    REQUESTS_RECOVERED,
    Metric,
)
from stacks.answering import AnsweringStack
from stacks.data import STAGE, DataStack
from stacks.findings import accept
from stacks.ingest import IngestStack

_PERIOD = Duration.minutes(5)


class Alarms(Construct):
    """A topic with one subscriber, and an alarm for each thing that an operator must know of."""

    def __init__(
        self,
        scope: Construct,
        id: str,
        *,
        email: str,
        prefix: str,
        data: DataStack,
        answering: AnsweringStack,
        ingest: IngestStack,
    ) -> None:
        """Make them.

        Args:
            scope: the stack.
            id: the construct's id.
            email: who is told; AWS asks for a confirmation first.
            prefix: the deployment's, which its own metrics carry.
            data: has the API and the table.
            answering: has the functions and the workflow.
            ingest: has those that load documents.
        """
        super().__init__(scope, id)
        self._prefix = prefix
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
        machine = answering.workflow.machine
        watched = {
            "AnswersFailed": (machine.metric_failed(period=_PERIOD), "Every strategy failed for some requests"),
            "AnswersTimedOut": (machine.metric_timed_out(period=_PERIOD), "Some answers ran into the workflow's limit"),
            "AnswersThrottled": (
                answering.answer.function.metric_throttles(period=_PERIOD),
                "More answers were wanted than the concurrency allows",
            ),
            "MessagesFailed": (
                answering.message_processor.function.metric_errors(period=_PERIOD),
                "The message processor failed on some frames",
            ),
            "GatewayFailed": (
                self._gateway_metric("IntegrationError", data),
                "The API got no valid response from a function",
            ),
            "IssuerUnavailable": (
                self._own_metric(ISSUER_UNAVAILABLE),
                "Nobody could connect: the issuer's keys could not be fetched",
            ),
            "MaintenanceFailed": (
                answering.maintenance.function.metric_errors(period=_PERIOD),
                "The index's upkeep failed: a segment is damaged, or S3 did not answer",
            ),
            "RecoveryFailed": (
                answering.recovery.function.metric_errors(period=_PERIOD),
                "The search for questions that nobody works on failed",
            ),
            "RequestsRecovered": (
                self._own_metric(REQUESTS_RECOVERED),
                "Some questions had lost their worker and were taken up again, or ended",
            ),
            "BreakersOpened": (
                self._own_metric(BREAKER_OPENED),
                "A model, the agents' service, the index or the cache keeps failing: it is not tried for a while, and "
                "answers do without it",
            ),
            "LimitsReached": (
                self._own_metric(LIMITS_REACHED),
                "Some questions were refused for a limit of a user, a group or the deployment, or for the switch",
            ),
            "TableThrottled": (
                data.table.metric_throttled_requests_for_operation("UpdateItem", period=_PERIOD),
                "The table refused writes: answers are delayed",
            ),
            "IngestFailed": (
                ingest.workflow.metric_failed(period=_PERIOD),
                "A run over uploaded documents failed: what changed is not loaded until the next run",
            ),
            "IngestTimedOut": (
                ingest.workflow.metric_timed_out(period=_PERIOD),
                "A run over uploaded documents ran into the workflow's limit; the next one goes on from there",
            ),
            "UploadsUnheard": (
                ingest.start.function.metric_errors(period=_PERIOD),
                "The ingest workflow could not be started for some uploads",
            ),
            "DocumentsQuarantined": (
                self._own_metric(DOCUMENTS_QUARANTINED),
                "Some uploaded documents cannot be loaded, and are set aside with their reasons",
            ),
            "DocumentsNotPrepared": (
                self._own_metric(DOCUMENTS_NOT_PREPARED),
                "Some uploaded documents could not be prepared, for no fault of theirs; the next run tries again",
            ),
        }
        for name, (metric, description) in watched.items():
            alarm = cloudwatch.Alarm(
                self,
                name,
                metric=metric,
                threshold=1,
                evaluation_periods=1,
                comparison_operator=cloudwatch.ComparisonOperator.GREATER_THAN_OR_EQUAL_TO_THRESHOLD,
                treat_missing_data=cloudwatch.TreatMissingData.NOT_BREACHING,
                alarm_description=description,
            )
            alarm.add_alarm_action(actions.SnsAction(topic))

    def _own_metric(self, metric: Metric) -> cloudwatch.Metric:
        """A metric that the functions themselves report, over all of them."""
        return cloudwatch.Metric(
            namespace=NAMESPACE,
            metric_name=metric.name,
            dimensions_map={DIMENSION: self._prefix},
            statistic="Sum",
            period=_PERIOD,
        )

    @staticmethod
    def _gateway_metric(name: str, data: DataStack) -> cloudwatch.Metric:
        return cloudwatch.Metric(
            namespace="AWS/ApiGateway",
            metric_name=name,
            dimensions_map={"ApiId": data.api_id, "Stage": STAGE},
            statistic="Sum",
            period=_PERIOD,
        )

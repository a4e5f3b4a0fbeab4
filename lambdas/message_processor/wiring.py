"""Builds what the message processor answers frames with."""

from __future__ import annotations

from typing import Any, NamedTuple

import boto3

from cicada.answering.action_handlers import ActionHandlers
from cicada.answering.conversation_api import ConversationApi
from cicada.answering.feedback_api import FeedbackApi
from cicada.answering.profile_api import ProfileApi
from cicada.answering.question_gate import question_gate
from cicada.answering.recovery import Recovery
from cicada.answering.time_left import TimeLeft
from cicada.answering.workflow import START_CONFIG, StepFunctionsStarter
from cicada.attempts.budgets import RequestBudget
from cicada.conversation.record_store import DynamoDbConversationRecords
from cicada.delivery.connections import POST_CONFIG, ApiGatewayConnections
from cicada.delivery.dynamodb import STORE_CONFIG, DynamoDbLog
from cicada.feedback.store import DynamoDbFeedback
from cicada.metrics import (
    ANSWERS_RATED_DOWN,
    ANSWERS_RATED_UP,
    LIMITS_REACHED,
    POSTS_REJECTED,
    QUESTIONS,
    REQUESTS_FAILED,
    REQUESTS_RECOVERED,
)
from cicada.profiles.dynamodb import PROFILES_CONFIG, DynamoDbProfiles
from cicada.profiles.service import ProfileService
from cicada.revocation import DynamoDbRevocations, Revocations
from cicada.settings import MessageProcessorSettings
from cicada.telemetry import report


class Processor(NamedTuple):
    """What answers frames."""

    handlers: ActionHandlers
    revocations: Revocations | None
    """None where nobody has a token."""


def build(settings: MessageProcessorSettings, time_left: TimeLeft) -> Processor:
    """Wire the processor. No call to AWS outlasts ``time_left``."""
    table = time_left.hold(boto3.client("dynamodb", config=STORE_CONFIG))
    log = DynamoDbLog(table, settings.requests_table, open_partitions=settings.open_partitions)
    connections = ApiGatewayConnections(
        time_left.hold(boto3.client("apigatewaymanagementapi", config=POST_CONFIG)),
        on_rejected=lambda: report({POSTS_REJECTED: 1}),
    )
    workflow = StepFunctionsStarter(
        time_left.hold(boto3.client("stepfunctions", config=START_CONFIG)), settings.state_machine_arn
    )
    recovery = Recovery(
        log,
        connections,
        workflow,
        budget=RequestBudget(time_s=settings.request_time_s),
        time_left_s=time_left.seconds,
        on_recovered=lambda _: report({REQUESTS_RECOVERED: 1}),
        on_failed=_report_failed,
    )
    profiles = DynamoDbProfiles(
        time_left.hold(boto3.client("dynamodb", config=PROFILES_CONFIG)), settings.requests_table
    )
    handlers = ActionHandlers(
        log,
        connections,
        recovery,
        ProfileApi(ProfileService(profiles, limits=settings.profile_limits)),
        question_gate(log, table, settings, on_reached=lambda _: report({LIMITS_REACHED: 1})),
        retention_s=settings.retention_s,
        conversations=_conversations(settings, table),
        feedback=_feedback(settings, table, log),
        knowledge=settings.knowledge_enabled,
        agents=settings.agents_enabled,
        on_accepted=lambda: report({QUESTIONS: 1}),
        on_failed=_report_failed,
    )
    revocations = None if settings.auth == "none" else DynamoDbRevocations(table, settings.requests_table)
    return Processor(handlers, revocations)


def _conversations(settings: MessageProcessorSettings, table: Any) -> ConversationApi | None:
    if not settings.conversation_enabled:
        return None
    records = DynamoDbConversationRecords(table, settings.requests_table)
    return ConversationApi(records, age_s=settings.conversation_max_age_s)


def _feedback(settings: MessageProcessorSettings, table: Any, log: DynamoDbLog) -> FeedbackApi | None:
    if not settings.feedback_enabled:
        return None
    return FeedbackApi(
        log,
        DynamoDbFeedback(table, settings.requests_table),
        retention_s=settings.feedback_retention_s,
        on_rated=lambda rating: report({ANSWERS_RATED_UP: 1} if rating == "up" else {ANSWERS_RATED_DOWN: 1}),
    )


def _report_failed() -> None:
    report({REQUESTS_FAILED: 1})

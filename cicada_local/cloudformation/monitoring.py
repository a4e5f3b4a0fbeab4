"""Alarms, dashboards and saved queries; and the policies of topics, which decide whether alarms may publish."""

from __future__ import annotations

import json
from typing import Any

import moto.cloudwatch.models  # noqa: F401 - its own dashboards are to be defined first: the last definition counts

from cicada_local.cloudformation.base import Declaration, Resource, define, forgetting
from cicada_local.cloudwatch import CloudWatch, MetricClock, MetricStore
from cicada_local.faults import Faults
from cicada_local.insights.saved import SAVED_QUERIES, saved_query
from cicada_local.permissions.enforcement import service_may
from cicada_local.permissions.policies import parse
from cicada_local.permissions.resources import topic_policies
from cicada_local.places import ACCOUNT_ID, REGION

_ALARM, _DASHBOARD, _QUERY = (
    "AWS::CloudWatch::Alarm",
    "AWS::CloudWatch::Dashboard",
    "AWS::Logs::QueryDefinition",
)
_NUMBERS = {"Threshold": float, "Period": int, "EvaluationPeriods": int, "DatapointsToAlarm": int}
_serving: list[CloudWatch] = []


def serve(cloudwatch: CloudWatch) -> None:
    """Let stacks' alarms and dashboards be this one's."""
    _serving[:] = [cloudwatch]


def _cloudwatch() -> CloudWatch:
    """The one that is served; where none is, one that checks what it is given all the same."""
    if not _serving:
        serve(CloudWatch(MetricStore(MetricClock()), Faults()))
    return _serving[0]


def publish(topic_arn: str, subject: str, text: str) -> str | None:
    """Publish an alarm's message to a topic by moto's SNS; what went wrong, if anything."""
    from moto.sns.exceptions import SNSException
    from moto.sns.models import sns_backends

    if not service_may("cloudwatch.amazonaws.com", "sns:Publish", topic_arn):
        return f"CloudWatch Alarms is not authorized to perform: SNS:Publish on resource: {topic_arn}"
    try:
        sns_backends[ACCOUNT_ID][REGION].publish(text, arn=topic_arn, subject=subject)
    except SNSException as error:
        return str(error)
    return None


# --- alarms ---


def _asked(declaration: Declaration, name: str) -> dict[str, Any]:
    """An alarm's properties as the API takes them; templates may write numbers as text."""
    read = {key: _NUMBERS[key](value) if key in _NUMBERS else value for key, value in declaration.properties.items()}
    read.pop("Tags", None)
    return {**read, "AlarmName": name}


def _create_alarm(declaration: Declaration) -> Resource:
    alarms = _cloudwatch().alarms
    name = declaration.name
    alarm = alarms.put(_asked(declaration, name))
    return Resource(name, {"Arn": alarm.arn}, remove=lambda: alarms.forget(name))


def _update_alarm(alarm: Resource, declaration: Declaration) -> Resource:
    name = declaration.properties.get("AlarmName", alarm.physical_resource_id)
    if name != alarm.physical_resource_id:
        return _create_alarm(Declaration(name, declaration.properties, ACCOUNT_ID, REGION))
    _cloudwatch().alarms.put(_asked(declaration, name))
    return alarm


# --- dashboards ---


def _create_dashboard(declaration: Declaration) -> Resource:
    cloudwatch = _cloudwatch()
    name = declaration.name
    cloudwatch.dashboards.put(name, declaration.properties["DashboardBody"], cloudwatch.store.clock.now())
    return Resource(name, {}, remove=lambda: cloudwatch.dashboards.forget(name))


def _update_dashboard(dashboard: Resource, declaration: Declaration) -> Resource:
    name = declaration.properties.get("DashboardName", dashboard.physical_resource_id)
    return _create_dashboard(Declaration(name, declaration.properties, ACCOUNT_ID, REGION))


# --- saved queries ---


def _create_query(declaration: Declaration) -> Resource:
    properties = declaration.properties
    id = saved_query(properties["Name"], properties["QueryString"], properties.get("LogGroupNames", []))

    def replace(changed: dict[str, Any]) -> None:
        saved_query(changed["Name"], changed["QueryString"], changed.get("LogGroupNames", []), id=id)

    attributes = {"QueryDefinitionId": id}
    return Resource(id, attributes, replace=replace, remove=forgetting(SAVED_QUERIES, id))


def _update_query(query: Resource, declaration: Declaration) -> Resource:
    query.replace(declaration.properties)
    return query


# --- topics ---


def _create_topic_policy(declaration: Declaration) -> Resource:
    topics = list(declaration.properties["Topics"])

    def remove() -> None:
        for topic in topics:
            topic_policies.pop(topic, None)

    def replace(properties: dict[str, Any]) -> None:
        document = json.dumps(properties["PolicyDocument"])
        parse(document)
        remove()
        topics[:] = properties["Topics"]
        topic_policies.update(dict.fromkeys(topics, document))

    replace(declaration.properties)
    return Resource(declaration.name, {"Id": declaration.name}, replace=replace, remove=remove)


def _update_topic_policy(policy: Resource, declaration: Declaration) -> Resource:
    policy.replace(declaration.properties)
    return policy


define(_ALARM, create=_create_alarm, update=_update_alarm, attributes=("Arn",), name_property="AlarmName")
define(_DASHBOARD, create=_create_dashboard, update=_update_dashboard, attributes=(), name_property="DashboardName")
define(_QUERY, create=_create_query, update=_update_query, attributes=("QueryDefinitionId",))
define("AWS::SNS::TopicPolicy", create=_create_topic_policy, update=_update_topic_policy, attributes=("Id",))

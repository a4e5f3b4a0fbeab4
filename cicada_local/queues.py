"""Messages that AWS's services send to queues, in a role or in their own name, as far as policies let them."""

from __future__ import annotations

import logging
from collections.abc import Mapping

from cicada_local.permissions.enforcement import role_allows, service_may
from cicada_local.permissions.policies import Required
from cicada_local.places import ACCOUNT_ID, REGION

logger = logging.getLogger(__name__)

_ACTION = "sqs:SendMessage"


def send_in_role(role_arn: str, queue_arn: str, text: str, attributes: Mapping[str, str]) -> str | None:
    """Send a message in a role, as Lambda does; what went wrong, if anything."""
    if not role_allows(role_arn, Required(_ACTION, queue_arn)):
        return _refused(f"{role_arn} may not send to {queue_arn}")
    return _send(queue_arn, text, attributes)


def send_for_rule(rule_arn: str, queue_arn: str, text: str, attributes: Mapping[str, str]) -> str | None:
    """Send a message for a rule of EventBridge's, if the queue's policy lets it; what went wrong, if anything."""
    if not service_may("events.amazonaws.com", _ACTION, queue_arn, rule_arn):
        return _refused(f"{rule_arn} may not send to {queue_arn}")
    return _send(queue_arn, text, attributes)


def _send(queue_arn: str, text: str, attributes: Mapping[str, str]) -> str | None:
    from moto.core.exceptions import ServiceException
    from moto.sqs.models import sqs_backends

    told = {name: {"DataType": "String", "StringValue": value} for name, value in attributes.items()}
    try:
        sqs_backends[ACCOUNT_ID][REGION].send_message(queue_arn.rpartition(":")[2], text, message_attributes=told)
    except ServiceException as error:
        return _refused(f"{queue_arn}: {error}")
    return None


def _refused(reason: str) -> str:
    logger.warning("a message was not sent: %s", reason)
    return reason

"""Structured logs and embedded metrics; imported by the handlers.

The library logs through the standard library under the name ``cicada``. Here that logger gets Powertools' JSON
formatter, so that every line has the keys of its invocation (``request_id``, ``attempt``).
"""

from __future__ import annotations

import logging

from aws_lambda_powertools import Logger, Metrics

for _name in ("boto3", "botocore", "s3transfer", "urllib3"):
    # At DEBUG they log whole requests and responses: documents, questions and secrets. So they stay at INFO.
    logging.getLogger(_name).setLevel(logging.INFO)

logger = Logger(service="cicada", location="%(name)s.%(funcName)s:%(lineno)d")
metrics = Metrics()
"""Namespace and service come from POWERTOOLS_METRICS_NAMESPACE and POWERTOOLS_SERVICE_NAME."""

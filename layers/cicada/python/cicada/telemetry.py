"""Structured logs and embedded metrics, set up once by a function's entrance.

Modules of the library log through the standard library below the name ``cicada``; here that name gets Powertools' JSON
formatter, so that keys appended for an invocation (``request_id``, ``attempt``) stand on every line.
"""

from __future__ import annotations

import logging

from aws_lambda_powertools import Logger, Metrics

for _name in ("boto3", "botocore", "s3transfer", "urllib3"):
    # At DEBUG they log requests and responses whole: documents, questions and secrets, whatever our own level is.
    logging.getLogger(_name).setLevel(logging.INFO)

logger = Logger(service="cicada", location="%(name)s.%(funcName)s:%(lineno)d")
metrics = Metrics()
"""Namespace and service come from POWERTOOLS_METRICS_NAMESPACE and POWERTOOLS_SERVICE_NAME."""

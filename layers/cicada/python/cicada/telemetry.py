"""Structured logs and embedded metrics; imported by the functions.

The library logs through the standard library under the name ``cicada``. Here that logger gets Powertools' JSON
formatter, so that every line has the keys of its invocation (``request_id``, ``attempt``) and the release.
"""

from __future__ import annotations

import logging
import os
from collections.abc import Mapping

from aws_lambda_powertools import Logger
from aws_lambda_powertools.metrics import EphemeralMetrics

from cicada import __version__
from cicada.metrics import Metric

for _name in ("boto3", "botocore", "s3transfer", "urllib3"):
    # At DEBUG they log whole requests and responses: documents, questions and secrets. At INFO, each client's set-up.
    logging.getLogger(_name).setLevel(logging.WARNING)

LEVEL_VARIABLE = "LOG_LEVEL"
DEFAULT_LEVEL = "INFO"

# The service names the logger too, and the library's loggers must lie below it: so it is not the deployment's prefix.
# Lambda keeps a line of a level of its own only if it has an RFC 3339 time.
logger = Logger(service="cicada", location="%(name)s.%(funcName)s:%(lineno)d", use_rfc3339=True, release=__version__)
for _name in ("", logger.name):
    # Set here: Powertools and the runtime take Lambda's own level, at which nothing is dropped, over the deployer's.
    logging.getLogger(_name).setLevel(os.environ.get(LEVEL_VARIABLE, DEFAULT_LEVEL))


def report(values: Mapping[Metric, float]) -> None:
    """Write one line of embedded metrics, from any thread; nothing is held back that a killed worker would lose.

    Namespace and service come from POWERTOOLS_METRICS_NAMESPACE and POWERTOOLS_SERVICE_NAME.
    """
    line = EphemeralMetrics()
    for metric, value in values.items():
        line.add_metric(name=metric.name, unit=metric.unit, value=value)
    line.flush_metrics()

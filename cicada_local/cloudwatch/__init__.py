"""CloudWatch's metrics, alarms and dashboards; ``CONFORMANCE.md`` beside this file lists what is served.

How the local cloud mounts it::

    clock = MetricClock(minute_s)
    CloudWatch(MetricStore(clock), faults)     # a service of the front server; ``run`` evaluates its alarms
"""

from cicada_local.cloudwatch.clock import MetricClock
from cicada_local.cloudwatch.metrics import Metric, MetricStore
from cicada_local.cloudwatch.server import CloudWatch

__all__ = ["CloudWatch", "Metric", "MetricClock", "MetricStore"]

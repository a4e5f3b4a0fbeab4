"""CloudWatch Logs Insights over the functions' log files; :mod:`cicada_local.insights.server` lists what it supports.

How the local cloud mounts it::

    Insights(lambda: function_groups(places.logs), faults)     # a service of the front server
"""

from cicada_local.insights.groups import GroupLogs, function_groups
from cicada_local.insights.server import Insights

__all__ = ["GroupLogs", "Insights", "function_groups"]

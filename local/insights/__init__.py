"""CloudWatch Logs Insights over the functions' log files: :mod:`local.insights.server` lists what it does as AWS does.

How the local cloud mounts it::

    Insights(lambda: function_groups(places.logs), faults)     # a service of the front server
"""

from local.insights.groups import function_groups
from local.insights.server import Insights

__all__ = ["Insights", "function_groups"]

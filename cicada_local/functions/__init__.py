"""A Lambda service with real processes.

How the local cloud mounts it::

    service = FunctionService(
        lookup,                        # a function's plain name -> FunctionConfig | None
        work_dir=Path(".cicada/functions"),
        endpoint_url="http://localhost:4600",   # becomes the functions' AWS_ENDPOINT_URL
        overrides=lambda config: {"AWS_ENDPOINT_URL_APIGATEWAYMANAGEMENTAPI": ...},   # wins over the function's own
        faults=faults,
        log=lambda function_name, line: ...,    # every line that goes to the function's log; may be None
    )
    service.add_routes(app)            # POST /2015-03-31/functions/{name}/invocations; closes with the app

    result = await service.invoke("name or ARN", b"{}")   # InvokeResult; raises LambdaApiError when refused
    service.processes()                # {"name": [pid, ...]}
    service.kill("name")               # SIGKILL to those at work, or to one by its id; returns their ids
    service.stats()                    # {"name": FunctionStats(invocations, cold_starts, errors, ...)}
    await service.close()              # kills every process; idempotent, add_routes() lets the app call it

``lookup`` is asked at every invocation, so a changed configuration takes effect at once; environments that were
started from an older one are retired when they fall idle. ``invoke`` has to be called on the app's event loop.
Logs go to ``<work_dir>/logs/<function>.log``. The faults are ``functions.kill`` (``function``, ``after_ms``),
``functions.throttle`` (``function``), ``functions.slow_start`` (``function``, ``delay_ms``) and ``functions.clock``
(``function``, ``ahead_s``: the clock of environments that start is so far ahead); ``function`` is the function's name
and may be left out. CONFORMANCE.md says what is as on AWS and what is not.
"""

from cicada_local.functions.config import FunctionConfig, FunctionStats, InvokeResult, Layer, Permits, permit_all
from cicada_local.functions.errors import LambdaApiError
from cicada_local.functions.service import FunctionService, ServiceLimits

__all__ = [
    "FunctionConfig",
    "FunctionService",
    "FunctionStats",
    "InvokeResult",
    "LambdaApiError",
    "Layer",
    "Permits",
    "ServiceLimits",
    "permit_all",
]

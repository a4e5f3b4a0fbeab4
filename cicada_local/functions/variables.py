"""The environment variables of a function's process: nothing of this machine's own environment.

Source: AWS Lambda developer guide, "Defined runtime environment variables".
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path

from cicada_local.functions.config import FunctionConfig
from cicada_local.functions.log_levels import JSON_FORMAT


def lambda_variables(config: FunctionConfig, endpoint_url: str, overrides: Mapping[str, str]) -> dict[str, str]:
    """The function's variables, under what Lambda defines, under ``overrides``.

    The credentials are made up, unless ``overrides`` has those of the function's role: real ones must not get into a
    function. What is particular to one environment (its log stream, its Runtime API) the environment adds.
    """
    defined = {
        "_HANDLER": config.handler,
        "AWS_ACCESS_KEY_ID": "ASIALOCALCLOUD",
        "AWS_SECRET_ACCESS_KEY": "local",
        "AWS_SESSION_TOKEN": "local",
        "AWS_DEFAULT_REGION": config.region,
        "AWS_REGION": config.region,
        "AWS_EXECUTION_ENV": f"AWS_Lambda_{config.runtime}",
        "AWS_LAMBDA_FUNCTION_MEMORY_SIZE": str(config.memory_mb),
        "AWS_LAMBDA_FUNCTION_NAME": config.name,
        "AWS_LAMBDA_FUNCTION_VERSION": "$LATEST",
        "AWS_LAMBDA_INITIALIZATION_TYPE": "on-demand",
        "AWS_LAMBDA_LOG_GROUP_NAME": f"/aws/lambda/{config.name}",
        "AWS_XRAY_CONTEXT_MISSING": "LOG_ERROR",
        "AWS_XRAY_DAEMON_ADDRESS": "169.254.79.129:2000",
        "LAMBDA_RUNTIME_DIR": str(Path(os.__file__).parent),
        "LANG": "en_US.UTF-8",
        "PATH": os.defpath,
        "TZ": ":UTC",
    }
    if config.log_level is not None:
        defined |= {"AWS_LAMBDA_LOG_FORMAT": JSON_FORMAT, "AWS_LAMBDA_LOG_LEVEL": config.log_level}
    return {"AWS_ENDPOINT_URL": endpoint_url, **config.environment, **defined, **overrides}

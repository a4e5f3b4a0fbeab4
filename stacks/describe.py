"""``python -m stacks.describe``: what ``cdk.json`` asks for, as JSON, for commands that check a deployment.

It needs neither the CDK nor AWS. Settings that cannot be deployed are told in ``error``, in the words of a synthesis.
"""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from stacks.bedrock_regions import DESTINATION_REGIONS, geography_of
from stacks.context import FILE_KEY, read
from stacks.settings import ContextInvalid, Settings
from stacks.settings_record import record

ROOT = Path(__file__).resolve().parent.parent


def describe(settings: Settings) -> dict[str, Any]:
    """What the settings ask of an account and a Region, as plain data."""
    return {
        "stackPrefix": settings.stack_prefix,
        "local": settings.local,
        "models": settings.named_models(),
        "policyRegions": {
            model_id: [*DESTINATION_REGIONS[geography], *settings.models.destination_regions]
            for model_id in settings.named_models().values()
            if (geography := geography_of(model_id)) in DESTINATION_REGIONS
        },
        "embeddingDimensions": settings.models.embedding_dimensions,
        "answerConcurrency": settings.limits.answer_concurrency,
        "httpConcurrency": settings.http.concurrency if settings.http.enabled else None,
        "createApiLoggingRole": settings.create_api_logging_role,
        "authMode": settings.auth.mode,
        "domainPrefix": settings.auth.domain_prefix,
        "sweepMinutes": settings.recovery.sweep_minutes,
        "record": record(settings),
    }


def main(argv: Sequence[str] | None = None) -> int:
    """Print the description; the status is 0 also where the settings cannot be deployed, which it tells."""
    parser = argparse.ArgumentParser(prog="python -m stacks.describe", description="Describe the deployer's settings.")
    parser.add_argument("--settings", help="a file of settings in place of cdk.json, as in -c settings=…")
    parser.add_argument("--account", help="the account that they are deployed to")
    parser.add_argument("--region", help="the Region that they are deployed to")
    args = parser.parse_args(argv)
    context = json.loads((ROOT / "cdk.json").read_text(encoding="utf-8"))["context"]
    if args.settings is not None:
        context[FILE_KEY] = args.settings
    try:
        settings = read(context, root=ROOT)
        described = describe(settings)
        settings.for_environment(account=args.account, region=args.region)
    except ContextInvalid as error:
        print(json.dumps({"error": str(error)}))
        return 0
    print(json.dumps(described))
    return 0


if __name__ == "__main__":
    sys.exit(main())

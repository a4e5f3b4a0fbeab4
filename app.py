"""The CDK app: settings in, stacks out."""

from __future__ import annotations

import json
import os
import sys
from pathlib import Path

from aws_cdk import App, Validations
from cdk_nag import AwsSolutionsChecks, ServerlessChecks

from stacks.app import add_stacks
from stacks.bytecode import BytecodeFailed
from stacks.context import read
from stacks.environment_size import check_environments
from stacks.settings import ContextInvalid
from stacks.wheels import WheelsUnavailable

ROOT = Path(__file__).resolve().parent


def main() -> int:
    """Synthesise the stacks. A finding of cdk-nag or of the CDK's own rules fails."""
    context = json.loads((ROOT / "cdk.json").read_text(encoding="utf-8"))["context"]
    context |= json.loads(os.environ.get("CDK_CONTEXT_JSON", "{}"))
    try:
        settings = read(context, root=ROOT).for_environment(
            account=os.environ.get("CDK_DEFAULT_ACCOUNT"), region=os.environ.get("CDK_DEFAULT_REGION")
        )
        # These rules take 8 s to load. The tests run them over the local cloud's templates, so its start need not.
        app = App(context=context, builtin_cloud_formation_validation=not settings.local)
        add_stacks(app, settings)
    except (ContextInvalid, WheelsUnavailable, BytecodeFailed) as error:
        print(error, file=sys.stderr)
        return 1
    Validations.of(app).add_plugins(AwsSolutionsChecks(app), ServerlessChecks(app))
    try:
        check_environments(stack.template for stack in app.synth().stacks)
    except ContextInvalid as error:
        print(error, file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())

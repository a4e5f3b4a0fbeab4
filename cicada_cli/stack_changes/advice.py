"""How a change that one deployment cannot make is made in several."""

from __future__ import annotations

from cicada_cli.stack_changes.templates import Resource

BOTH = (
    'Deploy once with `make deploy ARGS="-c @aws-cdk/core:defaultCrossStackReferences=both"`, then as always '
    "(docs/upgrading.md)"
)
FORCE = 'Deploy with `make deploy ARGS="--no-checks --force"`'
ANOTHER_PREFIX = "Deploy beside it, with another `stackPrefix`, and move what it holds"
METADATA = "Change something else of a resource with it, its metadata for one"
ONE_INDEX = "Change one index at a time"
REWRITTEN = "Whatever it still encrypts must have been rewritten before (docs/upgrading.md)"
RETIRE_KEY = 'Set `customerManagedKey` to "retiring" first (docs/upgrading.md)'
_VECTORS = "Load it again afterwards: `cicada engine load s3vectors`"
_OWN = {
    "AWS::Cognito::UserPoolDomain": "Delete the old domain before: "
    "`aws cognito-idp delete-user-pool-domain --domain OLD --user-pool-id ID`; until the deployment ends nobody can "
    "sign in",
    "AWS::Cognito::UserPoolGroup": "Note who is in it before: "
    "`aws cognito-idp list-users-in-group --user-pool-id ID --group-name GROUP`",
    "AWS::S3Vectors::Index": _VECTORS,
    "AWS::S3Vectors::VectorBucket": _VECTORS,
}


def steps_for(resource: Resource) -> str:
    """The steps for a resource that is in the way, or would be lost."""
    return _OWN.get(str(resource["Type"]), ANOTHER_PREFIX)

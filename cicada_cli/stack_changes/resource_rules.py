"""What CloudFormation does with a change of each resource type that the stacks use.

``replaced_by`` is the ``createOnlyProperties`` and ``conditionalCreateOnlyProperties`` of CloudFormation's resource
schemas; a test compares them with those in cfn-lint. The rest is from the services' own documentation.
"""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class ResourceRules:
    """The rules of one resource type. Properties inside others have dots."""

    replaced_by: tuple[str, ...] = ()
    """Properties whose change makes a new resource; the old one is deleted afterwards."""
    name: str | None = None
    """The property that names it: two of one name cannot exist."""
    within: tuple[str, ...] = ()
    """What the name is unique in; the account and Region when empty."""
    one_each: str | None = None
    """A property: for each of its values only one resource can exist, so that a new one cannot be made beside it."""
    fixed: tuple[str, ...] = ()
    """Properties that cannot be changed at all: the update fails."""
    holds: str | None = None
    """What is lost with it."""
    reloadable: bool = False
    """Whether what it holds can be made again from what other resources hold."""
    goes_with: str | None = None
    """What it holds goes with a resource of this type in the same stack: a function's logs with the function."""


_PERMISSION = (
    *("Action", "EventSourceToken", "FunctionName", "FunctionUrlAuthType", "InvokedViaFunctionUrl"),
    *("Principal", "PrincipalOrgID", "SourceAccount", "SourceArn"),
)
_LAYER = ("CompatibleArchitectures", "CompatibleRuntimes", "Content", "Description", "LayerName", "LicenseInfo")
_VECTOR_INDEX = (
    *("DataType", "Dimension", "DistanceMetric", "EncryptionConfiguration", "IndexName", "MetadataConfiguration"),
    *("VectorBucketArn", "VectorBucketName"),
)

RULES: dict[str, ResourceRules] = {
    "AWS::ApiGateway::Account": ResourceRules(),
    "AWS::ApiGatewayV2::Api": ResourceRules(("ProtocolType",), holds="the address that clients know"),
    "AWS::ApiGatewayV2::Authorizer": ResourceRules(("ApiId",), name="Name", within=("ApiId",)),
    "AWS::ApiGatewayV2::Deployment": ResourceRules(("ApiId",)),
    "AWS::ApiGatewayV2::Integration": ResourceRules(("ApiId",)),
    "AWS::ApiGatewayV2::Route": ResourceRules(("ApiId",), name="RouteKey", within=("ApiId",)),
    "AWS::ApiGatewayV2::RouteResponse": ResourceRules(("ApiId", "RouteId")),
    "AWS::ApiGatewayV2::Stage": ResourceRules(("ApiId", "StageName"), name="StageName", within=("ApiId",)),
    "AWS::Bedrock::Agent": ResourceRules(name="AgentName"),
    "AWS::Bedrock::AgentAlias": ResourceRules(("AgentId",), name="AgentAliasName", within=("AgentId",)),
    "AWS::Bedrock::Guardrail": ResourceRules(name="Name"),
    "AWS::Bedrock::GuardrailVersion": ResourceRules(("Description", "GuardrailIdentifier")),
    "AWS::BedrockAgentCore::Harness": ResourceRules(
        ("HarnessName", "Memory.ManagedMemoryConfiguration.EncryptionKeyArn"), name="HarnessName"
    ),
    "AWS::BedrockAgentCore::HarnessEndpoint": ResourceRules(
        ("EndpointName", "HarnessId"), name="EndpointName", within=("HarnessId",)
    ),
    "AWS::CloudFront::CachePolicy": ResourceRules(name="CachePolicyConfig.Name"),
    "AWS::CloudFront::Distribution": ResourceRules(holds="the address that browsers know"),
    "AWS::CloudFront::Function": ResourceRules(("Name",), name="Name"),
    "AWS::CloudFront::OriginAccessControl": ResourceRules(name="OriginAccessControlConfig.Name"),
    "AWS::CloudFront::ResponseHeadersPolicy": ResourceRules(name="ResponseHeadersPolicyConfig.Name"),
    "AWS::CloudWatch::Alarm": ResourceRules(("AlarmName",), name="AlarmName"),
    "AWS::CloudWatch::Dashboard": ResourceRules(("DashboardName",), name="DashboardName"),
    "AWS::Cognito::ManagedLoginBranding": ResourceRules(("ClientId", "UserPoolId"), one_each="ClientId"),
    "AWS::Cognito::UserPool": ResourceRules(
        fixed=("AliasAttributes", "UsernameAttributes", "UsernameConfiguration"), holds="the users"
    ),
    "AWS::Cognito::UserPoolClient": ResourceRules(("GenerateSecret", "UserPoolId")),
    "AWS::Cognito::UserPoolDomain": ResourceRules(("Domain", "UserPoolId"), name="Domain", one_each="UserPoolId"),
    "AWS::Cognito::UserPoolGroup": ResourceRules(
        ("GroupName", "UserPoolId"),
        name="GroupName",
        within=("UserPoolId",),
        holds="who is in the group",
        reloadable=True,
    ),
    "AWS::DynamoDB::Table": ResourceRules(
        ("ImportSourceSpecification", "KeySchema", "TableName"),
        name="TableName",
        holds="requests, conversations and profiles",
    ),
    "AWS::Events::Rule": ResourceRules(("EventBusName", "Name"), name="Name", within=("EventBusName",)),
    "AWS::IAM::ManagedPolicy": ResourceRules(("Description", "ManagedPolicyName", "Path"), name="ManagedPolicyName"),
    "AWS::IAM::Policy": ResourceRules(),
    "AWS::IAM::Role": ResourceRules(("Path", "RoleName"), name="RoleName"),
    "AWS::KMS::Alias": ResourceRules(("AliasName",), name="AliasName"),
    "AWS::KMS::Key": ResourceRules(
        fixed=("KeySpec", "KeyUsage", "MultiRegion", "Origin"), holds="the means to read what it encrypts"
    ),
    "AWS::Lambda::EventInvokeConfig": ResourceRules(("FunctionName", "Qualifier"), one_each="FunctionName"),
    "AWS::Lambda::Function": ResourceRules(
        ("DurableConfig", "FunctionName", "PackageType", "TenancyConfig"), name="FunctionName"
    ),
    "AWS::Lambda::LayerVersion": ResourceRules(_LAYER),
    "AWS::Lambda::Url": ResourceRules(("Qualifier", "TargetFunctionArn"), one_each="TargetFunctionArn"),
    "AWS::Lambda::Permission": ResourceRules(_PERMISSION),
    "AWS::Logs::LogGroup": ResourceRules(
        ("LogGroupName",), name="LogGroupName", holds="logs", goes_with="AWS::Lambda::Function"
    ),
    "AWS::Logs::QueryDefinition": ResourceRules(),
    "AWS::S3::Bucket": ResourceRules(
        ("BucketName", "BucketNamePrefix", "BucketNamespace"), name="BucketName", holds="documents and index"
    ),
    "AWS::S3::BucketPolicy": ResourceRules(("Bucket",), one_each="Bucket"),
    "AWS::S3Vectors::Index": ResourceRules(
        _VECTOR_INDEX,
        name="IndexName",
        within=("VectorBucketArn", "VectorBucketName"),
        holds="the vectors that were loaded",
        reloadable=True,
    ),
    "AWS::S3Vectors::VectorBucket": ResourceRules(
        ("EncryptionConfiguration", "VectorBucketName"),
        name="VectorBucketName",
        holds="the vectors that were loaded",
        reloadable=True,
    ),
    "AWS::SNS::Subscription": ResourceRules(("Endpoint", "Protocol", "Region", "TopicArn")),
    "AWS::SNS::Topic": ResourceRules(("FifoTopic", "TopicName"), name="TopicName"),
    "AWS::SNS::TopicPolicy": ResourceRules(),
    "AWS::SQS::Queue": ResourceRules(("FifoQueue", "QueueName"), name="QueueName"),
    "AWS::SQS::QueuePolicy": ResourceRules(),
    "AWS::StepFunctions::StateMachine": ResourceRules(
        ("StateMachineName", "StateMachineType"), name="StateMachineName"
    ),
}

CUSTOM = ResourceRules(fixed=("ServiceToken",))
"""The rules of resources that a function of the deployer's makes."""
UNKNOWN = ResourceRules()


def rules_of(resource_type: str) -> ResourceRules:
    """The rules of a type; none for a type that the stacks do not use."""
    if resource_type.startswith("Custom::"):
        return CUSTOM
    return RULES.get(resource_type, UNKNOWN)

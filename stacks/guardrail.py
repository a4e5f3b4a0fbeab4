"""The guardrail of a deployment: one that exists, or one made from the settings, and who may use it."""

from __future__ import annotations

import hashlib

from aws_cdk import Stack
from aws_cdk import aws_bedrock as bedrock
from aws_cdk import aws_iam as iam
from constructs import Construct

from stacks.guardrail_settings import CreatedGuardrail
from stacks.settings import Settings

_ACTIONS = {"mask": "ANONYMIZE", "block": "BLOCK"}


class DeployedGuardrail(Construct):
    """Its id, version and ARN."""

    def __init__(self, scope: Construct, id: str, *, settings: Settings) -> None:
        """Make or name it. Raises ValueError where the settings name none."""
        super().__init__(scope, id)
        guardrail = settings.guardrail
        self._settings = guardrail
        if guardrail.create is not None:
            made = self._made(guardrail.create, settings.stack_prefix)
            self.arn = made.attr_guardrail_arn
            self.id = made.attr_guardrail_id
            self.version = self._versioned(made, guardrail.create).attr_version
        elif guardrail.id is not None and guardrail.version is not None:
            self.id, self.version = guardrail.id, guardrail.version
            stack = Stack.of(self)
            named = guardrail.id.startswith("arn:")
            prefix = f"arn:{stack.partition}:bedrock:{stack.region}:{stack.account}:guardrail/"
            self.arn = guardrail.id if named else f"{prefix}{guardrail.id}"
        else:
            raise ValueError("the settings name no guardrail")

    def environment(self) -> dict[str, str]:
        """What a function that uses it is told."""
        created = self._settings.create
        return {
            "GUARDRAIL_ID": self.id,
            "GUARDRAIL_VERSION": self.version,
            "GUARDRAIL_STREAM": self._settings.stream,
            "GUARDRAIL_GROUNDING": str(self._settings.grounding).lower(),
            "GUARDRAIL_ON_FAILURE": self._settings.on_failure,
            **({} if created is None else {"GUARDRAIL_MESSAGE": created.blocked_message}),
        }

    def use(self) -> iam.PolicyStatement:
        """The permission to use it, and no other."""
        return iam.PolicyStatement(actions=["bedrock:ApplyGuardrail"], resources=[self.arn])

    def _made(self, create: CreatedGuardrail, prefix: str) -> bedrock.CfnGuardrail:
        return bedrock.CfnGuardrail(
            self,
            "Guardrail",
            name=prefix,
            description="Cicada: filters questions and answers",
            blocked_input_messaging=create.blocked_message,
            blocked_outputs_messaging=create.blocked_message,
            topic_policy_config=_topics(create),
            content_policy_config=_contents(create),
            word_policy_config=_words(create),
            sensitive_information_policy_config=_data(create),
            contextual_grounding_policy_config=_grounding(create),
        )

    def _versioned(self, made: bedrock.CfnGuardrail, create: CreatedGuardrail) -> bedrock.CfnGuardrailVersion:
        """A version of its own for each state of the settings: CloudFormation makes another for another description."""
        digest = hashlib.sha256(create.model_dump_json().encode()).hexdigest()[:16]
        version = bedrock.CfnGuardrailVersion(
            self, "Version", guardrail_identifier=made.attr_guardrail_id, description=f"Settings {digest}"
        )
        version.add_dependency(made)
        return version


def of(scope: Construct, settings: Settings) -> DeployedGuardrail | None:
    """The deployment's guardrail; None where there is none."""
    return DeployedGuardrail(scope, "Guardrail", settings=settings) if settings.guardrail.named() else None


def _topics(create: CreatedGuardrail) -> bedrock.CfnGuardrail.TopicPolicyConfigProperty | None:
    topics = [
        bedrock.CfnGuardrail.TopicConfigProperty(
            name=topic.name, definition=topic.definition, examples=list(topic.examples) or None, type="DENY"
        )
        for topic in create.topics
    ]
    return bedrock.CfnGuardrail.TopicPolicyConfigProperty(topics_config=topics) if topics else None


def _contents(create: CreatedGuardrail) -> bedrock.CfnGuardrail.ContentPolicyConfigProperty | None:
    if create.prompt_attacks == "none":
        return None
    attacks = bedrock.CfnGuardrail.ContentFilterConfigProperty(
        type="PROMPT_ATTACK", input_strength=create.prompt_attacks.upper(), output_strength="NONE"
    )
    return bedrock.CfnGuardrail.ContentPolicyConfigProperty(filters_config=[attacks])


def _words(create: CreatedGuardrail) -> bedrock.CfnGuardrail.WordPolicyConfigProperty | None:
    words = [bedrock.CfnGuardrail.WordConfigProperty(text=word) for word in create.words]
    lists = [bedrock.CfnGuardrail.ManagedWordsConfigProperty(type="PROFANITY")] if create.profanity else []
    if not words and not lists:
        return None
    return bedrock.CfnGuardrail.WordPolicyConfigProperty(
        words_config=words or None, managed_word_lists_config=lists or None
    )


def _data(create: CreatedGuardrail) -> bedrock.CfnGuardrail.SensitiveInformationPolicyConfigProperty | None:
    entities = [
        bedrock.CfnGuardrail.PiiEntityConfigProperty(type=kind, action=_ACTIONS[treatment])
        for kind, treatment in create.personal_data.items()
    ]
    regexes = [
        bedrock.CfnGuardrail.RegexConfigProperty(name=one.name, pattern=one.pattern, action=_ACTIONS[one.treatment])
        for one in create.patterns
    ]
    if not entities and not regexes:
        return None
    return bedrock.CfnGuardrail.SensitiveInformationPolicyConfigProperty(
        pii_entities_config=entities or None, regexes_config=regexes or None
    )


def _grounding(create: CreatedGuardrail) -> bedrock.CfnGuardrail.ContextualGroundingPolicyConfigProperty | None:
    thresholds = {"GROUNDING": create.grounding_threshold, "RELEVANCE": create.relevance_threshold}
    filters = [
        bedrock.CfnGuardrail.ContextualGroundingFilterConfigProperty(type=kind, threshold=threshold)
        for kind, threshold in thresholds.items()
        if threshold is not None
    ]
    return bedrock.CfnGuardrail.ContextualGroundingPolicyConfigProperty(filters_config=filters) if filters else None

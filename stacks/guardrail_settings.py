"""The guardrail: the deployer's settings for the one that checks questions and answers."""

from __future__ import annotations

import re
from typing import Annotated, Literal, get_args

from pydantic import AfterValidator, Field, StringConstraints, model_validator

from stacks.answer_settings import Group

PersonalData = Literal[
    "ADDRESS",
    "AGE",
    "AWS_ACCESS_KEY",
    "AWS_SECRET_KEY",
    "CA_HEALTH_NUMBER",
    "CA_SOCIAL_INSURANCE_NUMBER",
    "CREDIT_DEBIT_CARD_CVV",
    "CREDIT_DEBIT_CARD_EXPIRY",
    "CREDIT_DEBIT_CARD_NUMBER",
    "DRIVER_ID",
    "EMAIL",
    "INTERNATIONAL_BANK_ACCOUNT_NUMBER",
    "IP_ADDRESS",
    "LICENSE_PLATE",
    "MAC_ADDRESS",
    "NAME",
    "PASSWORD",
    "PHONE",
    "PIN",
    "SWIFT_CODE",
    "UK_NATIONAL_HEALTH_SERVICE_NUMBER",
    "UK_NATIONAL_INSURANCE_NUMBER",
    "UK_UNIQUE_TAXPAYER_REFERENCE_NUMBER",
    "URL",
    "USERNAME",
    "US_BANK_ACCOUNT_NUMBER",
    "US_BANK_ROUTING_NUMBER",
    "US_INDIVIDUAL_TAX_IDENTIFICATION_NUMBER",
    "US_PASSPORT_NUMBER",
    "US_SOCIAL_SECURITY_NUMBER",
    "VEHICLE_IDENTIFICATION_NUMBER",
]
PERSONAL_DATA: tuple[str, ...] = get_args(PersonalData)
"""What Amazon Bedrock can find."""
Treatment = Literal["mask", "block"]
ShortText = Annotated[str, StringConstraints(min_length=1, max_length=100)]
Threshold = Annotated[float, Field(ge=0, le=0.99)]
"""1 would block every answer, and the service refuses it."""


def _pattern(value: str) -> str:
    try:
        re.compile(value)
    except re.error as error:
        raise ValueError(f"is not a regular expression: {error}") from error
    if re.search(r"\(\?<?[=!]", value):
        raise ValueError("must not look ahead or behind: Amazon Bedrock refuses that")
    return value


class DeniedTopic(Group):
    """A topic that is not talked about."""

    name: Annotated[str, StringConstraints(pattern=r"^[0-9a-zA-Z\-_ !?.]{1,100}$")]
    definition: Annotated[str, StringConstraints(min_length=1, max_length=200)]
    examples: Annotated[
        tuple[Annotated[str, StringConstraints(min_length=1, max_length=100)], ...], Field(max_length=5)
    ]


class DataPattern(Group):
    """Further data, by a regular expression."""

    name: ShortText
    pattern: Annotated[str, StringConstraints(min_length=1, max_length=500), AfterValidator(_pattern)]
    treatment: Treatment


class CreatedGuardrail(Group):
    """A guardrail that the stacks make."""

    topics: Annotated[tuple[DeniedTopic, ...], Field(max_length=30)] = ()
    words: Annotated[tuple[ShortText, ...], Field(max_length=10_000)] = ()
    profanity: bool = False
    personal_data: dict[PersonalData, Treatment] = Field({})
    patterns: Annotated[tuple[DataPattern, ...], Field(max_length=30)] = ()
    prompt_attacks: Literal["none", "low", "medium", "high"] = "none"
    grounding_threshold: Threshold | None = None
    relevance_threshold: Threshold | None = None
    blocked_message: Annotated[str, StringConstraints(min_length=1, max_length=500)] = "I cannot answer this question."

    def masks(self) -> bool:
        """Whether it masks anything."""
        return "mask" in (*self.personal_data.values(), *(one.treatment for one in self.patterns))

    def grounds(self) -> bool:
        """Whether it checks answers against passages."""
        return self.grounding_threshold is not None or self.relevance_threshold is not None

    @model_validator(mode="after")
    def _it_checks_something(self) -> CreatedGuardrail:
        policies = (self.topics, self.words, self.profanity, self.personal_data, self.patterns, self.grounds())
        if not any(policies) and self.prompt_attacks == "none":
            raise ValueError("names nothing to check: Amazon Bedrock refuses a guardrail without a policy")
        return self


class GuardrailSettings(Group):
    """What checks questions and answers."""

    id: (
        Annotated[
            str,
            StringConstraints(
                pattern=r"^([a-z0-9]+|arn:aws[a-z-]*:bedrock:[a-z0-9-]{1,20}:[0-9]{12}:guardrail/[a-z0-9]+)$",
                max_length=2048,
            ),
        ]
        | None
    ) = Field(None, description="ID or ARN of the Amazon Bedrock guardrail that checks questions and answers")
    version: Annotated[str, StringConstraints(pattern=r"^([1-9][0-9]{0,7}|DRAFT)$")] | None = Field(
        None, description='version of the guardrail: a number, or `"DRAFT"`'
    )
    create: CreatedGuardrail | None = Field(
        None, description="a guardrail that the stacks create, instead of `id`; see `docs/guardrails.md`"
    )
    stream: Literal["sync", "async"] = Field(
        "sync",
        description="show text after its check (`sync`), or immediately and withdraw it if it is blocked "
        "(`async`, which cannot mask text)",
    )
    grounding: bool = Field(
        False, description="check answers against their passages; the guardrail sets the thresholds"
    )
    on_failure: Literal["closed", "open"] = Field(
        "closed",
        description="behaviour if the guardrail is unavailable: fail the attempt (`closed`), or use the text "
        "unchecked and inform clients (`open`)",
    )

    @model_validator(mode="after")
    def _one_guardrail_is_named(self) -> GuardrailSettings:
        if self.id is not None and self.create is not None:
            raise ValueError("give id and version, or create, and not both")
        if (self.id is None) != (self.version is None):
            raise ValueError("id and version: give both or neither")
        return self

    @model_validator(mode="after")
    def _it_does_what_is_asked_of_it(self) -> GuardrailSettings:
        if self.create is None:
            return self
        if self.create.masks() and self.stream == "async":
            raise ValueError('stream: "async" masks nothing. Use "sync", or let create block what it masks')
        if self.create.grounds() and not self.grounding:
            raise ValueError("grounding: must be true where create has a threshold for grounding or relevance")
        if self.grounding and not self.create.grounds():
            raise ValueError("create: give groundingThreshold or relevanceThreshold, by which grounding is checked")
        return self

    def named(self) -> bool:
        """Whether there is a guardrail."""
        return self.id is not None or self.create is not None

"""Models by their ids: those of Amazon Bedrock, and those of the deployment's own endpoints.

Modules for endpoints are imported with the first endpoint's model: other deployments never load them.
"""

from __future__ import annotations

import hashlib
import threading
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from cicada.errors import SettingsInvalid
from cicada.models.bedrock_text import BedrockTextModel
from cicada.models.endpoints import Endpoint, Endpoints, add_prices
from cicada.models.model_ids import read_endpoint_id
from cicada.models.ports import StructuredModel, TextModel
from cicada.models.retries import INTERACTIVE, RetryPolicy

if TYPE_CHECKING:
    from cicada.models.endpoint_keys import Keys
    from cicada.models.guardrail import Guardrail
    from cicada.models.guardrail_checks import GuardrailChecks
    from cicada.models.openai_chat import OpenAiChat
    from cicada.models.openai_http import ChatConnection


class ModelFactory:
    """Makes models; those of one service share its connections, and its key. Thread-safe."""

    def __init__(
        self,
        *,
        bedrock: Callable[[], Any],
        secrets: Callable[[], Any],
        endpoints: Endpoints | None = None,
        temperature: float | None = None,
        top_p: float | None = None,
        key_of: Callable[[str], str | None] = lambda _name: None,
        guardrail: Guardrail | None = None,
    ) -> None:
        """Services are called with the first model. The endpoints' prices become known to this process.

        ``temperature`` and ``top_p`` are sent to every model that does not refuse them. ``key_of`` returns an
        endpoint's key by its name, for a caller who has it without a secret. A guardrail of Bedrock checks the calls of
        every model.
        """
        self._make_bedrock = bedrock
        self._secrets = secrets
        self._endpoints = Endpoints.none() if endpoints is None else endpoints
        self._temperature = temperature
        self._top_p = top_p
        self._key_of = key_of
        self.guardrail = guardrail
        self._lock = threading.Lock()
        self._bedrock: Any = None
        self._reached: dict[str, tuple[ChatConnection, Keys | None]] = {}
        add_prices(self._endpoints.prices())

    def text(self, model_id: str, *, max_tokens: int) -> TextModel:
        """A model that writes text. Raises SettingsInvalid if no endpoint has it."""
        if read_endpoint_id(model_id) is not None:
            from cicada.models.openai_chat import OpenAiTextModel

            model = OpenAiTextModel(self._chat(model_id, max_tokens, INTERACTIVE))
            checks = self.checks()
            if checks is None:
                return model
            from cicada.models.guardrail_checks import CheckedTextModel

            return CheckedTextModel(model, checks)
        return BedrockTextModel(
            self._bedrock_client(),
            model_id,
            max_tokens=max_tokens,
            temperature=self._temperature,
            top_p=self._top_p,
            guardrail=self.guardrail,
        )

    def structured(self, model_id: str, *, max_tokens: int, retry: RetryPolicy = INTERACTIVE) -> StructuredModel:
        """A model that fills in forms. Raises SettingsInvalid if no endpoint has it."""
        if read_endpoint_id(model_id) is not None:
            from cicada.models.openai_structured import OpenAiStructuredModel

            model = OpenAiStructuredModel(self._chat(model_id, max_tokens, retry))
            checks = self.checks()
            if checks is None:
                return model
            from cicada.models.guardrail_checks import CheckedStructuredModel

            return CheckedStructuredModel(model, checks)
        from cicada.models.bedrock_structured import BedrockStructuredModel

        return BedrockStructuredModel(
            self._bedrock_client(),
            model_id,
            max_tokens=max_tokens,
            temperature=self._temperature,
            retry=retry,
            guardrail=self.guardrail,
        )

    def checks(self) -> GuardrailChecks | None:
        """Checks of texts by the guardrail, if there is one."""
        if self.guardrail is None:
            return None
        from cicada.models.guardrail_checks import GuardrailChecks

        return GuardrailChecks(self._bedrock_client(), self.guardrail)

    def version(self, model_id: str) -> str:
        """A model's id, with a digest of its endpoint's address: another endpoint can take the name later."""
        found = self._endpoints.find(model_id)
        if found is None:
            return model_id
        return f"{model_id}@{hashlib.sha256(found[0].base_url.encode()).hexdigest()[:12]}"

    def _bedrock_client(self) -> Any:
        with self._lock:
            if self._bedrock is None:
                self._bedrock = self._make_bedrock()
            return self._bedrock

    def _chat(self, model_id: str, max_tokens: int, retry: RetryPolicy) -> OpenAiChat:
        from cicada.models.openai_chat import ChatSettings, OpenAiChat

        found = self._endpoints.find(model_id)
        if found is None:
            known = ", ".join(self._endpoints.model_ids()) or "none"
            raise SettingsInvalid(f"no endpoint serves {model_id}; known models of endpoints: {known}")
        endpoint, own_name = found
        connection, keys = self._reach(model_id.partition("/")[0], endpoint)
        settings = ChatSettings(max_tokens, self._temperature, self._top_p, retry=retry)
        return OpenAiChat(model_id, own_name, connection, keys, settings)

    def _reach(self, name: str, endpoint: Endpoint) -> tuple[ChatConnection, Keys | None]:
        """The endpoint's connections and key, made once."""
        from cicada.models.endpoint_keys import GivenKey, SecretKey
        from cicada.models.openai_http import ChatConnection

        with self._lock:
            if name not in self._reached:
                keys: Keys | None = None
                if (given := self._key_of(name)) is not None:
                    keys = GivenKey(given)
                elif endpoint.secret_arn is not None:
                    keys = SecretKey(self._secrets, endpoint.secret_arn)
                self._reached[name] = ChatConnection(endpoint.base_url), keys
            return self._reached[name]

"""The failures that are reported to clients, each class with a stable code.

Clients branch on ``code``, which never changes. ``told`` is a sentence that they may show, and may be reworded.
``str(error)`` is for the log. Any other exception is a bug and fails the invocation.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, ClassVar

if TYPE_CHECKING:
    from cicada.models.ports import Usage
    from cicada.usage.limits import LimitState

MAX_BLOCKED_MESSAGE_CHARS = 500
"""Amazon Bedrock's own limit of a guardrail's messages."""


class CicadaError(Exception):
    """A failure with a stable code, a sentence for the client, and whether asking again can help."""

    code: ClassVar[str] = "internal"
    told: str = "Something went wrong on our side."
    retryable: ClassVar[bool] = False
    final: ClassVar[bool] = False
    """Whether it ends the request: no other strategy is tried."""
    fault: ClassVar[bool] = True
    """Whether the system is to blame for a question that ends with it, and not its client, a limit or a filter."""


# --- what a client sent ---


class InvalidMessage(CicadaError):
    """A frame that is not a message of the protocol; ``str(error)`` says which field and why."""

    code, told = "invalid_message", "Invalid message."

    def __init__(self, message: str = "", *, detail: str | None = None) -> None:
        """``detail`` goes only to the client, if it quotes what the client wrote; by default it is the message."""
        super().__init__(message)
        self.detail = detail or message


class UnknownAction(InvalidMessage):
    """A well-formed frame with an ``action`` that the protocol does not have."""

    code, told = "unknown_action", "Unknown action."


class UnsupportedVersion(InvalidMessage):
    """The client speaks a protocol version that this deployment does not."""

    code, told = "unsupported_version", "Unsupported protocol version."


class Unauthorized(CicadaError):
    """The connection has no valid identity, or its token has expired."""

    code, told = "unauthorized", "Your session has expired. Please connect again."
    fault = False


class RequestUnknown(CicadaError):
    """This user has no such request; another user's requests are unknown too."""

    code, told = "request_unknown", "Request not found."


class NewerRelease(CicadaError):
    """A newer release stored it, and this one cannot read it. It is left as it is, for workers of that release."""

    code, told, retryable = "newer_release", "This was written by a newer release. Please try again.", True


class RequestExpired(CicadaError):
    """The request's log is past its retention."""

    code, told = "request_expired", "This answer has expired. Please ask again."


class RequestConflict(CicadaError):
    """A ``requestId`` was used again for another question."""

    code, told = "request_conflict", "This requestId was already used for another question."


# --- limits on use ---


class LimitReached(CicadaError):
    """The question could pass a limit on use, so it was not accepted."""

    code, told, retryable = "limit_reached", "You have reached a usage limit. Please try again later.", True
    fault = False

    def __init__(self, limit: LimitState) -> None:
        """``limit``: the one that is reached, as the client is told of it."""
        super().__init__(f"{limit.account}: {limit.limit}")
        self.limit = limit


class SpendingStopped(LimitReached):
    """An administrator has stopped all spending."""

    code, told, retryable = "spending_stopped", "Answering is currently disabled by an administrator.", False


class LimitsUnavailable(CicadaError):
    """The limits could not be checked, so the question was not accepted."""

    code, told, retryable = "limits_unavailable", "The usage limits could not be checked. Please try again.", True


# --- what stops an answer ---


class Cancelled(CicadaError):
    """The asker cancelled the request."""

    code, told = "cancelled", "The answer was cancelled."
    fault = False


class AnswerTooLong(CicadaError):
    """The answer exceeded the log's limit."""

    code, told = "answer_too_long", "The answer was stopped because it became too long."
    final = True


class DeliveryUnavailable(CicadaError):
    """The log could not be written in time; events are only shown once they are stored."""

    code, told, retryable = "delivery_unavailable", "The answer could not be saved. Please try again.", True


class WorkflowUnavailable(CicadaError):
    """The answer workflow could not be started."""

    code, told, retryable = "workflow_unavailable", "The answer could not be started. Please try again.", True


class AllStrategiesFailed(CicadaError):
    """Every strategy of the chain was tried and failed."""

    code, told, retryable = "all_strategies_failed", "All answer strategies failed. Please try again later.", True


class WorkerLost(CicadaError):
    """The worker's lease ran out without a terminal event: it was killed and not replaced."""

    code, told, retryable = "worker_lost", "The answer was interrupted. Please ask again.", True


class OutOfTime(CicadaError):
    """The worker or the request has too little time left."""

    code, told, retryable = "out_of_time", "The answer timed out.", True


class BudgetSpent(CicadaError):
    """The request has no model call left, or the next one could exceed its budget; the message says which."""

    code, told = "budget_spent", "The answer exceeded its budget."


class DependencyDown(CicadaError):
    """A dependency keeps failing, so it is not called for a while; the message names it."""

    code, told, retryable = "dependency_down", "A required service is temporarily unavailable.", True


# --- the semantic cache ---


class CacheMiss(CicadaError):
    """No earlier answer is near enough to the question."""

    code, told = "cache_miss", "No cached answer matches this question."


class CacheUnavailable(CicadaError):
    """The semantic cache could not be read."""

    code, told, retryable = "cache_unavailable", "The answer cache is unavailable.", True


# --- models ---


class ModelError(CicadaError):
    """The model could not answer."""

    code, told, retryable = "model_error", "The model could not answer.", True

    usage: Usage | None = None
    """What the failed call used, if the service reported it."""


class ModelBusy(ModelError):
    """Throttled or not ready for longer than the time budget."""

    code, told, retryable = "model_busy", "The model is busy. Please try again shortly.", True


class ModelUnavailable(ModelError):
    """The model's service failed or did not respond in time."""

    code, told, retryable = "model_unavailable", "The model is unavailable.", True


class ModelRefused(ModelError):
    """The model's service rejected the call: no access, unknown model, invalid request."""

    code, told, retryable = "model_refused", "The model rejected the request.", False


class StreamBroken(ModelError):
    """The stream ended without ``messageStop``: cut, corrupted, silent or failed."""

    code, told, retryable = "stream_broken", "The answer was interrupted.", True


class AnswerIncomplete(ModelError):
    """The model stopped abnormally: token limit, guardrail, filter, malformed output."""

    code, told, retryable = "answer_incomplete", "The model could not finish the answer.", False


class AnswerTruncated(AnswerIncomplete):
    """The answer reached the token limit of its call."""

    code, told, retryable = "answer_truncated", "The answer exceeded the model's output limit.", False


class AnswerBlocked(AnswerIncomplete):
    """A guardrail or content filter intervened: nothing of the answer's text may stay."""

    code, told, retryable = "answer_blocked", "The answer was withheld by a content filter.", False
    final = True
    fault = False

    def __init__(self, message: str = "", *, told: str | None = None, by_guardrail: bool = False) -> None:
        """``told`` is the guardrail's configured message; its first :data:`MAX_BLOCKED_MESSAGE_CHARS` are shown."""
        super().__init__(message)
        self.by_guardrail = by_guardrail
        if told is not None and told.strip():
            self.told = told.strip()[:MAX_BLOCKED_MESSAGE_CHARS]


class GuardrailUnavailable(ModelError):
    """The guardrail could not check a text, so the text is not used."""

    code, told, retryable = "guardrail_unavailable", "The answer could not be checked. Please try again shortly.", True


class AnswerMalformed(AnswerIncomplete):
    """The model's service could not parse what the model wrote."""

    code, told, retryable = "answer_malformed", "The model returned a malformed answer.", True


class ContextTooLarge(AnswerIncomplete):
    """Question, passages and answer together exceeded the model's context window."""

    code, told, retryable = (
        "context_too_large",
        "The question and its passages exceed the model's context window.",
        False,
    )


# --- agents, and what they keep ---


class AgentError(CicadaError):
    """The agent could not answer."""

    code, told, retryable = "agent_error", "The agent could not answer.", True


class AgentUnavailable(AgentError):
    """The agent's service failed, or did not respond in time."""

    code, told, retryable = "agent_unavailable", "The agent is unavailable.", True


class AgentCapReached(AgentError):
    """The agent reached a cap, which the message names: turns, tool calls, tokens, time, or a loop."""

    code, told, retryable = "agent_cap_reached", "The agent reached its limits before it finished.", False


class ToolInvalid(CicadaError):
    """A tool call is invalid; the message, which goes to the model, says why."""

    code, told = "tool_invalid", "Invalid tool call."


class ProfileUnknown(CicadaError):
    """This user has no such profile; another user's profiles are unknown too."""

    code, told = "profile_unknown", "Profile not found."


class ProfileInvalid(CicadaError):
    """A profile, or a change to one, breaks a rule or a limit; the message names it."""

    code, told = "profile_invalid", "Invalid profile change."


class ProfileConflict(CicadaError):
    """The profile was changed meanwhile, or another one has its kind and name."""

    code, told, retryable = (
        "profile_conflict",
        "The profile was changed by another request. Reload it and try again.",
        True,
    )


class ConfirmationUnknown(CicadaError):
    """The user's request has no such confirmation."""

    code, told = "confirmation_unknown", "Confirmation not found."


class ConfirmationExpired(CicadaError):
    """It was confirmed too late: nothing was deleted."""

    code, told = "confirmation_expired", "This confirmation has expired. Nothing was deleted. Ask again."


class ConversationUnknown(CicadaError):
    """This user has no such conversation, or it has expired or was deleted."""

    code, told = "conversation_unknown", "Conversation not found."


class ProfilesUnavailable(CicadaError):
    """Profiles could not be read or written."""

    code, told, retryable = "profiles_unavailable", "Profiles are temporarily unavailable.", True


# --- the index and the corpus ---


class IndexFailure(CicadaError):
    """The index cannot serve this search."""

    code, told, retryable = "index_error", "Search is unavailable.", True


class IndexMissing(IndexFailure):
    """No version has been published yet."""

    code, told, retryable = "index_missing", "No corpus has been loaded yet.", False


class IndexCorrupt(IndexFailure):
    """An object of the index is missing, truncated, unknown or does not match its checksum."""

    code, told, retryable = "index_corrupt", "The search index is damaged.", False

    def __init__(self, message: str, *, key: str | None = None) -> None:
        """``key`` names the object, if it is known."""
        super().__init__(message)
        self.key = key


class IndexMismatch(IndexFailure):
    """The index was built with another embedding model or other dimensions."""

    code, told, retryable = "index_mismatch", "The search index was built with another embedding model.", False


class IndexNewer(IndexMismatch):
    """A newer release wrote the index. It is left as it is: nothing is published over it or deleted."""

    code, told, retryable = "index_newer", "The search index was written by a newer release.", True


class IndexUnavailable(IndexFailure):
    """The store that holds the index did not respond."""

    throttled = False
    """Whether it refused because of the rate of requests."""
    code, told, retryable = "index_unavailable", "Search is temporarily unavailable.", True


class PublishConflict(IndexFailure):
    """Another writer published first: the compare-and-swap lost."""

    code, told, retryable = "publish_conflict", "Another process published a version first. Load again.", True


class DeclarationChanged(PublishConflict):
    """The collection's declaration changed after these documents were divided into sections: prepare them again."""

    code, told = "declaration_changed", "The collection's declaration was changed during the load. Load again."


class CorpusInvalid(CicadaError):
    """A corpus file breaks its format; the message names file, line and field."""

    code, told = "corpus_invalid", "Invalid corpus."


class RetrievalInvalid(CicadaError):
    """A request to a pipeline or an integrator function is malformed; the message names the field."""

    code, told = "invalid_request", "Invalid request."


class ResponseTooLarge(CicadaError):
    """An integrator function's result is too large for one response."""

    code, told = "response_too_large", "The response exceeds the size limit of one call. Request fewer results."


class PassageUnknown(CicadaError):
    """The user can read no passage with this id: it does not exist, or is in a collection that they may not read."""

    code, told = "passage_unknown", "Passage not found."

    def __init__(self, message: str, *, changed: bool = False) -> None:
        """``changed``: the client has seen it in another version of the index."""
        super().__init__(message)
        if changed:
            self.told = "The document has changed and no longer contains this passage."


class NameUnknown(CicadaError):
    """A search is limited to names none of which exists in what the asker may read: it ends the request.

    A name that the asker may not read is told as one that does not exist.
    """

    code, told = "name_unknown", "Name not found."
    final = True
    fault = False

    def __init__(self, message: str, *, told: str | None = None, known: Sequence[str] = ()) -> None:
        """``told`` repeats the names, which are the client's, and some ``known`` ones, which the asker may read."""
        super().__init__(message)
        self.told = told or self.told
        self.known = tuple(known)


class CollectionUnknown(NameUnknown):
    """None of the collections exists, or the asker may read none of them."""

    code, told = "collection_unknown", "Collection not found."


class EpisodeUnknown(NameUnknown):
    """None of the episodes exists in what the asker may read."""

    code, told = "episode_unknown", "Episode not found."


class DocumentUnknown(NameUnknown):
    """None of the documents exists in what the asker may read."""

    code, told = "document_unknown", "Document not found."


class SectionUnknown(NameUnknown):
    """None of the sections exists in what the asker may read."""

    code, told = "section_unknown", "Section not found."


# --- a document that is not loaded ---


class DocumentRefused(CicadaError):
    """A document cannot be loaded and is quarantined with this reason; the others are loaded."""

    code, told = "document_refused", "The document could not be read."


class DocumentUnsupported(DocumentRefused):
    """Its format is not supported."""

    code, told = "document_unsupported", "Unsupported document format."


class DocumentBroken(DocumentRefused):
    """It does not have the format that it claims, or is truncated."""

    code, told = "document_broken", "The document is damaged."


class DocumentEncrypted(DocumentRefused):
    """It is protected by a password."""

    code, told = "document_encrypted", "The document is password-protected."


class DocumentWithoutText(DocumentRefused):
    """It has no text: a scan, or empty."""

    code, told = "document_without_text", "The document contains no text. Run text recognition (OCR) on scans first."


class DocumentTooLarge(DocumentRefused):
    """It exceeds a limit on bytes, pages, nesting or memory; the message names the limit."""

    code, told = "document_too_large", "The document is too large."


class DocumentTooSlow(DocumentRefused):
    """Reading it takes too long."""

    code, told = "document_too_slow", "Reading the document timed out."


class DocumentUnsafe(DocumentRefused):
    """It attacks its reader: expanding entities, archive members outside of its folder."""

    code, told = "document_unsafe", "The document contains unsafe content."


class DocumentInvalid(DocumentRefused):
    """Its content breaks the rules of its kind: a script's fields, a passage's id that another document has."""

    code, told = "document_invalid", "The document's content is invalid."


class DocumentConflict(DocumentRefused):
    """The collection holds a document of its source with another label."""

    code, told = "document_conflict", "The collection already has a document of this source with another workflow_id."


# --- uploads by users ---


class UploadForbidden(CicadaError):
    """The user may not upload to this collection, or may not read it; one that does not exist is refused alike."""

    code, told = "upload_forbidden", "You do not have permission to upload to this collection."


class UploadInvalid(CicadaError):
    """The upload cannot be a document of the collection; the message names the field and the reason."""

    code, told = "upload_invalid", "Invalid upload."


class UploadTooLarge(CicadaError):
    """The document is larger than the deployment accepts; the message has the limit."""

    code, told = "upload_too_large", "The document exceeds the upload size limit."


class FolderFull(CicadaError):
    """The collection's folder holds as many documents as the deployment accepts; the message has the limit."""

    code, told = "upload_folder_full", "The collection has reached its limit of uploaded documents."


class UploadUnknown(CicadaError):
    """The collection's folder holds no such document."""

    code, told = "upload_unknown", "Upload not found."


class AuditUnavailable(CicadaError):
    """A change of an administrator's could not be recorded, and was therefore not made."""

    code, told, retryable = "audit_unavailable", "The change could not be recorded, so it was not made.", True


class SettingsInvalid(CicadaError):
    """A setting is missing or out of range; the message names it."""

    code, told = "settings_invalid", "The deployment's settings are invalid."


def raise_final(error: BaseException) -> None:
    """Raise an error that ends its request; for callers that can do without the call that failed.

    A model's own filter is such a failure there: it says something of one call. A guardrail is the deployment's word.
    """
    ends = error.by_guardrail if isinstance(error, AnswerBlocked) else isinstance(error, CicadaError) and error.final
    if ends:
        raise error

"""What a client sends: one JSON object per frame, discriminated by ``action``."""

from __future__ import annotations

import json
from collections.abc import Sequence
from functools import cache
from operator import not_
from typing import Annotated, Any, Literal, Self, TypeVar, get_args
from uuid import UUID

from pydantic import (
    AfterValidator,
    BaseModel,
    ConfigDict,
    Field,
    StringConstraints,
    TypeAdapter,
    ValidationError,
    model_validator,
)
from pydantic.alias_generators import to_camel

from cicada.errors import InvalidMessage, UnknownAction, UnsupportedVersion
from cicada.profiles.record import Kind
from cicada.profiles.rules import (
    ID_PATTERN,
    MAX_EDITS,
    MAX_EPISODES,
    MAX_FIELD_NAME_CHARS,
    MAX_NAME_CHARS,
    MAX_STATEMENT_CHARS,
    MAX_VALUE_CHARS,
)
from cicada.text.visible import is_blank, visible

PROTOCOL_VERSION = 1  # an action may carry it as ``v``; other versions are refused

MAX_QUERY_CHARS = 4_000
MAX_TOP_K = 100
MAX_FIELD_CHARS = 100  # of a field's name in a refusal: the client chooses the names of unknown fields
MAX_FILTER_VALUES = 50  # collections, episodes, documents or sections of one question
MAX_SOURCE_CHARS = 1_024  # of a document's source or a section's path
MAX_PASSAGE_ID_CHARS = 256
MAX_TITLE_CHARS = 100  # of a conversation
MAX_COMMENT_CHARS = 1_000
MAX_NEIGHBOURS = 30  # passages before or after the one that is read
DEFAULT_NEIGHBOURS = 5


def _canonical_uuid(value: str) -> str:
    try:
        return str(UUID(value))
    except ValueError:
        raise ValueError("must be a UUID") from None


def _not_blank(value: str) -> str:
    if is_blank(value):
        raise ValueError("must not be blank")
    return value


RequestId = Annotated[
    str, Field(description="the client's UUID for one question and its answer"), AfterValidator(_canonical_uuid)
]
SessionId = Annotated[
    str,
    StringConstraints(min_length=1, max_length=128, pattern=r"^[A-Za-z0-9._:-]+$"),
    Field(description="the client's name for a conversation: letters and digits of ASCII, and . _ : -"),
]
_FilterValue = Annotated[str, StringConstraints(min_length=1, max_length=128)]
_FilterValues = Annotated[tuple[_FilterValue, ...], Field(max_length=MAX_FILTER_VALUES)]
_Path = Annotated[str, StringConstraints(min_length=1, max_length=MAX_SOURCE_CHARS)]
_Paths = Annotated[tuple[_Path, ...], Field(max_length=MAX_FILTER_VALUES)]
_Query = Annotated[
    str, Field(min_length=1, max_length=MAX_QUERY_CHARS), AfterValidator(visible), AfterValidator(_not_blank)
]
_CallId = Annotated[str, Field(description="a UUID that names this call"), AfterValidator(_canonical_uuid)]
_TopK = Annotated[int, Field(ge=1, le=MAX_TOP_K)]
_Neighbours = Annotated[int, Field(ge=0, le=MAX_NEIGHBOURS)]
_DOCUMENTS = "only documents with these sources; all when empty"
_SECTIONS = "only passages below these headings, as `locator.section` names them; all when empty"


class Action(BaseModel):
    """Immutable, strict, without unknown fields."""

    model_config = ConfigDict(
        frozen=True,
        extra="forbid",
        strict=True,
        alias_generator=to_camel,
        validate_by_name=False,
        hide_input_in_errors=True,
        defer_build=True,
    )

    v: Literal[1] = Field(1, description="protocol version")


class Ask(Action):
    """Ask a question. The same ``requestId`` twice is one request."""

    action: Literal["ask"] = "ask"
    request_id: RequestId
    query: _Query
    session_id: SessionId | None = None
    collections: _FilterValues = Field((), description="only these collections; all when empty")
    episodes: _FilterValues = Field((), description="only these episodes; all when empty")
    documents: _Paths = Field((), exclude_if=not_, description=_DOCUMENTS)  # servers before 0.2.0 refuse the field
    sections: _Paths = Field((), exclude_if=not_, description=_SECTIONS)
    top_k: _TopK | None = Field(None, description="passages to retrieve")


class Resume(Action):
    """Become a subscriber of a request, and receive every event above ``after``."""

    action: Literal["resume"] = "resume"
    request_id: RequestId
    after: Annotated[int, Field(ge=0)] = Field(0, description="the highest seq that the client has applied")


class Cancel(Action):
    """End a request."""

    action: Literal["cancel"] = "cancel"
    request_id: RequestId


class Ping(Action):
    """Keep the socket from its idle cut, and learn whether it is alive."""

    action: Literal["ping"] = "ping"


class ConfirmChange(Action):
    """Answer an event ``confirm``: have done what it shows, or decline."""

    action: Literal["confirm"] = "confirm"
    request_id: RequestId
    confirmation_id: Annotated[str, StringConstraints(pattern="^[0-9a-f]{32}$")]
    accept: bool = Field(description="true deletes what the event shows; false leaves it")


ProfileOperation = Literal["list", "show", "create", "update", "undo", "delete", "history", "export"]
_ProfileId = Annotated[str, StringConstraints(pattern=ID_PATTERN)]


class FieldSet(BaseModel):
    """A fact that a profile is to keep."""

    model_config = Action.model_config

    field: Annotated[str, StringConstraints(min_length=1, max_length=MAX_FIELD_NAME_CHARS)]
    value: Annotated[str, StringConstraints(min_length=1, max_length=MAX_VALUE_CHARS)]


class ManageProfile(Action):
    """Look at, or change, what the user keeps of characters, locations, episodes, fragment groups and theories.

    The same action with the same ``requestId`` twice is one change.
    """

    action: Literal["profile"] = "profile"
    request_id: RequestId
    operation: ProfileOperation
    id: _ProfileId | None = Field(None, description="of the profile")
    kind: Kind | None = Field(
        None, description="of a new profile; of those that are listed; beside a name, of that one"
    )
    name: Annotated[str, StringConstraints(min_length=1, max_length=MAX_NAME_CHARS)] | None = Field(
        None, description="of a new profile; in place of the id, of the one that is shown; case does not count"
    )
    expected_version: Annotated[int, Field(ge=1)] | None = Field(
        None, description="of update and delete: the version that was seen; another one that stands is not changed"
    )
    version: Annotated[int, Field(ge=1)] | None = Field(
        None, description="of undo: the version whose change is taken back"
    )
    given: Annotated[tuple[FieldSet, ...], Field(max_length=MAX_EDITS)] = Field(
        (), alias="set", description="of create and update: fields that are added or replaced"
    )
    remove: Annotated[
        tuple[Annotated[str, StringConstraints(min_length=1, max_length=MAX_FIELD_NAME_CHARS)], ...],
        Field(max_length=MAX_EDITS),
    ] = Field((), description="of update: names of fields that are removed")
    statement: Annotated[str, StringConstraints(min_length=1, max_length=MAX_STATEMENT_CHARS)] | None = Field(
        None, description="of create and update: what a theory says"
    )
    episodes: Annotated[tuple[_FilterValue, ...], Field(max_length=MAX_EPISODES)] = Field(
        (), description="beside a statement: the episodes that it is about"
    )
    cursor: Annotated[str, StringConstraints(min_length=1, max_length=80)] | None = Field(
        None, description="the next that the page before told"
    )

    @model_validator(mode="after")
    def _is_whole(self) -> Self:
        """Each operation has the fields it needs, and none it would ignore."""
        _check_fields(self, self.operation, *_FIELDS_OF[self.operation])
        if self.operation in ("show", "history") and (self.id is None) == (self.name is None):
            raise ValueError(f"{self.operation} requires either id or name")
        if self.episodes and self.statement is None:
            raise ValueError("episodes requires statement")
        return self


_ALWAYS = frozenset({"v", "action", "request_id", "operation"})
_FIELDS_OF: dict[str, tuple[frozenset[str], frozenset[str]]] = {
    operation: (frozenset(needed.split()), frozenset(allowed.split()))
    for operation, needed, allowed in (
        ("list", "", "kind cursor"),
        ("show", "", "id name kind cursor"),
        ("create", "kind name", "given statement episodes"),
        ("update", "id expected_version", "given remove statement episodes"),
        ("undo", "id version", ""),
        ("delete", "id expected_version", ""),
        ("history", "", "id name kind cursor"),
        ("export", "", "cursor"),
    )
}
"""The fields that each operation requires, and those it may have."""


def _check_fields(action: Action, operation: str, needed: frozenset[str], allowed: frozenset[str]) -> None:
    """Raise ValueError unless an operation has the fields that it needs, and no others than those allowed."""
    fields = type(action).model_fields
    given = {name for name in action.model_fields_set if getattr(action, name) not in (None, ())}
    for name in sorted(needed - given):
        raise ValueError(f"{operation} requires {fields[name].alias}")
    for name in sorted(given - needed - allowed - _ALWAYS):
        raise ValueError(f"{operation} does not take {fields[name].alias}")


ConversationOperation = Literal["list", "show", "rename", "delete", "restore"]


class ManageConversations(Action):
    """List, show, rename, delete or restore the user's conversations."""

    action: Literal["conversations"] = "conversations"
    request_id: _CallId
    operation: ConversationOperation
    session_id: SessionId | None = Field(None, description="of all operations but list: which conversation")
    title: (
        Annotated[
            str, Field(min_length=1, max_length=MAX_TITLE_CHARS), AfterValidator(visible), AfterValidator(_not_blank)
        ]
        | None
    ) = Field(None, description="of rename: the new title")
    cursor: Annotated[str, StringConstraints(min_length=1, max_length=160)] | None = Field(
        None, description="of list and show: the `next` of the page before"
    )

    @model_validator(mode="after")
    def _is_whole(self) -> Self:
        """Each operation has the fields that it needs, and no others."""
        _check_fields(self, self.operation, *_CONVERSATION_FIELDS[self.operation])
        return self


_NOTHING: frozenset[str] = frozenset()
_CONVERSATION_FIELDS: dict[ConversationOperation, tuple[frozenset[str], frozenset[str]]] = {
    "list": (_NOTHING, frozenset({"cursor"})),
    "show": (frozenset({"session_id"}), frozenset({"cursor"})),
    "rename": (frozenset({"session_id", "title"}), _NOTHING),
    "delete": (frozenset({"session_id"}), _NOTHING),
    "restore": (frozenset({"session_id"}), _NOTHING),
}
"""The fields that each operation requires, and those it may have."""

Rating = Literal["up", "down"]
FeedbackReason = Literal["wrong", "incomplete", "bad_sources", "outdated", "unclear", "other"]


class GiveFeedback(Action):
    """Rate an answer. The last rating of a request counts; the same one twice is one."""

    action: Literal["feedback"] = "feedback"
    request_id: RequestId
    rating: Rating | Literal["none"] = Field(description="`none` takes the rating back")
    reason: FeedbackReason | None = Field(None, description="beside `down`: what is wrong with the answer")
    comment: (
        Annotated[
            str, Field(min_length=1, max_length=MAX_COMMENT_CHARS), AfterValidator(visible), AfterValidator(_not_blank)
        ]
        | None
    ) = Field(None, description="beside `up` and `down`: in the user's words")

    @model_validator(mode="after")
    def _is_consistent(self) -> Self:
        if self.reason is not None and self.rating != "down":
            raise ValueError("reason is allowed only with the rating down")
        if self.comment is not None and self.rating == "none":
            raise ValueError("comment is allowed only with the rating up or down")
        return self


class ListCollections(Action):
    """List the collections that the user may read, and what they hold."""

    action: Literal["collections"] = "collections"
    request_id: _CallId
    cursor: Annotated[str, StringConstraints(min_length=1, max_length=64)] | None = Field(
        None, description="the `next` of the page before"
    )


class ListDocuments(Action):
    """List the documents of a collection, by source."""

    action: Literal["documents"] = "documents"
    request_id: _CallId
    collection: _FilterValue
    prefix: _Path | None = Field(None, description="only sources that begin with it")
    cursor: _Path | None = Field(None, description="the `next` of the page before")


class Search(Action):
    """Search without an answer: the passages that an `ask` would find."""

    action: Literal["search"] = "search"
    request_id: _CallId
    query: _Query
    collections: _FilterValues = Field((), description="only these collections; all when empty")
    episodes: _FilterValues = Field((), description="only these episodes; all when empty")
    documents: _Paths = Field((), description=_DOCUMENTS)
    sections: _Paths = Field((), description=_SECTIONS)
    top_k: _TopK | None = Field(None, description="passages to retrieve")


class ReadPassages(Action):
    """Read a passage with those around it, in the order of its document."""

    action: Literal["read"] = "read"
    request_id: _CallId
    passage_id: Annotated[str, StringConstraints(min_length=1, max_length=MAX_PASSAGE_ID_CHARS)]
    collection: _FilterValue | None = Field(
        None, description="of the passage: ids are unique within a collection; without it all are looked at"
    )
    before: _Neighbours = Field(DEFAULT_NEIGHBOURS, description="passages before it")
    after: _Neighbours = Field(DEFAULT_NEIGHBOURS, description="passages after it")
    index_version: Annotated[str, StringConstraints(min_length=1, max_length=128)] | None = Field(
        None, description="in which the client has seen the passage: an unknown one is then told as changed since"
    )


UploadOperation = Literal["begin", "list", "delete"]
MAX_UPLOAD_BYTES = 5 * 2**30  # of a form's file (S3)
MAX_UPLOAD_NAME_CHARS = 512
MAX_KEY_CHARS = 1_024  # of whatever lies in a folder, documents or not (S3)


class ManageUploads(Action):
    """Upload documents to a collection, list what was uploaded to it, or delete a document."""

    action: Literal["upload"] = "upload"
    request_id: _CallId
    operation: UploadOperation
    collection: Annotated[str, StringConstraints(min_length=1, max_length=64)]
    name: Annotated[str, StringConstraints(min_length=1, max_length=MAX_UPLOAD_NAME_CHARS)] | None = Field(
        None, description="of begin and delete: the document's path in the collection's folder, with /"
    )
    bytes: Annotated[int, Field(ge=1, le=MAX_UPLOAD_BYTES)] | None = Field(None, description="of begin: its size")
    sha256: Annotated[str, StringConstraints(pattern="^[0-9a-f]{64}$")] | None = Field(
        None, description="of begin: the digest of its bytes, 64 hexadecimal digits"
    )
    cursor: Annotated[str, StringConstraints(min_length=1, max_length=MAX_KEY_CHARS)] | None = Field(
        None, description="of list: the next that the page before told"
    )

    @model_validator(mode="after")
    def _is_whole(self) -> Self:
        """Each operation has the fields that it needs, and no others."""
        _check_fields(self, self.operation, *_UPLOAD_FIELDS_OF[self.operation])
        return self


_UPLOAD_FIELDS_OF: dict[UploadOperation, tuple[frozenset[str], frozenset[str]]] = {
    "begin": (frozenset({"collection", "name", "bytes", "sha256"}), _NOTHING),
    "list": (frozenset({"collection"}), frozenset({"cursor"})),
    "delete": (frozenset({"collection", "name"}), _NOTHING),
}
"""The fields that each operation requires, and those it may have."""


ProcessedAction = Ask | Resume | Cancel | ConfirmChange | Ping | ManageProfile | ManageConversations | GiveFeedback
"""What the message processor handles."""
CorpusAction = ListCollections | ListDocuments | Search | ReadPassages
"""What the function ``corpus`` handles."""
ClientAction = ProcessedAction | CorpusAction | ManageUploads

_Handled = TypeVar("_Handled", bound=Action)


@cache
def _processed_action() -> TypeAdapter[ProcessedAction]:
    return TypeAdapter(Annotated[ProcessedAction, Field(discriminator="action")])


@cache
def _corpus_action() -> TypeAdapter[CorpusAction]:
    return TypeAdapter(Annotated[CorpusAction, Field(discriminator="action")])


@cache
def _upload_action() -> TypeAdapter[ManageUploads]:
    return TypeAdapter(ManageUploads)


def parse_action(body: str | bytes) -> ProcessedAction:
    """Parse a frame for the message processor.

    Raises UnknownAction, UnsupportedVersion, or InvalidMessage. The message of the last names the field, without its
    value; the name of an unknown field is in ``detail`` alone, because the client chose it.
    """
    return _parsed(_processed_action(), body)


def parse_corpus_action(body: str | bytes) -> CorpusAction:
    """Parse a frame for the function ``corpus``. Raises as :func:`parse_action`."""
    return _parsed(_corpus_action(), body)


def parse_upload_action(body: str | bytes) -> ManageUploads:
    """Parse a frame for the function ``uploads``. Raises as :func:`parse_action`."""
    return _parsed(_upload_action(), body, tagged=False)


def actions_of(union: object) -> tuple[str, ...]:
    """The names of the actions of a union."""
    return tuple(kind.model_fields["action"].default for kind in get_args(union))


def _parsed(adapter: TypeAdapter[_Handled], body: str | bytes, *, tagged: bool = True) -> _Handled:
    """Parse a frame; ``tagged``: one of several actions, whose name then comes first in an error's place."""
    try:
        return adapter.validate_json(body)
    except ValidationError as error:
        first = error.errors(include_url=False, include_context=False, include_input=False)[0]
        within = first["loc"][1:] if tagged else first["loc"]
        if first["type"] == "union_tag_invalid" or within == ("action",):
            actions = ", ".join(actions_of(ClientAction))
            raise UnknownAction(f"unknown action; the protocol has {actions}") from error
        if within == ("v",):
            raise UnsupportedVersion(f"v must be {PROTOCOL_VERSION}") from error
        place = [str(part) for part in within]
        known = [*place[:-1], "(unknown field)"] if first["type"] == "extra_forbidden" else place
        raise InvalidMessage(_problem(known, first["msg"]), detail=_problem(place, first["msg"])) from error


def _problem(place: Sequence[str], what: str) -> str:
    field, what = ".".join(place)[:MAX_FIELD_CHARS], what.removeprefix("Value error, ")
    return f"{field}: {what}" if field else what


def request_id_of(body: str | bytes) -> str | None:
    """The ``requestId`` of a refused frame, or None if it has no valid one."""
    try:
        document: Any = json.loads(body)
        return _canonical_uuid(document["requestId"])
    except (ValueError, TypeError, KeyError, AttributeError, RecursionError):
        return None

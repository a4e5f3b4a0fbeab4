"""The published protocol: an AsyncAPI 3.0 document generated from the messages.

``python -m cicada.protocol.asyncapi`` prints it. Format: https://www.asyncapi.com/docs/reference/specification/v3.0.0.
"""

from __future__ import annotations

import json
from collections.abc import Iterable
from typing import Any, get_args

from pydantic import BaseModel
from pydantic.json_schema import models_json_schema

from cicada.protocol.actions import PROTOCOL_VERSION, ClientAction
from cicada.protocol.conversations import ConversationReply, FeedbackGiven
from cicada.protocol.corpus import CorpusReply
from cicada.protocol.events import Confirmed, GatewayFault, LogEvent, Pong, Refused, Resumed
from cicada.protocol.profiles import ProfileReply
from cicada.protocol.uploads import UploadReply

ACTIONS: tuple[type[BaseModel], ...] = get_args(ClientAction)
EVENTS: tuple[type[BaseModel], ...] = get_args(LogEvent)
REPLIES: tuple[type[BaseModel], ...] = (
    Resumed,
    Pong,
    Confirmed,
    Refused,
    *get_args(ProfileReply),
    *get_args(CorpusReply),
    *get_args(ConversationReply),
    FeedbackGiven,
    *get_args(UploadReply),
)
GATEWAY: tuple[type[BaseModel], ...] = (GatewayFault,)
RECEIVED = (*EVENTS, *REPLIES, *GATEWAY)

_PLACE = {
    "requestId": {"type": "string", "format": "uuid", "description": "the request that this event belongs to"},
    "seq": {"type": "integer", "minimum": 1, "description": "the event's place in the request's log: 1, 2, 3…"},
}


def asyncapi_document() -> dict[str, Any]:
    """The document as plain data."""
    sent, received = _schemas(ACTIONS, "validation"), _schemas(RECEIVED, "serialization")
    schemas = sent | received
    for event in EVENTS:
        schema = schemas[event.__name__]
        schema["properties"] = _PLACE | schema["properties"]
        schema["required"] = [*_PLACE, *sorted({*schema.get("required", ()), "type"})]
    for message in ACTIONS:
        schemas[message.__name__].setdefault("required", []).append("action")
    return {
        "asyncapi": "3.0.0",
        "info": {
            "title": "Cicada",
            "version": f"{PROTOCOL_VERSION}.0.0",
            "description": "Questions in, streamed and cited answers out, over one WebSocket. See docs/protocol.md.",
            "license": {"name": "Apache-2.0"},
        },
        "defaultContentType": "application/json",
        "servers": {
            "deployment": {
                "host": "{apiId}.execute-api.{region}.amazonaws.com",
                "pathname": "/{stage}",
                "protocol": "wss",
                "variables": {"apiId": {}, "region": {"default": "us-east-1"}, "stage": {"default": "live"}},
            }
        },
        "channels": {
            "socket": {
                "address": "/",
                "messages": {
                    message.__name__: {"$ref": f"#/components/messages/{message.__name__}"}
                    for message in (*ACTIONS, *RECEIVED)
                },
            }
        },
        "operations": {
            "send": _operation("receive", ACTIONS, "What a client sends."),
            "events": _operation("send", EVENTS, "Events of a request's log: replies to ask and cancel, and pushes."),
            "replies": _operation("send", REPLIES, "Replies that stand in no log; their seq is 0."),
            "gateway": _operation("send", GATEWAY, "API Gateway's own complaint about some frame."),
        },
        "components": {
            "messages": {
                message.__name__: {
                    "name": message.__name__,
                    "summary": (message.__doc__ or "").strip().splitlines()[0],
                    "payload": {"$ref": f"#/components/schemas/{message.__name__}"},
                }
                for message in (*ACTIONS, *RECEIVED)
            },
            "schemas": schemas,
        },
    }


def _schemas(models: Iterable[type[BaseModel]], mode: Any) -> dict[str, Any]:
    _, document = models_json_schema(
        [(model, mode) for model in models], by_alias=True, ref_template="#/components/schemas/{model}"
    )
    schemas: dict[str, Any] = document["$defs"]
    return schemas


def _operation(action: str, messages: Iterable[type[BaseModel]], summary: str) -> dict[str, Any]:
    return {
        "action": action,
        "channel": {"$ref": "#/channels/socket"},
        "summary": summary,
        "messages": [{"$ref": f"#/channels/socket/messages/{message.__name__}"} for message in messages],
    }


def render() -> str:
    """The document as it is published."""
    return json.dumps(asyncapi_document(), indent=2, ensure_ascii=False) + "\n"


if __name__ == "__main__":
    print(render(), end="")

"""The base of the functions' requests: values must have the types of the schema, without coercion."""

from __future__ import annotations

from pydantic import BaseModel, BeforeValidator, ConfigDict


class CallRequest(BaseModel):
    """Immutable, strict, snake_case on the wire. A tuple field needs ``strict=False`` to accept a JSON list."""

    model_config = ConfigDict(frozen=True, extra="forbid", strict=True)


def _whole(value: object) -> object:
    return int(value) if isinstance(value, float) and value.is_integer() else value


AS_WHOLE = BeforeValidator(_whole)
"""Accepts 5.0 for an int, as JSON Schema does. Put it after the bounds, ``Annotated[int, Field(ge=1), AS_WHOLE]``:
bounds after it would be published under names that JSON Schema does not define."""

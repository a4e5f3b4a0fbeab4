"""What the requests of functions share: values are of the kind that their schemas say, none is taken for another."""

from __future__ import annotations

from pydantic import BaseModel, BeforeValidator, ConfigDict


class CallRequest(BaseModel):
    """Immutable, strict, snake_case on the wire. A list is read into a tuple where its field says ``strict=False``."""

    model_config = ConfigDict(frozen=True, extra="forbid", strict=True)


def _whole(value: object) -> object:
    return int(value) if isinstance(value, float) and value.is_integer() else value


AS_WHOLE = BeforeValidator(_whole)
"""A whole number, as JSON Schema has it: 5.0 is one. Stands after the bounds of an int, ``Annotated[int, Field(ge=1),
AS_WHOLE]``: bounds around it would be published under names that JSON Schema does not know."""

"""What a user keeps of characters, locations, episodes, fragment groups and theories."""

from __future__ import annotations

import json
import uuid
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, TypeVar

from pydantic import ValidationError

from cicada.profiles.record import Change, Kind
from cicada.protocol.actions import ManageProfile
from cicada.protocol.profiles import (
    ProfileChanges,
    ProfileDeleted,
    ProfileExport,
    ProfileHead,
    Profiles,
    ProfileShown,
)
from cicada_client.call import CallReply
from cicada_client.errors import ClientError, InvalidQuestion, RequestRefused

_CONFLICT = "profile_conflict"
_READ_AGAIN = 3
"""How often something that is changed while its pages come is read from the start."""
Send = Callable[[ManageProfile], Awaitable[CallReply]]
Page = TypeVar("Page", Profiles, ProfileShown, ProfileChanges, ProfileExport, ProfileDeleted)


@dataclass(frozen=True)
class History:
    """A profile's changes, oldest first."""

    profile: ProfileChanges
    """Which profile; of its pages the first."""
    changes: tuple[Change, ...]


class ProfilesClient:
    """The operations on the profiles of the user who is connected.

    Each raises :class:`~cicada_client.errors.RequestRefused` where it is refused, with the code ``profile_unknown``,
    ``profile_conflict``, ``profile_invalid`` or ``profiles_unavailable``, and what asking can raise.
    """

    def __init__(self, send: Send) -> None:
        """``send`` brings an action's reply."""
        self._send = send

    async def list(self, kind: Kind | None = None) -> tuple[ProfileHead, ...]:
        """All profiles, or those of a kind, by kind and name."""
        pages = await self._pages(Profiles, operation="list", kind=kind)
        heads = (head for page in pages for head in page.profiles)
        return tuple(sorted(heads, key=lambda head: (head.kind, head.name.casefold())))

    async def show(self, *, id: str | None = None, name: str | None = None, kind: Kind | None = None) -> ProfileShown:
        """One profile, whole, by its id or its name."""
        return _whole(await self._pages(ProfileShown, operation="show", id=id, name=name, kind=kind))

    async def create(
        self,
        kind: Kind,
        name: str,
        fields: Mapping[str, str] | None = None,
        *,
        statement: str | None = None,
        episodes: Sequence[str] = (),
        request_id: str | None = None,
    ) -> ProfileShown:
        """Make a profile. A theory has a statement, and may be about some episodes only."""
        made = await self._one(
            ProfileShown,
            operation="create",
            kind=kind,
            name=name,
            set=_facts(fields),
            statement=statement,
            episodes=tuple(episodes),
            requestId=request_id,
        )
        return await self._rest(made)

    async def update(
        self,
        id: str,
        expected_version: int,
        fields: Mapping[str, str] | None = None,
        *,
        remove: Sequence[str] = (),
        statement: str | None = None,
        episodes: Sequence[str] = (),
        request_id: str | None = None,
    ) -> ProfileShown:
        """Set and remove fields of the version that was seen, or refine a theory's statement."""
        changed = await self._one(
            ProfileShown,
            operation="update",
            id=id,
            expectedVersion=expected_version,
            set=_facts(fields),
            remove=tuple(remove),
            statement=statement,
            episodes=tuple(episodes),
            requestId=request_id,
        )
        return await self._rest(changed)

    async def undo(self, id: str, version: int, *, request_id: str | None = None) -> ProfileShown | None:
        """Take back the change that made a version; None where that was the profile's creation: then it is gone."""
        reply = await self._reply(operation="undo", id=id, version=version, requestId=request_id)
        if isinstance(reply, ProfileDeleted):
            return None
        if not isinstance(reply, ProfileShown):
            raise ClientError(f"the server answered undo with {reply.type}")
        return await self._rest(reply)

    async def delete(self, id: str, expected_version: int, *, request_id: str | None = None) -> int:
        """Delete the version that was seen, with its history; the version that this makes is returned."""
        gone = await self._one(
            ProfileDeleted, operation="delete", id=id, expectedVersion=expected_version, requestId=request_id
        )
        return gone.version

    async def history(self, *, id: str | None = None, name: str | None = None, kind: Kind | None = None) -> History:
        """What has changed in a profile; the edits of a change stand together."""
        pages = await self._pages(ProfileChanges, operation="history", id=id, name=name, kind=kind)
        changes: dict[int, Change] = {}
        for part in (change for page in pages for change in page.changes):
            known = changes.get(part.version)
            edits = (*(known.edits if known else ()), *part.edits)
            changes[part.version] = part.model_copy(update={"edits": edits})
        return History(pages[0], tuple(changes[version] for version in sorted(changes)))

    async def export(self) -> tuple[dict[str, Any], ...]:
        """All that is kept: a JSON object a profile, with ``profile`` and ``history``."""
        pages = await self._pages(ProfileExport, operation="export")
        return tuple(json.loads(line) for line in "".join(page.text for page in pages).splitlines())

    # --- below ---

    async def _one(self, expected: type[Page], **fields: Any) -> Page:
        reply = await self._reply(**fields)
        if not isinstance(reply, expected):
            raise ClientError(f"the server answered {fields['operation']} with {reply.type}")
        return reply

    async def _reply(self, **fields: Any) -> CallReply:
        given = {name: value for name, value in fields.items() if value not in (None, ())}
        given["requestId"] = given.get("requestId") or str(uuid.uuid4())
        try:
            action = ManageProfile.model_validate(given)
        except ValidationError as error:
            first = error.errors(include_url=False, include_context=False, include_input=False)[0]
            where = ".".join(map(str, first["loc"]))
            raise InvalidQuestion(f"{where}: {first['msg']}" if where else str(first["msg"])) from error
        return await self._send(action)

    async def _pages(self, expected: type[Page], **fields: Any) -> tuple[Page, ...]:
        """All pages; read from the start again where what they show is changed meanwhile."""
        for tries in range(1, _READ_AGAIN + 1):
            pages: list[Page] = [await self._one(expected, **fields)]
            try:
                while (cursor := getattr(pages[-1], "next", None)) is not None:
                    pages.append(await self._one(expected, **fields, cursor=cursor))
            except RequestRefused as refused:
                if refused.code != _CONFLICT or tries == _READ_AGAIN:
                    raise
            else:
                break
        return tuple(pages)

    async def _rest(self, shown: ProfileShown) -> ProfileShown:
        return shown if shown.next is None else await self.show(id=shown.id)


def _facts(fields: Mapping[str, str] | None) -> tuple[dict[str, str], ...]:
    return tuple({"field": field, "value": value} for field, value in (fields or {}).items())


def _whole(pages: Sequence[ProfileShown]) -> ProfileShown:
    return pages[0].model_copy(
        update={
            "fields": tuple(field for page in pages for field in page.fields),
            "evidence": tuple(one for page in pages for one in page.evidence),
            "next": None,
        }
    )

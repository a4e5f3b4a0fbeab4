"""The action ``upload``: its operations for one user, with the rights and limits of the deployment."""

from __future__ import annotations

import time
from collections.abc import Callable
from contextlib import AbstractContextManager
from typing import Literal, Protocol

from cicada.answering.reply_pages import PAGE_BYTES, page_of
from cicada.audit.records import ChangeRecord, function_actor, record
from cicada.corpus.declared.declaration import DECLARATION
from cicada.errors import FolderFull, UploadForbidden, UploadInvalid, UploadTooLarge, UploadUnknown
from cicada.identity import Caller
from cicada.index.access_rules import AccessRulesStore
from cicada.index.ports import ObjectStore
from cicada.ingest.incoming.places import collection_and_source, folder, is_collection, mirror_key, run_key, turn_key
from cicada.ingest.incoming.run_records import CollectionTurn, IngestPlan, RunReport, find_record, read_mirror
from cicada.ingest.incoming.starting import RunFound
from cicada.ingest.uploads.bucket import UploadFolders
from cicada.ingest.uploads.limits import UploadLimits
from cicada.ingest.uploads.names import checked_name
from cicada.ingest.uploads.states import FolderRecords, document_state
from cicada.protocol.actions import ManageUploads
from cicada.protocol.uploads import IngestRun, UploadBegun, UploadDeleted, UploadReply, Uploads
from cicada.rights import Uploaders
from cicada.text.characters import composed

PAGE_DOCUMENTS = 100  # of one page of the list at most


class Runs(Protocol):
    """Knows the executions of the ingest workflow."""

    def find(self, run: str) -> RunFound | None:
        """A run's execution; None if there is none. Raises WorkflowUnavailable."""
        ...


class UploadApi:
    """Serves the action ``upload``."""

    def __init__(
        self,
        folders: UploadFolders,
        store: ObjectStore,
        access: AccessRulesStore,
        runs: Runs,
        uploaders: Uploaders,
        *,
        url: str,
        limits: UploadLimits,
        now_s: Callable[[], float] = time.time,
    ) -> None:
        """Take the collections' folders; ``store`` holds the ingest's records, ``url`` is where forms are sent."""
        self._folders = folders
        self._store = store
        self._access = access
        self._runs = runs
        self._uploaders = uploaders
        self._url = url
        self._limits = limits
        self._now_s = now_s

    def handle(self, action: ManageUploads, caller: Caller) -> UploadReply:
        """Carry out a user's operation.

        Raises:
            UploadForbidden: the user may not upload to the collection, or may not read it.
            UploadInvalid, UploadTooLarge, FolderFull, UploadUnknown: the operation cannot be carried out.
            AuditUnavailable: it could not be recorded, so it was not done.
            IndexUnavailable, IndexCorrupt, WorkflowUnavailable: a service did not respond, or a record is damaged.
        """
        self._check_rights(action.collection, caller)
        match action.operation:
            case "begin":
                return self._begin(action, caller)
            case "list":
                return self._list(action)
            case "delete":
                return self._delete(action, caller)

    def _check_rights(self, collection: str, caller: Caller) -> None:
        if not is_collection(collection):
            raise UploadInvalid("collection: must be 1 to 64 letters, digits, _ and -, and not begin with -")
        if not self._uploaders.may_upload(collection, caller.groups):
            raise UploadForbidden(f"none of the user's groups may upload to {collection}")
        if not self._access.rules().readable(caller.groups).allows(collection):
            raise UploadForbidden(f"the user may not read {collection}")

    def _begin(self, action: ManageUploads, caller: Caller) -> UploadBegun:
        assert action.name is not None  # these three: the action's check
        assert action.bytes is not None
        assert action.sha256 is not None
        collection, limits = action.collection, self._limits
        name = checked_name(collection, action.name, declarations=limits.declarations)
        if action.bytes > limits.max_bytes:
            raise UploadTooLarge(f"bytes: {limits.max_bytes:,} at most")
        if self._folders.count(collection, limits.max_documents) >= limits.max_documents and not self._folders.holds(
            collection, name
        ):
            raise FolderFull(
                f"{collection} has reached its limit of {limits.max_documents:,} uploaded documents: delete some first"
            )
        expires_at_s = int(self._now_s()) + limits.lifetime_s
        with self._recorded("upload_begun", action, caller, name, bytes=action.bytes, sha256=action.sha256):
            fields = self._folders.form(
                f"{folder(collection)}{name}",
                size=action.bytes,
                sha256=action.sha256,
                lifetime_s=limits.lifetime_s,
            )
        return UploadBegun(
            request_id=action.request_id,
            collection=collection,
            name=name,
            url=self._url,
            fields=fields,
            expires_at_ms=expires_at_s * 1000,
        )

    def _list(self, action: ManageUploads) -> Uploads:
        collection = action.collection
        page = self._folders.page(collection, action.cursor or "", PAGE_DOCUMENTS)
        records, run = self._records(collection)
        planned = records.planned_stamps()
        documents = [document_state(upload, at, records, planned) for upload, at in page.uploads]
        shown, more = page_of(documents, PAGE_BYTES)
        return Uploads(
            request_id=action.request_id,
            collection=collection,
            documents=shown,
            run=run,
            max_bytes=self._limits.max_bytes,
            next=shown[-1].name if more else page.next,
        )

    def _delete(self, action: ManageUploads, caller: Caller) -> UploadDeleted:
        assert action.name is not None  # the action's check
        collection = action.collection
        # Who put it there by other means may have written letters and their marks apart, as macOS does.
        spellings = dict.fromkeys((action.name, composed(action.name)))
        name = next((one for one in spellings if self._folders.holds(collection, one)), None)
        if name is None or collection_and_source(f"{folder(collection)}{name}") is None:
            raise UploadUnknown(f"{collection} has no upload with this name")
        if name == DECLARATION and not self._limits.declarations:
            raise UploadInvalid(f"name: {DECLARATION} declares the collection's access rules: users may not delete it")
        with self._recorded("upload_deleted", action, caller, name):
            self._folders.delete(f"{folder(collection)}{name}")
        return UploadDeleted(request_id=action.request_id, collection=collection, name=name)

    def _recorded(
        self,
        what: Literal["upload_begun", "upload_deleted"],
        action: ManageUploads,
        caller: Caller,
        name: str,
        **details: int | str,
    ) -> AbstractContextManager[ChangeRecord]:
        return record(
            self._store,
            what,
            actor=function_actor(f"user/{caller.owner}"),
            subject=action.collection,
            details={"name": name, **details},
        )

    def _records(self, collection: str) -> tuple[FolderRecords, IngestRun | None]:
        """What is recorded of a folder, and the run that works on it."""
        turn, _ = find_record(self._store, turn_key(collection), CollectionTurn)
        found = self._runs.find(turn.run) if turn is not None and turn.run else None
        place = self._folders.newest_report(collection)
        plan = None
        if turn is not None and found is not None and found.running:
            plan, _ = find_record(self._store, run_key(collection, turn.run, "plan"), IngestPlan)
            if plan is not None and place is not None and (place.run, place.round) == (turn.run, plan.round):
                plan = None  # the round has ended, and the run waits before it looks again
        report = None if place is None else find_record(self._store, place.key, RunReport)[0]
        key = mirror_key(collection)
        records = FolderRecords(
            mirror=read_mirror(self._store, collection),
            mirrored_at=next((one.modified_at for one in self._store.entries(key) if one.key == key), None),
            plan=plan,
            report=report,
        )
        if found is None:
            return records, None
        state: Literal["running", "stopped"] = "running" if found.running else "stopped"
        return records, IngestRun(state=state, started_at_ms=int(found.started_at.timestamp() * 1000))

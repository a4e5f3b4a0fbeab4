"""One run of a collection at a time. A run that finds another one at work asks it to look again, and ends.

The turn is an object of the bucket, changed only by conditional writes. A run that ended without giving its turn back
(stopped, or failed) has lost it: Step Functions says whether a run is still at work.
"""

from __future__ import annotations

from collections.abc import Callable

from cicada.index.ports import ObjectStore
from cicada.ingest.incoming.places import turn_key
from cicada.ingest.incoming.run_records import CollectionTurn, find_record, update_record

MAX_ROUNDS = 3  # of retries, for documents that could not be prepared
ROUND_WAIT_S = 300  # before a retry: throttling or an outage may be over


def take_turn(store: ObjectStore, collection: str, run: str, is_running: Callable[[str], bool]) -> bool:
    """Begin a run's work at a collection; False if another run is at work, which will then look again.

    Raises PublishConflict if others keep changing the turn.
    """

    def taken(turn: CollectionTurn) -> CollectionTurn:
        if turn.run in ("", run) or not is_running(turn.run):
            return CollectionTurn(run=run, rounds=turn.rounds if turn.run == run else 0)
        return turn.model_copy(update={"again": True})

    return update_record(store, turn_key(collection), CollectionTurn, taken).run == run


def end_turn(store: ObjectStore, collection: str, run: str, *, unfinished: bool) -> tuple[bool, int]:
    """End a run's work, unless it must look again; ``unfinished``: some documents failed for reasons that may pass.

    Returns whether the run keeps its turn and looks again, and after how many seconds.
    """
    found, _ = find_record(store, turn_key(collection), CollectionTurn)
    if found is None or found.run != run:
        return False, 0  # the turn was taken over, and the other run looks at the whole folder
    decided = (False, 0)

    def ended(turn: CollectionTurn) -> CollectionTurn:
        nonlocal decided
        if turn.again:
            decided = (True, 0)
            return turn.model_copy(update={"again": False})
        if unfinished and turn.rounds < MAX_ROUNDS:
            decided = (True, ROUND_WAIT_S)
            return turn.model_copy(update={"rounds": turn.rounds + 1})
        decided = (False, 0)
        return CollectionTurn()

    update_record(store, turn_key(collection), CollectionTurn, ended)
    return decided

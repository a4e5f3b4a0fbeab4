"""One run of a collection at a time. A run that finds another at work asks it to look again, and ends.

The turn is an object of the bucket, changed by conditional writes alone. A run that has ended without giving its turn
back, because it was stopped or failed, has lost it: whether a run is still at work is asked of the workflow's service.
"""

from __future__ import annotations

from collections.abc import Callable

from cicada.errors import PublishConflict
from cicada.index.ports import ObjectStore, PreconditionFailed
from cicada.ingest.incoming.places import turn_key
from cicada.ingest.incoming.run_records import CollectionTurn, read_or_new

ATTEMPTS = 10  # of a conditional write that loses to others
MAX_ROUNDS = 3  # of retries, for documents that could not be prepared
ROUND_WAIT_S = 300  # before a retry: throttling or an outage may be over


def take_turn(store: ObjectStore, collection: str, run: str, is_running: Callable[[str], bool]) -> bool:
    """Begin a run's work at a collection; False if another is at work, which has been asked to look again.

    Raises PublishConflict if too many others change the turn at the same time.
    """

    def taken(turn: CollectionTurn) -> CollectionTurn:
        if turn.run in ("", run) or not is_running(turn.run):
            return CollectionTurn(run=run, rounds=turn.rounds if turn.run == run else 0)
        return turn.model_copy(update={"again": True})

    return _change(store, collection, taken).run == run


def end_turn(store: ObjectStore, collection: str, run: str, *, unfinished: bool) -> tuple[bool, int]:
    """End a run's work, unless it is to look again; ``unfinished``: some documents failed for reasons that may pass.

    Returns:
        Whether the run keeps its turn and is to look again, and after how many seconds.
    """
    found, _ = read_or_new(store, turn_key(collection), CollectionTurn)
    if found.run != run:
        return False, 0  # it was taken away: whoever has it now looks at the whole folder
    decided: list[tuple[bool, int]] = []

    def ended(turn: CollectionTurn) -> CollectionTurn:
        if turn.again:
            decided.append((True, 0))
            return turn.model_copy(update={"again": False})
        if unfinished and turn.rounds < MAX_ROUNDS:
            decided.append((True, ROUND_WAIT_S))
            return turn.model_copy(update={"rounds": turn.rounds + 1})
        decided.append((False, 0))
        return CollectionTurn()

    _change(store, collection, ended)
    return decided[-1]


def _change(store: ObjectStore, collection: str, change: Callable[[CollectionTurn], CollectionTurn]) -> CollectionTurn:
    for _ in range(ATTEMPTS):
        turn, etag = read_or_new(store, turn_key(collection), CollectionTurn)
        changed = change(turn)
        if changed == turn and etag is not None:
            return changed
        try:
            store.write(turn_key(collection), changed.model_dump_json(by_alias=True).encode(), replaces=etag)
        except PreconditionFailed:
            continue
        return changed
    raise PublishConflict(f"whose turn it is at {collection} keeps changing")

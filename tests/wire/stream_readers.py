"""The threads that read models' streams."""

import threading

_PATIENCE_S = 10.0


def until_readers_are_done() -> None:
    """Wait until every answer's reader has let go of its connection: it does so a moment after the answer's end."""
    for thread in threading.enumerate():
        if thread.name == "model-stream":
            thread.join(_PATIENCE_S)

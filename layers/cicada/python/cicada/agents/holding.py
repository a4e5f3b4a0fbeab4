"""Text that an agent writes, held back until it is known to be part of the answer.

Many models talk before they use a tool ("Let me look that up."), and none says beforehand whether a turn will use one.
"""

from __future__ import annotations

HOLD_CHARS = 240
"""A turn that has written more than this is taken for an answer: about three sentences."""


class HeldText:
    """The text of a run, turn by turn.

    The first :data:`HOLD_CHARS` of a turn wait for more, or for its end, and are dropped when it uses a tool. Text that
    is out already stays; where another turn writes on, a blank line stands between.
    """

    def __init__(self) -> None:
        """Begin a run."""
        self._held: list[str] = []
        self._size = 0
        self._passing = False
        self._dropping = False
        self._out = False

    def feed(self, piece: str) -> str:
        """Take the next piece of the turn; what can be passed on now, which may be empty."""
        if self._dropping or not piece:
            return ""
        if self._passing:
            return piece
        self._held.append(piece)
        self._size += len(piece)
        return self._release() if self._size > HOLD_CHARS else ""

    def tool_used(self) -> None:
        """The turn uses a tool: what it has not passed on is no part of the answer, nor is what follows."""
        self._held.clear()
        self._dropping = True

    def drop(self) -> None:
        """The turn has failed, and is asked for again: nothing of it was passed on, and nothing will be."""
        self._held.clear()
        self._size, self._passing, self._dropping = 0, False, False

    def turn_over(self) -> str:
        """The turn has ended; what is still held of an answer."""
        text = "" if self._dropping or self._passing else self._release()
        self.drop()
        return text

    def _release(self) -> str:
        text = "".join(self._held)
        if not text.strip():
            return ""
        self._held.clear()
        self._passing = True
        if self._out:
            text = "\n\n" + text.lstrip()
        self._out = True
        return text

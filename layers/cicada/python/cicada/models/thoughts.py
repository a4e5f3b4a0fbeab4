"""Takes a model's reasoning out of its text.

Most services send reasoning in a field of its own, which is skipped. Some local servers leave it where the model wrote
it: at the beginning of the text, between ``<think>`` and ``</think>``. Amazon Nova, where it is given tools, writes it
there itself, between ``<thinking>`` and ``</thinking>``.
"""

from __future__ import annotations


class ThoughtFilter:
    """Passes a text on piece by piece, without what it begins with in think tags.

    Tags later in the text are text: an answer may quote them.
    """

    def __init__(self, tag: str = "think") -> None:
        """Begin a text; ``tag`` is what stands around thoughts in it."""
        self._open, self._close = f"<{tag}>", f"</{tag}>"
        self._held = ""
        self._thinking = False
        self._thought = False
        self._through = False

    def feed(self, piece: str) -> str:
        """What can be passed on now; it may be empty."""
        if self._through:
            return piece
        self._held += piece
        if not self._thinking:
            begun = self._held.lstrip()
            if begun.startswith(self._open):
                self._thinking, self._held = True, begun.removeprefix(self._open)
            elif self._open.startswith(begun):  # an empty text, too, may still begin with the tag
                return ""
            else:
                return self._pass_on()
        _, close, rest = self._held.partition(self._close)
        if not close:
            self._held = self._held[-len(self._close) :]  # thoughts are not kept, but for the beginning of a tag
            return ""
        self._held, self._thinking, self._thought = "", False, True
        return self.feed(rest)

    def end(self) -> str:
        """The text is over: what was held back for looking like a tag, and is none."""
        return "" if self._through or self._thinking else self._pass_on()

    def _pass_on(self) -> str:
        text = self._held.lstrip() if self._thought else self._held  # the blank lines after thoughts belong to them
        self._held, self._through = "", True
        return text

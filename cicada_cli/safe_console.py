"""A Rich console that shows only safe text. Apart from :mod:`cicada_cli.output`, because Rich takes long to import."""

from __future__ import annotations

from collections.abc import Iterable

from rich.console import Console, ConsoleOptions, RenderableType
from rich.segment import Segment

from cicada_cli.text import encodable, printable


class SafeConsole(Console):
    """A console that makes every text safe, whatever renders it; the terminal's own control codes are not text."""

    def render(self, renderable: RenderableType, options: ConsoleOptions | None = None) -> Iterable[Segment]:
        """See Rich."""
        for text, style, control in super().render(renderable, options):
            yield Segment(text if control else encodable(printable(text), self.encoding), style, control)

"""A local cloud whose logs are searched, when it is left, for what no log may hold."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from types import TracebackType
from typing import Any

from cicada_local.testing import LocalCloud
from tests.e2e.log_search import LogSearch, stored_items, texts_of


class SearchedCloud(LocalCloud):
    """Knows every text that its tables hold at the end, and what it is told besides."""

    def __init__(self, home: Path, **options: Any) -> None:
        """``options``: those of :class:`LocalCloud`."""
        super().__init__(home, **options)
        self._texts: set[str] = set()
        self._names: set[str] = set()

    def forbid_texts(self, *texts: str) -> None:
        """No log may hold any of these: tokens, and texts that no table holds any more, or never did."""
        self._texts.update(texts)

    def forbid_names(self, *names: str) -> None:
        """No log may hold any of these as a word: subjects."""
        self._names.update(names)

    def log_files(self) -> list[Path]:
        """The functions' logs, the deployment's and the cloud's own."""
        return sorted(self.logs.glob("*.log"))

    def lines_about(self, word: str) -> list[str]:
        """The lines of the logs that hold a word, each after its file's name."""
        return [
            f"{file.name}: {line}"
            for file in self.log_files()
            for line in file.read_text(encoding="utf-8").splitlines()
            if word in line
        ]

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        """Stop it and search its logs.

        Raises:
            AssertionError: a log holds what it may not, or the logs do not tell of every stored request: then something
                else was searched than what was written.
        """
        try:
            items = stored_items(self.client("dynamodb"))
        finally:
            super().__exit__(kind, error, traceback)
        told = "\n".join(file.read_text(encoding="utf-8") for file in self.log_files())
        for request_id in (item["pk"].partition("#")[0] for item in items if item["sk"] == "head"):
            assert request_id in told, f"no log below {self.logs} tells of request {request_id}"
        leaks = self.leaks(texts_of(items))
        assert not leaks, f"{len(leaks)} lines of logs hold what they may not:\n" + "\n".join(leaks[:20])

    def leaks(self, texts: Iterable[str] = ()) -> list[str]:
        """What the logs hold so far of these texts and of all that was forbidden, for people."""
        return LogSearch({*texts, *self._texts}, self._names).in_files(self.log_files())

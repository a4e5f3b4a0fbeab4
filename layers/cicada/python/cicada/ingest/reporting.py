"""What a commit's report tells beside what was written."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence

from cicada.corpus.declared.declaration import CollectionDeclaration
from cicada.index.writer import Declares
from cicada.ingest.declaring import rules_digest

KEPT_SECTIONS = "what the collection holds of it keeps the sections of the previous declaration"
KEPT_UNDIVIDED = "what the collection holds of it has no sections"


def counted_sections(found: Iterable[Mapping[str, int]], declares: Declares) -> dict[str, int]:
    """Passages by section; those that are declared are named even where they have none."""
    declared = declares.sections if isinstance(declares, CollectionDeclaration) else ()
    total = Counter({section.name: 0 for section in declared})
    for one in found:
        total.update(one)
    return dict(total)


def notes_of_kept(
    sources: Iterable[str], declares: Declares, before: CollectionDeclaration | None
) -> dict[str, tuple[str, ...]]:
    """Notes on documents whose passages stay as they are, though the collection is divided otherwise from now on.

    Args:
        sources: the documents.
        declares: what the collection declares of itself now.
        before: what it declared before.
    """
    if declares == "as before" or rules_digest(declares) == rules_digest(before):
        return {}
    note = KEPT_UNDIVIDED if before is None else KEPT_SECTIONS
    return dict.fromkeys(sorted(sources), (note,))


def sum_of_costs(costs: Sequence[float | None]) -> float | None:
    """Costs together; None where one is not known."""
    return None if None in costs else sum(cost for cost in costs if cost is not None)

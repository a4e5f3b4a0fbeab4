"""One numbering of the values that several segments number each for itself."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray


@dataclass(frozen=True)
class Numbering:
    """The distinct values of several segments, ascending, about 12 bytes each: the values themselves stay there."""

    owner: NDArray[np.int32]
    """Shape ``(n,)``: a segment that has the value, by its place among those that were given."""
    code: NDArray[np.int32]
    """Shape ``(n,)``: its number there."""
    places: tuple[NDArray[np.int32], ...]
    """By segment: the number here of each of its values."""

    @classmethod
    def of(cls, segments: Sequence[Sequence[str]]) -> Numbering:
        """Number values, given by segment, there each once."""
        distinct = sorted({value for values in segments for value in values})
        place_of = {value: place for place, value in enumerate(distinct)}
        owner, code = np.zeros(len(distinct), dtype=np.int32), np.zeros(len(distinct), dtype=np.int32)
        places = []
        for number, values in enumerate(segments):
            place = np.fromiter((place_of[value] for value in values), dtype=np.int32, count=len(values))
            owner[place], code[place] = number, np.arange(len(values))
            places.append(place)
        return cls(owner, code, tuple(places))

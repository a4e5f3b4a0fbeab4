"""For all tests: what they assert is behaviour, so no example of a property fails for the time that it takes."""

from __future__ import annotations

from hypothesis import settings

settings.register_profile("untimed", deadline=None)
settings.load_profile("untimed")

"""Amazon Kendra on a laptop: see :mod:`local.kendra.server`."""

from local.kendra.server import Kendra

__all__ = ["Kendra"]

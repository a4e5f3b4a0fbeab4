"""Amazon Kendra on a laptop: see :mod:`cicada_local.kendra.server`."""

from cicada_local.kendra.server import Kendra

__all__ = ["Kendra"]

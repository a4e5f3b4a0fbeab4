"""Amazon S3 Vectors on a laptop: see :mod:`cicada_local.s3vectors.server`."""

from cicada_local.s3vectors.server import S3Vectors
from cicada_local.s3vectors.store import VectorStore

__all__ = ["S3Vectors", "VectorStore"]

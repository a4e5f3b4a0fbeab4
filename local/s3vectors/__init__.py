"""Amazon S3 Vectors on a laptop: see :mod:`local.s3vectors.server`."""

from local.s3vectors.server import S3Vectors
from local.s3vectors.store import VectorStore

__all__ = ["S3Vectors", "VectorStore"]

"""Amazon S3 Vectors as a retrieval engine: a copy of one version of the index, searched by the service.

An index in ENHANCED mode ranks by vectors, by words (BM25) or by both (reciprocal rank fusion) in one call, and applies
filters before it ranks.

Source: botocore's service model ``s3vectors`` of API version 2025-07-15 (botocore 1.44), and the Amazon S3 User Guide:
"Limitations and restrictions", "Metadata filtering", "Querying with full-text and vector search", "Changing a vector
index's mode".
"""

from cicada.retrieval.s3vectors.retriever import S3VectorsRetriever

__all__ = ["S3VectorsRetriever"]

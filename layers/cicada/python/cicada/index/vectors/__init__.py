"""Vector search over a segment's rows: sign codes to find candidates, 8-bit rows to score them, clusters to start cold.

``layout`` says how they lie in a segment, ``encode`` writes them, ``part`` opens them. ``search`` ranks: by ``probe``
(the query against the clusters), ``scan`` (the codes), ``cold`` (what to read) and ``score``.
"""

from cicada.index.vectors.encode import encode_vectors
from cicada.index.vectors.part import VectorPart, decode_vectors
from cicada.index.vectors.search import VectorHits, cosines, search_vectors

__all__ = ["VectorHits", "VectorPart", "cosines", "decode_vectors", "encode_vectors", "search_vectors"]

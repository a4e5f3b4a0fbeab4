"""Vector search over a segment's rows: sign codes to find candidates, 8-bit rows to score them, clusters to start cold.

``part`` says how vectors lie in a segment and opens them, ``encoding`` writes them, ``scan`` finds candidates by their
codes, and ``search`` scores and ranks, whether rows are in memory or read by range.
"""

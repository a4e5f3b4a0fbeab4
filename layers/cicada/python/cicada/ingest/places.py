"""Where what is made of documents lies in the bucket."""

PREPARED = "prepared/"
"""Begins the keys of prepared documents."""
ENRICHED = "enriched/"
"""Begins the keys of what models have made of texts."""

"""Retrieval in stages, with one typed request and response for all callers."""

"""Retrieval in stages: one typed request, one typed response, whoever asks."""

"""A collection's declaration: the ``collection.yaml`` beside its data."""

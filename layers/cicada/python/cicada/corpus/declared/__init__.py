"""What a collection declares of itself, in a ``collection.yaml`` beside its data."""

"""The index in S3: immutable segments under a versioned manifest."""

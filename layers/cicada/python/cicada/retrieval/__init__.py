"""The retrieval port and its backends."""
